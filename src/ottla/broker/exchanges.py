"""A broker's side of each mechanism, with what it takes to check what a client says."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol

from ottla.broker.users import Passwords, Users
from ottla.cluster.credential import ScramCredential, ScramMechanism
from ottla.net.sasl.bearer import REFUSAL, parse_bearer
from ottla.net.sasl.errors import SaslError, WrongPasswordError
from ottla.net.sasl.plain import parse_plain
from ottla.net.sasl.scram_server import ScramServer

if TYPE_CHECKING:
    from ottla.broker.tokens import TokenCheck

PLAIN = "PLAIN"
OAUTHBEARER = "OAUTHBEARER"


class Exchange(Protocol):
    """One login."""

    @property
    def user(self) -> str:
        """Who the client claims to be; empty if it has not said. Who it is once the exchange is complete."""
        ...

    @property
    def complete(self) -> bool:
        """Whether the client has shown who it is."""
        ...

    @property
    def refused(self) -> str:
        """Why the client is refused, where it is told before the end; empty if it is not."""
        ...

    @property
    def expires_at_ms(self) -> int | None:
        """When what the client has shown is good no more; None if always."""
        ...

    async def answer(self, token: bytes) -> bytes:
        """The reply to a client's message; SaslError if the client is not who it says, or makes no sense.

        FullLineError if it was not looked at, since too many wait.
        """
        ...


MakeExchange = Callable[[str], Exchange]
"""Begins a login, of a client from some address."""


class PlainExchange:
    """A name and a password."""

    refused = ""

    def __init__(self, passwords: Passwords, given: Mapping[str, str], host: str) -> None:
        self._passwords = passwords
        self._given = given
        self._host = host
        self.user = ""
        self.complete = False
        self.expires_at_ms: int | None = None

    async def answer(self, token: bytes) -> bytes:
        """Nothing, if the password is right."""
        login = parse_plain(token)
        self.user = login.user
        if not await self._passwords.check(login.user, login.password, self._given, self._host):
            raise SaslError("the password is wrong")
        self.complete = True
        return b""


class ScramExchange:
    """A proof of a password."""

    refused = ""

    def __init__(self, mechanism: ScramMechanism, users: Users, given: Mapping[str, str], nonce: str) -> None:
        self._mechanism = mechanism
        self._users = users
        self._given = given
        self._server = ScramServer(mechanism, self._find, nonce)
        self._found: ScramCredential | None = None
        self.expires_at_ms: int | None = None

    def _find(self, user: str) -> ScramCredential:
        self._found = self._users.credential(self._mechanism, user)
        return self._found

    @property
    def user(self) -> str:
        """Who the client claims to be."""
        return self._server.user

    @property
    def complete(self) -> bool:
        """Whether it has shown that."""
        return self._server.complete

    async def answer(self, token: bytes) -> bytes:
        """The broker's part of the proof."""
        try:
            answer = self._server.answer(token)
        except WrongPasswordError:
            raise SaslError(self._why_wrong()) from None
        if self.complete and self._users.credential(self._mechanism, self.user) != self._found:
            raise SaslError("the user was deleted, or got another password, in the middle of the login")
        return answer

    def _why_wrong(self) -> str:
        """What there is to say of a wrong password, to those who read the log."""
        kept = self._users.credentials(self.user)
        if self._mechanism in kept:
            return "the password is wrong"
        others = [*([PLAIN] if self.user in self._given else []), *(one.text for one in kept)]
        if not others:
            return "there is no such user"
        return f"the user has no password for {self._mechanism.text}, but for {' and '.join(others)}"


class BearerExchange:
    """A token that somebody else has signed."""

    def __init__(self, tokens: "TokenCheck", host: str) -> None:
        self._tokens = tokens
        self._host = host
        self.refused = ""
        self.user = ""
        self.complete = False
        self.expires_at_ms: int | None = None

    async def answer(self, token: bytes) -> bytes:
        """Nothing, if the token is good. If not, the client is told, and has one more word before it is over."""
        if self.refused:
            raise SaslError(self.refused)
        login = parse_bearer(token)
        try:
            bearer = await self._tokens.check(login.token, self._host)
        except SaslError as error:
            self.refused = str(error)
            return REFUSAL
        if login.acts_as not in ("", bearer.user):
            raise SaslError("the client asks to act as another user than its token is for")
        self.user, self.expires_at_ms = bearer.user, bearer.expires_at_ms
        self.complete = True
        return b""
