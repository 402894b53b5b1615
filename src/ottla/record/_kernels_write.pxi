# Writing v2 records, from objects; `_kernels_rows.pxi` has what writes rows of Arrow columns.

from libc.string cimport memset

cdef enum:
    ROW_OFFSET_FULL = 9
    ROW_NO_SUCH_ROW


cdef inline uint64_t zigzag(int64_t value) noexcept nogil:
    return (<uint64_t>value << 1) ^ <uint64_t>(value >> 63)


cdef inline int64_t varint_size(int64_t value) noexcept nogil:
    cdef uint64_t raw = zigzag(value)
    cdef int64_t size = 1
    while raw > 0x7F:
        raw >>= 7
        size += 1
    return size


cdef inline uint8_t* put_varint(uint8_t* out, int64_t value) noexcept nogil:
    cdef uint64_t raw = zigzag(value)
    while raw > 0x7F:
        out[0] = <uint8_t>(raw & 0x7F | 0x80)
        out += 1
        raw >>= 7
    out[0] = <uint8_t>raw
    return out + 1


cdef inline int64_t field_size(int64_t length) noexcept nogil:
    return varint_size(length) + filled(length)


cdef inline uint8_t* put_field(uint8_t* out, Bytes data, int64_t length) noexcept nogil:
    """A length and its bytes; -1 is null."""
    out = put_varint(out, length)
    if length > 0:
        memcpy(out, data, length)
        out += length
    return out


cdef inline uint8_t* storage(bytearray data):
    return <uint8_t*>PyByteArray_AS_STRING(data)


cdef int grow(bytearray data, int64_t needed) except -1:
    """Make room for `needed` bytes in all, and for more where that is not the first time."""
    cdef int64_t capacity = len(data)
    if needed > capacity:
        PyByteArray_Resize(data, max(needed, 2 * capacity))
    return 0


cdef object encode_headers(headers, int64_t* count, int64_t* size):
    cdef bytearray out = PyByteArray_FromStringAndSize(NULL, 128)
    cdef uint8_t* end
    cdef const char* text
    cdef Py_ssize_t text_size
    cdef bytes data
    cdef int64_t data_size
    for key, value in headers:
        if not isinstance(key, str):
            raise TypeError(f"a header key is a str, not {type(key).__name__}")
        data = exactly_bytes(value, "header value")
        try:
            text = PyUnicode_AsUTF8AndSize(key, &text_size)
        except UnicodeEncodeError as problem:
            raise EncodeError(f"header key {key!r} is not valid Unicode") from problem
        data_size = -1 if data is None else PyBytes_GET_SIZE(data)
        grow(out, size[0] + field_size(text_size) + field_size(data_size))
        end = put_field(storage(out) + size[0], <Bytes>text, text_size)
        if data is None:
            end = put_field(end, NULL, -1)
        else:
            end = put_field(end, <Bytes>PyBytes_AS_STRING(data), data_size)
        size[0] = end - storage(out)
        count[0] += 1
    return out


cdef inline bytes as_bytes(data):
    if data is None or type(data) is bytes:
        return <bytes>data
    cdef Held held = hold(data)
    return PyBytes_FromStringAndSize(<const char*>held.data, held.size)


# One record about to be written.
cdef struct Pending:
    int64_t timestamp
    int64_t timestamp_delta
    int64_t offset_delta
    Bytes key
    int64_t key_length
    Bytes value
    int64_t value_length
    int64_t header_count
    int64_t header_bytes
    int64_t body
    int64_t total


cdef inline void measure(Pending* record) noexcept nogil:
    record.body = (
        1
        + varint_size(record.timestamp_delta)
        + varint_size(record.offset_delta)
        + field_size(record.key_length)
        + field_size(record.value_length)
        + varint_size(record.header_count)
        + record.header_bytes
    )
    record.total = varint_size(record.body) + record.body


cdef inline uint8_t* put_record(uint8_t* out, Pending* record) noexcept nogil:
    """Everything up to the headers."""
    out = put_varint(out, record.body)
    out[0] = 0
    out = put_varint(out + 1, record.timestamp_delta)
    out = put_varint(out, record.offset_delta)
    out = put_field(out, record.key, record.key_length)
    out = put_field(out, record.value, record.value_length)
    return put_varint(out, record.header_count)


# What a writer knows of the section so far.
cdef struct State:
    int64_t size
    int64_t limit
    bint based
    int64_t base_timestamp
    int64_t max_timestamp
    int64_t last_offset_delta
    int64_t count


cdef inline int set_timestamp(State* state, Pending* record, int64_t timestamp) noexcept nogil:
    cdef int64_t base = state.base_timestamp
    record.timestamp = timestamp
    record.timestamp_delta = 0
    if state.based:
        if timestamp < INT64_MIN + base if base > 0 else timestamp > INT64_MAX + base:
            return -1
        record.timestamp_delta = timestamp - base
    return 0


cdef inline int fits(State* state, Pending* record) noexcept nogil:
    """1 when the record may be added, 0 when it passes the limit, -1 when no batch can hold it."""
    if state.count and state.size + record.total > state.limit:
        return 0
    return -1 if state.size + record.total > LARGEST_SECTION else 1


cdef inline void advance(State* state, Pending* record) noexcept nogil:
    if not state.based:
        state.based = True
        state.base_timestamp = record.timestamp
    if state.count == 0 or record.timestamp > state.max_timestamp:
        state.max_timestamp = record.timestamp
    state.last_offset_delta = record.offset_delta
    state.count += 1
    state.size += record.total


cdef class RecordWriter:
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

    cdef State state
    cdef readonly int64_t base_offset
    cdef bytearray data
    cdef int64_t room
    cdef bint busy

    def __init__(self, limit=LARGEST_SECTION, base_offset=0, base_timestamp=None, room=0):
        cdef int64_t base = -1 if base_timestamp is None else whole(base_timestamp)
        cdef int64_t first = whole(base_offset)
        cdef int64_t most = whole(limit)
        cdef int64_t before = types.room_of(room)
        # It may be called again, by another thread too.
        self.check_idle()
        self.state.limit = min(most, <int64_t>LARGEST_SECTION)
        self.state.size = self.state.count = 0
        self.state.max_timestamp = self.state.last_offset_delta = -1
        self.state.based = base_timestamp is not None
        self.state.base_timestamp = base
        self.base_offset = first
        # Most batches stay within this; memory that is not written to costs little.
        self.data = PyByteArray_FromStringAndSize(NULL, max(16384, before))
        self.room = before

    @property
    def limit(self):
        """Bytes that may be written. It may be set to another number at any time."""
        return self.state.limit

    @limit.setter
    def limit(self, value):
        cdef int64_t most = whole(value)
        self.check_idle()
        self.state.limit = min(most, <int64_t>LARGEST_SECTION)

    @property
    def size(self):
        """Bytes written so far."""
        return self.state.size

    @property
    def count(self):
        """Records written so far."""
        return self.state.count

    @property
    def last_offset_delta(self):
        """The last record's distance from the base offset, or -1."""
        return self.state.last_offset_delta

    @property
    def base_timestamp(self):
        """What the records' timestamps are relative to, or -1."""
        return self.state.base_timestamp

    @property
    def max_timestamp(self):
        """The latest of the timestamps, or -1."""
        return self.state.max_timestamp

    def records(self):
        """The records written so far. Release the view before appending more."""
        return memoryview(self.data)[self.room : self.room + self.state.size]

    def with_room(self):
        """The room that was asked for, to be written to, and the records after it. Release it before appending more."""
        return memoryview(self.data)[: self.room + self.state.size]

    def append(self, timestamp, key, value, headers=(), offset=None):
        """Add a record and return its offset delta, or return None, unchanged, if it would pass the limit.

        The offset is the next one unless it is given; it may leave a gap but not go back.
        """
        cdef int64_t stamp = whole(timestamp)
        cdef Pending record
        cdef bytes key_bytes, value_bytes
        cdef bytearray encoded = None
        cdef int64_t wanted = 0 if offset is None else offset
        cdef int room
        record.header_count = record.header_bytes = 0
        if headers is not ():
            encoded = encode_headers(headers, &record.header_count, &record.header_bytes)
        key_bytes = as_bytes(key)
        value_bytes = as_bytes(value)
        self.check_idle()
        record.offset_delta = self.state.last_offset_delta + 1
        if offset is not None:
            if wanted < self.base_offset or <uint64_t>wanted - <uint64_t>self.base_offset > INT32_MAX:
                raise types.offset_error(offset, self.base_offset, self.state.last_offset_delta)
            record.offset_delta = wanted - self.base_offset
        if record.offset_delta <= self.state.last_offset_delta or record.offset_delta > INT32_MAX:
            delta = record.offset_delta
            raise types.offset_error(self.base_offset + delta, self.base_offset, self.state.last_offset_delta)
        if set_timestamp(&self.state, &record, stamp) < 0:
            raise types.row_error(ROW_TIMESTAMP_OVERFLOW, self.state.count)
        record.key_length = record.value_length = -1
        record.key = record.value = NULL
        if key_bytes is not None:
            record.key = <Bytes>PyBytes_AS_STRING(key_bytes)
            record.key_length = PyBytes_GET_SIZE(key_bytes)
        if value_bytes is not None:
            record.value = <Bytes>PyBytes_AS_STRING(value_bytes)
            record.value_length = PyBytes_GET_SIZE(value_bytes)
        measure(&record)
        room = fits(&self.state, &record)
        if room == 0:
            return None
        if room < 0:
            raise types.row_error(ROW_TOO_LARGE, self.state.count)
        self.reserve(self.state.size + record.total)
        out = put_record(self.section() + self.state.size, &record)
        if encoded is not None:
            memcpy(out, storage(encoded), record.header_bytes)
        advance(&self.state, &record)
        return record.offset_delta

    def append_rows(
        self,
        int64_t start,
        int64_t stop,
        value,
        key=None,
        headers=None,
        timestamps=None,
        int64_t timestamp=-1,
        selection=None,
    ):
        """Add rows `start` to `stop` of columns as far as they fit, and return how many were added.

        `timestamps` are int64 milliseconds, one per row from row 0; without them `timestamp` is that of each row.
        `selection`, int64 row numbers, has other rows take their turn: entries `start` to `stop` of it say which.
        """
        cdef Rows rows
        cdef Held times, chosen
        # A selection may name any row, so it is checked against the columns row by row.
        cdef int64_t reach = stop if selection is None else 0
        cdef int64_t row = start, needed = 0
        cdef uint8_t* out
        cdef int64_t capacity
        cdef list held = []
        if start < 0 or stop < start:
            raise IndexError(f"rows {start} to {stop} are not a range")
        memset(&rows, 0, sizeof(Rows))
        rows.timestamp = timestamp
        open_binary(&rows.key, key, reach, held)
        open_binary(&rows.value, value, reach, held)
        open_headers(&rows.headers, headers, reach, held)
        rows.available = min(rows_of(&rows.key), rows_of(&rows.value), rows_of(&rows.headers.lists))
        if timestamps is not None:
            times = hold(timestamps)
            if times.size // 8 < reach:
                raise IndexError(f"timestamps hold {times.size // 8} rows and {reach} are wanted")
            rows.timestamps = times.data
            rows.available = min(rows.available, times.size // 8)
        if selection is not None:
            chosen = hold(selection)
            if chosen.size // 8 < stop:
                raise IndexError(f"the selection holds {chosen.size // 8} rows and {stop} are wanted")
            rows.selection = chosen.data
        self.check_idle()
        self.busy = True
        try:
            while row < stop:
                out = self.section()
                capacity = self.capacity()
                with nogil:
                    needed = write_rows(&rows, &row, stop, &self.state, out, capacity)
                if needed == 0:
                    break
                if needed < 0:
                    raise types.row_error(-needed, row_at(&rows, row))
                self.reserve(max(needed, min(self.state.limit, <int64_t>4 * RELEASE_FROM)))
        finally:
            self.busy = False
        return row - start

    cdef inline uint8_t* section(self):
        """Where the records begin."""
        return storage(self.data) + self.room

    cdef inline int64_t capacity(self):
        return len(self.data) - self.room

    cdef inline int reserve(self, int64_t needed) except -1:
        """Make room for `needed` bytes of records in all."""
        return grow(self.data, self.room + needed)

    cdef int check_idle(self) except -1:
        if self.busy:
            raise RuntimeError("another thread is writing to this writer")
        return 0
