# Reading: slots of new instances are filled in place.

cdef inline uint16_t big16(const uint8_t *at) noexcept nogil:
    return (<uint16_t> at[0] << 8) | at[1]


cdef inline uint32_t big32(const uint8_t *at) noexcept nogil:
    return (<uint32_t> at[0] << 24) | (<uint32_t> at[1] << 16) | (<uint32_t> at[2] << 8) | at[3]


cdef inline uint64_t big64(const uint8_t *at) noexcept nogil:
    return (<uint64_t> big32(at) << 32) | big32(at + 4)


cdef uint32_t read_uvarint(Input *source) except? 0xFFFFFFFF:
    cdef uint64_t value = 0
    cdef int shift = 0
    cdef uint8_t byte
    while shift < 35:
        if source.at >= source.end:
            raise MalformedError
        byte = source.at[0]
        source.at += 1
        value |= <uint64_t> (byte & 0x7F) << shift
        if byte < 0x80:
            if value > 0xFFFFFFFF:
                raise MalformedError
            return <uint32_t> value
        shift += 7
    raise MalformedError


cdef inline int64_t read_length(Input *source, int width, bint compact, bint nullable) except -2:
    """A length or count; -1 is null, which only nullable fields may be."""
    cdef int64_t length
    if compact:
        length = <int64_t> read_uvarint(source) - 1
    else:
        if source.end - source.at < width:
            raise MalformedError
        length = <int64_t> <short> big16(source.at) if width == 2 else <int64_t> <int> big32(source.at)
        source.at += width
    if length < 0 and (length < -1 or not nullable):
        raise MalformedError
    return length


cdef inline object read_scalar(Input *source, int kind):
    cdef const uint8_t *at = source.at
    cdef uint64_t bits
    cdef double number
    if source.end - at < SIZES[kind]:
        raise MalformedError
    source.at += SIZES[kind]
    if kind == INT32:
        return <int> big32(at)
    if kind == INT64:
        return <int64_t> big64(at)
    if kind == INT16:
        return <short> big16(at)
    if kind == INT8:
        return <signed char> at[0]
    if kind == BOOL8:
        return at[0] != 0
    if kind == UUID:
        return PyBytes_FromStringAndSize(<const char *> at, 16)
    if kind == UINT16:
        return big16(at)
    bits = big64(at)
    memcpy(&number, &bits, 8)
    return number


cdef inline object read_variable(Input *source, int kind, bint compact, bint nullable):
    cdef int64_t length = read_length(source, 2 if kind == TEXT else 4, compact, nullable)
    cdef const uint8_t *at = source.at
    if length < 0:
        return None
    if length > source.end - at:
        raise MalformedError
    source.at += length
    if kind == TEXT:
        return PyUnicode_DecodeUTF8(<const char *> at, length, NULL)
    if kind == OCTETS or length < VIEWED_FROM:
        return PyBytes_FromStringAndSize(<const char *> at, length)
    if source.view is NULL:
        view = PyMemoryView_FromObject(<object> source.owner).cast("B")
        Py_INCREF(view)
        source.view = <PyObject *> view
    return PySequence_GetSlice(<object> source.view, at - source.start, at - source.start + length)


cdef object read_array(Input *source, Item *item):
    cdef int64_t count = read_length(source, 4, item.compact, item.nullable)
    cdef int64_t index, minimum
    cdef Plan plan
    if count < 0:
        return None
    if item.element == STRUCT:
        minimum = (<Plan> item.plan).minimum
    elif item.element >= TEXT:
        minimum = 1 if item.compact else 2 if item.element == TEXT else 4
    else:
        minimum = SIZES[item.element]
    # No list is made for elements that cannot be there, whatever count the bytes claim.
    if count > (source.end - source.at) // minimum:
        raise MalformedError
    cdef list result = PyList_New(count)
    # Before it is filled: the collector must not show anybody a list with holes.
    untrack(result)
    if item.element == STRUCT:
        plan = <Plan> item.plan
        for index in range(count):
            element = read_struct(source, plan)
            Py_INCREF(element)
            PyList_SET_ITEM(result, index, element)
    elif item.element >= TEXT:
        for index in range(count):
            element = read_variable(source, item.element, item.compact, False)
            Py_INCREF(element)
            PyList_SET_ITEM(result, index, element)
    else:
        for index in range(count):
            element = read_scalar(source, item.element)
            Py_INCREF(element)
            PyList_SET_ITEM(result, index, element)
    return result


cdef inline object read_item(Input *source, Item *item):
    if item.kind < TEXT:
        return read_scalar(source, item.kind)
    if item.kind < STRUCT:
        return read_variable(source, item.kind, item.compact, item.nullable)
    if item.kind == ARRAY:
        return read_array(source, item)
    if item.nullable:
        if source.at >= source.end:
            raise MalformedError
        source.at += 1
        if <signed char> (source.at - 1)[0] < 0:
            return None
    return read_struct(source, <Plan> item.plan)


cdef object read_struct(Input *source, Plan plan):
    cdef PyObject *instance = (<PyTypeObject *> plan.cls).tp_alloc(<PyTypeObject *> plan.cls, 0)
    cdef int index
    cdef Absent *absent
    result = <object> instance
    Py_XDECREF(instance)
    for index in range(plan.count):
        put(instance, plan.items[index].slot, read_item(source, &plan.items[index]))
    put(instance, plan.tags_slot, None)
    for index in range(plan.absent_count):
        absent = &plan.absent[index]
        if absent.how == SHARED:
            put(instance, absent.slot, <object> absent.value)
        elif absent.how == EMPTY_LIST:
            put(instance, absent.slot, [])
        else:
            put(instance, absent.slot, (<object> absent.value)())
    if plan.flexible:
        if source.at >= source.end:
            raise MalformedError
        if source.at[0] == 0:
            source.at += 1
        else:
            read_tags(source, plan, result)
    untrack(result)
    return result


cdef int read_tags(Input *source, Plan plan, instance) except -1:
    cdef uint32_t count = read_uvarint(source)
    cdef uint32_t tag, length
    cdef const uint8_t *end
    cdef Tagged known
    cdef PyObject **slot
    cdef PyObject *former
    if count > MOST_TAGS or <int64_t> count * 2 > source.end - source.at:
        raise MalformedError
    for _ in range(count):
        tag = read_uvarint(source)
        length = read_uvarint(source)
        if length > source.end - source.at:
            raise MalformedError
        end = source.at + length
        known = plan.tagged.get(tag)
        if known is not None:
            value = read_item(source, &known.item)
            if source.at != end:
                raise MalformedError
            slot = <PyObject **> ((<char *> <PyObject *> instance) + known.item.slot)
        else:
            value = get(instance, plan.tags_slot)
            if value is None:
                value = {}
            (<dict> value)[tag] = PyBytes_FromStringAndSize(<const char *> source.at, length)
            slot = <PyObject **> ((<char *> <PyObject *> instance) + plan.tags_slot)
            source.at = end
        Py_INCREF(value)
        former = slot[0]
        slot[0] = <PyObject *> value
        Py_XDECREF(former)
    return 0


def decode(Plan plan, buffer, Py_ssize_t position):
    """Read a message at a position; returns it and the position after it."""
    cdef Py_buffer view
    cdef Input source
    PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
    try:
        if not 0 <= position <= view.len:
            raise MalformedError
        source.start = <const uint8_t *> view.buf
        source.at = source.start + position
        source.end = source.start + view.len
        source.owner = <PyObject *> buffer
        source.view = NULL
        try:
            message = read_struct(&source, plan)
        except (MalformedError, UnicodeDecodeError) as failure:
            raise MalformedError(source.at - source.start) from failure
        finally:
            Py_XDECREF(source.view)
        return message, source.at - source.start
    finally:
        PyBuffer_Release(&view)
