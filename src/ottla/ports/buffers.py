"""Buffers for sockets and files to be read into."""

from ottla.native import load_compiled

_compiled = load_compiled("ottla.ports._native")


def unfilled(size: int) -> bytearray:
    """A buffer to be written to. What is in it before is undefined: zeros would have to be written, and are not needed.

    >>> len(unfilled(1000))
    1000
    """
    buffer = bytearray()
    lengthen(buffer, size)
    return buffer


def lengthen(buffer: bytearray, size: int) -> None:
    """Make a buffer longer, by what is undefined.

    >>> buffer = bytearray(b"abc")
    >>> lengthen(buffer, 1000)
    >>> len(buffer), buffer[:3]
    (1000, bytearray(b'abc'))
    """
    if size < len(buffer):
        raise ValueError(f"{size} bytes are fewer than the {len(buffer)} that there are")
    if _compiled is not None:
        _compiled.resize(buffer, size)
    else:
        buffer.extend(bytes(size - len(buffer)))
