"""Gathering records into Arrow columns in Python; the twin of `_kernels_columns.pxi`."""

from collections.abc import Iterable
from sys import byteorder

from ottla.record._kernel_types import (
    LARGEST_INT32,
    LARGEST_INT64,
    SMALLEST_HEADER,
    SMALLEST_INT64,
    BinaryColumn,
    Buffer,
    ColumnBuffers,
    HeaderColumn,
)
from ottla.record._twin_read import check_count, headers_of, int64, place, view_of, walk


class Columns:
    """Gathers the records of many sections into one set of Arrow-layout arrays.

    Keys, values and headers are left out unless they are asked for.
    """

    def __init__(self, keys: bool = True, values: bool = True, headers: bool = True) -> None:
        self._clear(keys, values, headers)

    def _clear(self, keys: bool, values: bool, headers: bool) -> None:
        self._keys = _BinarySink() if keys else None
        self._values = _BinarySink() if values else None
        self._headers = _HeaderSink() if headers else None
        self._offsets = bytearray()
        self._timestamps = bytearray()

    @property
    def rows(self) -> int:
        """Rows gathered so far."""
        return len(self._offsets) // 8

    def extend(
        self,
        data: Buffer,
        count: int,
        base_offset: int,
        base_timestamp: int,
        append_time: int | None = None,
        start: int = SMALLEST_INT64,
        stop: int = LARGEST_INT64,
    ) -> int:
        """Add the records of a section whose offsets lie in [start, stop), and return how many those were.

        A malformed section adds nothing.
        """
        view = view_of(data)
        check_count(count, len(view))
        self._check_room(len(view))
        base_offset, base_timestamp = int64(base_offset), int64(base_timestamp)
        append_time = None if append_time is None else int64(append_time)
        start, stop = int64(start), int64(stop)
        rows = []
        position = 0
        for number, record in walk(view, count, True):
            offset, timestamp = place(record, position, number, base_offset, base_timestamp, append_time)
            headers = list(headers_of(view, record, number))
            if start <= offset < stop:
                rows.append((offset, timestamp, record, headers))
            position = record.end
        for offset, timestamp, record, headers in rows:
            self._offsets += offset.to_bytes(8, byteorder, signed=True)
            self._timestamps += timestamp.to_bytes(8, byteorder, signed=True)
            if self._keys is not None:
                self._keys.put(view, record.key_at, record.key_length)
            if self._values is not None:
                self._values.put(view, record.value_at, record.value_length)
            if self._headers is not None:
                self._headers.put(view, headers)
        return len(rows)

    def finish(self) -> ColumnBuffers:
        """The arrays. The object is empty afterwards and can gather anew."""
        result = ColumnBuffers(
            self.rows,
            self._offsets,
            self._timestamps,
            None if self._keys is None else self._keys.finish(),
            None if self._values is None else self._values.finish(),
            None if self._headers is None else self._headers.finish(),
        )
        self._clear(self._keys is not None, self._values is not None, self._headers is not None)
        return result

    def _check_room(self, size: int) -> None:
        sinks = [self._keys, self._values]
        if self._headers is not None:
            sinks += [self._headers.keys, self._headers.values]
        if any(sink is not None and len(sink.data) + size > LARGEST_INT32 for sink in sinks):
            raise OverflowError("a column might pass 2 GiB, which is more than its int32 offsets can address")
        if self._headers is not None and self._headers.keys.rows + size // SMALLEST_HEADER > LARGEST_INT32:
            raise OverflowError("the headers might pass 2**31, which is more than int32 offsets can address")


class _BinarySink:
    def __init__(self) -> None:
        self.rows = 0
        self.nulls = 0
        self.validity = bytearray()
        self.offsets = bytearray(4)
        self.data = bytearray()

    def put(self, view: memoryview, at: int, length: int) -> None:
        if self.rows % 8 == 0:
            self.validity.append(0)
        if length < 0:
            self.nulls += 1
        else:
            self.validity[-1] |= 1 << self.rows % 8
            self.data += view[at : at + length]
        self.offsets += len(self.data).to_bytes(4, byteorder)
        self.rows += 1

    def finish(self) -> BinaryColumn:
        return BinaryColumn(self.rows, self.validity if self.nulls else None, self.offsets, self.data)


class _HeaderSink:
    def __init__(self) -> None:
        self.rows = 0
        self.offsets = bytearray(4)
        self.keys = _BinarySink()
        self.values = _BinarySink()

    def put(self, view: memoryview, headers: Iterable[tuple[int, int, int, int]]) -> None:
        for key_at, key_length, value_at, value_length in headers:
            self.keys.put(view, key_at, key_length)
            self.values.put(view, value_at, value_length)
        self.offsets += self.keys.rows.to_bytes(4, byteorder)
        self.rows += 1

    def finish(self) -> HeaderColumn:
        return HeaderColumn(self.rows, None, self.offsets, self.keys.finish(), self.values.finish())
