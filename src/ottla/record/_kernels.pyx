# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""The hot loops over records, compiled. `_twin` says the same in Python and explains each name.

Everything read is bounds-checked, and everything written is checked against what was reserved for it: the bytes may
change under a loop that does not hold the GIL. Faults travel as numbers and become exceptions at the edge.
"""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_FromStringAndSize, PyByteArray_Resize
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_New, PyTuple_SET_ITEM
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport INT32_MAX, INT64_MAX, INT64_MIN, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memmove

cdef extern from "Python.h":
    long long PyLong_AsLongLongAndOverflow(object number, int* overflow) except? -1
    const char* PyUnicode_AsUTF8AndSize(object text, Py_ssize_t* size) except NULL

from ottla.record import _kernel_types as types
from ottla.record._kernel_types import Summary
from ottla.wire.errors import EncodeError

ctypedef const uint8_t* Bytes

cdef enum:
    SMALLEST_RECORD = 7
    SMALLEST_HEADER = 2
    LARGEST_SECTION = 2147483598
    # A column had less room than the records need; nothing was added.
    NEEDS_ROOM = 1
    # Below this the work is shorter than handing the GIL over and waiting to get it back.
    RELEASE_FROM = 32768
    # What of a record comes before its key, if its numbers are small, and a few bytes more.
    USUAL_BYTES = 16
    # More than what a number of three bytes can be.
    USUAL_DELTA = 2097152
    # Values up to this size are copied step by step, larger ones by the C library.
    SHORT_BYTES = 256
    STEP_BYTES = 32
    # Arrow's views of binary values, and the longest value that is in its view.
    VIEW_BYTES = 16
    INLINE_BYTES = 12
    # Where a value is, and how long, until it is moved.
    PLACE_BYTES = 8
    # Values stay in the bytes that they came from if only one part of these in so many is something else.
    KEPT_PARTS = 4

# The header of a batch: where what its checksum covers begins, and a bit of its attributes.
cdef enum:
    MAGIC = 2
    MAGIC_AT = 16
    LENGTH_END = 12
    CHECKED_AT = 21
    HEADER_BYTES = 61
    APPENDED = 0x08

# The numbers of types.Fault and types.RowFault; the tests hold the two kernels to the same faults.
cdef enum:
    VARINT_CUT = 1
    VARINT_LONG
    RECORD_LENGTH
    OFFSET_DELTA
    KEY_LENGTH
    VALUE_LENGTH
    HEADER_COUNT
    HEADER_KEY_LENGTH
    HEADER_VALUE_LENGTH
    RECORD_TAIL
    SECTION_TAIL
    OFFSET_OVERFLOW
    TIMESTAMP_OVERFLOW

cdef enum:
    ROW_KEY_BOUNDS = 1
    ROW_VALUE_BOUNDS
    ROW_HEADER_BOUNDS
    ROW_HEADER_KEY_BOUNDS
    ROW_HEADER_VALUE_BOUNDS
    ROW_HEADER_KEY_NULL
    ROW_TIMESTAMP_OVERFLOW
    ROW_TOO_LARGE


@cython.final
@cython.no_gc
cdef class Held:
    """A buffer for as long as the object lives."""

    cdef Py_buffer buffer
    cdef Bytes data
    cdef int64_t size
    cdef bint held

    def __dealloc__(self):
        if self.held:
            PyBuffer_Release(&self.buffer)


cdef Held hold(data):
    cdef Held held = Held.__new__(Held)
    PyObject_GetBuffer(data, &held.buffer, PyBUF_SIMPLE)
    held.held = True
    held.data = <Bytes>held.buffer.buf
    held.size = held.buffer.len
    return held


include "_kernels_read.pxi"
include "_kernels_write.pxi"
include "_kernels_rows.pxi"
include "_kernels_columns.pxi"
include "_kernels_entries.pxi"
include "_kernels_legacy.pxi"
include "_kernels_legacy_write.pxi"
include "_kernels_hash.pxi"
include "_kernels_tuples.pxi"
