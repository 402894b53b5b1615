# cython: language_level=3
"""What `buffers`, `clock` and `page_cache` have in C where there is a compiler."""

from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_FromStringAndSize
from cpython.exc cimport PyErr_SetFromErrno
from cpython.time cimport time as seconds_since_1970
from libc.math cimport floor

cdef extern from "Python.h":
    int PyByteArray_Resize(bytearray, Py_ssize_t) except -1

cdef extern from *:
    """
    #include <errno.h>
    #include <stdint.h>
    #include <sys/types.h>
    #include <sys/uio.h>
    #include <unistd.h>
    #if defined(__linux__)
    #include <sys/syscall.h>
    #endif

    #define OTTLA_CACHESTAT 451
    #define OTTLA_NOWAIT 0x00000008

    /* Bytes that were read, -1 with errno: EAGAIN where the disk would have to be waited for. */
    static ssize_t ottla_read_cached(int descriptor, char *into, size_t length, int64_t position) {
    #if defined(__linux__) && defined(__GLIBC__)
        struct iovec one = {into, length};
        return preadv2(descriptor, &one, 1, (off_t)position, OTTLA_NOWAIT);
    #else
        errno = EOPNOTSUPP;
        return -1;
    #endif
    }

    /* Pages of a range that are in memory, -1 where the system does not tell. */
    static int64_t ottla_cached_pages(int descriptor, uint64_t position, uint64_t length) {
    #if defined(__linux__)
        uint64_t range[2] = {position, length}, counts[5] = {0, 0, 0, 0, 0};
        return syscall(OTTLA_CACHESTAT, descriptor, range, counts, 0) == 0 ? (int64_t)counts[0] : -1;
    #else
        return -1;
    #endif
    }
    """
    ssize_t ottla_read_cached(int descriptor, char* into, size_t length, long long position) nogil
    long long ottla_cached_pages(int descriptor, unsigned long long position, unsigned long long length) nogil


def resize(bytearray buffer not None, Py_ssize_t size):
    PyByteArray_Resize(buffer, size)


def now_ms():
    return <long long>floor(seconds_since_1970() * 1000)


def cached_pages(int descriptor, unsigned long long position, unsigned long long length):
    return ottla_cached_pages(descriptor, position, length)


def read_cached(int descriptor, long long position, Py_ssize_t length):
    # What is in the page cache is here sooner than the GIL would be back.
    cdef bytearray buffer = PyByteArray_FromStringAndSize(NULL, length)
    cdef ssize_t count = ottla_read_cached(descriptor, PyByteArray_AS_STRING(buffer), length, position)
    if count < 0:
        PyErr_SetFromErrno(OSError)
    return buffer if count == length else None
