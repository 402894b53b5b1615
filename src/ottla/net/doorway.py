"""Where clients come in that have to speak TLS: they are counted when they come, and served after the handshake.

A stranger who never finishes his handshake, or sends garbage, costs a socket for a few seconds. Event loops offer to do
all of this, but would count nobody before the handshake, tell nobody why it failed, and keep the context that they were
started with.
"""

import asyncio
import errno
import logging
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from ottla.net.principals import PrincipalRules, subject_name
from ottla.net.serving import ANONYMOUS, ServerConnection
from ottla.net.telling import Telling
from ottla.net.tls import Reloading, alert_of
from ottla.net.tls_errors import handshake_trouble
from ottla.ports import Clock
from ottla.wire.errors import ProtocolError

HANDSHAKE_SECONDS = 10.0
GOODBYE_SECONDS = 5.0
"""How long a peer may take over the handshake, and over the words that end a connection."""

MOST_HANDSHAKES = 256
"""Handshakes at one time; asyncio keeps a quarter of a megabyte for each. Beyond that the oldest is given up: honest
clients need milliseconds."""

OUT_OF_FILES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
"""Why nobody can be accepted for now. Other errors are mostly about one client, who has left before he came in."""

OUT_OF_FILES_SECONDS = 1.0
ERROR_SECONDS = 0.05
"""How long nobody is accepted after any other error: one that lasts shall not keep the event loop busy."""

REPORT_SECONDS = 10.0
REPORTS = 10
"""How many failures are logged one by one in such a time."""

LONGEST_SUBJECT = 300
"""Characters of a certificate's subject that a log has."""

log = logging.getLogger(__name__)


class ListenerTls:
    """What a listener needs to speak TLS: a context, which may change while it listens, and rules for users' names."""

    def __init__(self, context: Reloading, rules: PrincipalRules, clock: Clock, *, names_users: bool = True) -> None:
        self.context = context
        self.rules = rules
        self._clock = clock
        self._names_users = names_users

    def principal(self, transport: asyncio.BaseTransport) -> str:
        """Who a client is by its certificate; ProtocolError if no rule says, or it has no right to be here any more."""
        tls: ssl.SSLObject | None = transport.get_extra_info("ssl_object")
        certificate = None if tls is None else tls.getpeercert(binary_form=True)
        if tls is None or certificate is None:
            return ANONYMOUS
        if tls.session_reused and self._is_over(tls):
            raise ProtocolError("it goes on with a session of TLS, and its certificate has expired since that began")
        if not self._names_users:
            return ANONYMOUS
        name = subject_name(certificate)
        user = self.rules.user(name)
        if user is None:
            raise ProtocolError(
                f"no rule of ssl.principal.mapping.rules fits its certificate's subject {name[:LONGEST_SUBJECT]!r}; "
                "add one that does, or DEFAULT"
            )
        return f"User:{user}"

    def _is_over(self, tls: ssl.SSLObject) -> bool:
        """Whether the certificate has expired: OpenSSL does not look at it again where a session is resumed."""
        end = (tls.getpeercert() or {}).get("notAfter")
        return isinstance(end, str) and self._clock.now_ms() >= ssl.cert_time_to_seconds(end) * 1000


@dataclass(slots=True)
class _Visitor:
    """Somebody who is about to come in."""

    socket: socket.socket
    host: str
    peer: str
    is_begun: bool = False
    connection: ServerConnection | None = None

    @property
    def is_in(self) -> bool:
        """Whether the handshake was finished, so that the listener looks after the connection."""
        return self.connection is not None and self.connection.peer != ""


class Doorway:
    """A listening socket whose clients have to speak TLS."""

    def __init__(
        self,
        listening: socket.socket,
        connection: Callable[[], ServerConnection],
        tls: ListenerTls,
        admit: Callable[[str, str], bool],
        leave: Callable[[str], None],
        failed: Callable[[], None],
    ) -> None:
        self._socket = listening
        self._connection = connection
        self._tls = tls
        self._admit = admit
        self._leave = leave
        self._failed = failed
        self._loop = asyncio.get_running_loop()
        self._handshakes: dict[asyncio.Task[None], None] = {}
        """Those under way, the oldest first."""
        self._tasks: set[asyncio.Task[None]] = set()
        """Those, and others that are being given up."""
        self._accepting: asyncio.Task[None] | None = None
        self._troubles = Telling(log, "%d more clients failed the TLS handshake", most=REPORTS, seconds=REPORT_SECONDS)
        self._accept_troubles = Telling(
            log, "%d more connections could not be accepted", most=REPORTS, seconds=REPORT_SECONDS
        )

    @property
    def port(self) -> int:
        """Where it listens."""
        found: int = self._socket.getsockname()[1]
        return found

    @property
    def handshake_count(self) -> int:
        """How many clients are about to come in."""
        return len(self._handshakes)

    def open(self) -> None:
        """Begin to accept."""
        self._accepting = self._loop.create_task(self._accept())

    async def close(self) -> None:
        """Accept nobody more, and give up the handshakes that are under way."""
        tasks = [task for task in (self._accepting, *self._tasks) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._socket.close()

    async def _accept(self) -> None:
        while True:
            try:
                client, address = await self._next_client()
            except OSError as error:
                await self._not_accepted(error)
                continue
            host, peer = str(address[0]), f"{address[0]}:{address[1]}"
            if not self._admit(host, peer):
                client.close()
                continue
            visitor = _Visitor(client, host, peer)
            task = self._loop.create_task(self._shake_hands(visitor))
            self._tasks.add(task)
            self._handshakes[task] = None
            task.add_done_callback(partial(self._ended, visitor))
            if len(self._handshakes) > MOST_HANDSHAKES:
                oldest = next(iter(self._handshakes))
                del self._handshakes[oldest]
                oldest.cancel()
            # While others wait to be accepted, the event loop would not get its turn.
            await asyncio.sleep(0)

    async def _next_client(self) -> tuple[socket.socket, tuple[Any, ...]]:
        # Not `sock_accept`: if it is cancelled at the wrong moment, whom it has accepted is lost with it.
        while True:
            try:
                client, address = self._socket.accept()
            except BlockingIOError:
                comes = asyncio.Event()
                self._loop.add_reader(self._socket, comes.set)
                try:
                    await comes.wait()
                finally:
                    self._loop.remove_reader(self._socket)
            else:
                client.setblocking(False)
                return client, address

    async def _not_accepted(self, error: OSError) -> None:
        if error.errno in OUT_OF_FILES:
            log.error("cannot accept connections for now: %s", error.strerror or error)
            await asyncio.sleep(OUT_OF_FILES_SECONDS)
            return
        self._accept_troubles.tell("cannot accept a connection: %s", error.strerror or error)
        await asyncio.sleep(ERROR_SECONDS)

    def _ended(self, visitor: _Visitor, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        self._handshakes.pop(task, None)
        if not visitor.is_in:
            self._leave(visitor.host)
        if not visitor.is_begun:
            # It was given up before its first step.
            visitor.socket.close()

    async def _shake_hands(self, visitor: _Visitor) -> None:
        try:
            # The event loop closes its own before the client can be told.
            told = visitor.socket.dup()
        except OSError as error:
            self._report(visitor.peer, error)
            return
        visitor.is_begun = True

        def connection() -> ServerConnection:
            made = visitor.connection = self._connection()
            return made

        try:
            await self._loop.connect_accepted_socket(
                connection,
                visitor.socket,
                ssl=self._tls.context.context,
                ssl_handshake_timeout=HANDSHAKE_SECONDS,
                ssl_shutdown_timeout=GOODBYE_SECONDS,
            )
        except OSError as error:
            with suppress(OSError):
                told.send(alert_of(error))
            self._report(visitor.peer, error)
        finally:
            told.close()

    def _report(self, peer: str, error: OSError) -> None:
        self._failed()
        # Whoever just looks whether there is somebody leaves like that too.
        level = logging.INFO if isinstance(error, ConnectionResetError) else logging.WARNING
        said = handshake_trouble(error)
        self._troubles.tell("closing the connection from %s: %s", peer, said, level=level, extra=stranger_at(peer))


def stranger_at(peer: str) -> dict[str, str | None]:
    """Somebody of whom nothing but the address is known, as structured logs have it.

    >>> stranger_at("10.0.0.7:51514")
    {'address': '10.0.0.7:51514', 'principal': 'User:ANONYMOUS', 'client_id': None}
    """
    return {"address": peer, "principal": ANONYMOUS, "client_id": None}
