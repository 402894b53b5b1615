# Rows of Arrow columns as v2 records.

cdef struct BinarySource:
    bint present
    Bytes validity
    Bytes offsets
    bint wide
    Bytes data
    int64_t data_size
    int64_t start
    int64_t length

cdef struct HeaderSource:
    BinarySource lists
    BinarySource keys
    BinarySource values

cdef struct Rows:
    int64_t available
    Bytes selection
    Bytes timestamps
    int64_t timestamp
    BinarySource key
    BinarySource value
    HeaderSource headers


cdef int open_layout(BinarySource* source, column, int64_t rows, list held) except -1:
    """Take a column's validity and offsets, once they are known to reach as far as it says and as wanted."""
    cdef Held validity, offsets
    cdef int64_t width = 8 if column.wide else 4
    cdef int64_t available
    source.present = True
    source.start = column.start
    source.length = column.length
    source.wide = column.wide
    if source.start < 0 or source.length < rows:
        raise IndexError(f"the column has {source.length} rows and {rows} are wanted")
    offsets = hold(column.offsets)
    available = offsets.size // width
    if source.length and (source.length >= available or source.start >= available - source.length):
        raise IndexError(f"{available} offsets are too few for {column.start + column.length} entries")
    source.offsets = offsets.data
    held.append(offsets)
    if column.validity is not None:
        validity = hold(column.validity)
        # One of the two is 0, or both are within what was just checked.
        if validity.size * 8 < source.start + source.length:
            raise IndexError(
                f"{validity.size * 8} bits of validity are too few for {source.start + source.length} entries"
            )
        source.validity = validity.data
        held.append(validity)
    return 0


cdef int open_binary(BinarySource* source, column, int64_t rows, list held) except -1:
    cdef Held data
    if column is not None:
        open_layout(source, column, rows, held)
        data = hold(column.data)
        source.data = data.data
        source.data_size = data.size
        held.append(data)
    return 0


cdef int open_headers(HeaderSource* source, column, int64_t rows, list held) except -1:
    if column is not None:
        open_layout(&source.lists, column, rows, held)
        open_binary(&source.keys, column.keys, 0, held)
        open_binary(&source.values, column.values, 0, held)
        # What the lists' offsets index is headers.
        source.lists.data_size = min(source.keys.length, source.values.length)
    return 0


cdef inline int64_t rows_of(BinarySource* source) noexcept nogil:
    """How many rows there are; a column that is absent has no end."""
    return source.length if source.present else INT64_MAX


cdef inline int locate(BinarySource* source, int64_t row, int64_t* first, int64_t* length) noexcept nogil:
    """Where a row's bytes are; length -1 is null. Returns -1 when the offsets are not to be believed."""
    cdef int64_t entry = row + source.start
    cdef int64_t last
    cdef int32_t narrow[2]
    cdef int64_t wide[2]
    first[0] = 0
    length[0] = -1
    if not source.present:
        return 0
    if source.validity != NULL and not source.validity[entry >> 3] >> (entry & 7) & 1:
        return 0
    if source.wide:
        memcpy(wide, source.offsets + 8 * entry, 16)
        first[0] = wide[0]
        last = wide[1]
    else:
        memcpy(narrow, source.offsets + 4 * entry, 8)
        first[0] = narrow[0]
        last = narrow[1]
    if first[0] < 0 or last < first[0] or last > source.data_size:
        return -1
    length[0] = last - first[0]
    return 0


cdef inline Bytes bytes_at(BinarySource* source, int64_t first, int64_t length) noexcept nogil:
    """What `locate` found. A column that is absent or empty may have no data to point into."""
    return source.data + first if length > 0 else NULL


cdef inline int measure_headers(
    HeaderSource* source, int64_t row, int64_t* first, Pending* record
) noexcept nogil:
    """Count and size a row's headers. Returns a row fault, or 0."""
    cdef int64_t header, at, length
    record.header_count = record.header_bytes = 0
    if not source.lists.present:
        return 0
    if locate(&source.lists, row, first, &length) < 0:
        return ROW_HEADER_BOUNDS
    record.header_count = filled(length)
    for header in range(first[0], first[0] + record.header_count):
        if locate(&source.keys, header, &at, &length) < 0:
            return ROW_HEADER_KEY_BOUNDS
        if length < 0:
            return ROW_HEADER_KEY_NULL
        record.header_bytes += field_size(length)
        if locate(&source.values, header, &at, &length) < 0:
            return ROW_HEADER_VALUE_BOUNDS
        record.header_bytes += field_size(length)
    return 0


cdef inline uint8_t* put_headers(
    uint8_t* out, uint8_t* end, HeaderSource* source, int64_t first, int64_t count
) noexcept nogil:
    """Write headers that were measured. Stops at `end`: another thread may have changed the offsets since."""
    cdef int64_t header, at, length
    for header in range(first, first + count):
        if locate(&source.keys, header, &at, &length) < 0 or field_size(length) > end - out:
            return end
        out = put_field(out, bytes_at(&source.keys, at, length), length)
        if locate(&source.values, header, &at, &length) < 0 or field_size(length) > end - out:
            return end
        out = put_field(out, bytes_at(&source.values, at, length), length)
    return out


cdef inline int64_t row_at(Rows* rows, int64_t turn) noexcept nogil:
    """Which row of the columns it is the turn of."""
    cdef int64_t row = turn
    if rows.selection != NULL:
        memcpy(&row, rows.selection + 8 * turn, 8)
    return row


cdef inline int64_t short_size(uint64_t raw) noexcept nogil:
    """Bytes of a number below `USUAL_DELTA`, which is zigzag already."""
    return 1 + (raw > 0x7F) + (raw > 0x3FFF)


cdef inline uint8_t* put_short(uint8_t* out, uint64_t raw) noexcept nogil:
    if raw <= 0x7F:
        out[0] = <uint8_t>raw
        return out + 1
    out[0] = <uint8_t>(raw | 0x80)
    if raw <= 0x3FFF:
        out[1] = <uint8_t>(raw >> 7)
        return out + 2
    out[1] = <uint8_t>(raw >> 7 | 0x80)
    out[2] = <uint8_t>(raw >> 14)
    return out + 3


cdef inline uint8_t* put_usual_field(
    uint8_t* out, uint8_t* end, BinarySource* source, int64_t first, int64_t length
) noexcept nogil:
    """A length and its bytes; `end` is where what may be written to ends."""
    out = put_short(out, zigzag(length))
    if length > 0:
        copy(out, source.data + first, length, min(source.data_size - first, end - out))
        out += length
    return out


cdef void write_usual(
    Rows* rows, int64_t* turn, int64_t stop, State* state, uint8_t* out, int64_t capacity
) noexcept nogil:
    """Write rows from turn[0] on, up to the first that has headers, or large numbers, or is in the way of something;
    `write_rows` looks at that.

    It does what `write_rows` does, with all it needs in variables: what is behind a pointer would be read again after
    each byte that is written.
    """
    cdef BinarySource key = rows.key, value = rows.value
    cdef Bytes timestamps = rows.timestamps
    cdef Bytes selection = rows.selection
    cdef int64_t available = rows.available, at_turn = turn[0], row, key_first, key_length, value_first, value_length
    cdef int64_t size = state.size, limit = min(state.limit, capacity), base = state.base_timestamp
    cdef int64_t delta = state.last_offset_delta, latest = state.max_timestamp, timestamp = rows.timestamp
    cdef int64_t body, total
    cdef uint64_t passed
    cdef uint8_t* here
    if rows.headers.lists.present or not state.count or not INT64_MIN // 2 < base < INT64_MAX // 2:
        return
    while at_turn < stop:
        row = at_turn
        if selection != NULL:
            memcpy(&row, selection + 8 * at_turn, 8)
        if row < 0 or row >= available:
            break
        if timestamps != NULL:
            memcpy(&timestamp, timestamps + 8 * row, 8)
        passed = zigzag(<int64_t>(<uint64_t>timestamp - <uint64_t>base))
        if (
            passed >= <uint64_t>USUAL_DELTA
            or delta >= USUAL_DELTA // 2 - 1
            or locate(&key, row, &key_first, &key_length) < 0
            or locate(&value, row, &value_first, &value_length) < 0
            or key_length >= USUAL_DELTA // 8
            or value_length >= USUAL_DELTA // 8
        ):
            break
        delta += 1
        body = (
            2 + short_size(passed) + short_size(zigzag(delta))
            + short_size(zigzag(key_length)) + filled(key_length)
            + short_size(zigzag(value_length)) + filled(value_length)
        )
        total = short_size(zigzag(body)) + body
        if size + total > limit:
            delta -= 1
            break
        here = put_short(out + size, zigzag(body))
        here[0] = 0
        here = put_short(here + 1, passed)
        here = put_short(here, zigzag(delta))
        here = put_usual_field(here, out + capacity, &key, key_first, key_length)
        here = put_usual_field(here, out + capacity, &value, value_first, value_length)
        here[0] = 0
        if timestamp > latest:
            latest = timestamp
        size += total
        at_turn += 1
    state.count += at_turn - turn[0]
    state.size, state.last_offset_delta, state.max_timestamp = size, delta, latest
    turn[0] = at_turn


cdef int64_t write_rows(
    Rows* rows, int64_t* turn, int64_t stop, State* state, uint8_t* out, int64_t capacity
) noexcept nogil:
    """Write rows from turn[0] on. Returns 0 at the last row or the limit, the capacity needed, or a negated fault."""
    cdef Pending record
    cdef int64_t row, timestamp, at, first_header = 0
    cdef int fault, room
    cdef uint8_t* end
    while True:
        write_usual(rows, turn, stop, state, out, capacity)
        if turn[0] >= stop:
            break
        row = row_at(rows, turn[0])
        if row < 0 or row >= rows.available:
            return -ROW_NO_SUCH_ROW
        if state.last_offset_delta >= INT32_MAX:
            return -ROW_OFFSET_FULL
        record.offset_delta = state.last_offset_delta + 1
        timestamp = rows.timestamp
        if rows.timestamps != NULL:
            memcpy(&timestamp, rows.timestamps + 8 * row, 8)
        if set_timestamp(state, &record, timestamp) < 0:
            return -ROW_TIMESTAMP_OVERFLOW
        if locate(&rows.key, row, &at, &record.key_length) < 0:
            return -ROW_KEY_BOUNDS
        record.key = bytes_at(&rows.key, at, record.key_length)
        if locate(&rows.value, row, &at, &record.value_length) < 0:
            return -ROW_VALUE_BOUNDS
        record.value = bytes_at(&rows.value, at, record.value_length)
        fault = measure_headers(&rows.headers, row, &first_header, &record)
        if fault:
            return -fault
        measure(&record)
        room = fits(state, &record)
        if room <= 0:
            return room * ROW_TOO_LARGE
        if state.size + record.total > capacity:
            return state.size + record.total
        end = put_record(out + state.size, &record)
        if record.header_count:
            put_headers(end, out + state.size + record.total, &rows.headers, first_header, record.header_count)
        advance(state, &record)
        turn[0] += 1
    return 0
