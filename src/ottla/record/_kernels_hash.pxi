# Hashes of keys, by which partitions are chosen.

ctypedef uint32_t (*Hash)(Bytes, int64_t) noexcept nogil

cdef enum:
    MURMUR_MULTIPLIER = 0x5BD1E995


cdef uint32_t murmur2_of(Bytes data, int64_t size) noexcept nogil:
    cdef uint32_t word, value = <uint32_t>0x9747B28C ^ <uint32_t>size
    while size >= 4:
        word = <uint32_t>data[3] << 24 | <uint32_t>data[2] << 16 | <uint32_t>data[1] << 8 | data[0]
        word *= MURMUR_MULTIPLIER
        word = (word ^ word >> 24) * MURMUR_MULTIPLIER
        value = value * MURMUR_MULTIPLIER ^ word
        data += 4
        size -= 4
    if size > 0:
        word = data[0]
        if size > 1:
            word |= <uint32_t>data[1] << 8
        if size > 2:
            word |= <uint32_t>data[2] << 16
        value = (value ^ word) * MURMUR_MULTIPLIER
    value = (value ^ value >> 13) * MURMUR_MULTIPLIER
    return value ^ value >> 15


def murmur2(data):
    """The 32-bit murmur2 hash, with Kafka's seed.

    >>> hex(murmur2(b"kafka"))
    '0xd067cf64'
    """
    cdef Held held
    if type(data) is bytes:
        return murmur2_of(<Bytes>PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data))
    held = hold(data)
    return murmur2_of(held.data, held.size)


cdef int64_t hash_rows(BinarySource* source, int64_t start, int64_t stop, Hash method, uint8_t* out) noexcept nogil:
    """Hash rows `start` to `stop`. Returns `stop`, or the row whose offsets are not to be believed."""
    cdef int64_t row, at, length
    cdef uint32_t value
    for row in range(start, stop):
        if locate(source, row, &at, &length) < 0:
            return row
        value = 0 if length < 0 else method(bytes_at(source, at, length), length)
        memcpy(out, &value, 4)
        out += 4
    return stop


cdef bytearray hashes_of(column, int64_t start, int64_t stop, Hash method):
    cdef BinarySource source
    cdef list held = []
    cdef bytearray hashes
    cdef uint8_t* out
    cdef int64_t reached
    if start < 0 or stop < start:
        raise IndexError(f"rows {start} to {stop} are not a range")
    memset(&source, 0, sizeof(BinarySource))
    open_binary(&source, column, stop, held)
    hashes = PyByteArray_FromStringAndSize(NULL, 4 * (stop - start))
    out = storage(hashes)
    with nogil:
        reached = hash_rows(&source, start, stop, method, out)
    if reached < stop:
        raise types.row_error(ROW_KEY_BOUNDS, reached)
    return hashes


def murmur2_rows(column not None, int64_t start, int64_t stop):
    """The murmur2 hashes of rows `start` to `stop` as an array of uint32; a null row has 0."""
    return hashes_of(column, start, stop, murmur2_of)


def crc32_rows(column not None, int64_t start, int64_t stop):
    """The CRC-32 of rows `start` to `stop` as an array of uint32; a null row has 0."""
    return hashes_of(column, start, stop, crc32)
