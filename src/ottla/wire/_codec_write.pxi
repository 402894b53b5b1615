# Writing: one buffer that grows, cut only where large records stand.

cdef class Output:
    """A buffer that grows."""

    cdef uint8_t *data
    cdef Py_ssize_t size
    cdef Py_ssize_t capacity
    cdef list pieces
    cdef list buffers

    def __cinit__(self):
        self.capacity = 512
        self.size = 0
        self.data = <uint8_t *> PyMem_Malloc(self.capacity)
        if self.data is NULL:
            raise MemoryError

    def __dealloc__(self):
        PyMem_Free(self.data)

    cdef inline uint8_t *room(self, Py_ssize_t length) except NULL:
        """A place for so many more bytes."""
        cdef uint8_t *at
        if self.size + length > self.capacity:
            self.grow(length)
        at = self.data + self.size
        self.size += length
        return at

    cdef int grow(self, Py_ssize_t length) except -1:
        cdef Py_ssize_t capacity = max(self.capacity * 2, self.size + length)
        cdef uint8_t *data = <uint8_t *> PyMem_Realloc(self.data, capacity)
        if data is NULL:
            raise MemoryError
        self.data = data
        self.capacity = capacity
        return 0

    cdef bytes taken(self):
        """What was written so far, which is then forgotten."""
        cdef bytes written = PyBytes_FromStringAndSize(<const char *> self.data, self.size)
        self.size = 0
        return written


cdef inline void put16(uint8_t *at, uint16_t value) noexcept nogil:
    at[0] = value >> 8
    at[1] = value & 0xFF


cdef inline void put32(uint8_t *at, uint32_t value) noexcept nogil:
    at[0] = value >> 24
    at[1] = (value >> 16) & 0xFF
    at[2] = (value >> 8) & 0xFF
    at[3] = value & 0xFF


cdef inline void put64(uint8_t *at, uint64_t value) noexcept nogil:
    put32(at, <uint32_t> (value >> 32))
    put32(at + 4, <uint32_t> value)


cdef int write_uvarint(Output out, uint64_t value) except -1:
    cdef uint8_t *at
    while value > 0x7F:
        at = out.room(1)
        at[0] = (value & 0x7F) | 0x80
        value >>= 7
    at = out.room(1)
    at[0] = <uint8_t> value
    return 0


cdef inline int write_length(Output out, int64_t length, int width, bint compact) except -1:
    if compact:
        write_uvarint(out, length + 1)
    elif width == 2:
        put16(out.room(2), <uint16_t> <short> length)
    else:
        if length > 0x7FFFFFFF:
            raise OverflowError
        put32(out.room(4), <uint32_t> <int> length)
    return 0


cdef inline int write_scalar(Output out, int kind, value) except -1:
    cdef int64_t number, limit
    cdef double real
    cdef uint64_t bits
    if kind == BOOL8:
        out.room(1)[0] = 1 if value else 0
        return 0
    if kind == UUID:
        if not isinstance(value, bytes) or PyBytes_GET_SIZE(value) != 16:
            raise ValueError
        memcpy(out.room(16), PyBytes_AS_STRING(value), 16)
        return 0
    if kind == FLOAT64:
        real = value
        memcpy(&bits, &real, 8)
        put64(out.room(8), bits)
        return 0
    number = PyLong_AsLongLong(value)
    if kind == INT64:
        put64(out.room(8), <uint64_t> number)
        return 0
    if kind == UINT16:
        if not 0 <= number <= 0xFFFF:
            raise OverflowError
        put16(out.room(2), <uint16_t> number)
        return 0
    limit = largest(kind)
    if number > limit or number < -limit - 1:
        raise OverflowError
    if kind == INT32:
        put32(out.room(4), <uint32_t> <int> number)
    elif kind == INT16:
        put16(out.room(2), <uint16_t> <short> number)
    else:
        out.room(1)[0] = <uint8_t> <signed char> number
    return 0


cdef inline int write_variable(Output out, int kind, value, bint compact, bint nullable) except -1:
    cdef Py_ssize_t length
    cdef const char *text
    cdef Py_buffer view
    cdef int width = 2 if kind == TEXT else 4
    if value is None:
        if not nullable:
            raise TypeError
        return write_length(out, -1, width, compact)
    if kind == TEXT:
        text = PyUnicode_AsUTF8AndSize(value, &length)
        if length > 0x7FFF:
            raise ValueError
        write_length(out, length, width, compact)
        memcpy(out.room(length), text, length)
    elif kind == OCTETS:
        PyObject_GetBuffer(value, &view, PyBUF_SIMPLE)
        try:
            write_length(out, view.len, width, compact)
            memcpy(out.room(view.len), view.buf, view.len)
        finally:
            PyBuffer_Release(&view)
    else:
        length = len(value) if type(value) is bytes else encoding.byte_length(value)
        write_length(out, length, width, compact)
        if length < COPIED_BELOW and type(value) is bytes:
            memcpy(out.room(length), PyBytes_AS_STRING(value), length)
        else:
            out.pieces.append(out.taken())
            encoding.place_records(value, length, out.pieces, out.buffers)
    return 0


cdef int write_array(Output out, Item *item, value) except -1:
    cdef Plan plan
    if value is None:
        if not item.nullable:
            raise TypeError
        return write_length(out, -1, 4, item.compact)
    cdef list elements = value if type(value) is list else list(value)
    write_length(out, len(elements), 4, item.compact)
    if item.element == STRUCT:
        plan = <Plan> item.plan
        for element in elements:
            write_struct(out, plan, element)
    elif item.element >= TEXT:
        for element in elements:
            write_variable(out, item.element, element, item.compact, False)
    else:
        for element in elements:
            write_scalar(out, item.element, element)
    return 0


cdef inline int write_item(Output out, Item *item, value) except -1:
    if item.kind < TEXT:
        return write_scalar(out, item.kind, value)
    if item.kind < STRUCT:
        return write_variable(out, item.kind, value, item.compact, item.nullable)
    if item.kind == ARRAY:
        return write_array(out, item, value)
    if item.nullable:
        out.room(1)[0] = 0xFF if value is None else 1
        if value is None:
            return 0
    return write_struct(out, <Plan> item.plan, value)


cdef int write_struct(Output out, Plan plan, instance) except -1:
    cdef int index
    # The slots' places are those of this very class; anything else would be read as nonsense.
    if type(instance) is not plan.cls:
        raise TypeError
    for index in range(plan.count):
        write_item(out, &plan.items[index], get(instance, plan.items[index].slot))
    if plan.flexible:
        write_tags(out, plan, instance)
    return 0


cdef int write_tags(Output out, Plan plan, instance) except -1:
    """Tagged fields that differ from their defaults, with the unknown ones, in order of tag."""
    cdef Tagged known
    unknown = get(instance, plan.tags_slot)
    if unknown is None and not plan.tagged_order:
        out.room(1)[0] = 0
        return 0
    cdef dict found = None
    for entry in plan.tagged_order:
        known = <Tagged> entry
        value = get(instance, known.item.slot)
        if value is known.default or value == known.default:
            continue
        if known.is_list and value is not None and not value:
            continue
        if known.bare_struct and value == type(value)():
            continue
        if found is None:
            found = {}
        found[known.tag] = encode_tagged(out, known, value)
    if unknown is not None:
        found = {**(found or {}), **unknown}
    if found is None:
        out.room(1)[0] = 0
        return 0
    write_uvarint(out, len(found))
    for tag in sorted(found):
        if not 0 <= tag <= 0xFFFFFFFF:
            raise OverflowError
        content = bytes_of(found[tag])
        write_uvarint(out, tag)
        write_uvarint(out, PyBytes_GET_SIZE(content))
        memcpy(out.room(PyBytes_GET_SIZE(content)), PyBytes_AS_STRING(content), PyBytes_GET_SIZE(content))
    return 0


cdef bytes bytes_of(value):
    """Bytes of anything that has a buffer, and of nothing else."""
    return value if type(value) is bytes else bytes(memoryview(value))


cdef bytes encode_tagged(Output out, Tagged known, value):
    """A tagged field's value by itself, since its length stands before it."""
    cdef Output inner = Output()
    inner.pieces = out.pieces
    inner.buffers = out.buffers
    write_item(inner, &known.item, value)
    return inner.taken()


def encode(Plan plan, message, list pieces, list buffers):
    """Append a message to the pieces, and to the buffers where it has records that stand by themselves."""
    cdef Output out = Output()
    out.pieces = pieces
    out.buffers = buffers
    write_struct(out, plan, message)
    if out.size:
        pieces.append(out.taken())
