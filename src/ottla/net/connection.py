"""A connection to a broker, as a client or another broker has it: requests out, each one's reply back.

Requests are pipelined: the next one is sent while replies are outstanding. A broker answers in order, so a request that
is not answered in time holds up all after it; the connection is then given up.
"""

import asyncio
import logging
import re
import ssl
import struct
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from math import inf
from os import strerror
from typing import Any, NamedTuple, Self, cast

from ottla import __version__
from ottla.net.authenticate import log_in
from ottla.net.departure import Departure
from ottla.net.failures import (
    BrokerUnreachableError,
    ConnectionLostError,
    HandshakeCutError,
    MalformedReplyError,
    RequestTimedOutError,
)
from ottla.net.holding import HeldTransport
from ottla.net.negotiate import (
    API_VERSIONS,
    BEFORE_API_VERSIONS,
    Offer,
    UnsupportedVersionError,
    best_version,
    decode_offer,
)
from ottla.net.outlet import Outlet
from ottla.net.pacing import stop_pacing_if_near
from ottla.net.quiet import Quiet, mutes
from ottla.net.receiving import BELIEVED_BYTES, Receiver, scratch
from ottla.net.security import PLAINTEXT, Security
from ottla.net.sending import write_all
from ottla.net.tls import client_tls
from ottla.net.tls_errors import client_error
from ottla.net.waking import Alarm
from ottla.ports import Chance, SystemChance
from ottla.wire import api
from ottla.wire.api.api_versions import ApiVersionsRequest
from ottla.wire.api.sasl_handshake import SaslHandshakeRequest
from ottla.wire.errors import ErrorCode, KafkaError, ProtocolError
from ottla.wire.frame import decode_response, encode_request
from ottla.wire.schema import schema_of

LARGEST_CORRELATION_ID = 2**31 - 1
MAX_RESPONSE_BYTES = 2**31 - 1
SCRATCH_BYTES = 64 * 1024
TIMEOUT_MS = 30_000
QUESTIONS = 3
"""How often a broker is asked for its versions. A connection may be cut by chance, and that makes no old broker."""

SESSION_PART = (0.85, 0.95)
"""When to log in again, of the time that a session lasts: not all clients at the same moment."""

GOODBYE_SECONDS = 5.0
"""How long a broker may take over the words that end TLS."""

LAST_QUESTION = 2
"""How many requests a connection begins with at most, to learn the versions."""

_CORRELATION_ID = struct.Struct(">i")

log = logging.getLogger(__name__)


Then = Callable[[Any, KafkaError | None], None]
"""What is called with a response, or with None and why there is none."""

Glance = Callable[[bytes | bytearray], Any]
"""What recognises a reply that is as expected, without decoding it; None for any other."""


class _Pending(NamedTuple):
    key: int
    version: int
    then: Then
    deadline: float
    timeout_ms: int
    glance: Glance | None


class Connection(asyncio.BufferedProtocol):
    """A connection to one broker. Make it with `open`, which also finds out what the broker offers."""

    _transport: asyncio.Transport
    _alarm: Alarm

    def __init__(self, broker: str, client_id: str | None, timeout_ms: int, max_response_bytes: int) -> None:
        self.broker = broker
        """The broker's address, as `host:port`."""
        self.offer: Offer = {}
        """What the broker offers."""
        self._client_id = client_id
        self._timeout_ms = timeout_ms
        self._receiver = Receiver(max_response_bytes, scratch(SCRATCH_BYTES), BELIEVED_BYTES)
        self._loop = asyncio.get_running_loop()
        self._pending: dict[int, _Pending] = {}
        self._correlation_id = 0
        self._security = PLAINTEXT
        self._session_timer: asyncio.TimerHandle | None = None
        self._login: asyncio.Task[None] | None = None
        self._lost: str | None = None
        self._left_by_broker = False
        self._closed = self._loop.create_future()
        self._sends_late = False
        self._outlet: Outlet | None = None
        self._room: asyncio.Future[None] | None = None
        self._last_used = self._loop.time()
        self._quiet = Quiet(broker, self._loop, self._closed)
        self._timer: asyncio.TimerHandle | None = None

    @classmethod
    async def open(
        cls,
        host: str,
        port: int,
        *,
        client_id: str | None = "ottla",
        timeout_ms: int = TIMEOUT_MS,
        max_response_bytes: int = MAX_RESPONSE_BYTES,
        may_be_old: bool = True,
        security: Security = PLAINTEXT,
        chance: Chance | None = None,
    ) -> Self:
        """Connect, negotiate versions, and log in if need be. `timeout_ms` bounds this, and is what requests get unless
        told otherwise.

        `may_be_old` takes a broker that closes connections when it is asked for its versions for Kafka 0.9. `security`
        says how to be sure of the broker, and who to log in as. Raises `SslAuthenticationError` if TLS cannot be had
        for good, and `AuthenticationFailedError` if the login fails.
        """
        broker = f"{host}:{port}"
        may_be_old = may_be_old and not security.uses_tls and not security.uses_sasl
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                for attempt in range(1, QUESTIONS + 1):
                    connection = await cls._connect(host, port, client_id, timeout_ms, max_response_bytes, security)
                    try:
                        await connection._negotiate()
                        if security.uses_sasl:
                            await connection._log_in(chance or SystemChance())
                        return connection
                    except ConnectionLostError:
                        if not connection._left_by_broker or (attempt == QUESTIONS and not may_be_old):
                            raise
                    except BaseException:
                        connection._give_up(f"negotiation with {broker} failed")
                        raise
                log.info("%s closes connections when asked for its versions; taking it for Kafka 0.9", broker)
                connection = await cls._connect(host, port, client_id, timeout_ms, max_response_bytes, security)
                connection.offer = BEFORE_API_VERSIONS
                return connection
        except TimeoutError:
            raise BrokerUnreachableError(f"no connection to {broker} within {timeout_ms} ms") from None

    @classmethod
    async def _connect(
        cls,
        host: str,
        port: int,
        client_id: str | None,
        timeout_ms: int,
        max_response_bytes: int,
        security: Security,
    ) -> Self:
        connection = cls(f"{host}:{port}", client_id, timeout_ms, max_response_bytes)
        connection._security = security
        tls: dict[str, Any] = {}
        if security.uses_tls:
            context = await client_tls(security).current()
            tls = {
                "ssl": context,
                "server_hostname": host,
                "ssl_handshake_timeout": timeout_ms / 1000,
                "ssl_shutdown_timeout": GOODBYE_SECONDS,
            }
        try:
            await asyncio.get_running_loop().create_connection(lambda: connection, host, port, **tls)
        # Names that cannot be those of hosts are UnicodeErrors.
        except (OSError, UnicodeError) as error:
            if security.uses_tls:
                connection._check_handshake(error)
            raise BrokerUnreachableError(f"cannot connect to {host}:{port}: {_reason(error)}") from error
        return connection

    def _check_handshake(self, error: Exception) -> None:
        failure = client_error(error, self.broker, has_certificate=self._security.ssl_certfile is not None)
        if failure is not None:
            raise failure from error
        if isinstance(error, ConnectionResetError | ssl.SSLError):
            raise HandshakeCutError(
                f"{self.broker} closed the connection during the TLS handshake, as brokers do that have no TLS there; "
                f"if so, set security_protocol to {self._security.security_protocol.replace('SSL', 'PLAINTEXT')!r}, or "
                "give its TLS port"
            ) from error

    async def _negotiate(self) -> None:
        version = schema_of(ApiVersionsRequest).versions.last
        # More than twice cannot happen with a broker that means what it says.
        for _ in range(2):
            question = ApiVersionsRequest(client_software_name="ottla", client_software_version=__version__)
            code, offer = await self._send(question, version, self._timeout_ms)
            if code is not ErrorCode.UNSUPPORTED_VERSION:
                break
            version = min(version, offer[API_VERSIONS].last) if API_VERSIONS in offer else 0
        if code is not ErrorCode.NONE:
            raise KafkaError(code, f"{self.broker} does not say which versions it offers")
        self.offer = offer

    # Logging in.

    async def _log_in(self, chance: Chance) -> None:
        if self.version_of(SaslHandshakeRequest) == 0:
            raise UnsupportedVersionError(f"{self.broker} is too old to log in to; it must be Kafka 1.0 or later")

        def ask(message: object) -> Awaitable[Any]:
            return self._send(message, self.version_of(type(message)), self._timeout_ms)

        self._next_login(await log_in(ask, self.broker, self._security, chance), chance)

    def _next_login(self, lifetime_ms: int, chance: Chance) -> None:
        if lifetime_ms > 0 and self._lost is None:
            wait_s = lifetime_ms / 1000 * chance.uniform(*SESSION_PART)
            self._session_timer = self._loop.call_later(wait_s, self._begin_again, chance)

    def _begin_again(self, chance: Chance) -> None:
        if self._lost is None:
            self._login = self._loop.create_task(self._log_in_again(chance))

    async def _log_in_again(self, chance: Chance) -> None:
        """Log in before the session ends. What others send in the meantime is held back."""
        held = HeldTransport(self._transport)
        # What was asked before, as joining a group, is answered before; and the broker may not read for a while.
        patience_s = max(self._quiet.until, *(one.deadline for one in self._pending.values()), 0.0) - self._loop.time()
        timeout_ms = self._timeout_ms + max(0, int(patience_s * 1000))

        def ask(message: object) -> Awaitable[Any]:
            self._transport = held.transport
            try:
                return self._send(message, self.version_of(type(message)), timeout_ms)
            finally:
                self._transport = held

        self._transport = held
        try:
            lifetime_ms = await log_in(ask, self.broker, self._security, chance)
        except KafkaError as error:
            self._give_up(f"the session with {self.broker} is over: {error.message}", error)
            return
        finally:
            self._transport = held.transport
            held.release()
        self._next_login(lifetime_ms, chance)

    @property
    def client_id(self) -> str | None:
        """What this client calls itself."""
        return self._client_id

    @property
    def closed(self) -> bool:
        """Whether the connection can no longer be used."""
        return self._lost is not None

    @property
    def pending_count(self) -> int:
        """How many requests wait for their reply."""
        return len(self._pending)

    @property
    def idle_ms(self) -> float:
        """How long nothing has been sent, while nothing is pending."""
        return 0.0 if self._pending else (self._loop.time() - self._last_used) * 1000

    @property
    def is_quiet(self) -> bool:
        """Whether the broker has asked to be left alone for now, since a quota was used up. It would not read."""
        return self._quiet.lasts

    async def quiet(self, timeout_s: float = inf) -> None:
        """Wait until the broker may be asked again, or the connection is closed, or for so long."""
        await self._quiet.over(timeout_s)

    def version_of(self, request: type[Any]) -> int:
        """The version in which a request would be sent; KafkaError if the two sides have none in common."""
        return best_version(request, self.offer, self.broker)

    async def request(self, message: object, *, version: int | None = None, timeout_ms: int | None = None) -> Any:
        """Send a request and wait for its response.

        The version is the highest that both sides have, unless one is given. Raises `RequestTimedOutError`,
        `ConnectionLostError`, or `MalformedReplyError` for a response that makes no sense; error codes inside the
        response are the caller's to look at.
        """
        if version is None:
            version = self.version_of(type(message))
        if timeout_ms is None:
            timeout_ms = self._timeout_ms
        if self._quiet.until:
            await self._quiet.over_in_time(timeout_ms)
        if self._room is not None:
            await self._wait_for_room(self._room)
        return await self._send(message, version, timeout_ms)

    def post(self, message: object, then: Then, *, version: int | None = None, timeout_ms: int | None = None) -> None:
        """Send a request now, and have something called with its response, or with what `request` would raise.

        It does not wait for the broker to read, nor while `is_quiet`, so it is for those who bound by themselves what
        they have under way. They are called as soon as the response is there, without another turn of the event loop.
        """
        if version is None:
            version = self.version_of(type(message))
        self._post(message, version, self._timeout_ms if timeout_ms is None else timeout_ms, then)

    def next_correlation_id(self) -> int:
        """The number of a request that is encoded by somebody else, for `write_frame`."""
        self._correlation_id = (self._correlation_id + 1) & LARGEST_CORRELATION_ID
        return self._correlation_id

    def write_frame(self, frame: bytes) -> None:
        """Send a request that is encoded already, under a number from here, at once; say then what is expected of it.

        ConnectionLostError if nothing was sent.
        """
        if self._lost is not None:
            raise ConnectionLostError(self._lost)
        left = self._sent_at_once(frame) if self._sends_late else frame
        if left:
            self._transport.write(left)

    def expect_frame(self, correlation_id: int, request: type[Any], version: int, glance: Glance, then: Then) -> None:
        """What to do with the reply to a frame that was just sent. If `glance` recognises it, what that makes of it is
        the response; otherwise the reply is decoded as any other."""
        self._last_used = self._loop.time()
        self._expect(correlation_id, request, version, self._timeout_ms, then, glance)

    def _sent_at_once(self, frame: bytes) -> bytes:
        """Send a frame before the event loop's turn is over, and give what of it is left to the transport."""
        transport = self._transport
        if isinstance(transport, HeldTransport) or transport.get_write_buffer_size():
            return frame
        if self._outlet is None:
            self._outlet = Outlet.of(transport, self._loop)
            self._sends_late = self._outlet is not None
        try:
            return frame if self._outlet is None else self._outlet.send_now(frame)
        except OSError:
            # The transport will meet with the same.
            return frame

    async def tell(self, message: object, *, version: int | None = None) -> None:
        """Send a request that gets no reply, which is Produce with acks=0 alone."""
        if version is None:
            version = self.version_of(type(message))
        if self._quiet.until:
            await self._quiet.over_in_time(self._timeout_ms)
        if self._room is not None:
            await self._wait_for_room(self._room)
        self._write(message, version)

    def close(self) -> Awaitable[None]:
        """Close the connection now, and wait for that if wanted. Requests that are pending fail."""
        self._give_up(f"the connection to {self.broker} was closed on this side")
        return asyncio.shield(self._closed)

    # Sending.

    async def _wait_for_room(self, room: "asyncio.Future[None]") -> None:
        # Where no reply is waited for nothing else would notice a broker that is gone without a word.
        try:
            async with asyncio.timeout(self._timeout_ms / 1000):
                await asyncio.shield(room)
        except TimeoutError:
            reason = f"{self.broker} did not read what it was sent in {self._timeout_ms} ms"
            self._give_up(reason)
            raise ConnectionLostError(reason) from None

    def _write(self, message: object, version: int) -> int:
        if self._lost is not None:
            raise ConnectionLostError(self._lost)
        correlation_id = self.next_correlation_id()
        buffers = encode_request(message, version, correlation_id=correlation_id, client_id=self._client_id)
        write_all(self._transport, buffers)
        self._last_used = self._loop.time()
        return correlation_id

    def _send(self, message: object, version: int, timeout_ms: int) -> "asyncio.Future[Any]":
        future = self._loop.create_future()
        self._post(message, version, timeout_ms, partial(_fulfil, future))
        return future

    def _post(self, message: object, version: int, timeout_ms: int, then: Then) -> None:
        self._expect(self._write(message, version), type(message), version, timeout_ms, then)

    def _expect(
        self,
        correlation_id: int,
        request: type[Any],
        version: int,
        timeout_ms: int,
        then: Then,
        glance: Glance | None = None,
    ) -> None:
        key = schema_of(request).key
        assert key is not None
        deadline = self._last_used + timeout_ms / 1000
        self._pending[correlation_id] = _Pending(key, version, then, deadline, timeout_ms, glance)
        # Deadlines mostly come in order, so that one timer for the next of them serves all.
        if self._timer is None or deadline < self._timer.when():
            self._set_timer(deadline)

    def _set_timer(self, deadline: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(deadline, self._look_at_deadlines)

    def _look_at_deadlines(self) -> None:
        self._timer = None
        if not self._pending:
            return
        correlation_id, next_one = min(self._pending.items(), key=lambda item: item[1].deadline)
        if next_one.deadline > self._loop.time():
            self._set_timer(next_one.deadline)
            return
        del self._pending[correlation_id]
        name = f"{api.api_name(next_one.key)} v{next_one.version}"
        reason = f"{self.broker} did not answer {name} in {next_one.timeout_ms} ms"
        self._tell(next_one.then, None, RequestTimedOutError(reason))
        self._give_up(reason)

    def _tell(self, then: Then, response: Any, error: KafkaError | None) -> None:
        try:
            then(response, error)
        # Whatever it is, it must not keep the replies from those who come after.
        except Exception:
            log.exception("a reply of %s could not be dealt with", self.broker)

    def _give_up(self, reason: str, failure: KafkaError | None = None) -> None:
        """Close, and fail all that is pending."""
        if self._lost is None:
            self._lost = reason
            self._transport.abort()
        pending, self._pending = self._pending, {}
        for timer in (self._timer, self._session_timer):
            if timer is not None:
                timer.cancel()
        self._timer = self._session_timer = None
        for one in pending.values():
            self._tell(one.then, None, failure or ConnectionLostError(reason))
        if self._room is not None:
            _settle(self._room)
            self._room = None

    # What the event loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The socket is open."""
        self._transport = cast(asyncio.Transport, transport)
        stop_pacing_if_near(transport)
        self._alarm = Alarm(transport)
        # asyncio's own transports send what they are given if they can, others when the turn is over.
        self._sends_late = not type(transport).__module__.startswith("asyncio")

    def get_buffer(self, sizehint: int) -> memoryview:
        """Where the next bytes go."""
        return self._receiver.room()

    def buffer_updated(self, nbytes: int) -> None:
        """Bytes have come in."""
        try:
            frames = self._receiver.received(nbytes)
        except ProtocolError as error:
            self._give_up(f"{self.broker} sent {error.reason}")
            return
        if not frames or self._alarm.is_set:
            self._alarm.wait_for(self._receiver.missing)
        for frame in frames:
            self._take(frame)
        if self._receiver.failure is not None:
            # It came after good replies; nothing that follows can be read.
            self._give_up(f"{self.broker} sent {self._receiver.failure.reason}")

    def _take(self, frame: bytes | bytearray) -> None:
        if len(frame) < _CORRELATION_ID.size:
            self._give_up(f"{self.broker} sent a reply of {len(frame)} bytes")
            return
        (correlation_id,) = _CORRELATION_ID.unpack_from(frame)
        pending = self._pending.pop(correlation_id, None)
        if pending is None:
            log.warning("%s answered a request that is not pending, %d; ignored", self.broker, correlation_id)
            return
        try:
            recognised = None if pending.glance is None else pending.glance(frame)
            if recognised is not None:
                response = recognised
            elif pending.key == API_VERSIONS and not self.offer:
                response = decode_offer(frame, pending.version)
            else:
                response = decode_response(api.response(pending.key), pending.version, frame)[1]
        # Whatever it is, whoever waits for the reply must hear of it.
        except Exception as error:
            name = f"{api.api_name(pending.key)} v{pending.version}"
            failure: KafkaError
            if isinstance(error, ProtocolError):
                failure = MalformedReplyError(f"{self.broker} answered {name} with bytes that make no sense: {error}")
            else:
                log.exception("the answer of %s to %s could not be read", self.broker, name)
                failure = KafkaError(
                    ErrorCode.UNKNOWN_SERVER_ERROR,
                    f"the answer of {self.broker} to {name} could not be read, by this client's mistake: {error!r}",
                )
            failure.__cause__ = error
            self._tell(pending.then, None, failure)
        else:
            pause_ms = 0 if recognised is not None else getattr(response, "throttle_time_ms", 0)
            if pause_ms > 0:
                self._keep_quiet(pause_ms / 1000)
            self._tell(pending.then, response, None)

    def _keep_quiet(self, pause_s: float) -> None:
        """Ask nothing for so long, as the broker wishes; what it has been asked already gets that much longer."""
        longer_s = self._quiet.keep(pause_s) if mutes(self.offer) else 0.0
        if longer_s:
            for correlation_id, one in self._pending.items():
                self._pending[correlation_id] = one._replace(deadline=one.deadline + longer_s)

    def pause_writing(self) -> None:
        """The broker does not read as fast as it is sent to."""
        self._room = self._loop.create_future()

    def resume_writing(self) -> None:
        """The broker has read some of it."""
        if self._room is not None:
            _settle(self._room)
            self._room = None

    def connection_lost(self, error: Exception | None) -> None:
        """The socket is closed."""
        if self._outlet is not None:
            self._outlet.close()
            self._outlet = None
        self._sends_late = False
        self._left_by_broker = self._lost is None
        reason = f"{self.broker} closed the connection"
        if self._left_by_broker:
            at_first_request = bool(self._pending) and min(self._pending) <= LAST_QUESTION + 1
            left = Departure(self.broker, self._security, self.offer, self._receiver.announced, at_first_request, error)
            self._give_up(reason + left.cause, left.failure)
        else:
            self._give_up(reason if error is None else f"{reason}: {error}")
        _settle(self._closed)


def _reason(error: Exception) -> str:
    """Why there is no connection. asyncio has words of its own for it, several if the host has several addresses."""
    numbers = re.findall(r"\[Errno (\d+)\] Connect call failed", str(error))
    if numbers:
        return ", ".join(dict.fromkeys(strerror(int(number)) for number in numbers))
    return getattr(error, "strerror", None) or str(error)


def _fulfil(future: "asyncio.Future[Any]", response: Any, error: KafkaError | None) -> None:
    """Give what came to those who wait for it, unless they were cancelled, also between a look and a deed."""
    with suppress(asyncio.InvalidStateError):
        if error is None:
            future.set_result(response)
        else:
            future.set_exception(error)


def _settle(future: "asyncio.Future[None]") -> None:
    """Let those who wait go on, unless they were cancelled, as an interrupted program's are."""
    with suppress(asyncio.InvalidStateError):
        future.set_result(None)
