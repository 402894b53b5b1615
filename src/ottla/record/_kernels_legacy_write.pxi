# Writing old message sets, from objects, from v2 records and from messages of either format.

cdef enum:
    # The message cannot be put into the format at all.
    UNFIT = -2


cdef inline void put_uint32(uint8_t* out, uint32_t value) noexcept nogil:
    out[0] = <uint8_t>(value >> 24)
    out[1] = <uint8_t>(value >> 16)
    out[2] = <uint8_t>(value >> 8)
    out[3] = <uint8_t>value


cdef inline void put_int64(uint8_t* out, int64_t value) noexcept nogil:
    put_uint32(out, <uint32_t>(<uint64_t>value >> 32))
    put_uint32(out + 4, <uint32_t>value)


cdef struct Outgoing:
    uint8_t* out
    int64_t capacity
    int64_t size
    int magic
    bint wrapped
    int64_t count
    int64_t first_offset
    int64_t last_offset
    int64_t max_timestamp


cdef inline uint8_t* put_nullable(uint8_t* out, Bytes data, int64_t length) noexcept nogil:
    put_uint32(out, <uint32_t>length)
    out += 4
    if length > 0:
        memcpy(out, data, length)
        out += length
    return out


cdef inline int put_message(
    Outgoing* sink, int64_t offset, int64_t timestamp, bint log_append_time, Bytes key, int64_t key_length,
    Bytes value, int64_t value_length
) noexcept nogil:
    """Write a message. Returns 0, NEEDS_ROOM or UNFIT."""
    cdef int64_t size = (22 if sink.magic else 14) + filled(key_length) + filled(value_length)
    cdef int64_t first = sink.first_offset if sink.count else offset
    cdef int64_t stored = offset
    cdef uint8_t* out = sink.out + sink.size
    cdef uint8_t* end
    if sink.wrapped and sink.magic:
        stored = <int64_t>(<uint64_t>offset - <uint64_t>first)
        if stored < 0:
            return UNFIT
    if size > INT32_MAX:
        return UNFIT
    if ENTRY_START + size > sink.capacity - sink.size:
        return NEEDS_ROOM
    put_int64(out, stored)
    put_uint32(out + 8, <uint32_t>size)
    out[16] = <uint8_t>sink.magic
    out[17] = 0
    end = out + 18
    if sink.magic:
        out[17] = APPEND_TIME_BIT if log_append_time else 0
        put_int64(end, timestamp)
        end += 8
    end = put_nullable(end, key, key_length)
    put_nullable(end, value, value_length)
    put_uint32(out + 12, crc32(<Bytes>out + 16, size - 4))
    sink.size += ENTRY_START + size
    sink.first_offset = first
    sink.last_offset = offset
    sink.max_timestamp = max(sink.max_timestamp, timestamp)
    sink.count += 1
    return 0


cdef int rewrite_source(
    Source* source, int64_t first_offset, Outgoing* sink, Complaint* complaint
) noexcept nogil:
    cdef Stored message
    cdef int64_t last_delta
    cdef int outcome
    while source.at < source.stop:
        if parse_plain(source, &message, complaint) < 0:
            return -1
        if message.offset >= first_offset:
            if sink.wrapped and sink.count:
                last_delta = sink.last_offset - sink.first_offset
                if check_order(source.at, message.offset, sink.first_offset, last_delta, complaint) < 0:
                    return -1
            outcome = put_message(
                sink, message.offset, message.timestamp, message.log_append_time, source.data + message.key_at,
                message.key_length, source.data + message.value_at, message.value_length,
            )
            if outcome != 0:
                complaint.value = message.offset
                return outcome
        source.at = message.end
    return 0


# v2 records being read, and the place of the next one.
cdef struct SectionSource:
    Bytes data
    int64_t size
    int64_t count
    int64_t base_offset
    int64_t base_timestamp
    bint appended
    int64_t append_time
    int64_t number
    int64_t at
    int64_t last_delta


cdef int rewrite_section(
    SectionSource* source, int64_t first_offset, Outgoing* sink, int64_t* unfit, Trouble* trouble
) noexcept nogil:
    cdef Parsed record
    cdef Header header
    cdef int64_t offset, header_at, timestamp = source.append_time
    cdef int outcome
    while source.number < source.count:
        trouble.record = source.number
        if parse(source.data, source.size, source.at, source.last_delta, True, &record, trouble) < 0:
            return -1
        if place(
            &record, source.at, source.base_offset, source.base_timestamp, source.appended, &offset, &timestamp,
            trouble,
        ) < 0:
            return -1
        if record.header_count:
            header_at = record.headers_at
            for _ in range(record.header_count):
                if parse_header(source.data, &header_at, record.end, &header, trouble) < 0:
                    return -1
            if headers_end(header_at, record.end, trouble) < 0:
                return -1
        if offset >= first_offset:
            outcome = put_message(
                sink, offset, timestamp, source.appended, source.data + record.key_at, record.key_length,
                source.data + record.value_at, record.value_length,
            )
            if outcome != 0:
                unfit[0] = offset
                return outcome
        source.at = record.end
        source.last_delta = record.offset_delta
        source.number += 1
    return section_end(source.at, source.size, source.count, trouble)


cdef Record as_record(item):
    """What looks like a record, as one."""
    try:
        return Record(item.offset, item.timestamp, item.key, item.value, item.headers)
    except OverflowError as problem:
        raise legacy.unfit_error(item.offset) from problem


cdef class MessageWriter:
    """Writes plain messages of one format, from records, from v2 sections or from messages.

    In a set that is going to be wrapped offsets increase, and in magic 1 they count from the first message.
    After an error the writer holds what came before the record at fault.

    >>> writer = MessageWriter(magic=1, wrapped=True)
    >>> writer.extend_records([Record(7, 1500, None, b"v"), Record(9, 1400, b"k", b"w")])
    >>> writer.count, writer.last_offset, writer.max_timestamp, len(writer.messages())
    (2, 9, 1500, 71)
    """

    cdef Outgoing sink
    cdef bytearray data
    cdef bint busy

    def __init__(self, int magic, bint wrapped=False):
        if magic != 0 and magic != 1:
            raise legacy.magic_error(magic)
        self.sink.magic = magic
        self.sink.wrapped = wrapped
        self.sink.size = self.sink.count = 0
        self.sink.first_offset = self.sink.last_offset = self.sink.max_timestamp = -1
        self.data = PyByteArray_FromStringAndSize(NULL, 16384)
        self.reserve(0)

    @property
    def magic(self):
        """The format that is written."""
        return self.sink.magic

    @property
    def count(self):
        """Messages written so far."""
        return self.sink.count

    @property
    def last_offset(self):
        """The offset of the last message, or -1."""
        return self.sink.last_offset

    @property
    def max_timestamp(self):
        """The largest of the timestamps, also where the format does not keep them, or -1."""
        return self.sink.max_timestamp

    def messages(self):
        """What was written so far. Release the view before writing more."""
        return memoryview(self.data)[: self.sink.size]

    def extend_records(self, records, bint drop_headers=False, bint log_append_time=False):
        """Add records. Their offsets must increase, and headers are an error unless they are to be dropped."""
        cdef Record record
        cdef Bytes key
        cdef Bytes value
        cdef int64_t key_length, value_length
        cdef int outcome
        self.check_idle()
        self.busy = True
        try:
            for item in records:
                record = <Record>item if type(item) is Record else as_record(item)
                if not drop_headers and record.headers:
                    raise legacy.headers_error(record.offset, self.sink.magic)
                if self.sink.count and record.offset <= self.sink.last_offset:
                    raise legacy.order_error(record.offset, self.sink.last_offset)
                key = value = NULL
                key_length = value_length = -1
                if record.key is not None:
                    key = <Bytes>PyBytes_AS_STRING(record.key)
                    key_length = PyBytes_GET_SIZE(record.key)
                if record.value is not None:
                    value = <Bytes>PyBytes_AS_STRING(record.value)
                    value_length = PyBytes_GET_SIZE(record.value)
                outcome = self.put(record, log_append_time, key, key_length, value, value_length)
                if outcome == NEEDS_ROOM:
                    self.reserve(SMALLEST_ENTRY + 8 + filled(key_length) + filled(value_length))
                    outcome = self.put(record, log_append_time, key, key_length, value, value_length)
                if outcome < 0:
                    raise legacy.unfit_error(record.offset)
        finally:
            self.busy = False

    cdef inline int put(
        self, Record record, bint log_append_time, Bytes key, int64_t key_length, Bytes value, int64_t value_length
    ) noexcept:
        return put_message(
            &self.sink, record.offset, record.timestamp, log_append_time, key, key_length, value, value_length
        )

    def extend_section(
        self,
        data,
        int64_t count,
        int64_t base_offset,
        int64_t base_timestamp,
        append_time=None,
        int64_t first_offset=INT64_MIN,
    ):
        """Add the records of a v2 section from `first_offset` on, without headers.

        `append_time`, where given, is the timestamp of every one of them.
        """
        cdef Held held = hold(data)
        cdef SectionSource source
        cdef Trouble trouble
        cdef int64_t unfit = 0
        cdef int outcome = NEEDS_ROOM
        check_count(count, held.size)
        source.data = held.data
        source.size = held.size
        source.count = count
        source.base_offset = base_offset
        source.base_timestamp = base_timestamp
        source.appended = append_time is not None
        source.append_time = append_time if source.appended else -1
        source.number = source.at = 0
        source.last_delta = -1
        self.check_idle()
        self.busy = True
        try:
            while outcome == NEEDS_ROOM:
                self.reserve(held.size - source.at + 32 * (count - source.number))
                if held.size < RELEASE_FROM:
                    outcome = rewrite_section(&source, first_offset, &self.sink, &unfit, &trouble)
                else:
                    with nogil:
                        outcome = rewrite_section(&source, first_offset, &self.sink, &unfit, &trouble)
        finally:
            self.busy = False
        if outcome == UNFIT:
            raise legacy.unfit_error(unfit)
        if outcome < 0:
            raise error(&trouble)

    def extend_run(self, run, int64_t first_offset=INT64_MIN):
        """Add the plain messages of a run from `first_offset` on, each with its type of timestamp."""
        cdef Source source
        cdef Held held = open_run(run, &source)
        cdef Complaint complaint
        cdef int outcome = NEEDS_ROOM
        self.check_idle()
        self.busy = True
        try:
            while outcome == NEEDS_ROOM:
                # The timestamps of magic 1 may have to be added, eight bytes to messages of no less than 26.
                self.reserve(source.stop - source.at + (source.stop - source.at) // 3)
                if source.stop - source.at < RELEASE_FROM:
                    outcome = rewrite_source(&source, first_offset, &self.sink, &complaint)
                else:
                    with nogil:
                        outcome = rewrite_source(&source, first_offset, &self.sink, &complaint)
        finally:
            self.busy = False
        if outcome == UNFIT:
            raise legacy.unfit_error(complaint.value)
        if outcome < 0:
            raise message_error(&complaint)

    cdef int reserve(self, int64_t size) except -1:
        grow(self.data, self.sink.size + size)
        self.sink.out = storage(self.data)
        self.sink.capacity = len(self.data)
        return 0

    cdef int check_idle(self) except -1:
        if self.busy:
            raise RuntimeError("another thread is writing to this writer")
        return 0
