"""Message sets of magic 0 and 1, the record formats of Kafka 0.8 to 0.10.

A set is a plain run of entries: offset, size, CRC-32, magic, attributes, in magic 1 a timestamp, key, value. A
compressed set is one entry, the wrapper, whose value holds a compressed set. Inside, magic 0 has absolute offsets;
magic 1 counts from the first message and the wrapper's own offset is that of the last one.
"""

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple
from zlib import crc32

from ottla.record._kernel_types import Buffer
from ottla.record.compression import Codec, compress, decompress
from ottla.record.kernels import Record
from ottla.wire.errors import EncodeError, ErrorCode, ProtocolError

NO_TIMESTAMP = -1
"""The timestamp of a message that has none, as in magic 0."""

DEEPEST_NESTING = 4
"""How many wrappers may enclose a message. Clients write one; the format's definition allows any number."""

# By magic: offset, CRC, attributes, in magic 1 the timestamp, and the key's length; size and magic are skipped.
_ENTRY_HEADER = (struct.Struct(">q4xIxbi"), struct.Struct(">q4xIxbqi"))
_ENTRY_START = struct.Struct(">qi")
_CRC = struct.Struct(">I")
_BODY = (struct.Struct(">bb"), struct.Struct(">bbq"))
_INT32 = struct.Struct(">i")
_LOG_APPEND_TIME = 0x08
_LARGEST_OFFSET = 2**63 - 1
# Bytes of a message without key and value, by magic: CRC, magic, attributes, timestamp and the two lengths.
_SMALLEST_MESSAGE = (14, 22)


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
    view = memoryview(buffer)
    position, end = 0, len(view)
    while position < end:
        left = end - position
        if left < _ENTRY_START.size:
            size = -1
        else:
            _, size = _ENTRY_START.unpack_from(view, position)
            if size < _SMALLEST_MESSAGE[0]:
                raise _corrupt(f"message size {size} is below {_SMALLEST_MESSAGE[0]}", position)
        if size < 0 or size > left - _ENTRY_START.size:
            if partial_tail:
                return
            raise _corrupt(f"the last message is cut short: {left} bytes are left", position)
        following = position + _ENTRY_START.size + size
        yield _parse(view, position, following)
        position = following


def messages(buffer: Buffer, limit: int, *, partial_tail: bool = True) -> Iterator[Message]:
    """The messages of a set with those inside wrappers, which may decompress to `limit` bytes together.

    Offsets are absolute. `codec` is that of the wrapper; so is the timestamp if it is the time of the append.
    """
    budget = Budget(limit)
    for entry in entries(buffer, partial_tail=partial_tail):
        if entry.codec is Codec.NONE:
            yield entry
        else:
            yield from _inside(entry, budget, 1)


def unwrap(entry: Message, budget: Budget) -> Iterator[Message]:
    """The messages inside an entry, or the entry itself if it is no wrapper."""
    return iter((entry,)) if entry.codec is Codec.NONE else _inside(entry, budget, 1)


def read_messages(buffer: Buffer, limit: int, *, partial_tail: bool = True) -> list[Record]:
    """The messages of a set as records, those inside wrappers included.

    >>> produced = build_message_set([Record(7, 1500, b"k", b"v"), Record(9, 1501, None, b"w")], 1, Codec.SNAPPY)
    >>> [(record.offset, record.value) for record in read_messages(produced, limit=1 << 20)]
    [(7, b'v'), (9, b'w')]
    """
    return [
        Record(offset, timestamp, key, value)
        for offset, timestamp, key, value, _, _, _ in messages(buffer, limit, partial_tail=partial_tail)
    ]


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
    for entry in entries(buffer, partial_tail=False):
        entry_count += 1
        magics.add(entry.magic)
        for number, message in enumerate(unwrap(entry, budget)):
            message_count += 1
            magics.add(message.magic)
            codecs.add(message.codec)
            null_keys += message.key is None
            max_timestamp = max(max_timestamp, message.timestamp)
            log_append_time |= message.log_append_time
            sequential &= entry.codec is Codec.NONE or message.offset == number
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
    if magic not in (0, 1):
        raise EncodeError(f"a message set has magic 0 or 1, not {magic}")
    if codec is Codec.ZSTD:
        raise EncodeError(f"zstd needs record batches of magic 2, and cannot be used with magic {magic}")
    attributes = _LOG_APPEND_TIME if log_append_time and magic else 0
    relative = magic == 1 and codec is not Codec.NONE
    first_offset = last_offset = None
    max_timestamp = NO_TIMESTAMP
    parts: list[bytes] = []
    for record in records:
        if record.headers and not drop_headers:
            raise EncodeError(f"record {record.offset} has headers, which magic {magic} cannot carry")
        if first_offset is None or last_offset is None:
            first_offset = last_offset = record.offset
        elif record.offset <= last_offset:
            raise EncodeError(f"offset {record.offset} does not follow {last_offset}")
        last_offset = record.offset
        max_timestamp = max(max_timestamp, record.timestamp)
        offset = record.offset - first_offset if relative else record.offset
        _append(parts, offset, magic, attributes, record.timestamp, record.key, record.value)
    if codec is Codec.NONE or last_offset is None:
        return b"".join(parts)
    value = compress(codec, b"".join(parts), level, legacy_lz4=magic == 0)
    wrapper: list[bytes] = []
    _append(wrapper, last_offset, magic, attributes | codec, max_timestamp, None, value)
    return b"".join(wrapper)


def _append(
    parts: list[bytes],
    offset: int,
    magic: int,
    attributes: int,
    timestamp: int,
    key: bytes | None,
    value: bytes | None,
) -> None:
    try:
        fixed = _BODY[0].pack(0, attributes) if magic == 0 else _BODY[1].pack(1, attributes, timestamp)
        key_length = _INT32.pack(-1 if key is None else len(key))
        value_length = _INT32.pack(-1 if value is None else len(value))
        body = b"".join((fixed, key_length, key or b"", value_length, value or b""))
        parts.append(_ENTRY_START.pack(offset, len(body) + _CRC.size))
    except struct.error as error:
        raise EncodeError(f"the message at offset {offset} does not fit the format: {error}") from error
    parts += (_CRC.pack(crc32(body)), body)


def _corrupt(reason: str, offset: int | None = None) -> ProtocolError:
    return ProtocolError(reason, offset=offset, where="message set", code=ErrorCode.CORRUPT_MESSAGE)


def _invalid(reason: str, offset: int | None = None) -> ProtocolError:
    """For what the CRC vouches for, so that sending it again cannot help."""
    return ProtocolError(reason, offset=offset, where="message set", code=ErrorCode.INVALID_RECORD)


def _parse(view: memoryview, start: int, end: int) -> Message:
    magic = view[start + 16]
    if magic > 1:
        raise _corrupt(f"magic {magic} is not that of a message set", start + 16)
    if end - start < _ENTRY_HEADER[magic].size + _INT32.size:
        size, smallest = end - start - _ENTRY_START.size, _SMALLEST_MESSAGE[magic]
        raise _corrupt(f"message size {size} is below {smallest}", start + 8)
    if magic == 1:
        offset, crc, attributes, timestamp, key_length = _ENTRY_HEADER[1].unpack_from(view, start)
    else:
        offset, crc, attributes, key_length = _ENTRY_HEADER[0].unpack_from(view, start)
        timestamp = NO_TIMESTAMP
    actual = crc32(view[start + 16 : end])
    if actual != crc:
        raise _corrupt(f"the message's CRC is {crc:#010x}, its bytes give {actual:#010x}", start + 12)
    position = start + _ENTRY_HEADER[magic].size
    key = value = None
    if key_length != -1:
        # The value's length has its place in any case, so a key may not reach into the last four bytes.
        if not 0 <= key_length <= end - _INT32.size - position:
            raise _invalid(f"key length {key_length} is below -1 or beyond the message", position - _INT32.size)
        key = bytes(view[position : position + key_length])
        position += key_length
    (value_length,) = _INT32.unpack_from(view, position)
    position += _INT32.size
    if value_length != -1:
        # Kafka looks at nothing after the value, and neither does this.
        if not 0 <= value_length <= end - position:
            raise _invalid(f"value length {value_length} is below -1 or beyond the message", position - _INT32.size)
        value = bytes(view[position : position + value_length])
    codec = Codec.of(attributes) if attributes & 0x07 else Codec.NONE
    return Message(offset, timestamp, key, value, magic, codec, bool(magic and attributes & _LOG_APPEND_TIME))


def _inside(wrapper: Message, budget: Budget, depth: int) -> Iterator[Message]:
    name = f"the {wrapper.codec.name.lower()} wrapper at offset {wrapper.offset}"
    if wrapper.codec is Codec.ZSTD:
        raise _invalid(f"{name} has magic {wrapper.magic}, for which zstd is not defined")
    if not wrapper.value:
        raise _invalid(f"{name} has no value")
    if depth > DEEPEST_NESTING:
        raise _invalid(f"{name} is itself wrapped {DEEPEST_NESTING} times")
    data = decompress(wrapper.codec, wrapper.value, budget.left, legacy_lz4=wrapper.magic == 0)
    budget.left -= len(data)
    if not data:
        raise _invalid(f"{name} holds no message")
    base_offset = _base_offset(wrapper, data)
    for offset, timestamp, key, value, magic, codec, _ in entries(data, partial_tail=False):
        if base_offset and not 0 <= offset + base_offset <= _LARGEST_OFFSET:
            raise _invalid(f"{name} has offset {offset} relative to {base_offset}, which is out of range")
        # The type of timestamp is the wrapper's to say, and with it whose timestamp it is.
        log_append_time = wrapper.log_append_time and magic == 1
        if log_append_time:
            timestamp = wrapper.timestamp
        offset += base_offset
        if codec is Codec.NONE:
            yield Message(offset, timestamp, key, value, magic, wrapper.codec, log_append_time)
        else:
            yield from _inside(Message(offset, timestamp, key, value, magic, codec, log_append_time), budget, depth + 1)


def _base_offset(wrapper: Message, data: memoryview) -> int:
    """What to add to the offsets inside a wrapper."""
    # Some versions of librdkafka leave a produced wrapper's offset at 0, whatever is inside.
    if wrapper.magic == 0 or wrapper.offset == 0:
        return 0
    position = last_offset = 0
    while len(data) - position >= _ENTRY_START.size:
        last_offset, size = _ENTRY_START.unpack_from(data, position)
        position += _ENTRY_START.size + max(size, 0)
    if last_offset > wrapper.offset:
        raise _invalid(f"wrapper offset {wrapper.offset} is below that of its last message, {last_offset}")
    return wrapper.offset - last_offset
