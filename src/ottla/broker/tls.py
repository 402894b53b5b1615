"""TLS of the broker's listeners: from configs to contexts, which follow the configs and the files behind them."""

import asyncio
import logging
from collections.abc import Callable
from typing import cast

from ottla.config.broker import BrokerConfig
from ottla.config.listener import own_name
from ottla.net.doorway import ListenerTls
from ottla.net.pem import Pem, TlsSettingsError
from ottla.net.principals import PrincipalRules
from ottla.net.tls import Reloading, ServerSettings, server_context
from ottla.ports import Clock
from ottla.wire.errors import KafkaError

CLIENT_AUTH = "ssl.client.auth"

log = logging.getLogger("ottla.broker")


class ListenersTls:
    """The TLS of all listeners of a broker that have it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._listeners: dict[str, ListenerTls] = {}
        self._settings: dict[str, ServerSettings] = {}
        self._ignored: dict[str, str | None] = {}
        """By listener: what ssl.client.auth is, where it does not count."""
        self._watching: asyncio.Task[None] | None = None

    async def add(self, listener: str, config: BrokerConfig) -> ListenerTls:
        """The TLS of a listener; KafkaError if its configs will not do."""
        settings = server_settings(config, listener)
        context = await _context(settings)
        # On a listener that asks for logins, it is they that say who a client is.
        names_users = config.listener_protocol(listener) == "SSL"
        made = ListenerTls(context, _rules(config, listener), self._clock, names_users=names_users)
        self._listeners[listener], self._settings[listener] = made, settings
        self._tell_ignored(listener, config)
        return made

    async def prepare(self, config: BrokerConfig) -> Callable[[], None]:
        """Try other configs; KafkaError if they will not do. What is returned puts them into effect.

        A listener whose configs stay the same has its files looked at, as they would be soon anyway.
        """
        rules = {name: _rules(config, name) for name in self._listeners}
        contexts: dict[str, tuple[Reloading, ServerSettings]] = {}
        for name in self._listeners:
            settings = server_settings(config, name)
            if settings == self._settings[name]:
                await self._look(name)
            else:
                contexts[name] = await _context(settings), settings

        def adopt() -> None:
            for name, listener in self._listeners.items():
                self._tell_ignored(name, config)
                listener.rules = rules[name]
                if name in contexts:
                    listener.context, self._settings[name] = contexts[name]
                    log.info("listener %s has new settings of TLS; new connections get them", name)

        return adopt

    def _tell_ignored(self, listener: str, config: BrokerConfig) -> None:
        ignored = None if _takes_client_auth(config, listener) else config.ssl_client_auth
        if ignored not in (self._ignored.get(listener), None, "none"):
            log.warning(
                "ssl.client.auth = %s does not count for listener %s, whose clients log in; set %s if they are to show "
                "certificates as well",
                *(ignored, listener, own_name(listener, CLIENT_AUTH)),
            )
        self._ignored[listener] = ignored

    def watch(self, interval_ms: int) -> None:
        """Look for changed files from now on, if there are any to look for."""
        if self._listeners:
            self._watching = asyncio.get_running_loop().create_task(self._watch(interval_ms / 1000))

    async def close(self) -> None:
        """Look no more."""
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)
            self._watching = None

    async def _watch(self, interval_s: float) -> None:
        while True:
            await asyncio.sleep(interval_s)
            for name in self._listeners:
                await self._look(name)

    async def _look(self, name: str) -> None:
        """Take changed files of a listener into use; if they are broken, the old certificate stays."""
        try:
            if await self._listeners[name].context.refresh():
                log.info("the files of listener %s have changed; new connections get the new certificate", name)
        except (KafkaError, OSError) as error:
            log.error("the changed files of listener %s are not used, those before them are: %s", name, error)


def server_settings(config: BrokerConfig, listener: str) -> ServerSettings:
    """What a listener shows, whom it trusts and how careful it is."""

    def text(name: str) -> str | None:
        return cast("str | None", config.of_listener(listener, name))

    def named(name: str) -> str:
        own = own_name(listener, name)
        return own if config.is_set(own) else name

    def pem(*names: str) -> Pem | None:
        return next((Pem(named(name), found) for name in names if (found := text(name))), None)

    certificate = pem("ssl.keystore.certificate.chain", "ssl.keystore.location")
    if certificate is None:
        complaint = f"is not set, but listener {listener} has TLS; name the PEM file with its certificate and key"
        raise TlsSettingsError("ssl.keystore.location", complaint)
    return ServerSettings(
        certificate=certificate,
        key=pem("ssl.keystore.key"),
        password=text("ssl.key.password"),
        authorities=pem("ssl.truststore.certificates", "ssl.truststore.location"),
        revoked=pem("ssl.crl.location"),
        client_auth=(text(CLIENT_AUTH) or "none") if _takes_client_auth(config, listener) else "none",
        protocols=cast("tuple[str, ...]", config.of_listener(listener, "ssl.enabled.protocols")),
        ciphers=cast("tuple[str, ...]", config.of_listener(listener, "ssl.cipher.suites")),
    )


def _takes_client_auth(config: BrokerConfig, listener: str) -> bool:
    """Whether ssl.client.auth counts. Where clients log in it does, as in Kafka, only if it is set for that listener:
    set for all, it is about those that have nothing but certificates to know a client by."""
    return config.listener_protocol(listener) == "SSL" or config.is_set(own_name(listener, CLIENT_AUTH))


async def _context(settings: ServerSettings) -> Reloading:
    made = Reloading(lambda: server_context(settings), settings.sources)
    await made.refresh()
    return made


def _rules(config: BrokerConfig, listener: str) -> PrincipalRules:
    return PrincipalRules(cast(str, config.of_listener(listener, "ssl.principal.mapping.rules")))
