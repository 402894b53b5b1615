"""Reading v2 records in Python; the twin of `_kernels_read.pxi`."""

from collections.abc import Iterator
from dataclasses import dataclass
from operator import index

from ottla.record._kernel_types import (
    LARGEST_INT64,
    SMALLEST_HEADER,
    SMALLEST_INT64,
    SMALLEST_RECORD,
    Buffer,
    Fault,
    Headers,
    Summary,
    count_error,
    record_error,
)


@dataclass(frozen=True, slots=True)
class Record:
    """One record: where it is, when it was, and what it carries. Immutable.

    >>> Record(7, 1_700_000_000_000, b"user-1", b"hello", [("trace", b"a1")]).headers
    (('trace', b'a1'),)
    """

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()

    def __init__(
        self, offset: int, timestamp: int, key: bytes | None, value: bytes | None, headers: Headers = ()
    ) -> None:
        put = object.__setattr__
        put(self, "offset", int64(offset))
        put(self, "timestamp", int64(timestamp))
        put(self, "key", exactly_bytes(key, "key"))
        put(self, "value", exactly_bytes(value, "value"))
        put(self, "headers", tuple(headers))

    def __reduce__(self) -> tuple[object, ...]:
        return Record, (self.offset, self.timestamp, self.key, self.value, self.headers)


@dataclass(slots=True)
class _Parsed:
    """One record's fields as positions in the section; a length of -1 is null."""

    timestamp_delta: int
    offset_delta: int
    key_at: int
    key_length: int
    value_at: int
    value_length: int
    header_count: int
    headers_at: int
    end: int


def scan(data: Buffer, count: int, gaps: bool = False) -> Summary:
    """Check that `data` is exactly `count` well-formed v2 records, and sum up what they hold.

    Offset deltas must run 0, 1, 2 and so on, as clients write them; with `gaps` they need only increase.
    """
    view = view_of(data)
    check_count(count, len(view))
    last_offset_delta, null_keys, key_bytes, value_bytes = -1, 0, 0, 0
    min_timestamp_delta, max_timestamp_delta, max_timestamp_offset_delta = 0, 0, -1
    header_count, header_key_bytes, header_value_bytes = 0, 0, 0
    for number, record in walk(view, count, gaps):
        last_offset_delta = record.offset_delta
        if number == 0 or record.timestamp_delta < min_timestamp_delta:
            min_timestamp_delta = record.timestamp_delta
        if number == 0 or record.timestamp_delta > max_timestamp_delta:
            max_timestamp_delta = record.timestamp_delta
            max_timestamp_offset_delta = record.offset_delta
        null_keys += record.key_length < 0
        key_bytes += max(record.key_length, 0)
        value_bytes += max(record.value_length, 0)
        header_count += record.header_count
        for _, key_length, _, value_length in headers_of(view, record, number):
            header_key_bytes += key_length
            header_value_bytes += max(value_length, 0)
    return Summary(
        last_offset_delta,
        min_timestamp_delta,
        max_timestamp_delta,
        max_timestamp_offset_delta,
        null_keys,
        key_bytes,
        value_bytes,
        header_count,
        header_key_bytes,
        header_value_bytes,
    )


def read(
    data: Buffer, count: int, base_offset: int, base_timestamp: int, append_time: int | None = None
) -> list[Record]:
    """The records of a section. `append_time`, where given, is the timestamp of every one of them.

    Header keys that are not UTF-8 are read with replacement characters, as the Java client does.
    """
    return [Record(*fields) for fields in record_fields(data, count, base_offset, base_timestamp, append_time)]


def record_fields(
    data: Buffer, count: int, base_offset: int, base_timestamp: int, append_time: int | None
) -> Iterator[tuple[int, int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]]:
    """The records of a section as tuples of offset, timestamp, key, value and headers."""
    view = view_of(data)
    check_count(count, len(view))
    base_offset, base_timestamp = int64(base_offset), int64(base_timestamp)
    append_time = None if append_time is None else int64(append_time)
    position = 0
    for number, record in walk(view, count, True):
        offset, timestamp = place(record, position, number, base_offset, base_timestamp, append_time)
        headers = tuple(
            (
                str(view[key_at : key_at + key_length], "utf-8", "replace"),
                _slice(view, value_at, value_length),
            )
            for key_at, key_length, value_at, value_length in headers_of(view, record, number)
        )
        key = _slice(view, record.key_at, record.key_length)
        value = _slice(view, record.value_at, record.value_length)
        yield offset, timestamp, key, value, headers
        position = record.end


def walk(view: memoryview, count: int, gaps: bool) -> Iterator[tuple[int, _Parsed]]:
    at, last_delta = 0, -1
    for number in range(count):
        record = _parse(view, at, number, last_delta, gaps)
        yield number, record
        at, last_delta = record.end, record.offset_delta
    if at != len(view):
        raise record_error(Fault.SECTION_TAIL, at, count, len(view) - at)


def _parse(view: memoryview, start: int, number: int, last_delta: int, gaps: bool) -> _Parsed:
    length, at = _varint(view, start, len(view), 32, number)
    if length < SMALLEST_RECORD - 1 or length > len(view) - at:
        raise record_error(Fault.RECORD_LENGTH, start, number, length)
    end = at + length
    # The attributes byte of a record carries nothing.
    timestamp_delta, delta_at = _varint(view, at + 1, end, 64, number)
    offset_delta, key_at = _varint(view, delta_at, end, 32, number)
    if offset_delta <= last_delta or (not gaps and offset_delta != last_delta + 1):
        raise record_error(Fault.OFFSET_DELTA, delta_at, number, offset_delta)
    key_length, key_at = _length(view, key_at, end, number, Fault.KEY_LENGTH)
    value_length, value_at = _length(view, key_at + max(key_length, 0), end, number, Fault.VALUE_LENGTH)
    count_at = value_at + max(value_length, 0)
    header_count, headers_at = _varint(view, count_at, end, 32, number)
    if header_count < 0 or header_count > (end - headers_at) // SMALLEST_HEADER:
        raise record_error(Fault.HEADER_COUNT, count_at, number, header_count)
    if header_count == 0 and headers_at != end:
        raise record_error(Fault.RECORD_TAIL, headers_at, number, end - headers_at)
    return _Parsed(
        timestamp_delta,
        offset_delta,
        key_at,
        key_length,
        value_at,
        value_length,
        header_count,
        headers_at,
        end,
    )


def headers_of(view: memoryview, record: _Parsed, number: int) -> Iterator[tuple[int, int, int, int]]:
    """Each header as key position, key length, value position, value length."""
    if not record.header_count:
        return
    at, end = record.headers_at, record.end
    for _ in range(record.header_count):
        key_length, key_at = _varint(view, at, end, 32, number)
        if key_length < 0 or key_length > end - key_at:
            raise record_error(Fault.HEADER_KEY_LENGTH, at, number, key_length)
        value_length, value_at = _length(view, key_at + key_length, end, number, Fault.HEADER_VALUE_LENGTH)
        at = value_at + max(value_length, 0)
        yield key_at, key_length, value_at, value_length
    if at != end:
        raise record_error(Fault.RECORD_TAIL, at, number, end - at)


def _length(view: memoryview, start: int, end: int, number: int, fault: Fault) -> tuple[int, int]:
    length, at = _varint(view, start, end, 32, number)
    if length < -1 or length > end - at:
        raise record_error(fault, start, number, length)
    return length, at


def _varint(view: memoryview, start: int, end: int, bits: int, number: int) -> tuple[int, int]:
    """A zigzag varint and the position after it. The last byte it may have must not carry more than its bits."""
    raw, shift, at = 0, 0, start
    last_shift = 28 if bits == 32 else 63
    while True:
        if at >= end:
            raise record_error(Fault.VARINT_CUT, start, number, bits)
        byte = view[at]
        at += 1
        if shift == last_shift and byte > (0x0F if bits == 32 else 0x01):
            raise record_error(Fault.VARINT_LONG, start, number, bits)
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (raw >> 1) ^ -(raw & 1), at
        shift += 7


def place(
    record: _Parsed,
    position: int,
    number: int,
    base_offset: int,
    base_timestamp: int,
    append_time: int | None,
) -> tuple[int, int]:
    """Absolute offset and timestamp of a record that starts at `position`."""
    offset = base_offset + record.offset_delta
    if offset > LARGEST_INT64:
        raise record_error(Fault.OFFSET_OVERFLOW, position, number, record.offset_delta)
    if append_time is not None:
        return offset, append_time
    timestamp = base_timestamp + record.timestamp_delta
    if not SMALLEST_INT64 <= timestamp <= LARGEST_INT64:
        raise record_error(Fault.TIMESTAMP_OVERFLOW, position, number, record.timestamp_delta)
    return offset, timestamp


def view_of(data: Buffer) -> memoryview:
    view = memoryview(data)
    if not view.c_contiguous:
        raise BufferError("the bytes are not contiguous in memory")
    return view if view.format == "B" and view.ndim == 1 else view.cast("B")


def check_count(count: int, size: int) -> None:
    if not 0 <= int64(count) <= size // SMALLEST_RECORD:
        raise count_error(count, size)


def _slice(view: memoryview, at: int, length: int) -> bytes | None:
    return None if length < 0 else bytes(view[at : at + length])


def exactly_bytes(data: bytes | None, what: str) -> bytes | None:
    if data is None or type(data) is bytes:
        return data
    if not isinstance(data, bytes):
        raise TypeError(f"a {what} is bytes or None, not {type(data).__name__}")
    return bytes(data)


def int64(value: int) -> int:
    number = index(value)
    if not SMALLEST_INT64 <= number <= LARGEST_INT64:
        raise OverflowError(f"{number} does not fit in 64 bits")
    return number
