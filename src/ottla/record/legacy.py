"""Message sets of magic 0 and 1, the record formats of Kafka 0.8 to 0.10.

A set is a plain run of entries: offset, size, CRC-32, magic, attributes, in magic 1 a timestamp, key, value. A
compressed set is one entry, the wrapper, whose value holds a compressed set. Inside, magic 0 has absolute offsets;
magic 1 counts from the first message and the wrapper's own offset is that of the last one.

The kernels do the work on runs of plain messages. Here is how the runs are found: between wrappers and inside them.
"""

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple
from zlib import crc32

from ottla.record._kernel_types import LARGEST_INT64, Buffer
from ottla.record._legacy_types import LOG_APPEND_TIME, MessageFault, message_error, unfit_error
from ottla.record.compression import Codec, compress, decompress
from ottla.record.kernels import MessageRun, MessageWriter, Record, last_offset, message_at, read_run, run_end, scan_run
from ottla.wire.errors import EncodeError, ErrorCode, ProtocolError

NO_TIMESTAMP = -1
"""The timestamp of a message that has none, as in magic 0."""

DEEPEST_NESTING = 4
"""How many wrappers may enclose a message. Clients write one; the format's definition allows any number."""

_ENTRY_START = struct.Struct(">qiI")
# Magic, attributes, in magic 1 the timestamp, no key, and the length of the value.
_WRAPPER_BODY = (struct.Struct(">bbii"), struct.Struct(">bbqii"))


class Message(NamedTuple):
    """A message with what its entry, or the wrapper around it, says of it."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    magic: int
    codec: Codec
    log_append_time: bool


class Budget:
    """How many bytes may still come out of decompression, where several pieces share one limit."""

    def __init__(self, limit: int) -> None:
        self.left = limit


def entries(buffer: Buffer, *, partial_tail: bool = True) -> Iterator[Message]:
    """The entries of a message set as they are stored; a wrapper's value stays compressed.

    A broker cuts what it sends at a size, so the last entry of a fetched set may be incomplete and is left out.
    In a produced set that is an error: pass `partial_tail=False`.

    >>> [entry.codec.name for entry in entries(build_message_set([Record(7, 0, None, b"v")], 1, Codec.GZIP))]
    ['GZIP']
    """
    return _entries(_whole(buffer), partial_tail)


def messages(buffer: Buffer, limit: int, *, partial_tail: bool = True) -> Iterator[Message]:
    """The messages of a set with those inside wrappers, which may decompress to `limit` bytes together.

    Offsets are absolute. `codec` is that of the wrapper; so is the timestamp if it is the time of the append.
    """
    for run in runs(buffer, limit, partial_tail=partial_tail):
        for message in _entries(run, False):
            yield message._replace(codec=Codec(run.codec))


def pieces(buffer: Buffer, *, partial_tail: bool = True) -> Iterator[MessageRun | Message]:
    """A message set as the kernels take it: runs of plain messages, and the wrappers among them."""
    return _pieces(_whole(buffer), partial_tail)


def runs_of(piece: MessageRun | Message, budget: Budget) -> Iterator[MessageRun]:
    """The runs of messages inside a wrapper, or the run itself."""
    return iter((piece,)) if isinstance(piece, MessageRun) else _inside(piece, budget, 1)


def runs(buffer: Buffer, limit: int, *, partial_tail: bool = True) -> Iterator[MessageRun]:
    """The messages of a set with those inside wrappers, as runs of plain messages.

    They may decompress to `limit` bytes together.
    """
    budget = Budget(limit)
    for piece in pieces(buffer, partial_tail=partial_tail):
        yield from runs_of(piece, budget)


def read_messages(buffer: Buffer, limit: int, *, partial_tail: bool = True) -> list[Record]:
    """The messages of a set as records, those inside wrappers included.

    >>> produced = build_message_set([Record(7, 1500, b"k", b"v"), Record(9, 1501, None, b"w")], 1, Codec.SNAPPY)
    >>> [(record.offset, record.value) for record in read_messages(produced, limit=1 << 20)]
    [(7, b'v'), (9, b'w')]
    """
    parts = [read_run(run) for run in runs(buffer, limit, partial_tail=partial_tail)]
    return parts[0] if len(parts) == 1 else list(chain.from_iterable(parts))


@dataclass(frozen=True, slots=True)
class MessageSetSummary:
    """What a broker has to know of a produced message set before it accepts it."""

    entry_count: int
    """Entries as stored; a wrapper counts as one. Kafka refuses a wrapper that is not alone."""
    message_count: int
    """Messages, those inside wrappers included."""
    magics: frozenset[int]
    """The formats in use, inside wrappers too. Kafka refuses a mix within a wrapper."""
    codecs: frozenset[Codec]
    """The codecs in use; empty for an empty set."""
    max_timestamp: int
    """The largest timestamp, -1 if there is none."""
    null_keys: int
    """How many messages have no key; a compacted topic refuses them."""
    log_append_time: bool
    """Whether any message claims the broker's timestamp type, which a producer may not."""
    sequential_offsets: bool
    """Whether the offsets inside each wrapper run 0, 1, 2, ... as a producer should set them; if not, the broker
    has to rewrite the wrapper. Offsets outside of wrappers are the broker's to assign and do not count."""


def check(buffer: Buffer, limit: int) -> MessageSetSummary:
    """Read a produced message set to its end and sum up what it holds.

    >>> check(build_message_set([Record(0, 5, None, b"v"), Record(1, 9, b"k", b"w")], 1), limit=0).max_timestamp
    9
    """
    budget = Budget(limit)
    entry_count = message_count = null_keys = 0
    magics: set[int] = set()
    codecs: set[Codec] = set()
    max_timestamp = NO_TIMESTAMP
    log_append_time = False
    sequential = True
    for piece in pieces(buffer, partial_tail=False):
        before = message_count
        for run in runs_of(piece, budget):
            totals = scan_run(run)
            if totals.magic_1:
                magics.add(1)
            if totals.magic_1 < totals.messages:
                magics.add(0)
            codecs.add(Codec(run.codec))
            null_keys += totals.null_keys
            max_timestamp = max(max_timestamp, totals.max_timestamp)
            log_append_time |= totals.log_append_times > 0
            expected = message_count - before
            sequential &= not run.codec or (totals.consecutive and totals.first_offset == expected)
            message_count += totals.messages
        if isinstance(piece, MessageRun):
            entry_count += message_count - before
        else:
            entry_count += 1
            magics.add(piece.magic)
    return MessageSetSummary(
        entry_count=entry_count,
        message_count=message_count,
        magics=frozenset(magics),
        codecs=frozenset(codecs),
        max_timestamp=max_timestamp,
        null_keys=null_keys,
        log_append_time=log_append_time,
        sequential_offsets=sequential,
    )


def first_offset_of(run: MessageRun) -> int:
    """The offset of a run's first message."""
    message = message_at(run, run.start)
    assert message is not None, "a run has whole messages, and at least one"
    return message.offset


def build_message_set(
    records: Iterable[Record],
    magic: int,
    codec: Codec = Codec.NONE,
    *,
    level: int | None = None,
    log_append_time: bool = False,
    drop_headers: bool = False,
) -> bytes:
    """Write records as a message set, with a codec as one wrapper around them all.

    The records keep their offsets, which must increase. Magic 0 has no timestamps. Neither format has headers:
    they are an error unless `drop_headers` is set.

    >>> build_message_set([Record(0, 0, None, b"v")], magic=0).hex(" ", -4)
    '00000000 00000000 0000000f d20cbff5 0000ffff ffff0000 000176'
    """
    writer = MessageWriter(magic, wrapped=codec is not Codec.NONE)
    writer.extend_records(records, drop_headers, log_append_time)
    return wrap(writer, codec, level=level, log_append_time=log_append_time)


def wrap(writer: MessageWriter, codec: Codec, *, level: int | None = None, log_append_time: bool = False) -> bytes:
    """What was written as a message set: with a codec as one wrapper, which says `log_append_time` for them all."""
    if codec is Codec.ZSTD:
        raise EncodeError(f"zstd needs record batches of magic 2, and cannot be used with magic {writer.magic}")
    if codec is Codec.NONE or not writer.count:
        return bytes(writer.messages())
    value = compress(codec, writer.messages(), level, legacy_lz4=writer.magic == 0)
    attributes = codec | LOG_APPEND_TIME if log_append_time and writer.magic else codec
    fixed = (writer.magic, attributes, writer.max_timestamp) if writer.magic else (writer.magic, attributes)
    try:
        body = _WRAPPER_BODY[writer.magic].pack(*fixed, -1, len(value))
        start = _ENTRY_START.pack(writer.last_offset, len(body) + len(value) + 4, crc32(value, crc32(body)))
    except struct.error as error:
        raise unfit_error(writer.last_offset) from error
    return b"".join((start, body, value))


def _whole(buffer: Buffer) -> MessageRun:
    view = memoryview(buffer)
    return MessageRun(view, 0, len(view))


def _entry_at(run: MessageRun, position: int, partial_tail: bool) -> tuple[Message, int] | None:
    """An entry and the position after it, or None if it is a partial one that may be left out."""
    stored = message_at(run, position)
    if stored is None:
        if partial_tail:
            return None
        raise message_error(MessageFault.CUT, position, run.stop - position)
    offset, timestamp, key, value, magic, codec, log_append_time, end = stored
    return Message(offset, timestamp, key, value, magic, Codec.of(codec), log_append_time), end


def _entries(run: MessageRun, partial_tail: bool) -> Iterator[Message]:
    position = run.start
    while position < run.stop:
        found = _entry_at(run, position, partial_tail)
        if found is None:
            return
        entry, position = found
        yield entry


def _pieces(whole: MessageRun, partial_tail: bool) -> Iterator[MessageRun | Message]:
    position = whole.start
    while position < whole.stop:
        end = run_end(whole, position)
        if end > position:
            yield whole._replace(start=position, stop=end)
            position = end
            continue
        # What is not plain is a wrapper, unless it is malformed or cut short.
        found = _entry_at(whole, position, partial_tail)
        if found is None:
            return
        wrapper, position = found
        yield wrapper


def _inside(wrapper: Message, budget: Budget, depth: int) -> Iterator[MessageRun]:
    if wrapper.codec is Codec.ZSTD:
        raise _bad_wrapper(wrapper, f"has magic {wrapper.magic}, for which zstd is not defined")
    if not wrapper.value:
        raise _bad_wrapper(wrapper, "has no value")
    if depth > DEEPEST_NESTING:
        raise _bad_wrapper(wrapper, f"is itself wrapped {DEEPEST_NESTING} times")
    data = decompress(wrapper.codec, wrapper.value, budget.left, legacy_lz4=wrapper.magic == 0)
    budget.left -= len(data)
    if not data:
        raise _bad_wrapper(wrapper, "holds no message")
    append_time = wrapper.timestamp if wrapper.log_append_time else None
    whole = MessageRun(data, 0, len(data), wrapper.codec, _shift(wrapper, data), append_time)
    for piece in _pieces(whole, partial_tail=False):
        if isinstance(piece, MessageRun):
            yield piece
        else:
            yield from _inside(piece, budget, depth + 1)


def _shift(wrapper: Message, data: Buffer) -> int:
    """What to add to the offsets inside a wrapper."""
    # Some versions of librdkafka leave a produced wrapper's offset at 0, whatever is inside.
    if wrapper.magic == 0 or wrapper.offset == 0:
        return 0
    last = last_offset(data)
    if not 0 <= wrapper.offset - last <= LARGEST_INT64:
        raise _bad_wrapper(wrapper, f"has an offset below that of its last message, {last}, or too far above")
    return wrapper.offset - last


def _bad_wrapper(wrapper: Message, reason: str) -> ProtocolError:
    """For what the CRC vouches for, so that sending it again cannot help."""
    name = f"the {wrapper.codec.name.lower()} wrapper at offset {wrapper.offset}"
    return ProtocolError(f"{name} {reason}", where="message set", code=ErrorCode.INVALID_RECORD)
