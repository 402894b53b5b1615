"""Files that others look after, such as certificates: read, watched, and handed to libraries that want a path."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress

Stamp = tuple[int, int, int]


def file_stamp(path: str) -> Stamp | None:
    """What differs once a file was written anew; None if it is not there.

    >>> with private_file(b"abc") as path:
    ...     file_stamp(path) == file_stamp(path)
    True
    >>> file_stamp("/there/is/none") is None
    True
    """
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def read_file(path: str) -> bytes:
    """All that is in a file."""
    with open(path, "rb") as file:
        return file.read()


def make_private(path: str) -> None:
    """Have a file, which need not be there yet, read by nobody but its owner, as far as that can be."""
    with suppress(OSError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        os.chmod(path, 0o600)


@contextmanager
def private_file(data: bytes) -> Iterator[str]:
    """A path at which a library finds these bytes, and nobody else does; on Linux they stay in memory.

    >>> with private_file(b"secret") as path:
    ...     read_file(path)
    b'secret'
    """
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("ottla")
        try:
            os.write(descriptor, data)
            yield f"/proc/self/fd/{descriptor}"
        finally:
            os.close(descriptor)
    else:
        with tempfile.NamedTemporaryFile() as file:
            file.write(data)
            file.flush()
            yield file.name
