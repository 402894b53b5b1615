"""What the compiled kernels and their Python twin share: the faults they report and the shapes they exchange."""

from collections.abc import Iterable
from enum import IntEnum, unique
from typing import NamedTuple

from ottla.wire.errors import EncodeError, ErrorCode, ProtocolError

Buffer = bytes | bytearray | memoryview
Headers = Iterable[tuple[str, bytes | None]]

LARGEST_INT32 = 2**31 - 1
LARGEST_INT64 = 2**63 - 1
SMALLEST_INT64 = -(2**63)

SMALLEST_RECORD = 7
"""Bytes of the shortest record: length, attributes, two deltas, two null lengths and a header count of zero."""

SMALLEST_HEADER = 2
"""Bytes of the shortest header: an empty key and a null value."""

LARGEST_SECTION = LARGEST_INT32 - 49
"""Bytes of records that a batch can hold: its int32 length also counts 49 bytes of the batch header."""


LONGEST_INLINE = 12
"""Bytes of the longest value that is in its Arrow view; a longer one is elsewhere."""

LARGEST_ROOM = 1024
"""Bytes that a writer leaves before the records at most."""


@unique
class Fault(IntEnum):
    """Why a records section was refused. Both kernels report these numbers; the words are in one place, here."""

    VARINT_CUT = 1
    VARINT_LONG = 2
    RECORD_LENGTH = 3
    OFFSET_DELTA = 4
    KEY_LENGTH = 5
    VALUE_LENGTH = 6
    HEADER_COUNT = 7
    HEADER_KEY_LENGTH = 8
    HEADER_VALUE_LENGTH = 9
    RECORD_TAIL = 10
    SECTION_TAIL = 11
    OFFSET_OVERFLOW = 12
    TIMESTAMP_OVERFLOW = 13


_REASONS = {
    Fault.VARINT_CUT: "the bytes end inside a varint",
    Fault.VARINT_LONG: "a varint does not fit its {value} bits",
    Fault.RECORD_LENGTH: "record length {value} is below 6 or beyond the bytes that are left",
    Fault.OFFSET_DELTA: "offset delta {value} does not follow the one before it",
    Fault.KEY_LENGTH: "key length {value} is below -1 or beyond the record",
    Fault.VALUE_LENGTH: "value length {value} is below -1 or beyond the record",
    Fault.HEADER_COUNT: "header count {value} is negative or cannot fit in the record",
    Fault.HEADER_KEY_LENGTH: "header key length {value} is negative or beyond the record",
    Fault.HEADER_VALUE_LENGTH: "header value length {value} is below -1 or beyond the record",
    Fault.RECORD_TAIL: "the record's length leaves {value} bytes after its last field",
    Fault.SECTION_TAIL: "{value} bytes follow the last record",
    Fault.OFFSET_OVERFLOW: "offset delta {value} leads past the largest offset",
    Fault.TIMESTAMP_OVERFLOW: "timestamp delta {value} leads outside 64 bits",
}


def record_error(fault: int, position: int, record: int, value: int) -> ProtocolError:
    """The exception for a fault at byte `position` of the records section, in the record of that number."""
    reason = _REASONS[Fault(fault)].format(value=value)
    return ProtocolError(reason, offset=position, where=f"record {record}", code=ErrorCode.INVALID_RECORD)


def count_error(count: int, size: int) -> ProtocolError:
    """The exception for a record count that the bytes cannot hold."""
    return ProtocolError(
        f"{count} records cannot be held in {size} bytes", where="record count", code=ErrorCode.INVALID_RECORD
    )


@unique
class RowFault(IntEnum):
    """Why a row of columns cannot become a record."""

    KEY_BOUNDS = 1
    VALUE_BOUNDS = 2
    HEADER_BOUNDS = 3
    HEADER_KEY_BOUNDS = 4
    HEADER_VALUE_BOUNDS = 5
    HEADER_KEY_NULL = 6
    TIMESTAMP_OVERFLOW = 7
    TOO_LARGE = 8
    OFFSET_FULL = 9
    NO_SUCH_ROW = 10


_ROW_REASONS = {
    RowFault.KEY_BOUNDS: "the key's offsets point outside the column's data",
    RowFault.VALUE_BOUNDS: "the value's offsets point outside the column's data",
    RowFault.HEADER_BOUNDS: "the offsets of the header list point outside its headers",
    RowFault.HEADER_KEY_BOUNDS: "a header key's offsets point outside the column's data",
    RowFault.HEADER_VALUE_BOUNDS: "a header value's offsets point outside the column's data",
    RowFault.HEADER_KEY_NULL: "a header key is null",
    RowFault.TIMESTAMP_OVERFLOW: "the timestamp is more than 64 bits away from the batch's first",
    RowFault.TOO_LARGE: "the record is larger than a batch can be",
    RowFault.OFFSET_FULL: "the batch has a record at its last possible offset, 2**31 - 1 past the first",
    RowFault.NO_SUCH_ROW: "the columns have no such row",
}


def room_of(room: int) -> int:
    """The bytes to leave before records; ValueError if that is not what a header could take."""
    if not 0 <= room <= LARGEST_ROOM:
        raise ValueError(f"room is {room}; from 0 to {LARGEST_ROOM} bytes can be left before the records")
    return room


def row_error(fault: int, row: int) -> EncodeError:
    """The exception for a row that cannot be written."""
    return EncodeError(f"{_ROW_REASONS[RowFault(fault)]} (row {row})")


def offset_error(offset: int, base_offset: int, last_offset_delta: int) -> EncodeError:
    """The exception for an offset that a batch cannot take next."""
    return EncodeError(
        f"offset {offset} is not after {base_offset + last_offset_delta}, or 2**31 or more past {base_offset}"
    )


CONSUMER_FIELDS = ("topic", "partition", "offset", "timestamp", "timestamp_type", "key", "value", "headers")
"""The fields of the type whose instances `read_tuples` makes."""


def record_type_error(record_type: type) -> TypeError:
    """The exception for a type of which `read_tuples` cannot make instances."""
    fields = ", ".join(CONSUMER_FIELDS)
    return TypeError(f"{record_type.__name__} is not a NamedTuple, without attributes of its own, of {fields}")


class Summary(NamedTuple):
    """What one pass over a records section learns without making an object per record.

    For an empty section `last_offset_delta` and `max_timestamp_offset_delta` are -1.
    """

    last_offset_delta: int
    min_timestamp_delta: int
    max_timestamp_delta: int
    max_timestamp_offset_delta: int
    """Where the largest timestamp delta first occurs."""
    null_keys: int
    key_bytes: int
    value_bytes: int
    header_count: int
    header_key_bytes: int
    header_value_bytes: int


class BinaryColumn(NamedTuple):
    """Arrow's layout of a variable-width column; row `i` is entry `start + i` of validity and offsets.

    No validity means that nothing is null. Offsets are int32, or int64 when `wide`.
    """

    length: int
    validity: Buffer | None
    offsets: Buffer
    data: Buffer
    start: int = 0
    wide: bool = False


class ViewColumn(NamedTuple):
    """Arrow's layout of binary views, which point into `sources`. No validity means that nothing is null."""

    length: int
    validity: Buffer | None
    views: Buffer
    sources: tuple[Buffer, ...]


class HeaderColumn(NamedTuple):
    """Arrow's layout of list<struct<key, value>>; the struct's own validity is merged into its children."""

    length: int
    validity: Buffer | None
    offsets: Buffer
    keys: BinaryColumn
    values: BinaryColumn
    start: int = 0
    wide: bool = False


class ColumnBuffers(NamedTuple):
    """The arrays of a run of records: int64 offsets and timestamps, and the columns that were asked for."""

    rows: int
    offsets: Buffer
    timestamps: Buffer
    key: BinaryColumn | None
    value: BinaryColumn | ViewColumn | None
    headers: HeaderColumn | None
