# Gathering records into Arrow columns.

cdef struct Sink:
    bint present
    # Whether values stay where they are: a view of each then stands where offsets do otherwise.
    bint is_view
    # Whether only the places of values are noted, 8 bytes each: they are moved together later.
    bint is_placed
    uint8_t* places
    Bytes base
    int32_t source
    uint8_t* validity
    uint8_t* offsets
    uint8_t* data
    int64_t rows
    int64_t row_capacity
    int64_t used
    int64_t capacity
    int64_t nulls

cdef struct Arrays:
    int64_t* offsets
    int64_t* timestamps
    int64_t rows
    Sink key
    Sink value
    uint8_t* lists
    Sink header_key
    Sink header_value


cdef inline void copy(uint8_t* target, Bytes data, int64_t length, int64_t room) noexcept nogil:
    """Copy bytes. Up to `room` bytes may be read and written, which saves short ones the call of a function. The target
    may be what is before the bytes, at a distance of a step at least."""
    cdef int64_t at = 0
    if length > SHORT_BYTES or length + STEP_BYTES > room:
        memmove(target, data, length)
        return
    while at < length:
        memcpy(target + at, data + at, STEP_BYTES)
        at += STEP_BYTES


cdef inline void put_view(uint8_t* place, Bytes base, int32_t source, Bytes data, int64_t length) noexcept nogil:
    """Say where in a source a value is, as Arrow's views do it; a short one is in the view itself, null is zeros."""
    cdef int32_t view[4]
    view[0] = <int32_t>filled(length)
    view[1] = view[2] = view[3] = 0
    if length > INLINE_BYTES:
        memcpy(&view[1], data, 4)
        view[2] = source
        view[3] = <int32_t>(data - base)
    elif length > 0:
        memcpy(&view[1], data, length)
    memcpy(place, view, VIEW_BYTES)


cdef inline void put_place(uint8_t* place, int64_t at, int64_t length) noexcept nogil:
    """Note where in a source a value is."""
    cdef int32_t found[2]
    found[0], found[1] = <int32_t>at, <int32_t>filled(length)
    memcpy(place, found, PLACE_BYTES)


cdef void settle(Sink* sink, int64_t first, int64_t size) noexcept nogil:
    """Move the values from row `first` on, whose places were noted, to the end of those before them, in a source of so
    many bytes. Each comes to lie before where it was, by the header of a batch and more: nothing is overwritten that
    is still to be moved."""
    cdef int32_t* ends = <int32_t*>sink.offsets
    cdef uint8_t* target = sink.data
    cdef int64_t used = sink.used, row
    cdef int32_t place[2]
    for row in range(first, sink.rows):
        memcpy(place, sink.places + PLACE_BYTES * row, PLACE_BYTES)
        if place[1] > 0:
            copy(target + used, sink.base + place[0], place[1], size - place[0])
            used += place[1]
        ends[row + 1] = <int32_t>used
    sink.used = used


cdef inline int put_binary(Sink* sink, Bytes data, int64_t length, int64_t readable) noexcept nogil:
    """Add a value, of `readable` bytes that are there at least as many as it has; null if its length is negative."""
    cdef uint8_t bit = 1 << (sink.rows & 7)
    cdef uint8_t* flags = sink.validity + (sink.rows >> 3)
    cdef int32_t used
    if not sink.present:
        return 0
    if sink.rows >= sink.row_capacity or length > sink.capacity - sink.used:
        return -1
    if bit == 1:
        flags[0] = 0
    if length < 0:
        flags[0] &= bit - 1
        sink.nulls += 1
    else:
        # Only the bits of rows that are really there survive.
        flags[0] = flags[0] & (bit - 1) | bit
    if sink.is_view:
        put_view(sink.offsets + VIEW_BYTES * sink.rows, sink.base, sink.source, data, length)
        sink.rows += 1
        return 0
    if sink.is_placed:
        put_place(sink.places + PLACE_BYTES * sink.rows, data - sink.base, length)
        sink.rows += 1
        return 0
    if length > 0:
        copy(sink.data + sink.used, data, length, min(readable, sink.capacity - sink.used))
        sink.used += length
    sink.rows += 1
    used = <int32_t>sink.used
    memcpy(sink.offsets + 4 * sink.rows, &used, 4)
    return 0


cdef int fill_headers(
    Bytes data, Parsed* record, bint wanted, Arrays* arrays, Trouble* trouble
) noexcept nogil:
    cdef Header header
    cdef int64_t at = record.headers_at
    for _ in range(record.header_count):
        if parse_header(data, &at, record.end, &header, trouble) < 0:
            return -1
        if wanted and (
            put_binary(&arrays.header_key, data + header.key_at, header.key_length, record.end - header.key_at) < 0
            or put_binary(
                &arrays.header_value, data + header.value_at, header.value_length, record.end - header.value_at
            ) < 0
        ):
            return NEEDS_ROOM
    return headers_end(at, record.end, trouble)


cdef inline uint8_t bits_before(uint8_t* validity, int64_t row) noexcept nogil:
    """The flags of the rows that share a byte with this one and come before it."""
    return validity[row >> 3] & ((1 << (row & 7)) - 1) if row & 7 else 0


cdef int64_t fill_usual(
    Bytes data, int64_t size, int64_t count, int64_t base_offset, int64_t base_timestamp, bint appended,
    int64_t append_time, int64_t start, int64_t stop, Arrays* arrays, int64_t* position, int64_t* last_delta
) noexcept nogil:
    """Add what most records are, up to the first that is not, and say how many those were; `fill` looks at the next.

    It does what `fill` does, with all it needs in variables: what is behind a pointer would be read again after each
    byte that is written.
    """
    cdef Parsed record
    cdef Sink key = arrays.key, value = arrays.value
    cdef int32_t* key_ends = <int32_t*>key.offsets
    cdef int32_t* value_ends = <int32_t*>value.offsets
    cdef int64_t* offsets = arrays.offsets
    cdef int64_t* timestamps = arrays.timestamps
    cdef int32_t* lists = <int32_t*>arrays.lists
    cdef int64_t row = arrays.rows, first = row, end = row + count
    cdef int64_t at = position[0], delta = last_delta[0], timestamp = append_time
    cdef uint8_t key_bits = 0, value_bits = 0
    if (
        base_offset > INT64_MAX - USUAL_DELTA
        or base_timestamp > INT64_MAX - USUAL_DELTA
        or base_timestamp < INT64_MIN + USUAL_DELTA
        or (key.present and key.row_capacity < end)
        or (value.present and value.row_capacity < end)
    ):
        return 0
    if key.present:
        key_bits = bits_before(key.validity, row)
    if value.present:
        value_bits = bits_before(value.validity, row)
    while row < end and parse_usual(data, size, at, delta, True, &record):
        delta = record.offset_delta
        if (
            not start <= base_offset + delta < stop
            or (key.present and record.key_length > key.capacity - key.used)
            or (value.present and record.value_length > value.capacity - value.used)
        ):
            break
        if key.present:
            if record.key_length < 0:
                key.nulls += 1
            else:
                key_bits |= 1 << (row & 7)
                copy(
                    key.data + key.used, data + record.key_at, record.key_length,
                    min(size - record.key_at, key.capacity - key.used),
                )
                key.used += record.key_length
            key_ends[row + 1] = <int32_t>key.used
        if value.present:
            if record.value_length < 0:
                value.nulls += 1
            else:
                value_bits |= 1 << (row & 7)
            if value.is_view:
                put_view(
                    value.offsets + VIEW_BYTES * row, value.base, value.source, data + record.value_at,
                    record.value_length,
                )
            elif value.is_placed:
                put_place(
                    value.places + PLACE_BYTES * row, data + record.value_at - value.base, record.value_length
                )
            else:
                if record.value_length > 0:
                    copy(
                        value.data + value.used, data + record.value_at, record.value_length,
                        min(size - record.value_at, value.capacity - value.used),
                    )
                    value.used += record.value_length
                value_ends[row + 1] = <int32_t>value.used
        if not appended:
            timestamp = base_timestamp + record.timestamp_delta
        offsets[row] = base_offset + delta
        timestamps[row] = timestamp
        if row & 7 == 7:
            if key.present:
                key.validity[row >> 3] = key_bits
            if value.present:
                value.validity[row >> 3] = value_bits
            key_bits = value_bits = 0
        last_delta[0] = delta
        at = record.end
        row += 1
    if row & 7 and key.present:
        key.validity[row >> 3] = key_bits
    if row & 7 and value.present:
        value.validity[row >> 3] = value_bits
    if lists != NULL:
        for end in range(first, row):
            lists[end + 1] = <int32_t>arrays.header_key.rows
    if key.present:
        key.rows = row
    if value.present:
        value.rows = row
    arrays.key, arrays.value, arrays.rows = key, value, row
    position[0] = at
    return row - first


cdef int fill(
    Bytes data, int64_t size, int64_t count, int64_t base_offset, int64_t base_timestamp, bint appended,
    int64_t append_time, int64_t start, int64_t stop, Arrays* arrays, Trouble* trouble
) noexcept nogil:
    cdef Parsed record
    cdef int64_t number = 0, offset, timestamp = append_time, at = 0, last_delta = -1
    cdef int32_t headers
    cdef int outcome
    cdef bint wanted, may_be_usual = True
    while number < count:
        if may_be_usual:
            number += fill_usual(
                data, size, count - number, base_offset, base_timestamp, appended, append_time, start, stop, arrays,
                &at, &last_delta,
            )
            if number == count:
                break
        trouble.record = number
        if parse(data, size, at, last_delta, True, &record, trouble) < 0:
            return -1
        if place(&record, at, base_offset, base_timestamp, appended, &offset, &timestamp, trouble) < 0:
            return -1
        wanted = start <= offset < stop
        may_be_usual = record.header_count == 0
        if record.header_count:
            outcome = fill_headers(data, &record, wanted, arrays, trouble)
            if outcome != 0:
                return outcome
        if wanted:
            arrays.offsets[arrays.rows] = offset
            arrays.timestamps[arrays.rows] = timestamp
            if (
                put_binary(&arrays.key, data + record.key_at, record.key_length, size - record.key_at) < 0
                or put_binary(&arrays.value, data + record.value_at, record.value_length, size - record.value_at) < 0
            ):
                return NEEDS_ROOM
            arrays.rows += 1
            if arrays.lists != NULL:
                headers = <int32_t>arrays.header_key.rows
                memcpy(arrays.lists + 4 * arrays.rows, &headers, 4)
        at = record.end
        last_delta = record.offset_delta
        number += 1
    return section_end(at, size, count, trouble)


cdef struct Plain:
    int64_t base_offset
    int64_t next_offset
    int64_t base_timestamp
    int64_t max_timestamp
    int64_t end
    int64_t count
    int32_t leader_epoch
    uint32_t crc
    bint appended


cdef inline uint64_t big_endian(Bytes data, int size) noexcept nogil:
    cdef uint64_t number = 0
    cdef int at
    for at in range(size):
        number = number << 8 | data[at]
    return number


cdef bint plain_at(
    Bytes data, int64_t size, int64_t at, int mask, int attributes, Plain* batch
) noexcept nogil:
    """Look at the header of a batch; whether it is one, is all there and has the attributes."""
    cdef int64_t length, last_delta
    cdef int found
    if size - at < HEADER_BYTES:
        return False
    data += at
    length = <int32_t>big_endian(data + 8, 4)
    found = <int>big_endian(data + 21, 2)
    last_delta = <int32_t>big_endian(data + 23, 4)
    batch.base_offset = <int64_t>big_endian(data, 8)
    batch.count = <int32_t>big_endian(data + 57, 4)
    if (
        data[16] != MAGIC
        or found & mask != attributes
        or length < HEADER_BYTES - LENGTH_END
        or length > size - at - LENGTH_END
        or last_delta < 0
        or batch.base_offset < 0
        or batch.base_offset > INT64_MAX - last_delta - 1
        or batch.count < 0
        or batch.count > (length + LENGTH_END - HEADER_BYTES) // SMALLEST_RECORD
    ):
        return False
    batch.end = at + LENGTH_END + length
    batch.next_offset = batch.base_offset + last_delta + 1
    batch.leader_epoch = <int32_t>big_endian(data + 12, 4)
    batch.crc = <uint32_t>big_endian(data + 17, 4)
    batch.base_timestamp = <int64_t>big_endian(data + 27, 8)
    batch.max_timestamp = <int64_t>big_endian(data + 35, 8)
    batch.appended = found & APPENDED != 0
    return True


cdef bint is_most_of(int64_t size, view) except -1:
    """Whether so many bytes are worth to keep all in memory that the view is of."""
    return KEPT_PARTS * size >= (KEPT_PARTS - 1) * memoryview(view.obj).nbytes


@cython.final
cdef class BinaryBuffers:
    """The growing arrays of one variable-width column; of views, and where they point to, if it is one of those; or of
    values that are moved together in the very bytes that they come from."""

    cdef Sink sink
    cdef bytearray validity
    cdef bytearray offsets
    cdef bytearray data
    cdef bytearray places
    cdef list sources
    cdef object last_source
    cdef Held ground
    cdef object ground_view
    cdef int64_t ground_at

    def __cinit__(self, bint present, bint is_view=False):
        self.sink.present = present
        self.sink.is_view = is_view
        self.clear()

    cdef int clear(self) except -1:
        self.sink.rows = self.sink.used = self.sink.nulls = self.sink.row_capacity = self.sink.capacity = 0
        self.sink.base = NULL
        self.validity = bytearray()
        self.offsets = bytearray(0 if self.sink.is_view else 4)
        self.data = bytearray()
        self.sources = []
        self.last_source = None
        self.leave_ground()
        return 0

    cdef int leave_ground(self) except -1:
        self.sink.is_placed = False
        self.sink.places = NULL
        self.places = bytearray()
        self.ground = self.ground_view = None
        self.ground_at = 0
        return 0

    cdef int settle_in(self, data, Held held, view, int64_t at, int64_t end) except -1:
        """Have the values of these bytes be moved together there, if those before them were too, or are none, and what
        would be kept in memory for them is not much more."""
        if self.sink.is_placed and self.last_source is data:
            return 0
        self.move_out()
        if not self.sink.present or self.sink.is_view or self.sink.rows or view.readonly or held.size > INT32_MAX:
            return 0
        if is_most_of(end - at, view):
            self.last_source, self.ground, self.ground_view, self.ground_at = data, held, view, at
            self.sink.is_placed = True
            self.sink.base = held.data
        return 0

    cdef int move_out(self) except -1:
        """Copy what was moved together, so that values of other bytes can follow it."""
        if self.sink.is_placed:
            self.data = PyByteArray_FromStringAndSize(<char*>self.ground.data + self.ground_at, self.sink.used)
            self.sink.base = NULL
            self.last_source = None
            self.leave_ground()
        return 0

    cdef int point_to(self, data, Held held) except -1:
        """Have the views that follow point into these bytes."""
        if not (self.sink.present and self.sink.is_view):
            return 0
        if held.size > INT32_MAX:
            raise OverflowError(f"{held.size} bytes are more than views can point into")
        if self.last_source is not data or not self.sources:
            # It is held from now on, so that it stays where it is.
            self.sources.append(memoryview(data).cast("B"))
            self.last_source = data
        self.sink.base = held.data
        self.sink.source = <int32_t>len(self.sources) - 1
        return 0

    cdef int reserve(self, int64_t rows, int64_t size) except -1:
        if not self.sink.present:
            return 0
        grow(self.validity, (self.sink.rows + rows + 7) // 8)
        if self.sink.is_view:
            grow(self.offsets, VIEW_BYTES * (self.sink.rows + rows))
            self.sink.validity = storage(self.validity)
            self.sink.offsets = storage(self.offsets)
            self.sink.row_capacity = min(<int64_t>len(self.validity) * 8, <int64_t>len(self.offsets) // VIEW_BYTES)
            self.sink.capacity = INT64_MAX
            return 0
        grow(self.offsets, 4 * (self.sink.rows + rows + 1))
        self.sink.validity = storage(self.validity)
        self.sink.offsets = storage(self.offsets)
        self.sink.row_capacity = min(<int64_t>len(self.validity) * 8, <int64_t>len(self.offsets) // 4 - 1)
        if self.sink.is_placed:
            grow(self.places, PLACE_BYTES * (self.sink.rows + rows))
            self.sink.places = storage(self.places)
            self.sink.row_capacity = min(self.sink.row_capacity, <int64_t>len(self.places) // PLACE_BYTES)
            self.sink.data = <uint8_t*>self.ground.data + self.ground_at
            self.sink.capacity = INT64_MAX
            return 0
        grow(self.data, self.sink.used + size)
        self.sink.data = storage(self.data)
        self.sink.capacity = len(self.data)
        return 0

    cdef object finish(self):
        if not self.sink.present:
            return None
        cdef int64_t rows = self.sink.rows
        PyByteArray_Resize(self.validity, (rows + 7) // 8)
        if rows & 7:
            self.validity[rows >> 3] = self.validity[rows >> 3] & ((1 << (rows & 7)) - 1)
        validity = self.validity if self.sink.nulls else None
        if self.sink.is_view:
            PyByteArray_Resize(self.offsets, VIEW_BYTES * rows)
            column = types.ViewColumn(rows, validity, self.offsets, tuple(self.sources))
        elif self.sink.is_placed and is_most_of(self.sink.used, self.ground_view):
            PyByteArray_Resize(self.offsets, 4 * (rows + 1))
            data = self.ground_view[self.ground_at : self.ground_at + self.sink.used]
            column = types.BinaryColumn(rows, validity, self.offsets, data)
        else:
            self.move_out()
            PyByteArray_Resize(self.offsets, 4 * (rows + 1))
            PyByteArray_Resize(self.data, self.sink.used)
            column = types.BinaryColumn(rows, validity, self.offsets, self.data)
        self.clear()
        return column


cdef class Columns:
    """Gathers the records of many sections into one set of Arrow-layout arrays.

    Keys, values and headers are left out unless they are asked for. With `views` values are not copied: what they are
    gathered from is held, and views point into it.
    """

    cdef int64_t gathered
    cdef bint with_headers
    cdef bytearray offsets
    cdef bytearray timestamps
    cdef bytearray lists
    cdef BinaryBuffers key
    cdef BinaryBuffers value
    cdef BinaryBuffers header_key
    cdef BinaryBuffers header_value
    cdef bint busy

    def __init__(self, bint keys=True, bint values=True, bint headers=True, bint views=False):
        # It may be called again, by another thread too.
        self.check_idle()
        self.with_headers = headers
        self.key = BinaryBuffers(keys)
        self.value = BinaryBuffers(values, views)
        self.header_key = BinaryBuffers(headers)
        self.header_value = BinaryBuffers(headers)
        self.clear()

    @property
    def rows(self):
        """Rows gathered so far."""
        return self.gathered

    cdef int clear(self) except -1:
        self.gathered = 0
        self.offsets = bytearray()
        self.timestamps = bytearray()
        self.lists = bytearray(4)
        return 0

    cdef int reserve(self, int64_t rows, int64_t size) except -1:
        """Make room for records of this number and size. How many headers they have is not known yet."""
        cdef int64_t used = max(
            self.key.sink.used, self.value.sink.used, self.header_key.sink.used, self.header_value.sink.used
        )
        if used + size > INT32_MAX:
            raise OverflowError("a column might pass 2 GiB, which is more than its int32 offsets can address")
        if self.with_headers and self.header_key.sink.rows + size // SMALLEST_HEADER > INT32_MAX:
            raise OverflowError("the headers might pass 2**31, which is more than int32 offsets can address")
        self.key.reserve(rows, size)
        self.value.reserve(rows, size)
        grow(self.offsets, 8 * (self.gathered + rows))
        grow(self.timestamps, 8 * (self.gathered + rows))
        if self.with_headers:
            grow(self.lists, 4 * (self.gathered + rows + 1))
        return 0

    cdef int reserve_headers(self, Bytes data, int64_t size, int64_t count) except -1:
        """Make room for the headers of a section, or of as much of it as is well-formed."""
        cdef Totals totals
        cdef Trouble ignored
        scan_section(data, size, count, True, &totals, &ignored)
        self.header_key.reserve(totals.header_count, totals.header_key_bytes)
        self.header_value.reserve(totals.header_count, totals.header_value_bytes)
        return 0

    def extend(
        self,
        data,
        int64_t count,
        int64_t base_offset,
        int64_t base_timestamp,
        append_time=None,
        int64_t start=INT64_MIN,
        int64_t stop=INT64_MAX,
    ):
        """Add the records of a section whose offsets lie in [start, stop), and return how many those were.

        A malformed section adds nothing.
        """
        cdef Held held = hold(data)
        cdef Trouble trouble
        cdef int64_t before = self.gathered
        cdef bint appended = append_time is not None
        cdef int64_t moment = append_time if appended else 0
        check_count(count, held.size)
        self.check_idle()
        self.busy = True
        try:
            self.value.move_out()
            self.reserve(count, held.size)
            self.value.point_to(data, held)
            if self.add(
                held.data, held.size, count, base_offset, base_timestamp, appended, moment, start, stop, &trouble
            ) < 0:
                raise error(&trouble)
        finally:
            self.busy = False
        return self.gathered - before

    def extend_batches(
        self,
        data,
        int64_t at,
        int64_t max_bytes,
        int64_t max_rows,
        int mask,
        int attributes,
        checksum=None,
        int64_t start=INT64_MIN,
        int64_t stop=INT64_MAX,
        bint consume=False,
    ):
        """Add the records, with offsets in [start, stop), of the batches from byte `at` on, up to the first batch that
        is special; return where that is, the offset after the batches before it and their last leader epoch.

        Special is a batch whose attributes are not `attributes` in the bits of `mask`, which must be those of
        compression at least; one that is broken, in its checksum too if a function for it is given; one of an old
        format; and one with which there would be more than so many bytes or rows. What it is that is special is not
        said: whoever looks at the batch by itself will see.

        With `consume` nobody else needs the bytes of batches that were taken, if they can be written to: instead of
        being copied, values are moved together there. Batches of which only some records are wanted stay whole.
        """
        cdef Held held = hold(data)
        cdef Trouble trouble
        cdef Plain batch
        cdef int64_t end, before, next_offset = 0, rows = 0
        cdef int32_t epoch = -1
        if at < 0 or at > held.size:
            raise IndexError(f"position {at} is outside the {held.size} bytes")
        view = memoryview(data).cast("B")
        self.check_idle()
        self.busy = True
        try:
            end = at
            while (
                plain_at(held.data, held.size, end, mask, attributes, &batch)
                and batch.end - at <= max_bytes
                and batch.count <= max_rows - rows
            ):
                end = batch.end
                rows += batch.count
                if batch.next_offset >= stop:
                    break
            if end > at:
                if consume:
                    self.value.settle_in(data, held, view, at, end)
                else:
                    self.value.move_out()
                self.reserve(rows, end - at)
                self.value.point_to(data, held)
            while at < end:
                # The bytes may have changed since, and there is room for so many records.
                if not plain_at(held.data, end, at, mask, attributes, &batch) or batch.count > rows:
                    break
                rows -= batch.count
                if batch.next_offset > start:
                    if checksum is not None and checksum(view[at + CHECKED_AT : batch.end]) != batch.crc:
                        break
                    if self.value.sink.is_placed and (batch.base_offset < start or batch.next_offset > stop):
                        self.value.move_out()
                        self.reserve(rows + batch.count, end - at)
                    before = self.gathered
                    if self.add(
                        held.data + at + HEADER_BYTES, batch.end - at - HEADER_BYTES, batch.count, batch.base_offset,
                        batch.base_timestamp, batch.appended, batch.max_timestamp, start, stop, &trouble,
                    ) < 0:
                        break
                    if self.value.sink.is_placed:
                        with nogil:
                            settle(&self.value.sink, before, held.size)
                at, next_offset, epoch = batch.end, batch.next_offset, batch.leader_epoch
        finally:
            self.busy = False
        return at, next_offset, epoch

    cdef int add(
        self, Bytes data, int64_t size, int64_t count, int64_t base_offset, int64_t base_timestamp, bint appended,
        int64_t moment, int64_t start, int64_t stop, Trouble* trouble
    ) except? -1:
        """Add the records of a section, for which there is room except for headers. A malformed section adds nothing,
        and the trouble says why."""
        cdef Arrays arrays
        cdef int outcome
        while True:
            arrays = self.arrays()
            if size < RELEASE_FROM:
                outcome = fill(
                    data, size, count, base_offset, base_timestamp, appended, moment, start, stop, &arrays, trouble
                )
            else:
                with nogil:
                    outcome = fill(
                        data, size, count, base_offset, base_timestamp, appended, moment, start, stop, &arrays, trouble
                    )
            if outcome != NEEDS_ROOM:
                break
            self.reserve_headers(data, size, count)
        if outcome == 0:
            self.gathered = arrays.rows
            self.key.sink = arrays.key
            self.value.sink = arrays.value
            self.header_key.sink = arrays.header_key
            self.header_value.sink = arrays.header_value
        return outcome

    cdef Arrays arrays(self) noexcept:
        """Where the next rows go. What is filled in counts only once it is taken over from there."""
        cdef Arrays arrays
        arrays.offsets = <int64_t*>storage(self.offsets)
        arrays.timestamps = <int64_t*>storage(self.timestamps)
        arrays.rows = self.gathered
        arrays.key = self.key.sink
        arrays.value = self.value.sink
        arrays.lists = storage(self.lists) if self.with_headers else NULL
        arrays.header_key = self.header_key.sink
        arrays.header_value = self.header_value.sink
        return arrays

    def finish(self):
        """The arrays. The object is empty afterwards and can gather anew."""
        self.check_idle()
        cdef int64_t rows = self.gathered
        PyByteArray_Resize(self.offsets, 8 * rows)
        PyByteArray_Resize(self.timestamps, 8 * rows)
        headers = None
        if self.with_headers:
            PyByteArray_Resize(self.lists, 4 * (rows + 1))
            headers = types.HeaderColumn(
                rows, None, self.lists, self.header_key.finish(), self.header_value.finish()
            )
        buffers = types.ColumnBuffers(
            rows, self.offsets, self.timestamps, self.key.finish(), self.value.finish(), headers
        )
        self.clear()
        return buffers

    cdef int check_idle(self) except -1:
        if self.busy:
            raise RuntimeError("another thread is filling these columns")
        return 0
