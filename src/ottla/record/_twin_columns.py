"""Gathering records into Arrow columns in Python; the twin of `_kernels_columns.pxi`."""

from collections.abc import Callable, Iterable
from struct import Struct
from sys import byteorder

from ottla.record._kernel_types import (
    LARGEST_INT32,
    LARGEST_INT64,
    LONGEST_INLINE,
    SMALLEST_HEADER,
    SMALLEST_INT64,
    SMALLEST_RECORD,
    BinaryColumn,
    Buffer,
    ColumnBuffers,
    HeaderColumn,
    ViewColumn,
)
from ottla.record._twin_read import check_count, headers_of, int64, place, view_of, walk
from ottla.wire.errors import ProtocolError

_BATCH = Struct(">qiibIhiqqqhii")
_VIEW = Struct("=i4sii")
_INLINE_VIEW = Struct(f"=i{LONGEST_INLINE}s")
_MAGIC = 2
_LENGTH_END = 12
_CHECKED_AT = 21
_APPENDED = 0x08


class _Plain:
    """The header of a batch with nothing special about it."""

    def __init__(self, view: memoryview, at: int) -> None:
        (
            self.base_offset,
            length,
            self.leader_epoch,
            self.magic,
            self.crc,
            self.attributes,
            last_delta,
            self.base_timestamp,
            max_timestamp,
            _,
            _,
            _,
            self.count,
        ) = _BATCH.unpack_from(view, at)
        self.end = at + _LENGTH_END + length
        self.next_offset = self.base_offset + last_delta + 1
        self.append_time = max_timestamp if self.attributes & _APPENDED else None
        self.section_at = at + _BATCH.size
        self.section = view[self.section_at : max(at, self.end)]
        self.is_sound = (
            self.magic == _MAGIC
            and at + _BATCH.size <= self.end <= len(view)
            and last_delta >= 0
            and self.base_offset >= 0
            and self.next_offset <= LARGEST_INT64
            and 0 <= self.count <= len(self.section) // SMALLEST_RECORD
        )


def _plain_at(view: memoryview, at: int, mask: int, attributes: int) -> _Plain | None:
    if len(view) - at < _BATCH.size:
        return None
    batch = _Plain(view, at)
    return batch if batch.is_sound and batch.attributes & mask == attributes else None


class Columns:
    """Gathers the records of many sections into one set of Arrow-layout arrays.

    Keys, values and headers are left out unless they are asked for. With `views` values are not copied: what they are
    gathered from is held, and views point into it.
    """

    def __init__(self, keys: bool = True, values: bool = True, headers: bool = True, views: bool = False) -> None:
        self._views = views
        self._clear(keys, values, headers)

    def _clear(self, keys: bool, values: bool, headers: bool) -> None:
        self._keys = _BinarySink() if keys else None
        self._values: _BinarySink | _ViewSink | None = (
            (_ViewSink() if self._views else _BinarySink()) if values else None
        )
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
        self._point_to(data, view)
        return self._extend(view, 0, count, base_offset, base_timestamp, append_time, start, stop)

    def _point_to(self, data: Buffer, view: memoryview) -> None:
        """Have the views that follow point into these bytes."""
        if isinstance(self._values, _ViewSink):
            self._values.point_to(data, view)

    def _extend(
        self,
        view: memoryview,
        section_at: int,
        count: int,
        base_offset: int,
        base_timestamp: int,
        append_time: int | None,
        start: int,
        stop: int,
    ) -> int:
        if isinstance(self._values, _ViewSink):
            self._values.section_at = section_at
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

    def extend_batches(
        self,
        data: Buffer,
        at: int,
        max_bytes: int,
        max_rows: int,
        mask: int,
        attributes: int,
        checksum: Callable[[memoryview], int] | None = None,
        start: int = SMALLEST_INT64,
        stop: int = LARGEST_INT64,
        consume: bool = False,
    ) -> tuple[int, int, int]:
        """Add the records, with offsets in [start, stop), of the batches from byte `at` on, up to the first batch that
        is special; return where that is, the offset after the batches before it and their last leader epoch.

        Special is a batch whose attributes are not `attributes` in the bits of `mask`, which must be those of
        compression at least; one that is broken, in its checksum too if a function for it is given; one of an old
        format; and one with which there would be more than so many bytes or rows. What it is that is special is not
        said: whoever looks at the batch by itself will see.

        With `consume` nobody else needs the bytes of batches that were taken, if they can be written to: instead of
        being copied, values may be moved together there. Batches of which only some records are wanted stay whole.
        """
        view = view_of(data)
        if not 0 <= at <= len(view):
            raise IndexError(f"position {at} is outside the {len(view)} bytes")
        next_offset, epoch, last = 0, -1, at + max_bytes
        while (batch := _plain_at(view, at, mask, attributes)) is not None:
            if batch.end > last or batch.count > max_rows:
                break
            self._check_room(len(batch.section))
            self._point_to(data, view)
            if batch.next_offset > start:
                if checksum is not None and checksum(view[at + _CHECKED_AT : batch.end]) != batch.crc:
                    break
                offset_and_times = batch.base_offset, batch.base_timestamp, batch.append_time
                try:
                    self._extend(batch.section, batch.section_at, batch.count, *offset_and_times, start, stop)
                except ProtocolError:
                    break
            at, next_offset, epoch = batch.end, batch.next_offset, batch.leader_epoch
            max_rows -= batch.count
            if next_offset >= stop:
                break
        return at, next_offset, epoch

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
        if any(isinstance(sink, _BinarySink) and len(sink.data) + size > LARGEST_INT32 for sink in sinks):
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


class _ViewSink:
    def __init__(self) -> None:
        self.rows = 0
        self.nulls = 0
        self.validity = bytearray()
        self.views = bytearray()
        self.section_at = 0
        """Where in the source the section is whose records are put here."""
        self._sources: list[memoryview] = []
        self._last_source: Buffer | None = None

    def point_to(self, data: Buffer, view: memoryview) -> None:
        if len(view) > LARGEST_INT32:
            raise OverflowError(f"{len(view)} bytes are more than views can point into")
        if self._last_source is not data or not self._sources:
            self._sources.append(view)
            self._last_source = data

    def put(self, view: memoryview, at: int, length: int) -> None:
        if self.rows % 8 == 0:
            self.validity.append(0)
        if length < 0:
            self.nulls += 1
        else:
            self.validity[-1] |= 1 << self.rows % 8
        if length > LONGEST_INLINE:
            source, where = len(self._sources) - 1, self.section_at + at
            self.views += _VIEW.pack(length, bytes(view[at : at + 4]), source, where)
        else:
            self.views += _INLINE_VIEW.pack(max(length, 0), bytes(view[at : at + max(length, 0)]))
        self.rows += 1

    def finish(self) -> ViewColumn:
        return ViewColumn(self.rows, self.validity if self.nulls else None, self.views, tuple(self._sources))


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
