# cython: language_level=3
"""What `buffers` and `clock` have in C where there is a compiler."""

from cpython.time cimport time as seconds_since_1970
from libc.math cimport floor

cdef extern from "Python.h":
    int PyByteArray_Resize(bytearray, Py_ssize_t) except -1


def resize(bytearray buffer not None, Py_ssize_t size):
    PyByteArray_Resize(buffer, size)


def now_ms():
    return <long long>floor(seconds_since_1970() * 1000)
