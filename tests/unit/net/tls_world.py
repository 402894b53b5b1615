"""Both ends of TLS: an authority, a broker's listener, and clients of every kind."""

import ssl
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from ottla.net import Connection, Listener, Security, ServerConnection
from ottla.net.doorway import ListenerTls
from ottla.net.pem import Pem
from ottla.net.principals import PrincipalRules
from ottla.net.tls import Reloading, ServerSettings, server_context
from ottla.ports import SystemClock
from ottla.wire.api.api_versions import ApiVersionsResponse
from ottla.wire.frame import encode_response, read_request_prefix
from tests.certificates import Authority, Identity, written
from tests.unit.net.peers import listening


class ShiftedClock(SystemClock):
    """The time as a listener sees it."""

    ahead_ms = 0

    def now_ms(self) -> int:
        return super().now_ms() + self.ahead_ms


class TlsWorld:
    """An authority, with files in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clock = ShiftedClock()
        self.authority = Authority()
        self.broker = self.authority.issue("broker")
        self.ca = written(folder, "ca.pem", self.authority.pem)
        self.broker_store = written(folder, "broker.pem", self.broker.store)

    def file(self, name: str, data: bytes) -> str:
        return written(self.folder, name, data)

    def settings(self, **changes: Any) -> ServerSettings:
        found: dict[str, Any] = {"certificate": Pem("ssl.keystore.location", self.broker_store)}
        if changes.get("client_auth", "none") != "none":
            found["authorities"] = Pem("ssl.truststore.location", self.ca)
        return ServerSettings(**(found | changes))

    async def tls(self, settings: ServerSettings, rules: str = "DEFAULT") -> ListenerTls:
        reloading = Reloading(lambda: server_context(settings), settings.sources)
        await reloading.refresh()
        return ListenerTls(reloading, PrincipalRules(rules), self.clock)

    @asynccontextmanager
    async def listening(self, handler: Any, *, rules: str = "DEFAULT", **changes: Any) -> AsyncIterator[Listener]:
        options = {name: changes.pop(name) for name in ("admission", "idle_ms") if name in changes}
        tls = await self.tls(self.settings(**changes), rules)
        async with listening(handler, tls=tls, **options) as listener:
            yield listener

    def security(self, identity: Identity | None = None, **changes: Any) -> Security:
        options: dict[str, Any] = {"security_protocol": "SSL", "ssl_cafile": self.ca}
        if identity is not None:
            options |= {"ssl_certfile": identity.chain.decode(), "ssl_keyfile": identity.key.decode()}
        return Security(**(options | changes))

    async def connect(self, listener: Listener, identity: Identity | None = None, **changes: Any) -> Connection:
        return await Connection.open(*listener.address, security=self.security(identity, **changes), timeout_ms=5_000)


def broker(connection: ServerConnection, frame: bytes | bytearray) -> Any:
    """Answers ApiVersions, which is all that a connection asks when it opens."""
    prefix = read_request_prefix(frame)
    return encode_response(ApiVersionsResponse(), prefix.api_version, correlation_id=prefix.correlation_id)


def client_context(world: TlsWorld, **changes: Any) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=world.ca)
    for name, value in changes.items():
        setattr(context, name, value)
    return context


async def refused(opening: Awaitable[Connection]) -> BaseException:
    with pytest.raises(Exception) as caught:
        await (await opening).close()
    return caught.value
