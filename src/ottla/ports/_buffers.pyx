# cython: language_level=3
"""What `buffers` needs of Python's C interface."""

cdef extern from "Python.h":
    int PyByteArray_Resize(bytearray, Py_ssize_t) except -1


def resize(bytearray buffer not None, Py_ssize_t size):
    PyByteArray_Resize(buffer, size)
