"""What a handler is given, and what it gives back."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple, Protocol

from ottla.metrics.clients import ClientCounters


class Caller(Protocol):
    """The connection that a request came on."""

    peer: str
    host: str
    principal: str
    context: Any
    client: ClientCounters | None
    interrupt: Callable[[], object] | None

    @property
    def identity(self) -> Mapping[str, str | None]:
        """Who the client is, as structured logs have it."""

    @property
    def listener(self) -> str:
        """The name of the listener that it came in through."""

    @property
    def security_protocol(self) -> str:
        """What that listener asks of its clients: PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL."""


class Client(Caller, Protocol):
    """The same as whoever hands requests out sees it."""

    stranger_since: float | None
    client_id: str | None
    active_at: float
    """When the request arrived, or its turn came if that was later, by the broker's clock."""

    def mute(self, seconds: float) -> None:
        """Take nothing more of this client for so long."""


class Request(NamedTuple):
    """A decoded request, and who sent it."""

    api_key: int
    version: int
    client_id: str | None
    caller: Caller
    body: Any


Answer = Any | None | Awaitable[Any | None]
"""A response, None where the protocol has no reply, or an awaitable of either."""
