"""How much of a large frame has to be there before a connection is woken to read it.

Bytes come in as they are sent, some tens of kilobytes at a time, and a wake-up for each costs more than reading them.
The kernel can be told to wait for more. That is for clients: it takes 6 % off what it costs both sides to fetch
columns. A broker gains nothing from it when it receives large requests, and has to see who is slow.
"""

import asyncio
import os
import re
import socket
import sys
from contextlib import suppress

PORTION_BYTES = 512 * 1024
"""How much is worth a wake-up. The last of a frame, a quarter of this, is read as it comes."""

FIRST_KERNEL = (5, 9)
"""Since then Linux wakes whoever waits for more than there is room or memory for; before, it could let them hang."""


def _is_supported() -> bool:
    if sys.platform != "linux":
        return False
    numbers = re.match(r"(\d+)\.(\d+)", os.uname().release)
    return numbers is not None and (int(numbers[1]), int(numbers[2])) >= FIRST_KERNEL


_SUPPORTED = _is_supported()


class Alarm:
    """Wakes a connection when enough has come.

    >>> ours, theirs = socket.socketpair()
    >>> class Transport(asyncio.Transport):
    ...     def get_extra_info(self, name, default=None):
    ...         return ours if name == "socket" else default
    >>> alarm = Alarm(Transport())
    >>> alarm.wait_for(10_000_000)
    >>> alarm.is_set
    True
    >>> alarm.wait_for(0)
    >>> alarm.is_set, ours.getsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT)
    (False, 1)
    >>> ours.close(), theirs.close()
    (None, None)
    """

    __slots__ = ("_portion", "_socket", "is_set")

    def __init__(self, transport: asyncio.BaseTransport) -> None:
        # With TLS, what is missing of a frame may be here already and not be decrypted yet.
        is_plain = transport.get_extra_info("ssl_object") is None
        self._socket = transport.get_extra_info("socket") if _SUPPORTED and is_plain else None
        self._portion = 1
        self.is_set = False
        """Whether the connection is not woken for each byte."""

    def wait_for(self, missing: int) -> None:
        """A frame lacks so many bytes: never wait for more than those."""
        portion = min(missing, PORTION_BYTES) if missing > PORTION_BYTES // 4 else 1
        if portion == self._portion or self._socket is None:
            return
        # Whoever finds the socket closed is told otherwise.
        with suppress(OSError):
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, portion)
            if self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT) != portion:
                # There is so little room that a sender would have to stop until it is read.
                self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1)
                self._socket, portion = None, 1
        self._portion = portion
        self.is_set = portion != 1
