"""Between the record formats: old message sets up to v2 batches, batches down to what old consumers read."""

from collections.abc import Iterator
from itertools import groupby

from ottla.record._kernel_types import SMALLEST_INT64, Buffer
from ottla.record._legacy_types import magic_error
from ottla.record.batch import Batch, batches
from ottla.record.build import BatchBuilder
from ottla.record.compression import Codec
from ottla.record.kernels import MessageRun, MessageTotals, MessageWriter, append_run
from ottla.record.legacy import Budget, first_offset_of, pieces, runs, runs_of, wrap
from ottla.wire.errors import ErrorCode, ProtocolError


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

    >>> from ottla.record import Batch, Record
    >>> from ottla.record.legacy import build_message_set
    >>> old = build_message_set([Record(0, -1, b"k", b"v"), Record(1, -1, None, b"w")], magic=0)
    >>> batch = Batch(upconvert(old, limit=1 << 20, base_offset=70))
    >>> batch.base_offset, batch.last_offset, batch.max_timestamp
    (70, 71, -1)
    """
    found = list(runs(message_set, limit, partial_tail=partial_tail))
    if not found:
        return b""
    if codec is None:
        codec = next((Codec(run.codec) for run in reversed(found) if run.codec), Codec.NONE)
    renumber = base_offset is not None
    builder = BatchBuilder(
        codec, base_offset=first_offset_of(found[0]) if base_offset is None else base_offset, level=level
    )
    totals = [append_run(builder, run, renumber) for run in found]
    return builder.build(append_time=_common_append_time(totals) if append_time is None else append_time)


def downconvert(run: Buffer, magic: int, limit: int, *, first_offset: int = 0, zstd_as: Codec | None = None) -> bytes:
    """A run of batches as a message set of magic 0 or 1, for a consumer that reads from `first_offset`.

    What is in an old enough format already stays as it is. Headers, control batches and, in magic 0, timestamps have
    no place in the old formats and are dropped. Offsets, timestamp type and codec are kept; there is no zstd in them,
    so that is an error unless `zstd_as` names a codec to use instead. All the run may decompress to `limit` bytes.

    Old consumers take each message that is not compressed for wanted, so those before `first_offset` are left out;
    within a wrapper they skip by themselves. The result is empty if nothing of the run is for applications.

    >>> from ottla.record import Record, build_batch
    >>> from ottla.record.legacy import entries
    >>> new = build_batch([Record(n, 1500, None, b"v", [("trace", b"1")]) for n in range(5, 9)])
    >>> [entry.offset for entry in entries(downconvert(new, 1, limit=1 << 20, first_offset=7))]
    [7, 8]
    """
    _check_old(magic)
    budget = Budget(limit)
    parts: list[Buffer] = []
    for found, group in groupby(batches(run), lambda item: max(item.magic, magic)):
        if found == magic:
            parts += (item.data for item in group)
        elif found == 1:
            parts += _reformatted(b"".join(item.data for item in group), magic, budget, first_offset)
        else:
            wanted = (item for item in group if isinstance(item, Batch) and not item.control)
            parts += (_batch_down(batch, magic, budget, first_offset, zstd_as) for batch in wanted)
    return b"".join(parts)


def reformat(message_set: Buffer, magic: int, limit: int, *, partial_tail: bool = True) -> bytes:
    """A message set with every entry in magic 0, or every entry in magic 1.

    Wrappers stay wrappers with the same messages, in the same codec and at the same offsets, and may decompress to
    `limit` bytes. What comes from magic 0 has the timestamp -1.

    >>> from ottla.record import Record
    >>> from ottla.record.legacy import build_message_set
    >>> old = build_message_set([Record(5, -1, None, b"v")], magic=0)
    >>> reformat(old, 1, limit=0) == build_message_set([Record(5, -1, None, b"v")], magic=1)
    True
    """
    _check_old(magic)
    return b"".join(_reformatted(message_set, magic, Budget(limit), partial_tail=partial_tail))


def _check_old(magic: int) -> None:
    if magic not in (0, 1):
        raise magic_error(magic)


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
    writer = MessageWriter(magic, wrapped=codec is not Codec.NONE)
    writer.extend_section(
        section,
        batch.count,
        batch.base_offset,
        batch.base_timestamp,
        batch.append_time,
        first_offset if codec is Codec.NONE else SMALLEST_INT64,
    )
    return wrap(writer, codec, log_append_time=batch.log_append_time)


def _reformatted(
    message_set: Buffer,
    magic: int,
    budget: Budget,
    first_offset: int = SMALLEST_INT64,
    *,
    partial_tail: bool = True,
) -> Iterator[bytes]:
    for piece in pieces(message_set, partial_tail=partial_tail):
        if isinstance(piece, MessageRun):
            writer = MessageWriter(magic)
            writer.extend_run(piece, first_offset)
            yield bytes(writer.messages())
        else:
            writer = MessageWriter(magic, wrapped=True)
            for run in runs_of(piece, budget):
                writer.extend_run(run)
            yield wrap(writer, piece.codec, log_append_time=piece.log_append_time)


def _common_append_time(totals: list[MessageTotals]) -> int | None:
    """The time at which all messages were appended, if there is one; only then can a batch say so for all."""
    first = totals[0].min_timestamp
    for part in totals:
        if part.log_append_times < part.messages or not part.min_timestamp == part.max_timestamp == first:
            return None
    return first
