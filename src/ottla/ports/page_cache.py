"""What of a file is in memory, so that nobody who uses it waits for the disk."""

import ctypes
import mmap
from typing import Any

_CACHESTAT = 451
"""The number of the system call, which Linux has since 6.5."""


class _Range(ctypes.Structure):
    _fields_ = (("offset", ctypes.c_uint64), ("length", ctypes.c_uint64))


class _Counts(ctypes.Structure):
    _fields_ = tuple(
        (name, ctypes.c_uint64) for name in ("cached", "dirty", "in_writeback", "evicted", "recently_evicted")
    )


_system_call: Any
try:
    _system_call = ctypes.CDLL(None, use_errno=True).syscall
except (OSError, AttributeError):
    _system_call = None


def is_cached(descriptor: int, position: int, length: int) -> bool:
    """Whether these bytes of a file are all in the page cache; False also where the system does not tell.

    >>> import tempfile
    >>> with tempfile.TemporaryFile() as file:
    ...     _ = file.write(bytes(10_000))
    ...     file.flush()
    ...     is_cached(file.fileno(), 5_000_000, 1)
    False
    """
    if _system_call is None or length <= 0:
        return False
    wanted, counts = _Range(position, length), _Counts()
    if _system_call(_CACHESTAT, descriptor, ctypes.byref(wanted), ctypes.byref(counts), 0) != 0:
        return False
    pages = (position + length - 1) // mmap.PAGESIZE - position // mmap.PAGESIZE + 1
    return bool(counts.cached >= pages)
