"""Options that begin with `kafka.`: the Java client's names, as Ottla's client has them."""

import logging
from collections.abc import Iterable, Mapping

from ottla.client.java_security import java_security
from ottla.client.options import ClientOptions

PREFIX = "kafka."

log = logging.getLogger(__name__)

_CLIENT_NUMBERS = {
    "request.timeout.ms": "request_timeout_ms",
    "retry.backoff.ms": "retry_backoff_ms",
    "retry.backoff.max.ms": "retry_backoff_max_ms",
    "reconnect.backoff.ms": "reconnect_backoff_ms",
    "reconnect.backoff.max.ms": "reconnect_backoff_max_ms",
    "metadata.max.age.ms": "metadata_max_age_ms",
    "connections.max.idle.ms": "connections_max_idle_ms",
}

_WITHOUT_EFFECT = (
    "allow.auto.create.topics",
    "client.dns.lookup",
    "client.rack",
    "default.api.timeout.ms",
    "enable.metrics.push",
    "exclude.internal.topics",
    "fetch.max.wait.ms",
    "fetch.min.bytes",
    "group.",
    "heartbeat.interval.ms",
    "max.poll.",
    "metadata.recovery.",
    "metric.reporters",
    "metrics.",
    "partition.assignment.strategy",
    "receive.buffer.bytes",
    "sasl.",
    "security.providers",
    "send.buffer.bytes",
    "session.timeout.ms",
    "socket.connection.setup.timeout.",
    "ssl.",
)
"""Names, and beginnings of names, that are right but have nothing to act on here; those of TLS and SASL act only with a
`security.protocol` that asks for them."""


def kafka_options(options: Mapping[str, str]) -> dict[str, str]:
    """The options that begin with `kafka.`, without that, in lower case.

    >>> kafka_options({"kafka.bootstrap.servers": "broker:9092", "subscribe": "orders"})
    {'bootstrap.servers': 'broker:9092'}
    """
    return {
        name.lower().removeprefix(PREFIX): value for name, value in options.items() if name.lower().startswith(PREFIX)
    }


def about_the_cluster(options: Mapping[str, str]) -> dict[str, str]:
    """The options that say who one is and how to be sure of the brokers, for others that go to the same cluster.

    >>> about_the_cluster({"kafka.ssl.truststore.location": "ca.pem", "kafka.fetch.max.bytes": "1"})
    {'kafka.ssl.truststore.location': 'ca.pem'}
    """
    beginnings = tuple(PREFIX + one for one in ("security.", "sasl.", "ssl.", "client."))
    return {name: value for name, value in options.items() if name.lower().startswith(beginnings)}


def client_options(kafka: Mapping[str, str], *, also_known: Iterable[str] = (), client_id: str) -> ClientOptions:
    """How to reach the cluster. `also_known` are names that the caller looks at himself; others get a warning.

    >>> client_options({"bootstrap.servers": "broker:9092", "request.timeout.ms": "5000"}, client_id="x").addresses
    [('broker', 9092)]
    >>> secure = {"bootstrap.servers": "broker:9093", "security.protocol": "SSL", "ssl.truststore.location": "ca.pem"}
    >>> client_options(secure, client_id="x").security.ssl_cafile
    'ca.pem'
    """
    if not kafka.get("bootstrap.servers", "").strip():
        raise ValueError("option kafka.bootstrap.servers is missing; set it to the addresses of brokers, HOST:PORT")
    security = java_security(kafka, PREFIX)
    known = {"bootstrap.servers", "client.id", "security.protocol", *_CLIENT_NUMBERS, *also_known}
    unknown = sorted(name for name in kafka if name not in known and not name.startswith(_WITHOUT_EFFECT))
    if unknown:
        log.warning("ignored, since Ottla's client has no such options: %s", ", ".join(PREFIX + one for one in unknown))
    numbers = {ours: number(kafka, java, PREFIX) for java, ours in _CLIENT_NUMBERS.items() if java in kafka}
    try:
        return ClientOptions(
            bootstrap_servers=kafka["bootstrap.servers"],
            client_id=kafka.get("client.id", client_id),
            security=security,
            **numbers,
        )
    except ValueError as error:
        raise ValueError(f"options kafka.*: {error}") from None


def number(options: Mapping[str, str], name: str, prefix: str = "", *, least: int = 0) -> int:
    """A whole number.

    >>> number({"minPartitions": "0"}, "minPartitions", least=1)
    Traceback (most recent call last):
    ValueError: option minPartitions is '0'; it must be a whole number of at least 1
    """
    text = options[name].strip()
    if not text.isdecimal() or int(text) < least:
        raise ValueError(f"option {prefix}{name} is {options[name]!r}; it must be a whole number of at least {least}")
    return int(text)


def truth(options: Mapping[str, str], name: str, default: bool, prefix: str = "") -> bool:
    """True or false.

    >>> truth({"includeHeaders": "TRUE"}, "includeHeaders", False)
    True
    """
    text = options.get(name, str(default)).strip().lower()
    if text not in ("true", "false"):
        raise ValueError(f"option {prefix}{name} is {options[name]!r}; it must be true or false")
    return text == "true"
