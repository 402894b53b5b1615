"""What of a file is in memory, so that nobody who uses it waits for the disk."""

import ctypes
import errno
import mmap
import os
from typing import Any

from ottla.native import load_compiled
from ottla.ports.buffers import unfilled

_CACHESTAT = 451
"""The number of the system call, which Linux has since 6.5."""

_NOWAIT: int | None = getattr(os, "RWF_NOWAIT", None)


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


def _cached_pages(descriptor: int, position: int, length: int) -> int:
    """Pages of a range that are in the page cache, -1 where the system does not tell."""
    if _system_call is None:
        return -1
    wanted, counts = _Range(position, length), _Counts()
    if _system_call(_CACHESTAT, descriptor, ctypes.byref(wanted), ctypes.byref(counts), 0) != 0:
        return -1
    return int(counts.cached)


def _read_cached(descriptor: int, position: int, length: int) -> bytearray | None:
    if _NOWAIT is None:
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))
    buffer = unfilled(length)
    return buffer if os.preadv(descriptor, [buffer], position, _NOWAIT) == length else None


_compiled = load_compiled("ottla.ports._native")
cached_pages = _cached_pages if _compiled is None else _compiled.cached_pages
read_cached = _read_cached if _compiled is None else _compiled.read_cached
"""So many bytes of a file from the page cache, None if it has fewer there. BlockingIOError if it has none, OSError with
EOPNOTSUPP where nobody can tell."""


def is_cached(descriptor: int, position: int, length: int) -> bool:
    """Whether these bytes of a file are all in the page cache; False also where the system does not tell.

    >>> import tempfile
    >>> with tempfile.TemporaryFile() as file:
    ...     _ = file.write(bytes(10_000))
    ...     file.flush()
    ...     is_cached(file.fileno(), 5_000_000, 1)
    False
    """
    if length <= 0:
        return False
    pages = (position + length - 1) // mmap.PAGESIZE - position // mmap.PAGESIZE + 1
    return bool(cached_pages(descriptor, position, length) >= pages)
