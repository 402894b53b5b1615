"""A client's login: over an open connection, before anything else is asked, and again before the session ends."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from ottla.cluster.credential import ScramMechanism
from ottla.net.sasl.bearer import BearerClient
from ottla.net.sasl.errors import SaslError, TokenError
from ottla.net.sasl.plain import PlainClient
from ottla.net.sasl.scram import NONCE_BYTES, nonce_of
from ottla.net.sasl.scram_client import ScramClient
from ottla.net.security import Security
from ottla.ports import Chance
from ottla.wire.api.sasl_authenticate import SaslAuthenticateRequest
from ottla.wire.api.sasl_handshake import SaslHandshakeRequest
from ottla.wire.errors import ErrorCode, KafkaError

Ask = Callable[[object], Awaitable[Any]]
"""Sends a request to the broker and gives its response."""

MOST_STEPS = 10
"""Messages of a login. No mechanism has so many, whatever a broker says."""


class AuthenticationFailedError(KafkaError):
    """The broker does not take this client for who it says it is, or the broker is not who it should be.

    >>> print(AuthenticationFailedError("localhost:9092 refuses user 'alice'; check the password"))
    SASL_AUTHENTICATION_FAILED: localhost:9092 refuses user 'alice'; check the password
    """

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.SASL_AUTHENTICATION_FAILED, message)


class UnsupportedSaslMechanismError(KafkaError):
    """The broker offers other mechanisms.

    >>> UnsupportedSaslMechanismError("localhost:9092 offers PLAIN").code.name
    'UNSUPPORTED_SASL_MECHANISM'
    """

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.UNSUPPORTED_SASL_MECHANISM, message)


class IllegalSaslStateError(KafkaError):
    """The broker expects no login here.

    >>> IllegalSaslStateError("localhost:9092 asks for no login").code.name
    'ILLEGAL_SASL_STATE'
    """

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.ILLEGAL_SASL_STATE, message)


class ClientMechanism(Protocol):
    """A client's side of a mechanism."""

    def first(self) -> bytes:
        """The message to begin with."""
        ...

    def answer(self, challenge: bytes) -> bytes | None:
        """What to say next, or None where all is said and the broker has shown what it must. It may take a while."""
        ...


async def log_in(ask: Ask, broker: str, security: Security, chance: Chance) -> int:
    """Log in to a broker. How long the session lasts, in milliseconds; 0 if it has no end.

    What fails is told with the broker and the user, and never with the password or the token.
    """
    mechanism = security.sasl_mechanism
    assert mechanism is not None
    response = await ask(SaslHandshakeRequest(mechanism=mechanism))
    if response.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
        offered = ", ".join(response.mechanisms) or "none"
        raise UnsupportedSaslMechanismError(
            f"{broker} does not offer {mechanism}; set sasl_mechanism to what it does offer: {offered}"
        )
    if response.error_code == ErrorCode.ILLEGAL_SASL_STATE:
        other = "SSL" if security.uses_tls else "PLAINTEXT"
        raise IllegalSaslStateError(
            f"{broker} asks for no login at this address; set security_protocol to {other!r}, "
            "or give the address of a listener with SASL"
        )
    if response.error_code:
        raise KafkaError(ErrorCode(response.error_code), f"{broker} does not begin a login with {mechanism}")
    try:
        return await _exchange(ask, broker, security, await _begun(security, mechanism, chance))
    except SaslError as error:
        message = f"the login to {broker} {_as_whom(security)} failed: {error}"
        raise AuthenticationFailedError(message) from error.__cause__


async def _exchange(ask: Ask, broker: str, security: Security, client: ClientMechanism) -> int:
    message = client.first()
    for _ in range(MOST_STEPS):
        response = await ask(SaslAuthenticateRequest(auth_bytes=message))
        if response.error_code:
            said = f": {response.error_message}" if response.error_message else ""
            advice = "the token" if security.sasl_mechanism == "OAUTHBEARER" else "user name, password and mechanism"
            raise AuthenticationFailedError(f"{broker} refuses a login {_as_whom(security)}{said}; check {advice}")
        # A password is hashed thousands of times here.
        answer = await asyncio.to_thread(client.answer, bytes(response.auth_bytes))
        if answer is None:
            return int(response.session_lifetime_ms)
        message = answer
    raise SaslError("the broker does not come to an end")


def _as_whom(security: Security) -> str:
    user = f"as {security.sasl_plain_username!r} " if security.sasl_plain_username else ""
    return f"{user}with {security.sasl_mechanism}"


async def _begun(security: Security, mechanism: str, chance: Chance) -> ClientMechanism:
    if mechanism == "OAUTHBEARER":
        return BearerClient(*await _token(security.sasl_oauth_token_provider))
    user, password = security.sasl_plain_username or "", security.sasl_plain_password or ""
    scram = ScramMechanism.named(mechanism)
    if scram is None:
        return PlainClient(user, password)
    return ScramClient(scram, user, password, nonce_of(chance.secret(NONCE_BYTES)))


async def _token(provider: Any) -> tuple[str, dict[str, str]]:
    """A token, and extensions if there are any, from a function or from such an object as kafka-python and aiokafka
    know."""
    try:
        token = await _called(getattr(provider, "token", provider))
        extensions = await _called(provider.extensions) if hasattr(provider, "extensions") else {}
    except TokenError:
        raise
    except Exception as error:
        # Not its message, which may hold what it used.
        raise SaslError(f"sasl_oauth_token_provider failed with {type(error).__name__}") from error
    if not isinstance(token, str):
        raise SaslError(f"sasl_oauth_token_provider gave no token but {type(token).__name__}; it must give a str")
    if not token:
        raise SaslError("sasl_oauth_token_provider gave an empty token")
    return token, dict(extensions or {})


async def _called(function: Callable[[], Any]) -> Any:
    """What a function gives, which may be a coroutine function, or one that blocks."""
    if inspect.iscoroutinefunction(function):
        return await function()
    found = await asyncio.to_thread(function)
    return await found if inspect.isawaitable(found) else found
