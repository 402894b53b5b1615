"""Addresses to listen on, as the `listeners` config writes them."""

from collections.abc import Container, Iterable
from dataclasses import dataclass

from ottla.config.parse import Value, refuse

SECURITY_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")

_PREFIX = "listener.name."
_OVERRIDABLE = ("ssl.", "sasl.", "connections.max.reauth.ms")
"""Configs, and beginnings of their names, that a listener may have values of its own for."""


@dataclass(frozen=True, slots=True)
class ListenerAddress:
    """A listener's name, host and port. An empty host stands for every interface, port 0 for a free port."""

    name: str
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.name}://{host}:{self.port}"


def parse_listener(config: str, text: str) -> ListenerAddress:
    """Read `NAME://HOST:PORT`, or `HOST:PORT` for a listener named PLAINTEXT; `config` is named in the error.

    >>> parse_listener("listeners", "PLAINTEXT://[::1]:9092")
    ListenerAddress(name='PLAINTEXT', host='::1', port=9092)
    >>> str(parse_listener("listeners", "localhost:9092")), str(parse_listener("listeners", "SSL://:9093"))
    ('PLAINTEXT://localhost:9092', 'SSL://:9093')
    >>> parse_listener("listeners", "localhost")
    Traceback (most recent call last):
        ...
    ottla.wire.errors.KafkaError: INVALID_CONFIG: listeners = 'localhost': has no port; write it as HOST:PORT
    """
    name, separator, address = text.rpartition("://")
    host, colon, port_text = address.rpartition(":")
    if not colon or "]" in port_text:
        refuse(config, text, "has no port; write it as HOST:PORT")
    if not (port_text.isascii() and port_text.isdigit() and len(port_text) <= 5 and int(port_text) <= 0xFFFF):
        refuse(config, text, f"{port_text!r} is no port; write a number from 0 to 65535")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        refuse(config, text, "write an IPv6 address in brackets, as in [::1]:9092")
    if separator and not name:
        refuse(config, text, "has no name before '://'; write one such as PLAINTEXT")
    return ListenerAddress(name.upper() or "PLAINTEXT", host, int(port_text))


def check_listeners(value: Value) -> str | None:
    """What is wrong with a list of listeners, or None."""
    assert isinstance(value, tuple)
    if not value:
        return "must name at least one listener, such as PLAINTEXT://:9092"
    addresses = [parse_listener("listeners", text) for text in value]
    names = [address.name for address in addresses]
    if len(set(names)) < len(names):
        return "names the same listener twice; give each a name of its own"
    ports = [address.port for address in addresses if address.port]
    if len(set(ports)) < len(ports):
        return "uses the same port twice; give each listener a port of its own"
    return None


def check_metrics_listen(value: Value) -> str | None:
    """What is wrong with the address of the port for metrics, or None."""
    if value is not None and "://" in str(value):
        return "is not to have a name; write it as HOST:PORT"
    if value is not None:
        parse_listener("ottla.metrics.listen", str(value))
    return None


def check_advertised_listeners(value: Value) -> str | None:
    """What is wrong with a list of advertised listeners, or None."""
    assert isinstance(value, tuple)
    for address in (parse_listener("advertised.listeners", text) for text in value):
        if address.host in ("", "0.0.0.0", "::"):
            return f"no client can connect to host {address.host!r}; name the host that clients reach"
    return None


def parse_protocol_map(entries: Iterable[str]) -> dict[str, str]:
    """Read `NAME:PROTOCOL` entries.

    >>> parse_protocol_map(["CLIENTS:SASL_SSL", "internal:plaintext"])
    {'CLIENTS': 'SASL_SSL', 'INTERNAL': 'PLAINTEXT'}
    """
    pairs = (entry.upper().partition(":") for entry in entries)
    return {name.strip(): protocol.strip() for name, _, protocol in pairs}


def check_protocol_map(value: Value) -> str | None:
    """What is wrong with a map from listeners to protocols, or None."""
    assert isinstance(value, tuple)
    for name, protocol in parse_protocol_map(value).items():
        if not name or protocol not in SECURITY_PROTOCOLS:
            return f"{name}:{protocol} is no NAME:PROTOCOL; the protocols are {', '.join(SECURITY_PROTOCOLS)}"
    return None


def own_name(listener: str, config: str, mechanism: str | None = None) -> str:
    """What a config is called for one listener, or for one mechanism there.

    >>> own_name("SASL_SSL", "ssl.client.auth"), own_name("CLIENTS", "sasl.jaas.config", "PLAIN")
    ('listener.name.sasl_ssl.ssl.client.auth', 'listener.name.clients.plain.sasl.jaas.config')
    """
    middle = "" if mechanism is None else mechanism.lower() + "."
    return f"{_PREFIX}{listener.lower()}.{middle}{config}"


def general_name(config: str, known: Container[str]) -> str:
    """What a config of one listener is called for all; any other name as it is.

    >>> known = {"ssl.client.auth", "sasl.jaas.config", "log.dirs"}
    >>> general_name("listener.name.clients.ssl.client.auth", known)
    'ssl.client.auth'
    >>> general_name("listener.name.clients.plain.sasl.jaas.config", known)
    'sasl.jaas.config'
    >>> general_name("listener.name.clients.log.dirs", known)
    'listener.name.clients.log.dirs'
    """
    if not config.startswith(_PREFIX):
        return config
    name = config.removeprefix(_PREFIX).partition(".")[2]
    after_mechanism = name.partition(".")[2]
    if name in known and name.startswith(_OVERRIDABLE):
        return name
    return after_mechanism if after_mechanism in known and after_mechanism.startswith("sasl.") else config
