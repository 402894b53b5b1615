"""A way to a socket past its transport: for files, which the system can send by itself, and for what cannot wait."""

import asyncio
import os
import socket
from collections.abc import Callable, Sequence
from typing import Any, Final

from ottla.ports import FileSlice

Buffer = bytes | bytearray | memoryview

_MORE: Final = getattr(socket, "MSG_MORE", 0)


class Outlet:
    """A second handle on a transport's socket.

    Whoever uses it sees to it that the transport has nothing left to send, so that all arrives in order.
    """

    __slots__ = ("_descriptor", "_loop", "_socket", "waits")

    def __init__(self, own: Any, loop: asyncio.AbstractEventLoop) -> None:
        # Event loops do not let others wait for the descriptor that a transport has.
        self._socket = socket.socket(fileno=os.dup(own.fileno()))
        self._socket.setblocking(False)
        self._descriptor = self._socket.fileno()
        self._loop = loop
        self.waits = False
        """Whether it waits for the socket to have room."""

    @classmethod
    def of(cls, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> "Outlet | None":
        """The outlet of a transport, if what it is given leaves as it is: TLS has to see it first."""
        own = transport.get_extra_info("socket")
        if own is None or transport.get_extra_info("ssl_object") is not None or not hasattr(os, "sendfile"):
            return None
        try:
            return cls(own, loop)
        except OSError:
            # No descriptor is left.
            return None

    def send(self, part: FileSlice, most: int) -> int | None:
        """Send the beginning of a slice, and say how much; 0 if the socket has no room, None if it must be read."""
        try:
            sent = part.file.send_cached(self._descriptor, part.position, min(part.length, most))
        except BlockingIOError:
            return 0
        if sent == 0:
            raise OSError(f"the file ends before byte {part.position + part.length}, which was to be sent")
        return sent

    def send_before(self, buffers: Sequence[Buffer]) -> bytes:
        """Send small buffers in the same packet as the slice that follows them, and give what did not go."""
        return self.send_now(b"".join(buffers), _MORE)

    def send_now(self, data: bytes, flags: int = 0) -> bytes:
        """Send bytes, and give what did not go."""
        try:
            return data[self._socket.send(data, flags) :] if data else data
        except BlockingIOError:
            return data

    def wait(self, then: Callable[[], None]) -> None:
        """Have something called once the socket has room again."""
        self.waits = True
        self._loop.add_writer(self._descriptor, self._has_room, then)

    def _has_room(self, then: Callable[[], None]) -> None:
        self._stop_waiting()
        then()

    def _stop_waiting(self) -> None:
        if self.waits:
            self.waits = False
            self._loop.remove_writer(self._descriptor)

    def close(self) -> None:
        """Let go of the socket."""
        self._stop_waiting()
        self._socket.close()
