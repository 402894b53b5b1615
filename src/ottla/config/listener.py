"""Addresses to listen on, as the `listeners` config writes them."""

from dataclasses import dataclass

from ottla.config.parse import Value, refuse


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


def check_advertised_listeners(value: Value) -> str | None:
    """What is wrong with a list of advertised listeners, or None."""
    assert isinstance(value, tuple)
    for address in (parse_listener("advertised.listeners", text) for text in value):
        if address.host in ("", "0.0.0.0", "::"):
            return f"no client can connect to host {address.host!r}; name the host that clients reach"
    return None
