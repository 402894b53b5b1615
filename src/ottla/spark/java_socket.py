"""The socket between Java and a Python process of Spark.

Java sends a task in two small pieces: what to do, and on what. Its socket holds the second back until the first is
acknowledged (Nagle's algorithm), and the kernel of the process lets 40 ms pass before it acknowledges the first, in
case there is something to say with it. That would be most of what a small task takes.
"""

import os
import socket
import stat
from contextlib import suppress
from functools import cache
from typing import Any

from ottla.spark.workers import is_worker

_QUICKACK: int | None = getattr(socket, "TCP_QUICKACK", None)


class FromJava:
    """What Java sends to tasks. It has left Java's socket when it is unpickled, so that the rest can follow at once."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        acknowledge()


def acknowledge() -> None:
    """Have the kernel acknowledge now what Java has sent, where this is a worker of Spark.

    >>> acknowledge()
    """
    # Linux forgets the setting by and by, so that it is set again for each piece.
    if _QUICKACK is not None and is_worker():
        for number in _connections(os.getpid()):
            with suppress(OSError):
                _acknowledge(number, _QUICKACK)


def _acknowledge(number: int, option: int) -> None:
    connection = socket.socket(fileno=number)
    try:
        connection.setsockopt(socket.IPPROTO_TCP, option, 1)
    finally:
        # The socket stays its owner's.
        connection.detach()


@cache
def _connections(_process: int) -> tuple[int, ...]:
    """The connections that are there when Java is first heard of: its own, and whatever else is as well off with it."""
    with suppress(OSError):
        return tuple(number for number in map(int, os.listdir("/proc/self/fd")) if _is_connection(number))
    return ()


def _is_connection(number: int) -> bool:
    try:
        if not stat.S_ISSOCK(os.fstat(number).st_mode):
            return False
        connection = socket.socket(fileno=number)
    except OSError:
        return False
    try:
        is_tcp = connection.family in (socket.AF_INET, socket.AF_INET6) and connection.type == socket.SOCK_STREAM
        return is_tcp and bool(connection.getpeername())
    except OSError:
        return False
    finally:
        connection.detach()
