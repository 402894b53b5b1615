"""Where replies name brokers, so that clients can be led back through the proxy."""

from collections.abc import Iterable
from typing import Any

from ottla.wire import api
from ottla.wire.errors import ProtocolError
from ottla.wire.frame import decode_response, encode_response

from .actions import Exchange

PRODUCE, FETCH, METADATA, FIND_COORDINATOR, DESCRIBE_CLUSTER, SHARE_FETCH, SHARE_ACKNOWLEDGE = 0, 1, 3, 10, 60, 78, 79

FIRST_VERSIONS = {
    PRODUCE: 10,
    FETCH: 16,
    METADATA: 0,
    FIND_COORDINATOR: 0,
    DESCRIBE_CLUSTER: 0,
    SHARE_FETCH: 0,
    SHARE_ACKNOWLEDGE: 0,
}
"""The first version of each reply that names brokers by host and port."""


def decode_if_it_names_brokers(exchange: Exchange, frame: bytes) -> Any:
    """The response in a frame, or None if there is no broker's address in it that a client would follow."""
    if exchange.version < FIRST_VERSIONS.get(exchange.key, exchange.version + 1):
        return None
    try:
        response = decode_response(api.response(exchange.key), exchange.version, frame[4:])[1]
    except (ProtocolError, ValueError):
        # Newer than the proxy, or no response at all: not for the proxy to judge.
        return None
    return response if any(True for _ in addresses(exchange, response)) else None


def addresses(exchange: Exchange, response: Any) -> Iterable[Any]:
    """The parts of a response that have a host and a port."""
    match exchange.key:
        case 3 | 60:
            named = response.brokers
        case 10:
            named = response.coordinators if exchange.version >= 4 else [response]
        case _:
            named = response.node_endpoints
    # A coordinator that was not found has no port.
    return (one for one in named if one.port > 0)


def encode(exchange: Exchange, response: Any) -> bytes:
    """The frame of a response."""
    return b"".join(encode_response(response, exchange.version, correlation_id=exchange.correlation_id))
