"""Who may send what before it is known who they are: the gate of listeners that ask for a login.

A login is a SaslHandshake, which names the mechanism, and then SaslAuthenticate requests; after a SaslHandshake of
version 0, bare messages in frames of their own. Before it only ApiVersions is answered. A client may log in again on
the same connection, as the same user in the same way, and has to before its session ends.
"""

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ottla.broker.exchanges import OAUTHBEARER, PLAIN, BearerExchange, MakeExchange, PlainExchange, ScramExchange
from ottla.broker.login import SASL_HANDSHAKE, Login, Phase
from ottla.broker.users import Passwords
from ottla.cluster.credential import ScramMechanism
from ottla.config.jaas import parse_jaas
from ottla.net.sasl.scram import NONCE_BYTES, nonce_of
from ottla.net.serving import Frame, Handler, Reply, ServerConnection
from ottla.net.telling import Telling
from ottla.wire.errors import ErrorCode, KafkaError, ProtocolError

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.tokens import Tokens

log = logging.getLogger("ottla.broker")

_HANDSHAKE_KEY = SASL_HANDSHAKE.to_bytes(2, "big")


class Gates:
    """The gates of all listeners that ask for a login, and what they share."""

    def __init__(self, broker: "Broker", handler: Handler) -> None:
        self._broker = broker
        self._handler = handler
        self._passwords = Passwords(broker.users, broker.chance)
        self._tokens: list[Tokens] = []

    def handler(self, listener: str) -> Handler:
        """What answers the frames of a listener: after a login, what answers them elsewhere."""
        tokens = self._check_of_tokens(listener)
        gate = Authenticator(self._broker, listener, self._handler, passwords=self._passwords, tokens=tokens)
        return gate.handle

    def _check_of_tokens(self, listener: str) -> "Tokens | None":
        if OAUTHBEARER not in enabled_mechanisms(self._broker, listener):
            return None
        # Here, for those who want it: HTTP takes a while to load.
        from ottla.broker.tokens import Tokens

        tokens = Tokens(self._broker.config, listener)
        self._tokens.append(tokens)
        tokens.begin()
        return tokens

    def most_bytes(self, listener: str) -> int:
        """The largest request of those who have not logged in."""
        most = self._broker.config.of_listener(listener, "sasl.server.max.receive.size")
        assert isinstance(most, int)
        return most

    def close(self) -> None:
        """Let go of threads."""
        self._passwords.close()
        for tokens in self._tokens:
            tokens.close()


def enabled_mechanisms(broker: "Broker", listener: str) -> tuple[str, ...]:
    """The mechanisms that a listener offers."""
    enabled = broker.config.of_listener(listener, "sasl.enabled.mechanisms")
    assert isinstance(enabled, tuple)
    return enabled


class Authenticator:
    """The gate of one listener: lets frames through to `handler` once it is known who sends them."""

    def __init__(
        self, broker: "Broker", listener: str, handler: Handler, *, passwords: Passwords, tokens: "Tokens | None"
    ) -> None:
        config = broker.config
        self.handler = handler
        self.delay_s = config.connection_failed_authentication_delay_ms / 1000
        self.clock = broker.clock
        self.failures = Telling(log, "%d more logins failed")
        self.events = broker.metrics.events
        self.users = broker.users
        self.given_users = _given_users(broker, listener)
        """Users and passwords that the settings give, for PLAIN."""
        self.mechanisms: dict[str, MakeExchange] = {}
        """How to begin a login, by the names of the mechanisms on offer."""
        lifetime_ms = config.of_listener(listener, "connections.max.reauth.ms")
        assert isinstance(lifetime_ms, int)
        self.lifetime_ms = lifetime_ms
        for name in enabled_mechanisms(broker, listener):
            if name in (PLAIN, OAUTHBEARER) and config.listener_protocol(listener) == "SASL_PLAINTEXT":
                log.warning("listener %s takes %s, which shows secrets to all who listen; use SASL_SSL", listener, name)
            self.mechanisms[name] = _maker(broker, name, passwords, self.given_users, tokens)
        if not any(self._has_users(name) for name in self.mechanisms):
            # A password for SCRAM does for PLAIN too.
            mechanism = next(filter(ScramMechanism.named, self.mechanisms), ScramMechanism.SCRAM_SHA_256.text)
            log.warning(
                "nobody can log in at listener %s, since no user has a password for %s; make one at another listener, "
                "or stop the broker and run `ottla user add NAME --mechanism %s --data %s`",
                *(listener, " or ".join(self.mechanisms), mechanism, config.data_folder),
            )

    def _has_users(self, mechanism: str) -> bool:
        """Whether there is somebody who can log in this way; whoever signs tokens knows others."""
        scram = ScramMechanism.named(mechanism)
        if scram is not None:
            return any(scram in self.users.credentials(name) for name in self.users.names)
        return mechanism == OAUTHBEARER or bool(self.given_users or self.users.names)

    def handle(self, caller: ServerConnection, frame: Frame) -> Reply:
        """Answer a frame, or have it answered by the handler if its sender may send it."""
        login: Login | None = caller.context
        if login is None:
            login = caller.context = Login(self, caller)
        # Each request of those who have logged in comes this way.
        elif caller.active_at < login.open_until and frame[:2] != _HANDSHAKE_KEY:
            return self.handler(caller, frame)
        elif login.phase is Phase.DONE and frame[:2] != _HANDSHAKE_KEY:
            raise ProtocolError(f"the session of {caller.principal} is over, and it did not log in again")
        return login.take(frame)


def _maker(
    broker: "Broker", name: str, passwords: Passwords, given: Mapping[str, str], tokens: "Tokens | None"
) -> MakeExchange:
    scram = ScramMechanism.named(name)
    if scram is not None:
        return lambda _: ScramExchange(scram, broker.users, given, nonce_of(broker.chance.secret(NONCE_BYTES)))
    if name == OAUTHBEARER:
        assert tokens is not None
        return lambda host: BearerExchange(tokens, host)
    assert name == PLAIN, f"{name} is no mechanism that configs allow"
    return lambda host: PlainExchange(passwords, given, host)


def _given_users(broker: "Broker", listener: str) -> dict[str, str]:
    text = broker.config.of_listener(listener, "sasl.jaas.config", PLAIN)
    if text is None:
        return {}
    try:
        return parse_jaas(str(text)).users
    except ValueError as error:
        name = f"listener.name.{listener.lower()}.plain.sasl.jaas.config"
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"{name} cannot be read: {error}") from None
