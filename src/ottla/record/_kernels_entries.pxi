# The walk over what a fetch brought, from entry to entry, whatever their format.


def whole_entries(data):
    """Where the last whole entry of a run ends, where it begins, or -1 if there is none, and how many records there
    are, as far as that can be told without looking into what is compressed: messages of old formats count as one.

    Only what leads from one entry to the next is looked at.
    """
    cdef Held held = hold(data)
    cdef int64_t end = 0, last = -1, count = 0, length
    cdef Bytes entry
    while held.size - end > MAGIC_AT:
        entry = held.data + end
        length = <int32_t>big_endian(entry + 8, 4)
        if length < 0 or length > held.size - end - LENGTH_END:
            break
        # What is too short for a batch is found out about when it is read.
        if <signed char>entry[MAGIC_AT] >= MAGIC and LENGTH_END + length >= HEADER_BYTES:
            count += <int32_t>big_endian(entry + 57, 4)
        else:
            count += 1
        last = end
        end += LENGTH_END + length
    return end, last, count
