"""A process that takes and gives bytes as a broker would, and knows nothing of records.

`python -m bench.brokers.plain_process PORT FOLDER` serves connections that begin with three numbers: how large a
request is, how large its reply, and what is done with them. It imports little, for its start and memory count too.
"""

import os
import select
import socket
import struct
import sys
from enum import IntEnum
from pathlib import Path

from crc32c import crc32c

HANDSHAKE = struct.Struct(">qqb")
RECEIVE_BYTES = 1 << 20
SERVED_BYTES = 1 << 28
"""The size of the file that is handed out: more than the processor's caches hold."""


class Mode(IntEnum):
    """What becomes of bytes that arrive, and where those that leave come from; or what else is a limit."""

    SOCKETS = 0
    """Thrown away; from memory."""
    FILE = 1
    """A checksum, and into a file; from memory."""
    FROM_FILE = 2
    """Thrown away; from a file, with sendfile."""
    PROCESS = 3
    """None: what matters is that there is a process that answers."""
    CHECK = 4
    """None: a file is read, with a checksum."""


class _Peer:
    """One connection, and what was agreed on it."""

    def __init__(self, connection: socket.socket, taken: int, served: int) -> None:
        self.connection = connection
        self._request_bytes, self._reply_bytes, mode = HANDSHAKE.unpack(
            connection.recv(HANDSHAKE.size, socket.MSG_WAITALL)
        )
        self._mode = Mode(mode)
        self._taken, self._served = taken, served
        self._reply = bytes(0 if self._mode is Mode.FROM_FILE else self._reply_bytes)
        self._begun = self._at = 0

    def take(self, data: memoryview) -> None:
        """Some bytes came: as many replies leave as they complete requests."""
        if self._mode is Mode.FILE:
            crc32c(data)
            os.write(self._taken, data)
        whole, self._begun = divmod(self._begun + len(data), self._request_bytes)
        if self._mode is Mode.FROM_FILE:
            for _ in range(whole):
                self._hand_out()
        elif whole:
            self.connection.sendall(self._reply * whole)

    def _hand_out(self) -> None:
        left = self._reply_bytes
        while left:
            self._at %= SERVED_BYTES
            sent = os.sendfile(self.connection.fileno(), self._served, self._at, min(left, SERVED_BYTES - self._at))
            left -= sent
            self._at += sent


def serve(port: int, folder: Path) -> None:
    """Until the process is ended."""
    taken = os.open(folder / "taken", os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    served = os.open(folder / "served", os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    peers: dict[int, _Peer] = {}
    buffer = memoryview(bytearray(RECEIVE_BYTES))
    listener = socket.create_server(("127.0.0.1", port), backlog=1_024)
    poller = select.epoll()
    poller.register(listener, select.EPOLLIN)
    while True:
        for number, _ in poller.poll():
            if number == listener.fileno():
                connection, _ = listener.accept()
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                try:
                    peers[connection.fileno()] = _Peer(connection, taken, _filled(served))
                except struct.error:
                    # Somebody who wanted to know whether anybody listens.
                    connection.close()
                    continue
                poller.register(connection, select.EPOLLIN)
                continue
            peer = peers[number]
            try:
                size = peer.connection.recv_into(buffer)
                peer.take(buffer[:size])
            except ConnectionError:
                size = 0
            if not size:
                poller.unregister(number)
                del peers[number]
                peer.connection.close()
                # What was written is of no use, and the disk is shared.
                os.ftruncate(taken, 0)
                os.lseek(taken, 0, os.SEEK_SET)


def _filled(served: int) -> int:
    if not os.fstat(served).st_size:
        for _ in range(SERVED_BYTES // RECEIVE_BYTES):
            os.write(served, bytes(RECEIVE_BYTES))
    return served


if __name__ == "__main__":
    serve(int(sys.argv[1]), Path(sys.argv[2]))
