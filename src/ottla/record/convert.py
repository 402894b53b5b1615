"""Between the record formats: old message sets up to v2 batches, batches down to what old consumers read."""

from ottla.record._kernel_types import Buffer
from ottla.record.batch import Batch, batches
from ottla.record.build import build_batch
from ottla.record.compression import Codec
from ottla.record.kernels import Record, read
from ottla.record.legacy import Budget, Message, build_message_set, entries, messages, unwrap
from ottla.wire.errors import EncodeError, ErrorCode, ProtocolError

_LARGEST_INT32 = 2**31 - 1


def upconvert(
    message_set: Buffer,
    limit: int,
    *,
    base_offset: int | None = None,
    append_time: int | None = None,
    codec: Codec | None = None,
    level: int | None = None,
    partial_tail: bool = False,
) -> bytes:
    """A message set of magic 0 or 1, or a mix, as one v2 batch; nothing for an empty set.

    Its wrappers may decompress to `limit` bytes. The messages keep their offsets, or are numbered from `base_offset`
    as a broker does with what is produced. They keep their timestamps, -1 in magic 0, unless the broker stamps the
    batch with `append_time`. The codec is that of the last wrapper unless another is asked for.

    >>> old = build_message_set([Record(0, -1, b"k", b"v"), Record(1, -1, None, b"w")], magic=0)
    >>> batch = Batch(upconvert(old, limit=1 << 20, base_offset=70))
    >>> batch.base_offset, batch.last_offset, batch.max_timestamp
    (70, 71, -1)
    """
    found = list(messages(message_set, limit, partial_tail=partial_tail))
    if not found:
        return b""
    if base_offset is None:
        _check_offsets(found)
        converted = [Record(m.offset, m.timestamp, m.key, m.value) for m in found]
    else:
        converted = [Record(offset, m.timestamp, m.key, m.value) for offset, m in enumerate(found, start=base_offset)]
    if append_time is None:
        append_time = _common_append_time(found)
    if codec is None:
        codec = next((m.codec for m in reversed(found) if m.codec is not Codec.NONE), Codec.NONE)
    _check_timestamps(found)
    return build_batch(converted, codec, append_time=append_time, level=level)


def downconvert(run: Buffer, magic: int, limit: int, *, first_offset: int = 0, zstd_as: Codec | None = None) -> bytes:
    """A run of batches as a message set of magic 0 or 1, for a consumer that reads from `first_offset`.

    What is in an old enough format already stays as it is. Headers, control batches and, in magic 0, timestamps have
    no place in the old formats and are dropped. Offsets, timestamp type and codec are kept; there is no zstd in them,
    so that is an error unless `zstd_as` names a codec to use instead. All the run may decompress to `limit` bytes.

    Old consumers take each message that is not compressed for wanted, so those before `first_offset` are left out;
    within a wrapper they skip by themselves. The result is empty if nothing of the run is for applications.

    >>> new = build_batch([Record(n, 1500, None, b"v", [("trace", b"1")]) for n in range(5, 9)])
    >>> [message.offset for message in messages(downconvert(new, 1, limit=1 << 20, first_offset=7), limit=0)]
    [7, 8]
    """
    _check_old(magic)
    budget = Budget(limit)
    parts: list[Buffer] = []
    for item in batches(run):
        if isinstance(item, Batch):
            if not item.control:
                parts.append(_batch_down(item, magic, budget, first_offset, zstd_as))
        elif item.magic <= magic:
            parts.append(item.data)
        else:
            parts += (_rewritten(entry, magic, budget, first_offset) for entry in entries(item.data))
    return b"".join(parts)


def reformat(message_set: Buffer, magic: int, limit: int, *, partial_tail: bool = True) -> bytes:
    """A message set with every entry in magic 0, or every entry in magic 1.

    Wrappers stay wrappers with the same messages, in the same codec and at the same offsets, and may decompress to
    `limit` bytes. What comes from magic 0 has the timestamp -1.

    >>> old = build_message_set([Record(5, -1, None, b"v")], magic=0)
    >>> reformat(old, 1, limit=0) == build_message_set([Record(5, -1, None, b"v")], magic=1)
    True
    """
    _check_old(magic)
    budget = Budget(limit)
    return b"".join(_rewritten(entry, magic, budget) for entry in entries(message_set, partial_tail=partial_tail))


def _check_old(magic: int) -> None:
    if magic not in (0, 1):
        raise EncodeError(f"a message set has magic 0 or 1, not {magic}")


def _batch_down(batch: Batch, magic: int, budget: Budget, first_offset: int, zstd_as: Codec | None) -> bytes:
    codec = batch.codec
    if codec is Codec.ZSTD:
        if zstd_as is None:
            raise ProtocolError(
                f"the batch at offset {batch.base_offset} is compressed with zstd, which magic {magic} does not have",
                code=ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
            )
        codec = zstd_as
    # The messages get checksums of their own, which must not vouch for bytes that were damaged before.
    batch.check_crc()
    section = batch.section(budget.left)
    if batch.codec is not Codec.NONE:
        budget.left -= len(section)
    kept = read(section, batch.count, batch.base_offset, batch.base_timestamp, batch.append_time)
    if codec is Codec.NONE:
        kept = [record for record in kept if record.offset >= first_offset]
    return build_message_set(kept, magic, codec, log_append_time=batch.log_append_time, drop_headers=True)


def _rewritten(entry: Message, magic: int, budget: Budget, first_offset: int | None = None) -> bytes:
    found = list(unwrap(entry, budget))
    if entry.codec is Codec.NONE and first_offset is not None and entry.offset < first_offset:
        return b""
    _check_offsets(found)
    kept = [Record(message.offset, message.timestamp, message.key, message.value) for message in found]
    return build_message_set(kept, magic, entry.codec, log_append_time=entry.log_append_time)


def _common_append_time(found: list[Message]) -> int | None:
    """The time at which all messages were appended, if there is one; only then can a batch say so for all."""
    first = found[0]
    if all(message.log_append_time and message.timestamp == first.timestamp for message in found):
        return first.timestamp
    return None


def _check_offsets(found: list[Message]) -> None:
    last = found[0].offset - 1
    for message in found:
        if message.offset <= last or message.offset - found[0].offset > _LARGEST_INT32:
            raise _invalid(f"offset {message.offset} follows {last} in a set that begins at {found[0].offset}")
        last = message.offset


def _check_timestamps(found: list[Message]) -> None:
    first = found[0].timestamp
    for message in found:
        if not -(2**63) <= message.timestamp - first < 2**63:
            raise _invalid(f"timestamps {first} and {message.timestamp} are too far apart for one batch")


def _invalid(reason: str) -> ProtocolError:
    return ProtocolError(reason, where="message set", code=ErrorCode.INVALID_RECORD)
