# Reading old message sets: the parser that every loop shares, records as objects, totals, and v2 records.

from libc.stdint cimport uint32_t

from ottla.record import _legacy_types as legacy

# The numbers of legacy.MessageFault; the tests hold the two kernels to the same faults.
cdef enum:
    MESSAGE_CUT = 1
    MESSAGE_SIZE
    MESSAGE_MAGIC
    MESSAGE_CRC
    MESSAGE_KEY_LENGTH
    MESSAGE_VALUE_LENGTH
    MESSAGE_OFFSET_RANGE
    MESSAGE_COMPRESSED
    MESSAGE_OFFSET_ORDER
    MESSAGE_OFFSET_FAR
    MESSAGE_TIMESTAMP_FAR
    MESSAGE_TOO_MANY

cdef enum:
    ENTRY_START = 12
    SMALLEST_ENTRY = 26
    CODEC_BITS = 0x07
    APPEND_TIME_BIT = 0x08


cdef inline uint32_t get_uint32(Bytes data) noexcept nogil:
    return <uint32_t>data[0] << 24 | <uint32_t>data[1] << 16 | <uint32_t>data[2] << 8 | data[3]


cdef inline int32_t get_int32(Bytes data) noexcept nogil:
    return <int32_t>get_uint32(data)


cdef inline int64_t get_int64(Bytes data) noexcept nogil:
    return <int64_t>(<uint64_t>get_uint32(data) << 32 | get_uint32(data + 4))


# CRC-32, sixteen bytes at a step: table `n` is what a byte does to the checksum when `n` more bytes follow it.
cdef uint32_t CRC_TABLES[16][256]


cdef void fill_crc_tables() noexcept:
    cdef uint32_t crc
    cdef int byte, table
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = crc >> 1 ^ (0xEDB88320 if crc & 1 else 0)
        CRC_TABLES[0][byte] = crc
    for table in range(1, 16):
        for byte in range(256):
            crc = CRC_TABLES[table - 1][byte]
            CRC_TABLES[table][byte] = crc >> 8 ^ CRC_TABLES[0][crc & 0xFF]


fill_crc_tables()


cdef inline uint32_t crc_word(Bytes data, uint32_t crc, int following) noexcept nogil:
    """What four bytes, taken into a checksum, contribute when so many bytes follow them."""
    crc ^= <uint32_t>data[3] << 24 | <uint32_t>data[2] << 16 | <uint32_t>data[1] << 8 | data[0]
    return (
        CRC_TABLES[following + 3][crc & 0xFF]
        ^ CRC_TABLES[following + 2][crc >> 8 & 0xFF]
        ^ CRC_TABLES[following + 1][crc >> 16 & 0xFF]
        ^ CRC_TABLES[following][crc >> 24]
    )


cdef inline uint32_t crc32(Bytes data, int64_t size) noexcept nogil:
    cdef uint32_t rest, crc = 0xFFFFFFFF
    while size >= 16:
        # Only the first word waits for the step before, so the others are worked out meanwhile.
        rest = crc_word(data + 4, 0, 8) ^ crc_word(data + 8, 0, 4) ^ crc_word(data + 12, 0, 0)
        crc = crc_word(data, crc, 12) ^ rest
        data += 16
        size -= 16
    while size >= 4:
        crc = crc_word(data, crc, 0)
        data += 4
        size -= 4
    while size > 0:
        crc = crc >> 8 ^ CRC_TABLES[0][(crc ^ data[0]) & 0xFF]
        data += 1
        size -= 1
    return ~crc


# Messages being read, and the position of the next one.
cdef struct Source:
    Bytes data
    int64_t at
    int64_t stop
    int64_t shift
    bint wrapped
    bint stamped
    int64_t append_time

cdef struct Stored:
    int64_t offset
    int64_t timestamp
    int64_t key_at
    int64_t key_length
    int64_t value_at
    int64_t value_length
    int magic
    int codec
    bint log_append_time
    int64_t end

cdef struct Complaint:
    int fault
    int64_t at
    int64_t value
    int64_t other

cdef struct Tally:
    int64_t count
    int64_t magic_1
    int64_t null_keys
    int64_t log_append_times
    int64_t first_offset
    int64_t last_offset
    bint consecutive
    int64_t min_timestamp
    int64_t max_timestamp


cdef inline int complain(
    Complaint* complaint, int fault, int64_t at, int64_t value, int64_t other
) noexcept nogil:
    complaint.fault = fault
    complaint.at = at
    complaint.value = value
    complaint.other = other
    return -1


cdef object message_error(Complaint* complaint):
    return legacy.message_error(complaint.fault, complaint.at, complaint.value, complaint.other)


cdef Held open_run(run, Source* source):
    cdef Held held = hold(run.data)
    source.data = held.data
    source.at = run.start
    source.stop = run.stop
    if source.at < 0 or source.stop < source.at or source.stop > held.size:
        raise legacy.range_error(run, held.size)
    source.shift = run.shift
    source.wrapped = run.codec != 0
    append_time = run.append_time
    source.stamped = append_time is not None
    source.append_time = append_time if source.stamped else -1
    return held


cdef Held open_at(run, int64_t position, Source* source):
    cdef Held held = open_run(run, source)
    if position < source.at or position > source.stop:
        raise legacy.range_error(run._replace(start=position), held.size)
    source.at = position
    return held


cdef inline int add_offset(int64_t* offset, int64_t shift) noexcept nogil:
    if offset[0] > INT64_MAX - shift if shift > 0 else offset[0] < INT64_MIN - shift:
        return -1
    offset[0] += shift
    return -1 if offset[0] < 0 else 0


cdef inline int parse_message(Source* source, Stored* message, Complaint* complaint) noexcept nogil:
    """Check and take apart the message at the source's position, which stays where it is."""
    cdef int64_t start = source.at
    cdef int64_t left = source.stop - start
    cdef Bytes data = source.data + start
    cdef int64_t size, smallest, at, offset
    cdef uint32_t crc, actual
    if left < ENTRY_START:
        return complain(complaint, MESSAGE_CUT, start, left, 0)
    size = get_int32(data + 8)
    if size < SMALLEST_ENTRY - ENTRY_START:
        return complain(complaint, MESSAGE_SIZE, start + 8, size, SMALLEST_ENTRY - ENTRY_START)
    if size > left - ENTRY_START:
        return complain(complaint, MESSAGE_CUT, start, left, 0)
    message.end = start + ENTRY_START + size
    message.magic = data[16]
    if message.magic > 1:
        return complain(complaint, MESSAGE_MAGIC, start + 16, message.magic, 0)
    smallest = 22 if message.magic else 14
    if size < smallest:
        return complain(complaint, MESSAGE_SIZE, start + 8, size, smallest)
    crc = get_uint32(data + 12)
    actual = crc32(data + 16, size - 4)
    if actual != crc:
        return complain(complaint, MESSAGE_CRC, start + 12, crc, actual)
    message.codec = data[17] & CODEC_BITS
    message.log_append_time = message.magic and (
        source.stamped if source.wrapped else data[17] & APPEND_TIME_BIT != 0
    )
    at = start + 18
    message.timestamp = -1
    if message.magic:
        message.timestamp = source.append_time if source.stamped else get_int64(data + 18)
        at += 8
    message.key_length = get_int32(source.data + at)
    message.key_at = at + 4
    # The value's length has its place in any case, so a key may not reach into the last four bytes.
    if message.key_length < -1 or message.key_length > message.end - 4 - message.key_at:
        return complain(complaint, MESSAGE_KEY_LENGTH, at, message.key_length, 0)
    at = message.key_at + filled(message.key_length)
    message.value_length = get_int32(source.data + at)
    message.value_at = at + 4
    # Kafka looks at nothing after the value, and neither does this.
    if message.value_length < -1 or message.value_length > message.end - message.value_at:
        return complain(complaint, MESSAGE_VALUE_LENGTH, at, message.value_length, 0)
    message.offset = offset = get_int64(data)
    if source.shift and add_offset(&message.offset, source.shift) < 0:
        return complain(complaint, MESSAGE_OFFSET_RANGE, start, offset, source.shift)
    return 0


cdef inline int parse_plain(Source* source, Stored* message, Complaint* complaint) noexcept nogil:
    if parse_message(source, message, complaint) < 0:
        return -1
    if message.codec:
        return complain(complaint, MESSAGE_COMPRESSED, source.at + 17, message.codec, 0)
    return 0


cdef inline int check_order(
    int64_t at, int64_t offset, int64_t first_offset, int64_t last_delta, Complaint* complaint
) noexcept nogil:
    """Whether an offset may follow the one at `last_delta` from the first."""
    if offset < first_offset:
        return complain(complaint, MESSAGE_OFFSET_ORDER, at, offset, first_offset + last_delta)
    cdef uint64_t delta = <uint64_t>offset - <uint64_t>first_offset
    if delta > INT32_MAX:
        return complain(complaint, MESSAGE_OFFSET_FAR, at, offset, first_offset)
    if <int64_t>delta <= last_delta:
        return complain(complaint, MESSAGE_OFFSET_ORDER, at, offset, first_offset + last_delta)
    return 0


cdef int64_t find_run_end(Source* source) noexcept nogil:
    cdef Bytes data = source.data
    cdef int64_t at = source.at
    cdef int64_t size
    while source.stop - at >= SMALLEST_ENTRY:
        size = get_int32(data + at + 8)
        if size < SMALLEST_ENTRY - ENTRY_START or size > source.stop - at - ENTRY_START:
            break
        if data[at + 16] > 1 or data[at + 17] & CODEC_BITS:
            break
        at += ENTRY_START + size
    return at


def run_end(run, int64_t position):
    """Where the plain messages end that begin at a position.

    What lies there, if it is not the end of the run, is compressed, malformed or cut short. Of the messages before it
    nothing but the bounds is checked.
    """
    cdef Source source
    cdef Held held = open_at(run, position, &source)
    cdef int64_t end
    if source.stop - source.at < RELEASE_FROM:
        return find_run_end(&source)
    with nogil:
        end = find_run_end(&source)
    return end


cdef int64_t find_last_offset(Bytes data, int64_t size) noexcept nogil:
    cdef int64_t at = 0, offset = 0
    while size - at >= ENTRY_START:
        offset = get_int64(data + at)
        at += ENTRY_START + filled(get_int32(data + at + 8))
    return offset


def last_offset(data):
    """The offset of the last message of a set, 0 if there is none, with no check but that it ends."""
    cdef Held held = hold(data)
    cdef int64_t offset
    if held.size < RELEASE_FROM:
        return find_last_offset(held.data, held.size)
    with nogil:
        offset = find_last_offset(held.data, held.size)
    return offset


def message_at(run, int64_t position):
    """The message at a position, plain or compressed, or None if it is cut short."""
    cdef Source source
    cdef Held held = open_at(run, position, &source)
    cdef Stored message
    cdef Complaint complaint
    cdef int outcome
    if source.stop - position < RELEASE_FROM:
        outcome = parse_message(&source, &message, &complaint)
    else:
        with nogil:
            outcome = parse_message(&source, &message, &complaint)
    if outcome < 0:
        if complaint.fault == MESSAGE_CUT:
            return None
        raise message_error(&complaint)
    return legacy.StoredMessage(
        message.offset,
        message.timestamp,
        piece(source.data, message.key_at, message.key_length),
        piece(source.data, message.value_at, message.value_length),
        message.magic,
        message.codec,
        bool(message.log_append_time),
        message.end,
    )


def read_run(run):
    """The plain messages of a run as records."""
    cdef Source source
    cdef Held held = open_run(run, &source)
    cdef Stored message
    cdef Complaint complaint
    cdef Record record
    cdef list records = []
    while source.at < source.stop:
        if parse_plain(&source, &message, &complaint) < 0:
            raise message_error(&complaint)
        record = Record.__new__(Record)
        record.offset = message.offset
        record.timestamp = message.timestamp
        record.headers = ()
        record.key = piece(source.data, message.key_at, message.key_length)
        record.value = piece(source.data, message.value_at, message.value_length)
        records.append(record)
        source.at = message.end
    return records


# Summing up a run, and turning it into v2 records.

cdef inline void count_message(Tally* tally, Stored* message) noexcept nogil:
    if tally.count == 0:
        tally.first_offset = message.offset
        tally.consecutive = True
        tally.min_timestamp = tally.max_timestamp = message.timestamp
    elif message.offset <= tally.last_offset or <uint64_t>message.offset - <uint64_t>tally.last_offset != 1:
        tally.consecutive = False
    tally.count += 1
    tally.magic_1 += message.magic
    tally.null_keys += message.key_length < 0
    tally.log_append_times += message.log_append_time
    tally.last_offset = message.offset
    tally.min_timestamp = min(tally.min_timestamp, message.timestamp)
    tally.max_timestamp = max(tally.max_timestamp, message.timestamp)


cdef object totals_of(Tally* tally):
    return legacy.MessageTotals(
        tally.count,
        tally.magic_1,
        tally.null_keys,
        tally.log_append_times,
        tally.first_offset,
        bool(tally.consecutive),
        tally.min_timestamp,
        tally.max_timestamp,
    )


cdef void clear_tally(Tally* tally) noexcept:
    tally.count = tally.magic_1 = tally.null_keys = tally.log_append_times = 0
    tally.first_offset = tally.last_offset = 0
    tally.min_timestamp = tally.max_timestamp = 0
    tally.consecutive = False


cdef int scan_source(Source* source, Tally* tally, Complaint* complaint) noexcept nogil:
    cdef Stored message
    while source.at < source.stop:
        if parse_plain(source, &message, complaint) < 0:
            return -1
        count_message(tally, &message)
        source.at = message.end
    return 0


def scan_run(run):
    """Check that a run is one of well-formed plain messages, and sum up what they hold."""
    cdef Source source
    cdef Held held = open_run(run, &source)
    cdef Tally tally
    cdef Complaint complaint
    cdef int outcome
    clear_tally(&tally)
    if source.stop - source.at < RELEASE_FROM:
        outcome = scan_source(&source, &tally, &complaint)
    else:
        with nogil:
            outcome = scan_source(&source, &tally, &complaint)
    if outcome < 0:
        raise message_error(&complaint)
    return totals_of(&tally)


cdef int append_source(
    Source* source, State* state, int64_t base_offset, bint renumber, uint8_t* out, int64_t capacity, Tally* tally,
    Complaint* complaint
) noexcept nogil:
    """Write messages as v2 records. Returns 0 at the end, -1 for a fault, or NEEDS_ROOM, to go on from there."""
    cdef Stored message
    cdef Pending record
    record.header_count = record.header_bytes = 0
    while source.at < source.stop:
        if parse_plain(source, &message, complaint) < 0:
            return -1
        record.offset_delta = state.last_offset_delta + 1
        if not renumber:
            if check_order(source.at, message.offset, base_offset, state.last_offset_delta, complaint) < 0:
                return -1
            record.offset_delta = message.offset - base_offset
        if set_timestamp(state, &record, message.timestamp) < 0:
            return complain(
                complaint, MESSAGE_TIMESTAMP_FAR, source.at, message.timestamp, state.base_timestamp
            )
        record.key = source.data + message.key_at
        record.key_length = message.key_length
        record.value = source.data + message.value_at
        record.value_length = message.value_length
        measure(&record)
        if fits(state, &record) <= 0:
            return complain(complaint, MESSAGE_TOO_MANY, source.at, message.offset, 0)
        if record.total > capacity - state.size:
            return NEEDS_ROOM
        put_record(out + state.size, &record)
        advance(state, &record)
        count_message(tally, &message)
        source.at = message.end
    return 0


def append_run(RecordWriter writer not None, run, bint renumber=False):
    """Add the plain messages of a run to a writer of v2 records, at their own offsets or at the next ones.

    After an error the writer holds the messages before the one at fault.
    """
    cdef Source source
    cdef Held held = open_run(run, &source)
    cdef Tally tally
    cdef Complaint complaint
    cdef uint8_t* out
    cdef int64_t capacity
    cdef int outcome = NEEDS_ROOM
    clear_tally(&tally)
    writer.check_idle()
    # A v2 record is nearly always shorter than the message it is made of.
    writer.reserve(writer.state.size + source.stop - source.at)
    writer.busy = True
    try:
        while True:
            out = writer.section()
            capacity = writer.capacity()
            if source.stop - source.at < RELEASE_FROM:
                outcome = append_source(
                    &source, &writer.state, writer.base_offset, renumber, out, capacity, &tally, &complaint
                )
            else:
                with nogil:
                    outcome = append_source(
                        &source, &writer.state, writer.base_offset, renumber, out, capacity, &tally, &complaint
                    )
            if outcome != NEEDS_ROOM:
                break
            writer.reserve(capacity + RELEASE_FROM)
    finally:
        writer.busy = False
    if outcome < 0:
        raise message_error(&complaint)
    return totals_of(&tally)
