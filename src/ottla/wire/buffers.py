"""Buffers for a socket to be read into."""

from ottla.native import load_compiled

_compiled = load_compiled("ottla.wire._codec")


def resize(buffer: bytearray, size: int) -> None:
    """Make a buffer longer. What is in the new part is undefined: zeros would have to be written, and are not needed.

    >>> buffer = bytearray(b"abc")
    >>> resize(buffer, 1000)
    >>> len(buffer), buffer[:3]
    (1000, bytearray(b'abc'))
    """
    if _compiled is not None:
        _compiled.resize(buffer, size)
    elif size < len(buffer):
        raise ValueError(f"{size} bytes are fewer than the {len(buffer)} that there are")
    else:
        buffer.extend(bytes(size - len(buffer)))
