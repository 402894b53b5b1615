"""Writing v2 records in Python; the twin of `_kernels_write.pxi`."""

from ottla.record._kernel_types import (
    LARGEST_INT32,
    LARGEST_INT64,
    LARGEST_SECTION,
    SMALLEST_INT64,
    BinaryColumn,
    Buffer,
    HeaderColumn,
    Headers,
    RowFault,
    offset_error,
    room_of,
    row_error,
)
from ottla.record._twin_read import exactly_bytes, int64, view_of
from ottla.wire.errors import EncodeError


class RecordWriter:
    """Writes v2 records one after another, from objects or from columns, until `limit` bytes are reached.

    The first record is taken even if it alone is over the limit, and sets the base timestamp unless that is given.
    `room` bytes before the records are left for whoever writes what comes first.

    >>> writer = RecordWriter(limit=1000)
    >>> writer.append(1_700_000_000_000, b"key", b"value")
    0
    >>> writer.append(1_700_000_000_005, None, b"other", [("trace", b"a1")])
    1
    >>> len(writer.records()) == writer.size
    True
    """

    def __init__(
        self, limit: int = LARGEST_SECTION, base_offset: int = 0, base_timestamp: int | None = None, room: int = 0
    ) -> None:
        self._limit = min(int64(limit), LARGEST_SECTION)
        self._base_offset = int64(base_offset)
        self._base_timestamp = None if base_timestamp is None else int64(base_timestamp)
        self._max_timestamp = -1
        self._last_offset_delta = -1
        self._count = 0
        self._room = room_of(room)
        self._data = bytearray(self._room)

    @property
    def limit(self) -> int:
        """Bytes that may be written. It may be set to another number at any time."""
        return self._limit

    @limit.setter
    def limit(self, value: int) -> None:
        self._limit = min(int64(value), LARGEST_SECTION)

    @property
    def size(self) -> int:
        """Bytes written so far."""
        return len(self._data) - self._room

    @property
    def count(self) -> int:
        """Records written so far."""
        return self._count

    @property
    def base_offset(self) -> int:
        """What the records' offsets are relative to."""
        return self._base_offset

    @property
    def last_offset_delta(self) -> int:
        """The last record's distance from the base offset, or -1."""
        return self._last_offset_delta

    @property
    def base_timestamp(self) -> int:
        """What the records' timestamps are relative to, or -1."""
        return -1 if self._base_timestamp is None else self._base_timestamp

    @property
    def max_timestamp(self) -> int:
        """The latest of the timestamps, or -1."""
        return self._max_timestamp

    def records(self) -> memoryview:
        """The records written so far. Release the view before appending more."""
        return memoryview(self._data)[self._room :]

    def with_room(self) -> memoryview:
        """The room that was asked for, to be written to, and the records after it. Release it before appending more."""
        return memoryview(self._data)

    def append(
        self,
        timestamp: int,
        key: Buffer | None,
        value: Buffer | None,
        headers: Headers = (),
        offset: int | None = None,
    ) -> int | None:
        """Add a record and return its offset delta, or return None, unchanged, if it would pass the limit.

        The offset is the next one unless it is given; it may leave a gap but not go back.
        """
        timestamp = int64(timestamp)
        header_count, header_bytes = _encode_headers(headers)
        key, value = _bytes(key), _bytes(value)
        delta = self._last_offset_delta + 1
        if offset is not None:
            delta = int64(offset) - self._base_offset
        if not self._last_offset_delta < delta <= LARGEST_INT32:
            raise offset_error(self._base_offset + delta, self._base_offset, self._last_offset_delta)
        timestamp_delta = self._timestamp_delta(timestamp, self._count)
        record = _encode(timestamp_delta, delta, key, value, header_count, header_bytes)
        return delta if self._take(record, timestamp, delta, self._count) else None

    def append_rows(
        self,
        start: int,
        stop: int,
        value: BinaryColumn | None,
        key: BinaryColumn | None = None,
        headers: HeaderColumn | None = None,
        timestamps: Buffer | None = None,
        timestamp: int = -1,
        selection: Buffer | None = None,
    ) -> int:
        """Add rows `start` to `stop` of columns as far as they fit, and return how many were added.

        `timestamps` are int64 milliseconds, one per row from row 0; without them `timestamp` is that of each row.
        `selection`, int64 row numbers, has other rows take their turn: entries `start` to `stop` of it say which.
        """
        timestamp = int64(timestamp)
        if not 0 <= start <= stop:
            raise IndexError(f"rows {start} to {stop} are not a range")
        # A selection may name any row, so it is checked against the columns row by row.
        reach = stop if selection is None else 0
        keys = None if key is None else BinarySource(key, reach)
        values = None if value is None else BinarySource(value, reach)
        lists = None if headers is None else _HeaderSource(headers, reach)
        times = None if timestamps is None else _int64s(timestamps)
        if times is not None and len(times) < reach:
            raise IndexError(f"timestamps hold {len(times)} rows and {reach} are wanted")
        available = min(
            (column.length for column in (key, value, headers) if column is not None), default=LARGEST_INT64
        )
        if times is not None:
            available = min(available, len(times))
        chosen = None if selection is None else _int64s(selection)
        if chosen is not None and len(chosen) < stop:
            raise IndexError(f"the selection holds {len(chosen)} rows and {stop} are wanted")
        for turn in range(start, stop):
            row = turn if chosen is None else chosen[turn]
            if not 0 <= row < available:
                raise row_error(RowFault.NO_SUCH_ROW, row)
            delta = self._last_offset_delta + 1
            if delta > LARGEST_INT32:
                raise row_error(RowFault.OFFSET_FULL, row)
            moment = timestamp if times is None else times[row]
            timestamp_delta = self._timestamp_delta(moment, row)
            key_bytes = None if keys is None else keys.get(row, row, RowFault.KEY_BOUNDS)
            value_bytes = None if values is None else values.get(row, row, RowFault.VALUE_BOUNDS)
            header_count, header_bytes = (0, b"") if lists is None else lists.encode(row)
            record = _encode(timestamp_delta, delta, key_bytes, value_bytes, header_count, header_bytes)
            if not self._take(record, moment, delta, row):
                return turn - start
        return stop - start

    def _timestamp_delta(self, timestamp: int, row: int) -> int:
        delta = 0 if self._base_timestamp is None else timestamp - self._base_timestamp
        if not SMALLEST_INT64 <= delta <= LARGEST_INT64:
            raise row_error(RowFault.TIMESTAMP_OVERFLOW, row)
        return delta

    def _take(self, record: bytes, timestamp: int, delta: int, row: int) -> bool:
        if self._count and self.size + len(record) > self._limit:
            return False
        if self.size + len(record) > LARGEST_SECTION:
            raise row_error(RowFault.TOO_LARGE, row)
        self._data += record
        if self._base_timestamp is None:
            self._base_timestamp = timestamp
        self._max_timestamp = timestamp if not self._count else max(self._max_timestamp, timestamp)
        self._last_offset_delta = delta
        self._count += 1
        return True


def _encode(
    timestamp_delta: int,
    offset_delta: int,
    key: bytes | None,
    value: bytes | None,
    header_count: int,
    header_bytes: bytes | bytearray,
) -> bytes:
    body = b"".join(
        (
            b"\0",
            _put_varint(timestamp_delta),
            _put_varint(offset_delta),
            _put_bytes(key),
            _put_bytes(value),
            _put_varint(header_count),
            header_bytes,
        )
    )
    return _put_varint(len(body)) + body


def _encode_headers(headers: Headers) -> tuple[int, bytearray]:
    count, out = 0, bytearray()
    for key, value in headers:
        if not isinstance(key, str):
            raise TypeError(f"a header key is a str, not {type(key).__name__}")
        data = exactly_bytes(value, "header value")
        try:
            out += _put_bytes(key.encode())
        except UnicodeEncodeError as error:
            raise EncodeError(f"header key {key!r} is not valid Unicode") from error
        out += _put_bytes(data)
        count += 1
    return count, out


def _put_bytes(data: bytes | None) -> bytes:
    return b"\x01" if data is None else _put_varint(len(data)) + data


def _put_varint(value: int) -> bytes:
    raw = value << 1 if value >= 0 else (~value << 1) | 1
    out = bytearray()
    while raw > 0x7F:
        out.append(raw & 0x7F | 0x80)
        raw >>= 7
    out.append(raw)
    return bytes(out)


def _bytes(data: Buffer | None) -> bytes | None:
    return data if data is None or type(data) is bytes else bytes(view_of(data))


class BinarySource:
    """Rows of an Arrow binary column."""

    def __init__(self, column: BinaryColumn, rows: int) -> None:
        self.length = column.length
        self.start = column.start
        self.validity, self.offsets = _layout(column, rows)
        self.data = view_of(column.data)

    def get(self, entry: int, row: int, fault: RowFault) -> bytes | None:
        entry += self.start
        if not _is_set(self.validity, entry):
            return None
        first, last = self.offsets[entry], self.offsets[entry + 1]
        if first < 0 or last < first or last > len(self.data):
            raise row_error(fault, row)
        return bytes(self.data[first:last])


class _HeaderSource:
    """Rows of an Arrow column of header lists."""

    def __init__(self, column: HeaderColumn, rows: int) -> None:
        self.start = column.start
        self.validity, self.offsets = _layout(column, rows)
        self.keys = BinarySource(column.keys, 0)
        self.values = BinarySource(column.values, 0)
        self.length = min(column.keys.length, column.values.length)

    def encode(self, row: int) -> tuple[int, bytes | bytearray]:
        entry = row + self.start
        if not _is_set(self.validity, entry):
            return 0, b""
        first, last = self.offsets[entry], self.offsets[entry + 1]
        if first < 0 or last < first or last > self.length:
            raise row_error(RowFault.HEADER_BOUNDS, row)
        out = bytearray()
        for header in range(first, last):
            key = self.keys.get(header, row, RowFault.HEADER_KEY_BOUNDS)
            if key is None:
                raise row_error(RowFault.HEADER_KEY_NULL, row)
            out += _put_bytes(key)
            out += _put_bytes(self.values.get(header, row, RowFault.HEADER_VALUE_BOUNDS))
        return last - first, out


def _layout(column: BinaryColumn | HeaderColumn, rows: int) -> tuple[memoryview | None, memoryview]:
    """Validity and offsets of a column, once its buffers are known to reach as far as it says and as wanted."""
    if int64(column.start) < 0 or int64(column.length) < rows:
        raise IndexError(f"the column has {column.length} rows and {rows} are wanted")
    validity = None if column.validity is None else view_of(column.validity)
    offsets = view_of(column.offsets)
    entries, width = column.start + column.length, 8 if column.wide else 4
    if column.length and len(offsets) // width < entries + 1:
        raise IndexError(f"{len(offsets) // width} offsets are too few for {entries} entries")
    if validity is not None and len(validity) * 8 < entries:
        raise IndexError(f"{len(validity) * 8} bits of validity are too few for {entries} entries")
    return validity, offsets[: len(offsets) // width * width].cast("q" if column.wide else "i")


def _int64s(data: Buffer) -> memoryview:
    view = view_of(data)
    return view[: len(view) // 8 * 8].cast("q")


def _is_set(validity: memoryview | None, entry: int) -> bool:
    return validity is None or bool(validity[entry >> 3] >> (entry & 7) & 1)
