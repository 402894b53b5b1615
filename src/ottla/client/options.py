"""The options that all clients share: how to reach a cluster, and how patient to be."""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any

from ottla.client.checks import check_number, check_numbers, check_text, shown
from ottla.net.security import PLAINTEXT, Security
from ottla.record._kernel_types import LARGEST_INT32

DEFAULT_PORT = 9092
BootstrapServers = str | Iterable[str]
"""Addresses as `host:port`, in a list or with commas between."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientOptions:
    """How to reach a cluster, and how patient to be. The names are those of other Python clients.

    >>> ClientOptions(bootstrap_servers=["broker-1:9092", "broker-2"]).addresses
    [('broker-1', 9092), ('broker-2', 9092)]
    >>> ClientOptions(request_timeout_ms=0)
    Traceback (most recent call last):
    ValueError: request_timeout_ms is 0; it must be at least 1
    """

    bootstrap_servers: BootstrapServers = "localhost:9092"
    client_id: str = "ottla"
    """What the broker's logs and quotas call this client."""
    request_timeout_ms: int = 30_000
    """How long a request may take before its connection is given up."""
    retry_backoff_ms: int = 100
    """How long to wait before trying again, and then twice as long each time."""
    retry_backoff_max_ms: int = 1_000
    reconnect_backoff_ms: int = 50
    """How long to leave a broker alone after a connection failed, and then twice as long each time."""
    reconnect_backoff_max_ms: int = 1_000
    metadata_max_age_ms: int = 300_000
    """When to look again who leads what, though no error said that it had changed."""
    connections_max_idle_ms: int = 540_000
    """When to close a connection that nobody uses; brokers do it after ten minutes."""
    security: Security = PLAINTEXT
    """How to be sure of the brokers, and how to prove who one is."""

    def __post_init__(self) -> None:
        check_numbers(self, _LEAST)
        # Brokers are told how long they may take.
        check_number("request_timeout_ms", self.request_timeout_ms, most=LARGEST_INT32)
        check_text("client_id", self.client_id)
        # Read once here, so that a wrong address is told when the client is made.
        object.__setattr__(self, "bootstrap_servers", tuple(_split(self.bootstrap_servers)))
        assert self.addresses

    def arguments(self) -> dict[str, Any]:
        """The keyword arguments of a client that has these options.

        >>> ClientOptions(client_id="billing").arguments()["security_protocol"]
        'PLAINTEXT'
        """
        own = {one.name: getattr(self, one.name) for one in fields(self)}
        security: Security = own.pop("security")
        return own | {one.name: getattr(security, one.name) for one in fields(security)}

    @property
    def addresses(self) -> list[tuple[str, int]]:
        """Hosts and ports to begin with."""
        return parse_bootstrap(self.bootstrap_servers)


_LEAST = {
    "request_timeout_ms": 1,
    "retry_backoff_ms": 0,
    "retry_backoff_max_ms": 0,
    "reconnect_backoff_ms": 0,
    "reconnect_backoff_max_ms": 0,
    "metadata_max_age_ms": 1,
    "connections_max_idle_ms": 1,
}


def _split(servers: Any) -> list[str]:
    if isinstance(servers, bytes) or not isinstance(servers, Iterable):
        raise TypeError(f"bootstrap_servers is {shown(servers)}; give 'HOST:PORT', or a list of such")
    parts = servers.split(",") if isinstance(servers, str) else list(servers)
    for part in parts:
        if not isinstance(part, str):
            raise TypeError(f"bootstrap_servers has {shown(part)}; write each address as 'HOST:PORT'")
    return [part.strip() for part in parts]


def parse_bootstrap(servers: BootstrapServers) -> list[tuple[str, int]]:
    """Read `host:port,host:port`; the port is 9092 if it is left out.

    >>> parse_bootstrap("localhost, [::1]:9093,broker-2:9094")
    [('localhost', 9092), ('::1', 9093), ('broker-2', 9094)]
    """
    found: list[tuple[str, int]] = []
    for server in _split(servers):
        host, colon, port = server.rpartition(":")
        if not colon or port.endswith("]"):
            host, port = server, str(DEFAULT_PORT)
        if not host or "/" in host or not port.isdecimal() or not 0 < int(port) < 65536:
            raise ValueError(f"{server!r} is no address; write HOST:PORT, several with commas between")
        found.append((host.removeprefix("[").removesuffix("]"), int(port)))
    if not found:
        raise ValueError("bootstrap_servers is empty; give at least one HOST:PORT")
    return found
