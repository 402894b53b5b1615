"""The limit: the same bytes, from the same clients, to a process that is no broker."""

import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from .plain_process import HANDSHAKE, Mode
from .raw import Address, connected
from .server import Server

__all__ = ["Mode", "Plain", "plain_connections"]


class Plain(Server):
    """That process, beside the brokers."""

    title = "limit"

    def command(self) -> list[str]:
        """The module beside this one."""
        return [sys.executable, "-m", "bench.brokers.plain_process", str(self.port), str(self.folder)]

    def _answers(self) -> bool:
        try:
            with connected(self.address):
                return True
        except OSError:
            return False


@contextmanager
def plain_connections(
    address: Address, request_bytes: int, reply_bytes: int, mode: Mode, count: int = 1
) -> Iterator[list[socket.socket]]:
    """Connections that were told what they are for."""
    with connected(address, count) as found:
        for one in found:
            one.sendall(HANDSHAKE.pack(request_bytes, reply_bytes, mode))
        yield found
