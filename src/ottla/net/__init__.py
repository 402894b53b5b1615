"""Sockets: the listener and its connections on a broker's side, the connection on a client's.

The names load when they are used, so that neither side waits for the other's.
"""

from typing import TYPE_CHECKING

from ottla.lazy import lookup

if TYPE_CHECKING:
    from ottla.net.admission import Admission as Admission
    from ottla.net.connection import Connection as Connection
    from ottla.net.failures import BrokerUnreachableError as BrokerUnreachableError
    from ottla.net.failures import ConnectionLostError as ConnectionLostError
    from ottla.net.failures import HandshakeCutError as HandshakeCutError
    from ottla.net.failures import LoginMissingError as LoginMissingError
    from ottla.net.failures import MalformedReplyError as MalformedReplyError
    from ottla.net.failures import RequestTimedOutError as RequestTimedOutError
    from ottla.net.listener import Listener as Listener
    from ottla.net.memory import Memory as Memory
    from ottla.net.negotiate import UnsupportedVersionError as UnsupportedVersionError
    from ottla.net.security import Security as Security
    from ottla.net.serving import Handler as Handler
    from ottla.net.serving import Reply as Reply
    from ottla.net.serving import ServerConnection as ServerConnection

_HOMES = {
    "Admission": "ottla.net.admission",
    "BrokerUnreachableError": "ottla.net.failures",
    "Connection": "ottla.net.connection",
    "ConnectionLostError": "ottla.net.failures",
    "Handler": "ottla.net.serving",
    "HandshakeCutError": "ottla.net.failures",
    "Listener": "ottla.net.listener",
    "LoginMissingError": "ottla.net.failures",
    "MalformedReplyError": "ottla.net.failures",
    "Memory": "ottla.net.memory",
    "Reply": "ottla.net.serving",
    "RequestTimedOutError": "ottla.net.failures",
    "Security": "ottla.net.security",
    "ServerConnection": "ottla.net.serving",
    "UnsupportedVersionError": "ottla.net.negotiate",
}

__all__ = [
    "Admission",
    "BrokerUnreachableError",
    "Connection",
    "ConnectionLostError",
    "Handler",
    "HandshakeCutError",
    "Listener",
    "LoginMissingError",
    "MalformedReplyError",
    "Memory",
    "Reply",
    "RequestTimedOutError",
    "Security",
    "ServerConnection",
    "UnsupportedVersionError",
]

__getattr__ = lookup(globals(), _HOMES)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
