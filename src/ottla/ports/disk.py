"""Files and folders below one root.

What is written lies in the operating system's page cache: a killed process loses nothing of it, a power cut loses
what `sync` was not called for. Names are relative to the root and use `/`.
"""

import ctypes
import errno
import fcntl
import os
import shutil
from typing import Protocol

from ottla.ports.page_cache import is_cached, read_cached

Bytes = bytes | bytearray | memoryview

# The standard library has `posix_fallocate` alone, which makes files longer. Only Linux has this one.
_fallocate = getattr(ctypes.CDLL(None, use_errno=True), "fallocate", None)
if _fallocate is not None:
    _fallocate.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
_KEEP_SIZE = 1
_NOT_SUPPORTED = (errno.EOPNOTSUPP, errno.ENOSYS)


class File(Protocol):
    """An open file. It closes when nobody refers to it any more, so whoever still sends from it can go on."""

    def append(self, *buffers: Bytes) -> None:
        """Write at the end. All of it or, with OSError, none: what a full disk let through is cut off again."""
        ...

    def reserve(self, size: int) -> None:
        """Set aside room on the disk to grow to so many bytes, where it can be had; the file is as long as before.

        A hint: if there is none, the write that needs it says so. `truncate` gives it back.
        """
        ...

    def write_at(self, position: int, data: Bytes) -> None:
        """Write over what is there."""
        ...

    def read_at(self, position: int, length: int) -> bytes:
        """Up to so many bytes; fewer only at the end of the file. May wait for the disk."""
        ...

    def read_cached(self, position: int, length: int) -> Bytes | None:
        """The same if it needs no waiting for the disk, else None."""
        ...

    def send_cached(self, socket_descriptor: int, position: int, length: int) -> int | None:
        """Send bytes to a socket without reading them, and say how many it took; None if that needs waiting for the
        disk, or cannot be done here. BlockingIOError if the socket has no room."""
        ...

    def sendable(self, position: int, length: int) -> int | None:
        """The descriptor from which the system can send these bytes without waiting for the disk, if it can; it is the
        file's own, and good for as long as somebody refers to the file."""
        ...

    def size(self) -> int:
        """Bytes in the file."""
        ...

    def truncate(self, size: int) -> None:
        """Cut the file, or lengthen it with zeros."""
        ...

    def sync(self) -> None:
        """Return when the content is on the disk."""
        ...


class Disk(Protocol):
    """Files and folders below one root."""

    root: str
    """What the root is called, for people to read."""

    def open(self, name: str, *, create: bool = False) -> File:
        """Open a file for reading and writing; FileNotFoundError if it is not there and `create` is not set."""
        ...

    def reserve(self, name: str, size: int) -> None:
        """Set aside room for a file, which is there, to grow to so many bytes; it is as long as before.

        Nothing happens where the file system cannot do that. `File.truncate` gives the room back.
        """
        ...

    def exists(self, name: str) -> bool:
        """Whether there is a file or folder of that name."""
        ...

    def list(self, folder: str = "") -> list[str]:
        """The names in a folder, sorted."""
        ...

    def make_folder(self, name: str) -> None:
        """Make a folder and those above it; fine if it is there."""
        ...

    def remove(self, name: str) -> None:
        """Remove a file; fine if it is not there."""
        ...

    def remove_folder(self, name: str) -> None:
        """Remove a folder with all in it; fine if it is not there."""
        ...

    def rename(self, old: str, new: str) -> None:
        """Rename a file or folder, over a file of the new name if there is one, as one step."""
        ...

    def sync_folder(self, name: str = "") -> None:
        """Return when the names in a folder, not the files' content, are on the disk."""
        ...

    def read(self, name: str) -> bytes:
        """A whole small file."""
        ...

    def replace(self, name: str, data: bytes) -> None:
        """Put a small file in place of another as one step that survives a power cut: all old or all new."""
        ...

    def usage(self) -> tuple[int, int]:
        """Total and free bytes of the disk."""
        ...

    def lock(self) -> None:
        """Claim the root; BlockingIOError if another process, or another broker in this one, has it."""
        ...

    def unlock(self) -> None:
        """Give the root back."""
        ...


class FileSlice:
    """Part of a file, to be sent without being read as a whole first. Has a length, like bytes."""

    __slots__ = ("file", "length", "position")

    def __init__(self, file: File, position: int, length: int) -> None:
        self.file = file
        self.position = position
        self.length = length

    def __len__(self) -> int:
        return self.length

    def read(self) -> bytes:
        """All of it, waiting for the disk if need be."""
        return self.file.read_at(self.position, self.length)


class SystemFile:
    """A file of this machine."""

    __slots__ = ("_descriptor", "_size")

    def __init__(self, path: str, create: bool) -> None:
        self._descriptor = -1
        flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        self._descriptor = os.open(path, flags, 0o644)
        self._size = os.fstat(self._descriptor).st_size

    def __del__(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)

    def append(self, *buffers: Bytes) -> None:
        """Write at the end, all or nothing."""
        try:
            if len(buffers) == 1:
                wanted = len(buffers[0])
                written = os.pwrite(self._descriptor, buffers[0], self._size)
            else:
                wanted = sum(map(len, buffers))
                written = os.pwritev(self._descriptor, buffers, self._size)
            if written < wanted:
                self._append_rest(b"".join(buffers), written)
        except OSError:
            os.ftruncate(self._descriptor, self._size)
            raise
        self._size += wanted

    def _append_rest(self, data: bytes, written: int) -> None:
        while written < len(data):
            step = os.pwrite(self._descriptor, memoryview(data)[written:], self._size + written)
            if step == 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            written += step

    def reserve(self, size: int) -> None:
        """Set aside room to grow."""
        if _fallocate is not None and size > self._size:
            _fallocate(self._descriptor, _KEEP_SIZE, self._size, size - self._size)

    def write_at(self, position: int, data: Bytes) -> None:
        """Write over what is there."""
        written = 0
        while written < len(data):
            written += os.pwrite(self._descriptor, memoryview(data)[written:], position + written)
        self._size = max(self._size, position + len(data))

    def read_at(self, position: int, length: int) -> bytes:
        """Up to so many bytes."""
        data = os.pread(self._descriptor, length, position)
        if len(data) == length or not data:
            return data
        pieces = [data]
        while data and (left := length - sum(map(len, pieces))) > 0:
            data = os.pread(self._descriptor, left, position + length - left)
            pieces.append(data)
        return b"".join(pieces)

    def read_cached(self, position: int, length: int) -> Bytes | None:
        """The same from the page cache alone, or None."""
        left = self._size - position
        if length > left:
            length = max(0, left)
        try:
            return read_cached(self._descriptor, position, length)
        except BlockingIOError:
            return None
        except OSError as error:
            # File systems that cannot tell (tmpfs, overlays) hold their files in memory or are read as if they did.
            if error.errno != errno.EOPNOTSUPP:
                raise
            return self.read_at(position, length)

    def send_cached(self, socket_descriptor: int, position: int, length: int) -> int | None:
        """From the page cache straight to the socket."""
        if not is_cached(self._descriptor, position, length):
            return None
        try:
            return os.sendfile(socket_descriptor, self._descriptor, position, length)
        except OSError as error:
            if error.errno in (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP):
                return None
            raise

    def sendable(self, position: int, length: int) -> int | None:
        """The descriptor, if all of that is in the page cache."""
        return self._descriptor if is_cached(self._descriptor, position, length) else None

    def size(self) -> int:
        """Bytes in the file."""
        return self._size

    def truncate(self, size: int) -> None:
        """Cut the file, or lengthen it with zeros."""
        os.ftruncate(self._descriptor, size)
        self._size = size

    def sync(self) -> None:
        """Return when the content is on the disk."""
        os.fdatasync(self._descriptor)


class SystemDisk:
    """A folder of this machine.

    >>> import tempfile
    >>> disk = SystemDisk(tempfile.mkdtemp())
    >>> disk.open("a", create=True).append(b"hello ", b"world")
    >>> disk.read("a"), disk.list()
    (b'hello world', ['a'])
    """

    def __init__(self, root: str) -> None:
        self.root = os.path.abspath(root)
        os.makedirs(self.root, exist_ok=True)
        self._lock: int | None = None

    def _path(self, name: str) -> str:
        return os.path.join(self.root, name) if name else self.root

    def open(self, name: str, *, create: bool = False) -> SystemFile:
        """Open a file for reading and writing."""
        return SystemFile(self._path(name), create)

    def reserve(self, name: str, size: int) -> None:
        """Set aside room for a file."""
        if _fallocate is None:
            return
        descriptor = os.open(self._path(name), os.O_RDWR | os.O_CLOEXEC)
        try:
            if _fallocate(descriptor, _KEEP_SIZE, 0, size) != 0 and ctypes.get_errno() not in _NOT_SUPPORTED:
                raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), name)
        finally:
            os.close(descriptor)

    def exists(self, name: str) -> bool:
        """Whether there is a file or folder of that name."""
        return os.path.exists(self._path(name))

    def list(self, folder: str = "") -> list[str]:
        """The names in a folder, sorted."""
        return sorted(os.listdir(self._path(folder)))

    def make_folder(self, name: str) -> None:
        """Make a folder and those above it."""
        os.makedirs(self._path(name), exist_ok=True)

    def remove(self, name: str) -> None:
        """Remove a file."""
        try:
            os.remove(self._path(name))
        except FileNotFoundError:
            return

    def remove_folder(self, name: str) -> None:
        """Remove a folder with all in it."""
        try:
            shutil.rmtree(self._path(name))
        except FileNotFoundError:
            return

    def rename(self, old: str, new: str) -> None:
        """Rename as one step."""
        os.rename(self._path(old), self._path(new))

    def sync_folder(self, name: str = "") -> None:
        """Return when the names in a folder are on the disk."""
        descriptor = os.open(self._path(name), os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def read(self, name: str) -> bytes:
        """A whole small file."""
        with open(self._path(name), "rb") as file:
            return file.read()

    def replace(self, name: str, data: bytes) -> None:
        """Put a small file in place of another as one step."""
        fresh = self._path(name) + ".tmp"
        with open(fresh, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.rename(fresh, self._path(name))
        self.sync_folder(os.path.dirname(name))

    def usage(self) -> tuple[int, int]:
        """Total and free bytes of the disk."""
        found = shutil.disk_usage(self.root)
        return found.total, found.free

    def lock(self) -> None:
        """Claim the root for this process, until the process ends."""
        descriptor = os.open(self._path(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise
        self._lock = descriptor

    def unlock(self) -> None:
        """Give the root back."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None
