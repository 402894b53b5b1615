"""Frames received straight into their places, without a copy on the way.

A frame that does not arrive at once gets a buffer of its own as soon as its size is known, and the socket is read into
that. Those that do arrive at once are copied out of a scratch buffer, which connections of one event loop can share:
nothing stays in it from one read to the next.
"""

import struct
from typing import Final

from ottla.ports.buffers import lengthen, unfilled
from ottla.wire.errors import ProtocolError

_SIZE: Final = struct.Struct(">i")

SCRATCH_BYTES: Final = 256 * 1024
"""Room for small frames, and for the beginning of a large one."""

FIRST_BYTES: Final = 4 * 1024
AHEAD: Final = 4
STEP_BYTES: Final = 4 * 1024 * 1024
"""How far a buffer is ahead of what has arrived: it has room for `AHEAD` times as much, `FIRST_BYTES` to begin with,
and beyond `STEP_BYTES` twice as much. What a stranger announces takes no memory."""

LARGE_BYTES: Final = 64 * 1024
"""After a frame of this size the next one is expected to be large too: little of it is read into the scratch buffer,
out of which it would have to be copied."""

PEEK_BYTES: Final = 4 * 1024

TRUSTED_BYTES: Final = 512 * 1024
"""How much room a frame gets at once if its sender has just sent that much: a buffer that grows is copied."""

BELIEVED_BYTES: Final = 32 * 1024 * 1024
"""What a client takes a broker's word for: it has asked for that much, and a buffer that grows is copied as it does."""


TLS_HANDSHAKE: Final = 22
TLS_ALERT: Final = 21
"""How records of TLS begin: with a kind, and the version 3."""


class FrameTooLargeError(ProtocolError):
    """A frame announces more bytes than are allowed, or fewer than none. The connection has to close."""


def begins_like(size: int, kind: int) -> bool:
    """Whether what was taken for the size of a frame is the beginning of TLS.

    >>> begins_like(0x16030102, TLS_HANDSHAKE), begins_like(4096, TLS_HANDSHAKE)
    (True, False)
    """
    return size >> 16 == kind << 8 | 3


def scratch(size: int = SCRATCH_BYTES) -> memoryview:
    """A buffer to share."""
    return memoryview(bytearray(size))


class Receiver:
    """Where a connection's bytes go, and the whole frames that they make.

    >>> receiver = Receiver(100, scratch())
    >>> receiver.room()[:9] = bytes([0, 0, 0, 3]) + b"abc" + bytes([0, 0])
    >>> receiver.received(9)
    [b'abc']
    """

    __slots__ = (
        "_begun",
        "_believed",
        "_filled",
        "_last_size",
        "_own",
        "_position",
        "_scratch",
        "_size",
        "failure",
        "max_size",
    )

    def __init__(self, max_size: int, scratch: memoryview, believed: int = FIRST_BYTES) -> None:
        self.max_size = max_size
        """The largest frame. It may change; a frame that has begun has been let in."""
        self._scratch = scratch
        self._believed = believed
        """How many bytes of a frame get room as soon as they are announced."""
        self._begun = b""
        """Less than a size."""
        self._own: bytearray | None = None
        """The buffer of a frame that has begun."""
        self._filled = 0
        self._size = 0
        self._last_size = 0
        """The size of the frame before the next one."""
        self._position = 0
        self.failure: FrameTooLargeError | None = None
        """Why nothing more can be read, once that is so. Frames that came before it are good."""

    @property
    def mid_frame(self) -> bool:
        """Whether part of a frame is kept: a stream that ends now was cut."""
        return self._own is not None or bool(self._begun)

    @property
    def missing(self) -> int:
        """Bytes that the frame which is being read lacks; 0 between frames, and before its size is known."""
        return 0 if self._own is None else self._size - self._filled

    @property
    def announced(self) -> int:
        """The size of the frame which is being read; 0 between frames, and before it is known."""
        return 0 if self._own is None else self._size

    def room(self) -> memoryview:
        """Where the next bytes go; never empty. What was returned before must be out of use by now."""
        own = self._own
        if own is None:
            return self._scratch[:PEEK_BYTES] if self._last_size >= LARGE_BYTES else self._scratch[:]
        if self._filled == len(own):
            lengthen(own, self._size_ahead())
        return memoryview(own)[self._filled :]

    def received(self, count: int) -> list[bytes | bytearray]:
        """Take note that so many bytes have been put there; return the frames that they complete, without their sizes.

        A size out of bounds is raised, unless good frames come before it in the same bytes: then those are returned,
        `failure` says what follows them, and the next call raises it.
        """
        if self.failure is not None:
            raise self.failure
        own = self._own
        if own is None:
            return self._frames(count)
        self._filled += count
        if self._filled < self._size:
            return []
        self._own = None
        self._last_size = self._size
        return [own]

    def _frames(self, count: int) -> list[bytes | bytearray]:
        data = self._scratch[:count]
        if self._begun:
            data = memoryview(self._begun + data)
            count = len(data)
        frames: list[bytes | bytearray] = []
        position = 0
        while count - position >= _SIZE.size:
            size: int = _SIZE.unpack_from(data, position)[0]
            if not 0 <= size <= self.max_size:
                self._fail(size)
                if frames:
                    return frames
                raise self.failure  # type: ignore[misc]
            self._position += _SIZE.size + size
            position += _SIZE.size
            if count - position < size:
                self._begin(size, data[position:])
                return frames
            frames.append(bytes(data[position : position + size]))
            position += size
            self._last_size = size
        self._begun = bytes(data[position:])
        return frames

    def _begin(self, size: int, beginning: memoryview) -> None:
        """Give a frame a buffer of its own."""
        self._begun = b""
        self._size, self._filled = size, len(beginning)
        self._own = own = unfilled(self._size_ahead())
        own[: self._filled] = beginning

    def _size_ahead(self) -> int:
        ahead = min(AHEAD * self._filled, max(STEP_BYTES, 2 * self._filled))
        return min(self._size, max(self._believed, ahead, min(self._last_size, TRUSTED_BYTES)))

    def _fail(self, size: int) -> None:
        self._begun = b""
        spoken = "; it begins like TLS, which is not spoken here" if begins_like(size, TLS_HANDSHAKE) else ""
        self.failure = FrameTooLargeError(
            f"a frame of {size} bytes; {self.max_size} is the most that is allowed{spoken}",
            offset=self._position,
            where="frame size",
        )
