# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The compiled codec: walks a plan of a message's fields and reads or writes instances in place.

Its Python twin is the code that `ottla.wire.decoding` and `ottla.wire.encoding` generate; tests hold the two equal. A
`Plan` is built once for a (struct, version); reading fills the slots of a new instance directly, writing grows one
buffer. Every read is checked against the end of the buffer, and every count against the bytes that are left.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.long cimport PyLong_AsLongLong
from cpython.list cimport PyList_New, PyList_SET_ITEM
from cpython.mem cimport PyMem_Free, PyMem_Malloc, PyMem_Realloc
from cpython.ref cimport Py_INCREF, Py_XDECREF, PyObject
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy

from ottla.wire import decoding, encoding
from ottla.wire.errors import MalformedError
from ottla.wire.schema import BYTES, RECORDS, STRING, Array, Nested, Scalar


cdef extern from "Python.h":
    ctypedef struct PyTypeObject:
        PyObject *(*tp_alloc)(PyTypeObject *, Py_ssize_t) except NULL

    ctypedef struct PyMemberDef:
        Py_ssize_t offset

    ctypedef struct PyMemberDescrObject:
        PyMemberDef *d_member

    str PyUnicode_DecodeUTF8(const char *, Py_ssize_t, const char *)
    const char *PyUnicode_AsUTF8AndSize(object, Py_ssize_t *) except NULL
    object PySequence_GetSlice(object, Py_ssize_t, Py_ssize_t)
    object PyMemoryView_FromObject(object)
    void PyObject_GC_UnTrack(void *)


cdef enum Kind:
    BOOL8, INT8, INT16, INT32, INT64, UINT16, FLOAT64, UUID, TEXT, OCTETS, RECORD_SET, STRUCT, ARRAY


cdef dict SCALARS = {
    "bool": BOOL8, "int8": INT8, "int16": INT16, "int32": INT32, "int64": INT64,
    "uint16": UINT16, "float64": FLOAT64, "uuid": UUID,
}

cdef int64_t VIEWED_FROM = decoding.VIEWED_FROM
cdef int64_t COPIED_BELOW = encoding.COPIED_BELOW

cdef int64_t[8] SIZES
SIZES[:] = [1, 1, 2, 4, 8, 2, 8, 16]

cdef int64_t LIMITS(int kind) noexcept nogil:
    if kind == INT8:
        return 0x7F
    if kind == INT16:
        return 0x7FFF
    return 0x7FFFFFFF


cdef struct Item:
    int kind
    int element
    bint nullable
    bint compact
    Py_ssize_t slot
    PyObject *plan


cdef enum Default:
    SHARED, EMPTY_LIST, MADE


cdef struct Absent:
    Py_ssize_t slot
    int how
    PyObject *value


cdef struct Input:
    const uint8_t *start
    const uint8_t *at
    const uint8_t *end
    PyObject *owner
    PyObject *view


cdef class Plan:
    """The fields of one struct in one version, ready to be walked."""

    cdef type cls
    cdef list fields
    cdef Item *items
    cdef int count
    cdef bint flexible
    cdef Py_ssize_t tags_slot
    cdef Absent *absent
    cdef int absent_count
    cdef dict tagged
    cdef list tagged_order
    cdef Py_ssize_t minimum
    cdef list kept

    def __cinit__(self):
        self.items = NULL
        self.absent = NULL

    def __dealloc__(self):
        PyMem_Free(self.items)
        PyMem_Free(self.absent)

    def __init__(self, schema, int version, bint flexible, minimum_size):
        body = schema.body(version)
        self.cls = schema.cls
        self.flexible = flexible
        self.count = len(body)
        self.kept = []
        self.items = <Item *> PyMem_Malloc(max(1, self.count) * sizeof(Item))
        if self.items is NULL:
            raise MemoryError
        for index, field in enumerate(body):
            self.items[index] = self.item(field, version, minimum_size)
        names = {field.name for field in body}
        absent = [field for field in schema.fields if field.name not in names]
        self.absent = <Absent *> PyMem_Malloc(max(1, len(absent)) * sizeof(Absent))
        if self.absent is NULL:
            raise MemoryError
        self.absent_count = len(absent)
        for index, field in enumerate(absent):
            self.absent[index].slot = slot_of(self.cls, field.name)
            self.absent[index].how = EMPTY_LIST if field.default is list else MADE if callable(field.default) else SHARED
            self.kept.append(field.default)
            self.absent[index].value = <PyObject *> field.default
        self.tags_slot = slot_of(self.cls, "unknown_tags")
        self.tagged = {}
        self.tagged_order = []
        if flexible:
            for field in schema.tagged(version):
                single = Tagged(self, field, version, minimum_size)
                self.tagged[field.tag] = single
                self.tagged_order.append(single)
        self.minimum = minimum_size(Nested(schema), version, flexible)

    cdef Item item(self, field, int version, minimum_size) except *:
        cdef Item item
        kind = field.type
        item.nullable = version in field.nullable
        item.compact = self.flexible and not field.plain
        item.slot = slot_of(self.cls, field.name)
        item.plan = NULL
        item.element = -1
        item.kind = kind_of(kind)
        inner = kind
        if isinstance(kind, Array):
            inner = kind.element
            item.element = kind_of(inner)
        if isinstance(inner, Nested):
            plan = Plan(inner.schema, version, self.flexible, minimum_size)
            self.kept.append(plan)
            item.plan = <PyObject *> plan
        return item


cdef class Tagged:
    """One tagged field."""

    cdef Item item
    cdef int tag
    cdef object default
    cdef bint is_list
    cdef bint bare_struct
    cdef Plan owner

    def __init__(self, Plan owner, field, int version, minimum_size):
        self.item = owner.item(field, version, minimum_size)
        self.tag = field.tag
        self.is_list = field.default is list
        # A list has no default to compare with: an object that no field ever holds stands in for it.
        self.default = self if self.is_list else field.default
        self.bare_struct = self.item.kind == STRUCT and not self.item.nullable


cdef int kind_of(kind) except -1:
    if isinstance(kind, Scalar):
        return SCALARS[kind.name]
    if isinstance(kind, Array):
        return ARRAY
    if isinstance(kind, Nested):
        return STRUCT
    return TEXT if kind is STRING else OCTETS if kind is BYTES else RECORD_SET


cdef Py_ssize_t slot_of(type cls, str name) except -1:
    descriptor = getattr(cls, name)
    if type(descriptor).__name__ != "member_descriptor":
        raise TypeError(f"{cls.__name__}.{name} is no slot")
    return (<PyMemberDescrObject *> descriptor).d_member.offset


cdef inline void put(PyObject *instance, Py_ssize_t slot, object value) noexcept:
    """Fill a slot that is still empty."""
    Py_INCREF(value)
    (<PyObject **> ((<char *> instance) + slot))[0] = <PyObject *> value


cdef inline object get(object instance, Py_ssize_t slot):
    cdef PyObject *value = (<PyObject **> ((<char *> <PyObject *> instance) + slot))[0]
    if value is NULL:
        raise AttributeError("a field was deleted")
    return <object> value


cdef inline void untrack(object container) noexcept:
    """Take what was just read off the cyclic garbage collector's list.

    A message is a tree with no way back into itself, so reference counts alone free it. Left on the list, the thousands
    of objects of one large message start collections that look at everything else in the process, for nothing.
    """
    PyObject_GC_UnTrack(<void *> container)


# --- reading ---

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
        view = PyMemoryView_FromObject(<object> source.owner)
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
    untrack(result)
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
    if <int64_t> count * 2 > source.end - source.at:
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
        Py_XDECREF(slot[0])
        slot[0] = <PyObject *> value
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
        finally:
            Py_XDECREF(source.view)
        return message, source.at - source.start
    finally:
        PyBuffer_Release(&view)


# --- writing ---

cdef class Output:
    """A buffer that grows."""

    cdef uint8_t *data
    cdef Py_ssize_t size
    cdef Py_ssize_t capacity
    cdef list pieces
    cdef list buffers
    cdef object place_records

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
    limit = LIMITS(kind)
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
        length = len(value)
        write_length(out, length, width, compact)
        if length < COPIED_BELOW and type(value) is bytes:
            memcpy(out.room(length), PyBytes_AS_STRING(value), length)
        else:
            out.pieces.append(out.taken())
            out.place_records(value, length, out.pieces, out.buffers)
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
        content = <bytes> found[tag]
        write_uvarint(out, tag)
        write_uvarint(out, len(content))
        memcpy(out.room(len(content)), PyBytes_AS_STRING(content), len(content))
    return 0


cdef bytes encode_tagged(Output out, Tagged known, value):
    """A tagged field's value by itself, since its length stands before it."""
    cdef Output inner = Output()
    inner.pieces = out.pieces
    inner.buffers = out.buffers
    write_item(inner, &known.item, value)
    return inner.taken()


def encode(place_records, Plan plan, message, list pieces, list buffers):
    """Append a message to the pieces, and to the buffers where it has records that stand by themselves."""
    cdef Output out = Output()
    out.pieces = pieces
    out.buffers = buffers
    out.place_records = place_records
    write_struct(out, plan, message)
    if out.size:
        pieces.append(out.taken())
