"""The login of one connection, and what came of it. See `ottla.broker.authentication`."""

import asyncio
import logging
from collections.abc import Awaitable
from enum import Enum
from typing import TYPE_CHECKING, Any

from ottla.broker.apis import SERVED, served_versions
from ottla.broker.exchanges import Exchange
from ottla.broker.turns import FullLineError
from ottla.net.sasl.errors import SaslError
from ottla.net.serving import Frame, Reply, ServerConnection
from ottla.wire import api
from ottla.wire.api.sasl_authenticate import SaslAuthenticateResponse
from ottla.wire.api.sasl_handshake import SaslHandshakeResponse
from ottla.wire.errors import ErrorCode, ProtocolError
from ottla.wire.frame import encode_response, read_request_prefix

if TYPE_CHECKING:
    from ottla.broker.authentication import Authenticator

API_VERSIONS, SASL_HANDSHAKE, SASL_AUTHENTICATE = 18, 17, 36

NEVER = float("inf")
LEAST_SESSION_S = 1.0
"""How long a client has to wait before it logs in again."""

log = logging.getLogger("ottla.broker")


class Phase(Enum):
    """How far a login is."""

    HANDSHAKE = "handshake"
    EXCHANGE = "exchange"
    DONE = "done"
    FAILED = "failed"


class Login:
    """The login of one connection, and what came of it."""

    __slots__ = (
        "_authenticator",
        "_began_at",
        "_bytes_follow",
        "_caller",
        "_exchange",
        "_loop",
        "_mechanism",
        "_trouble",
        "ends_at",
        "open_until",
        "phase",
    )

    def __init__(self, authenticator: "Authenticator", caller: ServerConnection) -> None:
        self._authenticator = authenticator
        self._caller = caller
        self._loop = asyncio.get_running_loop()
        self._mechanism = ""
        self._exchange: Exchange | None = None
        self._bytes_follow = False
        self._began_at = -NEVER
        self._trouble: str | None = None
        self.phase = Phase.HANDSHAKE
        self.ends_at = NEVER
        """When the client must have logged in again, by the event loop's clock."""
        self.open_until = -NEVER
        """Until when its requests are answered; in the past while it logs in."""

    @property
    def is_again(self) -> bool:
        """Whether the client has logged in before."""
        return self._began_at >= 0

    def take(self, frame: Frame) -> Reply:
        """Answer a frame of a client that has not logged in, or wants to do so again."""
        if self.phase is Phase.FAILED:
            return None
        if self.phase is Phase.EXCHANGE and self._bytes_follow:
            return self._take_bytes(bytes(frame))
        prefix = read_request_prefix(frame)
        key = prefix.api_key
        if self.phase is Phase.EXCHANGE and key != SASL_AUTHENTICATE:
            return self._refuse_request(key, prefix.api_version, prefix.correlation_id)
        if self.phase is Phase.HANDSHAKE and key != SASL_HANDSHAKE and (key != API_VERSIONS or self.is_again):
            return self._refuse_stranger(key)
        return self._authenticator.handler(self._caller, frame)

    # What the handlers of SaslHandshake and SaslAuthenticate call.

    def handshake(
        self, mechanism: str, *, bytes_follow: bool
    ) -> "SaslHandshakeResponse | Awaitable[SaslHandshakeResponse]":
        """Begin a login. `bytes_follow` is for those who go on without SaslAuthenticate."""
        offered = self._authenticator.mechanisms
        response = SaslHandshakeResponse(mechanisms=list(offered))
        if self.phase is Phase.DONE:
            if self._loop.time() - self._began_at < LEAST_SESSION_S:
                response.error_code = ErrorCode.ILLEGAL_SASL_STATE
                return response
            self.phase = Phase.HANDSHAKE
            self.open_until = -NEVER
        if mechanism not in offered:
            response.error_code = ErrorCode.UNSUPPORTED_SASL_MECHANISM
            return self._refuse_mechanism(mechanism, response)
        if self.is_again and mechanism != self._mechanism:
            self._trouble = f"it logs in with {mechanism} after it did so with {self._mechanism}"
        else:
            self._mechanism = mechanism
        self._exchange = offered[mechanism](self._caller.host)
        self._bytes_follow = bytes_follow
        self.phase = Phase.EXCHANGE
        return response

    async def authenticate(self, token: bytes) -> SaslAuthenticateResponse:
        """Take a login one step further."""
        arrived_at = self._loop.time()
        try:
            answer = await self._step(token, arrived_at)
        except SaslError as error:
            # The same for whatever was wrong: a stranger shall not learn from it who is a user here.
            response = SaslAuthenticateResponse(
                error_code=ErrorCode.SASL_AUTHENTICATION_FAILED,
                error_message=f"Authentication failed: invalid credentials for SASL mechanism {self._mechanism}",
            )
            await self._fail(str(error), arrived_at)
            return response
        lifetime_ms = self._finish() if self._exchange is None else 0
        return SaslAuthenticateResponse(auth_bytes=answer, error_message=None, session_lifetime_ms=lifetime_ms)

    # How it goes on.

    async def _take_bytes(self, token: bytes) -> list[Any] | None:
        arrived_at = self._loop.time()
        try:
            answer = await self._step(token, arrived_at)
        except SaslError as error:
            await self._fail(str(error), arrived_at)
            return None
        if self._exchange is None:
            self._finish()
        return [len(answer).to_bytes(4, "big") + answer]

    async def _step(self, token: bytes, arrived_at: float) -> bytes:
        exchange, task = self._exchange, asyncio.current_task()
        assert exchange is not None
        assert task is not None
        # Whoever leaves gives up his place in the line: passwords are checked one at a time.
        self._caller.interrupt = task.cancel
        if self._trouble is not None:
            raise SaslError(self._trouble)
        try:
            answer = await exchange.answer(token)
        except FullLineError as error:
            await self._take_time(arrived_at)
            # No answer: clients come again after a disconnect, and give up for good after a refusal.
            raise ProtocolError(f"its login was not looked at, since {error}; it may come again") from None
        if exchange.refused:
            # It is over but for the client's last word, which it may keep to itself.
            self._tell(exchange.refused)
            await self._take_time(arrived_at)
        if exchange.complete:
            principal = f"User:{exchange.user}"
            if self.is_again and principal != self._caller.principal:
                raise SaslError(f"it logs in as {principal} after it did so as {self._caller.principal}")
            self._caller.principal = principal
            self._set_end(exchange)
            self._exchange = None
        return answer

    def _set_end(self, exchange: Exchange) -> None:
        now_ms = self._authenticator.clock.now_ms()
        lifetimes_ms = [self._authenticator.lifetime_ms] if self._authenticator.lifetime_ms else []
        if exchange.expires_at_ms is not None:
            lifetimes_ms.append(max(0, exchange.expires_at_ms - now_ms))
        self.ends_at = self._loop.time() + min(lifetimes_ms) / 1000 if lifetimes_ms else NEVER

    def _finish(self) -> int:
        """Let the client in; how long its session lasts, or 0 if it has no end."""
        self.phase = Phase.DONE
        self.open_until = self.ends_at
        self._began_at = self._loop.time()
        self._caller.trust()
        caller = self._caller
        log.debug("%s logged in from %s with %s", caller.principal, caller.peer, self._mechanism, extra=caller.identity)
        return 0 if self.ends_at == NEVER else max(0, round((self.ends_at - self._began_at) * 1000))

    async def _fail(self, reason: str, arrived_at: float) -> None:
        """End it: return when it is time for the client's answer, after which the connection closes.

        The while counts from when the request came, so that how long the check took does not show.
        """
        if self._exchange is None or not self._exchange.refused:
            self._tell(reason)
        self.phase = Phase.FAILED
        self._exchange = None
        self._caller.finish()
        await self._take_time(arrived_at)

    def _tell(self, reason: str) -> None:
        self._authenticator.events["authentication_failed"] += 1
        who = f"{self._caller.peer} {self._claim()}with {self._mechanism or 'no mechanism'}"
        self._authenticator.failures.tell("a login from %s failed: %s", who, reason, extra=self._caller.identity)

    async def _take_time(self, arrived_at: float) -> None:
        await asyncio.sleep(arrived_at + self._authenticator.delay_s - self._loop.time())

    def _claim(self) -> str:
        """Who the client claims to be, for the log. Only of those who are users: others may have typed a password."""
        user = "" if self._exchange is None else self._exchange.user
        if not user:
            return ""
        is_known = user in self._authenticator.given_users or self._authenticator.users.credentials(user)
        return f"as {user!r} " if is_known else "as nobody who is known "

    async def _refuse_mechanism(self, mechanism: str, response: SaslHandshakeResponse) -> SaslHandshakeResponse:
        await self._fail(f"it asks for mechanism {mechanism[:50]!r}, which is not on offer", self._loop.time())
        return response

    async def _refuse_stranger(self, key: int) -> None:
        """Close without an answer: there may be none that the client understands."""
        name = api.api_name(key) if key in api.MODULES else f"API key {key}"
        reason = f"{name} before a login; the client may have another security protocol than this listener"
        await self._fail(reason, self._loop.time())

    async def _refuse_request(self, key: int, version: int, correlation_id: int) -> list[Any] | None:
        """Say that something else than a login is not possible now, where the API has words for that."""
        await self._fail(f"it sends API key {key} in the middle of a login", self._loop.time())
        if key not in SERVED or version not in served_versions(key):
            return None
        response = api.response(key)()
        if not hasattr(response, "error_code"):
            return None
        without = encode_response(response, version, correlation_id=correlation_id)
        response.error_code = ErrorCode.ILLEGAL_SASL_STATE
        answer = encode_response(response, version, correlation_id=correlation_id)
        # In versions that have no place for it, it would look as if there were nothing.
        return None if answer == without else answer
