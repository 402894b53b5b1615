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
from ottla.wire.schema import BYTES, STRING, Array, Nested, Scalar

include "_slots.pxi"


cdef extern from "Python.h":
    ctypedef struct PyTypeObject:
        PyObject *(*tp_alloc)(PyTypeObject *, Py_ssize_t) except NULL

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

cdef int64_t MOST_TAGS = decoding.MOST_TAGS
cdef int64_t VIEWED_FROM = decoding.VIEWED_FROM
cdef int64_t COPIED_BELOW = encoding.COPIED_BELOW

cdef int64_t[8] SIZES
SIZES[:] = [1, 1, 2, 4, 8, 2, 8, 16]

cdef int64_t largest(int kind) noexcept nogil:
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

    def __init__(self, schema, int version, bint flexible):
        body = schema.body(version)
        self.cls = schema.cls
        self.flexible = flexible
        self.count = len(body)
        self.kept = []
        self.items = <Item *> PyMem_Malloc(max(1, self.count) * sizeof(Item))
        if self.items is NULL:
            raise MemoryError
        for index, field in enumerate(body):
            self.items[index] = self.item(field, version)
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
                single = Tagged(self, field, version)
                self.tagged[field.tag] = single
                self.tagged_order.append(single)
        self.minimum = decoding.minimum_size(Nested(schema), version, flexible)

    cdef Item item(self, field, int version) except *:
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
            plan = Plan(inner.schema, version, self.flexible)
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

    def __init__(self, Plan owner, field, int version):
        self.item = owner.item(field, version)
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


cdef inline void put(PyObject *instance, Py_ssize_t slot, object value) noexcept:
    """Fill a slot that is still empty."""
    Py_INCREF(value)
    (<PyObject **> ((<char *> instance) + slot))[0] = <PyObject *> value


cdef inline void untrack(object container) noexcept:
    """Take what was just read off the cyclic garbage collector's list.

    A message is a tree with no way back into itself, so reference counts alone free it. Left on the list, the thousands
    of objects of one large message start collections that look at everything else in the process, for nothing.
    """
    PyObject_GC_UnTrack(<void *> container)


include "_codec_read.pxi"
include "_codec_write.pxi"
