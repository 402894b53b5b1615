"""Accepts clients on one address, and looks after their connections.

>>> async def echo_once() -> bytes:
...     listener = Listener(lambda connection, frame: [frame.upper()])
...     host, port = await listener.start("127.0.0.1", 0)
...     reader, writer = await asyncio.open_connection(host, port)
...     writer.write(b"\\0\\0\\0\\5hello")
...     answer = await reader.readexactly(5)
...     writer.close()
...     await listener.stop()
...     return answer
>>> asyncio.run(echo_once())
b'HELLO'
"""

import asyncio
import errno
import logging
import os
import socket
from collections.abc import Callable

from ottla.net.admission import Admission
from ottla.net.doorway import Doorway, ListenerTls, stranger_at
from ottla.net.memory import Memory
from ottla.net.pacing import listen_without_pacing
from ottla.net.porter import Porter
from ottla.net.receiving import scratch
from ottla.net.serving import Handler, ServerConnection
from ottla.net.telling import Telling

SWEEPS_PER_IDLE_LIMIT = 8
LONGEST_SWEEP_INTERVAL_S = 30.0
LOGIN_MS = 60_000
"""How long a stranger may stay one."""
BACKLOG = 1024
PORT_TRIES = 20

log = logging.getLogger(__name__)


class Listener:
    """A listening address with the connections that came in through it.

    `handler` gets each frame with the connection it came on; see `ottla.net.serving`. A frame beyond
    `max_request_bytes` closes its connection, and so does one beyond `stranger_request_bytes` until the handler trusts
    its client, for which there are `login_ms`. `idle_ms` bounds how long a client may send nothing, take over one
    request, or leave its replies unread; below 1 there is no bound. `admission` says how many clients are let in, and
    `memory` how much all of them may take; listeners of one broker share them. With `tls`, clients have to speak it.
    `monotonic` is a finer clock than the event loop's where that counts milliseconds, but the same one. A `porter` has
    small replies sent beside the event loop while there are many.
    """

    def __init__(
        self,
        handler: Handler,
        *,
        name: str = "PLAINTEXT",
        security_protocol: str = "PLAINTEXT",
        max_request_bytes: int = 100 * 1024 * 1024,
        stranger_request_bytes: int | None = None,
        login_ms: int = LOGIN_MS,
        idle_ms: int = 600_000,
        admission: Admission | None = None,
        memory: Memory | None = None,
        tls: ListenerTls | None = None,
        monotonic: Callable[[], float] | None = None,
        porter: Porter | None = None,
    ) -> None:
        self.handler = handler
        self.porter = porter
        self.monotonic = monotonic
        self.name = name
        self.security_protocol = security_protocol
        self.max_request_bytes = max_request_bytes
        self.stranger_request_bytes = max_request_bytes if stranger_request_bytes is None else stranger_request_bytes
        self.has_strangers = stranger_request_bytes is not None
        """Whether clients are strangers until the handler trusts them."""
        self._login_s = login_ms / 1000
        self.memory = memory or Memory()
        self.scratch = scratch()
        """What connections are read into."""
        self.tls = tls
        self._admission = admission or Admission()
        self._idle_s = idle_ms / 1000
        self._connections: set[ServerConnection] = set()
        self._servers: list[asyncio.Server] = []
        self._doorways: list[Doorway] = []
        self._sweep_timer: asyncio.TimerHandle | None = None
        self._refused = 0
        self.accepted_count = 0
        """Clients that were let in since the start, and below, that were turned away, and that made mistakes."""
        self.refused_count = 0
        self.failed_count = 0
        self.complaints = Telling(log, "%d more connections were closed for what clients sent")
        """Tells of mistakes of clients."""
        self._stopping = False
        self._empty: asyncio.Future[None] | None = None
        self.address: tuple[str, int] = ("", 0)
        """Where it listens, once it does."""

    @property
    def connection_count(self) -> int:
        """How many clients are connected."""
        return len(self._connections)

    @property
    def handshake_count(self) -> int:
        """How many clients are about to come in, where they have to speak TLS."""
        return sum(doorway.handshake_count for doorway in self._doorways)

    @property
    def requests_waiting(self) -> int:
        """Requests that have arrived and wait for the ones before them."""
        return sum(connection.requests_waiting for connection in self._connections)

    @property
    def bytes_buffered(self) -> int:
        """Bytes held for all connections: requests not answered yet and replies not sent yet."""
        return sum(connection.bytes_buffered for connection in self._connections)

    async def start(self, host: str, port: int) -> tuple[str, int]:
        """Listen on all addresses that `host` stands for, an empty one for all there are, and return host and port.

        Port 0 finds a free one, the same on each address. OSError says which address could not be had.
        """
        loop = asyncio.get_running_loop()
        try:
            found = await loop.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        except OSError as error:
            raise _cannot_listen(host, port, error) from error
        # An address of IPv4 first: where both kinds are listened on, it is the one that surely exists.
        addresses = sorted({str(entry[4][0]) for entry in found}, key=lambda address: ":" in address)
        for tries_left in reversed(range(PORT_TRIES)):
            try:
                await self._listen(loop, addresses, port)
                break
            except OSError as error:
                await self._stop_accepting()
                if port or not tries_left or error.errno != errno.EADDRINUSE:
                    raise _cannot_listen(host, port, error) from error
        self.address = (host, self._port())
        self._schedule_sweep(loop)
        return self.address

    async def _listen(self, loop: asyncio.AbstractEventLoop, addresses: list[str], port: int) -> None:
        def connection() -> ServerConnection:
            return ServerConnection(self, loop)

        for address in addresses:
            try:
                if self.tls is None:
                    server = await loop.create_server(connection, address, port, backlog=BACKLOG, reuse_address=True)
                    self._servers.append(server)
                    for accepting in server.sockets:
                        listen_without_pacing(accepting)
                else:
                    family = socket.AF_INET6 if ":" in address else socket.AF_INET
                    listening = socket.create_server((address, port), family=family, backlog=BACKLOG)
                    listening.setblocking(False)
                    listen_without_pacing(listening)
                    leave = self._admission.leave
                    self._doorways.append(
                        Doorway(listening, connection, self.tls, self._admit, leave, self._handshake_failed)
                    )
            except OSError as error:
                # A name may stand for an IPv6 address on a machine that has no IPv6.
                if error.errno in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT) and self._listens():
                    continue
                raise
            port = self._port()
        for doorway in self._doorways:
            doorway.open()

    def _listens(self) -> bool:
        return bool(self._servers or self._doorways)

    def _port(self) -> int:
        port: int = self._doorways[0].port if self._doorways else self._servers[0].sockets[0].getsockname()[1]
        return port

    async def stop(self, timeout_ms: int = 5_000) -> None:
        """Accept nobody more, finish the requests that have arrived, close; after `timeout_ms` close regardless."""
        self._stopping = True
        await self._stop_accepting()
        if self._sweep_timer is not None:
            self._sweep_timer.cancel()
        for connection in list(self._connections):
            connection.finish()
        if not await self._emptied(timeout_ms / 1000):
            log.warning("%d connections did not finish in %d ms and are cut", len(self._connections), timeout_ms)
            for connection in list(self._connections):
                connection.abort()
            await self._emptied(None)

    async def _stop_accepting(self) -> None:
        loop = asyncio.get_running_loop()
        servers, self._servers = self._servers, []
        # asyncio serves a client one turn after it has accepted it, and loses its socket if the server is closed by
        # then: so first nobody more is accepted, and the server is closed when those who were are known. uvloop, which
        # has no such readers, knows them at once.
        for server in servers:
            for listening in server.sockets:
                if (number := listening.fileno()) >= 0:
                    loop.remove_reader(number)
        try:
            await asyncio.sleep(0)
        finally:
            # Not `wait_closed`: from Python 3.12 on that waits for the connections too.
            for server in servers:
                server.close()
        doorways, self._doorways = self._doorways, []
        for doorway in doorways:
            await doorway.close()
        # They are turned away in the next turn, and their sockets are closed in the one after that.
        for _ in range(2):
            await asyncio.sleep(0)

    async def _emptied(self, timeout_s: float | None) -> bool:
        if self._connections:
            self._empty = asyncio.get_running_loop().create_future()
            await asyncio.wait([self._empty], timeout=timeout_s)
        return not self._connections

    # What connections call.

    def admit(self, connection: ServerConnection) -> bool:
        """Count a new connection, unless there are too many."""
        # Those who had a handshake were counted before it.
        if self.tls is None and not self._admit(connection.host, connection.peer):
            return False
        self.accepted_count += 1
        self._connections.add(connection)
        return True

    def _handshake_failed(self) -> None:
        self.failed_count += 1

    def _admit(self, host: str, peer: str) -> bool:
        refusal = "the broker stops" if self._stopping else self._admission.refusal(host)
        if refusal is None:
            return True
        if not self._refused:
            log.warning("turning %s away: %s", peer, refusal, extra=stranger_at(peer))
        self._refused += 1
        self.refused_count += 1
        return False

    def forget(self, connection: ServerConnection) -> None:
        """Count a connection no more."""
        if connection in self._connections:
            self._connections.remove(connection)
            self._admission.leave(connection.host)
        if not self._connections and self._empty is not None and not self._empty.done():
            self._empty.set_result(None)

    # One timer for all connections.

    def _schedule_sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._idle_s <= 0:
            return
        interval_s = min(self._idle_s / SWEEPS_PER_IDLE_LIMIT, LONGEST_SWEEP_INTERVAL_S)
        self._sweep_timer = loop.call_later(interval_s, self._sweep, loop)

    def _sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        since, strange_since = loop.time() - self._idle_s, loop.time() - self._login_s
        for connection in list(self._connections):
            if connection.stranger_since is not None and connection.stranger_since < strange_since:
                reason: str | None = "it does not log in"
            elif connection.active_at < since or connection.bytes_waiting:
                reason = connection.overdue(since)
            else:
                continue
            if reason is not None:
                log.info("closing the connection from %s: %s", connection.peer, reason, extra=connection.identity)
                connection.abort()
        if self._refused > 1:
            log.warning("%d clients were turned away since the last such message", self._refused)
        self._refused = 0
        self._schedule_sweep(loop)


def _cannot_listen(host: str, port: int, error: OSError) -> OSError:
    # Event loops put the address in front of the reason, each version in its own way.
    known = error.errno is not None and error.errno in errno.errorcode
    reason = os.strerror(error.errno).lower() if known and error.errno is not None else str(error.strerror or error)
    return OSError(error.errno, f"cannot listen on {host or '*'}:{port}: {reason}")
