"""Replies received straight into their places, without a copy on the way.

A large reply, such as one to Fetch, gets a buffer of its own as soon as its size is known, and the socket is read into
that. Small ones share a buffer and are copied out of it.
"""

import struct

from ottla.wire.errors import ProtocolError

_SIZE = struct.Struct(">i")

SHARED_BYTES = 64 * 1024
"""Room for small replies, and for the beginning of a large one."""

STEP_BYTES = 4 * 1024 * 1024
"""How far the buffer of a large reply is ahead of what has arrived: a peer that announces more takes no memory."""


class Receiver:
    """Where a connection's bytes go, and the whole frames that they make.

    >>> receiver = Receiver(max_size=100)
    >>> receiver.room()[:9] = bytes([0, 0, 0, 3]) + b"abc" + bytes([0, 0])
    >>> receiver.received(9)
    [b'abc']
    """

    __slots__ = ("_filled", "_large", "_max_size", "_missing", "_shared", "_view")

    def __init__(self, max_size: int) -> None:
        self._max_size = max_size
        self._shared = bytearray(SHARED_BYTES)
        self._view = memoryview(self._shared)
        self._filled = 0
        self._large: bytearray | None = None
        self._missing = 0

    def room(self) -> memoryview:
        """Where the next bytes go; never empty. What was returned before must be out of use by now."""
        if self._large is not None and self._filled == len(self._large):
            self._grow(self._large)
        return self._view[self._filled :]

    def received(self, count: int) -> list[bytes | bytearray]:
        """Take note that so many bytes have been put there; return the frames that they complete.

        A frame whose size is out of bounds raises ProtocolError: nothing that follows can be read.
        """
        self._filled += count
        if self._large is None:
            return self._small_frames()
        if self._missing or self._filled < len(self._large):
            return []
        frame, self._large = self._large, None
        self._view = memoryview(self._shared)
        self._filled = 0
        return [frame]

    def _small_frames(self) -> list[bytes | bytearray]:
        frames: list[bytes | bytearray] = []
        position = 0
        while self._filled - position >= _SIZE.size:
            (size,) = _SIZE.unpack_from(self._shared, position)
            if not 0 <= size <= self._max_size:
                raise ProtocolError(f"a frame of {size} bytes; {self._max_size} is the most that is allowed")
            after = position + _SIZE.size + size
            if after > self._filled:
                break
            frames.append(bytes(self._view[position + _SIZE.size : after]))
            position = after
        left = self._filled - position
        if left >= _SIZE.size and size > SHARED_BYTES - _SIZE.size:
            self._begin_large(size, position + _SIZE.size)
        elif position:
            self._shared[:left] = self._shared[position : self._filled]
            self._filled = left
        return frames

    def _begin_large(self, size: int, position: int) -> None:
        """Move the beginning of a frame that does not fit in the shared room to a buffer of its own."""
        begun = self._filled - position
        self._large = bytearray(min(size, STEP_BYTES))
        self._large[:begun] = self._shared[position : self._filled]
        self._missing = size - len(self._large)
        self._view = memoryview(self._large)
        self._filled = begun

    def _grow(self, large: bytearray) -> None:
        self._view.release()
        step = min(self._missing, max(STEP_BYTES, len(large)))
        large.extend(bytes(step))
        self._missing -= step
        self._view = memoryview(large)
