# Reading v2 records: the parser that every loop shares, the scan, and records as objects.

cdef extern from "Python.h":
    void PyObject_GC_UnTrack(object container)


cdef bytes exactly_bytes(data, what):
    if data is None or type(data) is bytes:
        return <bytes>data
    if not isinstance(data, bytes):
        raise TypeError(f"a {what} is bytes or None, not {type(data).__name__}")
    return bytes(data)


cdef int64_t whole(value) except? -1:
    """A whole number of 64 bits; a float is refused, not cut."""
    cdef int overflow = 0
    cdef int64_t number = PyLong_AsLongLongAndOverflow(value, &overflow)
    if overflow:
        raise OverflowError(f"{value} does not fit in 64 bits")
    return number


@cython.final
@cython.no_gc
@cython.freelist(512)
cdef class Record:
    """One record: where it is, when it was, and what it carries. Immutable.

    >>> Record(7, 1_700_000_000_000, b"user-1", b"hello", [("trace", b"a1")]).headers
    (('trace', b'a1'),)
    """

    cdef readonly int64_t offset
    cdef readonly int64_t timestamp
    cdef readonly bytes key
    cdef readonly bytes value
    cdef readonly tuple headers

    def __init__(self, offset, timestamp, key, value, headers=()):
        self.offset = whole(offset)
        self.timestamp = whole(timestamp)
        self.key = exactly_bytes(key, "key")
        self.value = exactly_bytes(value, "value")
        self.headers = tuple(headers)

    cdef tuple fields(self):
        return self.offset, self.timestamp, self.key, self.value, self.headers

    def __eq__(self, other):
        if not isinstance(other, Record):
            return NotImplemented
        return self.fields() == (<Record>other).fields()

    def __hash__(self):
        return hash(self.fields())

    def __repr__(self):
        return "Record(offset=%r, timestamp=%r, key=%r, value=%r, headers=%r)" % self.fields()

    def __reduce__(self):
        return Record, self.fields()


cdef struct Trouble:
    int fault
    int64_t at
    int64_t record
    int64_t value

cdef struct Parsed:
    int64_t timestamp_delta
    int64_t offset_delta
    int64_t key_at
    int64_t key_length
    int64_t value_at
    int64_t value_length
    int64_t header_count
    int64_t headers_at
    int64_t end

cdef struct Header:
    int64_t key_at
    int64_t key_length
    int64_t value_at
    int64_t value_length

cdef struct Totals:
    int64_t last_offset_delta
    int64_t min_timestamp_delta
    int64_t max_timestamp_delta
    int64_t max_timestamp_offset_delta
    int64_t null_keys
    int64_t key_bytes
    int64_t value_bytes
    int64_t header_count
    int64_t header_key_bytes
    int64_t header_value_bytes


cdef inline int fail(Trouble* trouble, int fault, int64_t at, int64_t value) noexcept nogil:
    trouble.fault = fault
    trouble.at = at
    trouble.value = value
    return -1


cdef inline int64_t filled(int64_t length) noexcept nogil:
    """Bytes that a nullable field of this length takes."""
    return length if length > 0 else 0


cdef inline int varint(
    Bytes data, int64_t* at, int64_t end, int bits, int64_t* value, Trouble* trouble
) noexcept nogil:
    cdef int64_t position = at[0]
    cdef uint64_t raw = 0
    cdef int shift = 0
    cdef uint8_t byte
    if position < end and data[position] < 0x80:
        raw = data[position]
        at[0] = position + 1
        value[0] = <int64_t>(raw >> 1) ^ -<int64_t>(raw & 1)
        return 0
    while True:
        if position >= end:
            return fail(trouble, VARINT_CUT, at[0], bits)
        byte = data[position]
        position += 1
        if shift == (28 if bits == 32 else 63) and byte > (0x0F if bits == 32 else 0x01):
            return fail(trouble, VARINT_LONG, at[0], bits)
        raw |= <uint64_t>(byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
    at[0] = position
    value[0] = <int64_t>(raw >> 1) ^ -<int64_t>(raw & 1)
    return 0


cdef inline int field_length(
    Bytes data, int64_t* at, int64_t end, int64_t smallest, int fault, int64_t* value, Trouble* trouble
) noexcept nogil:
    cdef int64_t start = at[0]
    if varint(data, at, end, 32, value, trouble) < 0:
        return -1
    if value[0] < smallest or value[0] > end - at[0]:
        return fail(trouble, fault, start, value[0])
    return 0


cdef inline bint short_varint(Bytes data, int64_t* at, int64_t* value) noexcept nogil:
    """A varint of up to three bytes, so many of which must be there; False if it is longer."""
    cdef Bytes here = data + at[0]
    cdef uint64_t raw = here[0]
    if raw < 0x80:
        at[0] += 1
    elif here[1] < 0x80:
        raw = raw & 0x7F | <uint64_t>here[1] << 7
        at[0] += 2
    elif here[2] < 0x80:
        raw = raw & 0x7F | <uint64_t>(here[1] & 0x7F) << 7 | <uint64_t>here[2] << 14
        at[0] += 3
    else:
        return False
    value[0] = <int64_t>(raw >> 1) ^ -<int64_t>(raw & 1)
    return True


cdef inline bint parse_usual(
    Bytes data, int64_t size, int64_t at, int64_t last_delta, bint gaps, Parsed* record
) noexcept nogil:
    """Parse what most records are: without headers, and with small numbers. False for all that is not so, or is wrong,
    which `parse` then looks at byte by byte."""
    cdef int64_t length, end
    if size - at < USUAL_BYTES or not short_varint(data, &at, &length):
        return False
    end = at + length
    at += 1
    if (
        length < 0
        or end > size
        or not short_varint(data, &at, &record.timestamp_delta)
        or not short_varint(data, &at, &record.offset_delta)
        or record.offset_delta <= last_delta
        or (not gaps and record.offset_delta != last_delta + 1)
        or not short_varint(data, &at, &record.key_length)
        or record.key_length < -1
        or record.key_length > end - at
    ):
        return False
    record.key_at = at
    at += filled(record.key_length)
    # Up to here it is the bytes of the section that bound what is read; that it was this record's shows at its end.
    if size - at < 4 or not short_varint(data, &at, &record.value_length) or record.value_length < -1:
        return False
    record.value_at = at
    at += filled(record.value_length)
    if at != end - 1 or data[at] != 0:
        return False
    record.header_count = 0
    record.headers_at = record.end = end
    return True


cdef inline int parse(
    Bytes data, int64_t size, int64_t at, int64_t last_delta, bint gaps, Parsed* record, Trouble* trouble
) noexcept nogil:
    if parse_usual(data, size, at, last_delta, gaps, record):
        return 0
    return parse_any(data, size, at, last_delta, gaps, record, trouble)


cdef int parse_any(
    Bytes data, int64_t size, int64_t at, int64_t last_delta, bint gaps, Parsed* record, Trouble* trouble
) noexcept nogil:
    cdef int64_t length
    cdef int64_t start
    if field_length(data, &at, size, SMALLEST_RECORD - 1, RECORD_LENGTH, &length, trouble) < 0:
        return -1
    cdef int64_t end = at + length
    # The attributes byte of a record carries nothing.
    at += 1
    if varint(data, &at, end, 64, &record.timestamp_delta, trouble) < 0:
        return -1
    start = at
    if varint(data, &at, end, 32, &record.offset_delta, trouble) < 0:
        return -1
    if record.offset_delta <= last_delta or (not gaps and record.offset_delta != last_delta + 1):
        return fail(trouble, OFFSET_DELTA, start, record.offset_delta)
    if field_length(data, &at, end, -1, KEY_LENGTH, &record.key_length, trouble) < 0:
        return -1
    record.key_at = at
    at += filled(record.key_length)
    if field_length(data, &at, end, -1, VALUE_LENGTH, &record.value_length, trouble) < 0:
        return -1
    record.value_at = at
    at += filled(record.value_length)
    start = at
    if varint(data, &at, end, 32, &record.header_count, trouble) < 0:
        return -1
    if record.header_count < 0 or record.header_count > (end - at) // SMALLEST_HEADER:
        return fail(trouble, HEADER_COUNT, start, record.header_count)
    if record.header_count == 0 and at != end:
        return fail(trouble, RECORD_TAIL, at, end - at)
    record.headers_at = at
    record.end = end
    return 0


cdef inline int parse_header(
    Bytes data, int64_t* at, int64_t end, Header* header, Trouble* trouble
) noexcept nogil:
    if field_length(data, at, end, 0, HEADER_KEY_LENGTH, &header.key_length, trouble) < 0:
        return -1
    header.key_at = at[0]
    at[0] += header.key_length
    if field_length(data, at, end, -1, HEADER_VALUE_LENGTH, &header.value_length, trouble) < 0:
        return -1
    header.value_at = at[0]
    at[0] += filled(header.value_length)
    return 0


cdef inline int headers_end(int64_t at, int64_t end, Trouble* trouble) noexcept nogil:
    return fail(trouble, RECORD_TAIL, at, end - at) if at != end else 0


cdef inline int section_end(int64_t at, int64_t size, int64_t count, Trouble* trouble) noexcept nogil:
    trouble.record = count
    return fail(trouble, SECTION_TAIL, at, size - at) if at != size else 0


cdef int scan_any(
    Bytes data, int64_t size, int64_t at, int64_t last_delta, bint gaps, Parsed* record, Totals* totals,
    Trouble* trouble
) noexcept nogil:
    """Check a record of whatever kind, and sum up its headers."""
    cdef Header header
    if parse_any(data, size, at, last_delta, gaps, record, trouble) < 0:
        return -1
    totals.header_count += record.header_count
    at = record.headers_at
    for _ in range(record.header_count):
        if parse_header(data, &at, record.end, &header, trouble) < 0:
            return -1
        totals.header_key_bytes += header.key_length
        totals.header_value_bytes += filled(header.value_length)
    return headers_end(at, record.end, trouble)


cdef int scan_section(
    Bytes data, int64_t size, int64_t count, bint gaps, Totals* totals, Trouble* trouble
) noexcept nogil:
    """Check a section and sum it up; after a fault the totals are those of what comes before it."""
    # What most records need is in variables; whatever `scan_any` is given would be in memory.
    cdef Parsed record, other
    cdef int64_t number = 0, at = 0, last_delta = -1
    cdef int64_t min_timestamp = 0, max_timestamp = 0, max_timestamp_delta = -1
    cdef int64_t null_keys = 0, key_bytes = 0, value_bytes = 0
    cdef int outcome = 0
    totals.header_count = totals.header_key_bytes = totals.header_value_bytes = 0
    while number < count:
        if not parse_usual(data, size, at, last_delta, gaps, &record):
            trouble.record = number
            outcome = scan_any(data, size, at, last_delta, gaps, &other, totals, trouble)
            if outcome < 0:
                break
            record = other
        last_delta = record.offset_delta
        if number == 0 or record.timestamp_delta < min_timestamp:
            min_timestamp = record.timestamp_delta
        if number == 0 or record.timestamp_delta > max_timestamp:
            max_timestamp = record.timestamp_delta
            max_timestamp_delta = last_delta
        null_keys += record.key_length < 0
        key_bytes += filled(record.key_length)
        value_bytes += filled(record.value_length)
        at = record.end
        number += 1
    totals.last_offset_delta = last_delta
    totals.min_timestamp_delta = min_timestamp
    totals.max_timestamp_delta = max_timestamp
    totals.max_timestamp_offset_delta = max_timestamp_delta
    totals.null_keys, totals.key_bytes, totals.value_bytes = null_keys, key_bytes, value_bytes
    return outcome if outcome < 0 else section_end(at, size, count, trouble)


cdef inline int place(
    Parsed* record, int64_t position, int64_t base_offset, int64_t base_timestamp, bint appended,
    int64_t* offset, int64_t* timestamp, Trouble* trouble
) noexcept nogil:
    """Turn the deltas into an offset and, unless the log stamped the batch, a timestamp."""
    cdef int64_t delta = record.timestamp_delta
    if base_offset > INT64_MAX - record.offset_delta:
        return fail(trouble, OFFSET_OVERFLOW, position, record.offset_delta)
    offset[0] = base_offset + record.offset_delta
    if not appended:
        if base_timestamp > INT64_MAX - delta if delta > 0 else base_timestamp < INT64_MIN - delta:
            return fail(trouble, TIMESTAMP_OVERFLOW, position, delta)
        timestamp[0] = base_timestamp + delta
    return 0


cdef object error(Trouble* trouble):
    return types.record_error(trouble.fault, trouble.at, trouble.record, trouble.value)


cdef int check_count(int64_t count, int64_t size) except -1:
    if count < 0 or count > size // SMALLEST_RECORD:
        raise types.count_error(count, size)
    return 0


cdef int scan_held(Held held, int64_t count, bint gaps, Totals* totals) except -1:
    cdef Trouble trouble
    cdef Bytes data = held.data
    cdef int64_t size = held.size
    cdef int outcome
    check_count(count, size)
    if size < RELEASE_FROM:
        outcome = scan_section(data, size, count, gaps, totals, &trouble)
    else:
        with nogil:
            outcome = scan_section(data, size, count, gaps, totals, &trouble)
    if outcome < 0:
        raise error(&trouble)
    return 0


def scan(data, int64_t count, bint gaps=False):
    """Check that `data` is exactly `count` well-formed v2 records, and sum up what they hold.

    Offset deltas must run 0, 1, 2 and so on, as clients write them; with `gaps` they need only increase.
    """
    cdef Totals sums
    scan_held(hold(data), count, gaps, &sums)
    return tuple.__new__(Summary, (
        sums.last_offset_delta,
        sums.min_timestamp_delta,
        sums.max_timestamp_delta,
        sums.max_timestamp_offset_delta,
        sums.null_keys,
        sums.key_bytes,
        sums.value_bytes,
        sums.header_count,
        sums.header_key_bytes,
        sums.header_value_bytes,
    ))


cdef inline bytes piece(Bytes data, int64_t at, int64_t length):
    return None if length < 0 else PyBytes_FromStringAndSize(<const char*>data + at, length)


cdef tuple read_headers(Bytes data, Parsed* record, Trouble* trouble):
    cdef Header header
    cdef int64_t number, at = record.headers_at
    # Never larger than the record: the count was checked against the bytes that are left.
    cdef tuple headers = PyTuple_New(record.header_count)
    # The collector must not show anyone a tuple with holes, and making the pairs may set it off. Nor has it anything to
    # find later in what holds text and bytes only, and by the hundred thousand that would take it long.
    PyObject_GC_UnTrack(headers)
    for number in range(record.header_count):
        if parse_header(data, &at, record.end, &header, trouble) < 0:
            raise error(trouble)
        pair = (
            PyUnicode_DecodeUTF8(<const char*>data + header.key_at, header.key_length, "replace"),
            piece(data, header.value_at, header.value_length),
        )
        PyObject_GC_UnTrack(pair)
        Py_INCREF(pair)
        PyTuple_SET_ITEM(headers, number, pair)
    if headers_end(at, record.end, trouble) < 0:
        raise error(trouble)
    return headers


def read(data, int64_t count, int64_t base_offset, int64_t base_timestamp, append_time=None):
    """The records of a section. `append_time`, where given, is the timestamp of every one of them.

    Header keys that are not UTF-8 are read with replacement characters, as the Java client does.
    """
    cdef Held held = hold(data)
    cdef Trouble trouble
    cdef Parsed parsed
    cdef Record record
    cdef int64_t number, at = 0, last_delta = -1, offset, timestamp = 0
    cdef bint appended = append_time is not None
    cdef list records = []
    check_count(count, held.size)
    if appended:
        timestamp = append_time
    for number in range(count):
        trouble.record = number
        if parse(held.data, held.size, at, last_delta, True, &parsed, &trouble) < 0:
            raise error(&trouble)
        if place(&parsed, at, base_offset, base_timestamp, appended, &offset, &timestamp, &trouble) < 0:
            raise error(&trouble)
        record = Record.__new__(Record)
        record.offset = offset
        record.timestamp = timestamp
        record.headers = read_headers(held.data, &parsed, &trouble) if parsed.header_count else ()
        record.key = piece(held.data, parsed.key_at, parsed.key_length)
        record.value = piece(held.data, parsed.value_at, parsed.value_length)
        records.append(record)
        at = parsed.end
        last_delta = parsed.offset_delta
    if section_end(at, held.size, count, &trouble) < 0:
        raise error(&trouble)
    return records
