"""Sockets: the listener and its connections on a broker's side, the connection on a client's."""

from ottla.net.admission import Admission
from ottla.net.connection import Connection
from ottla.net.failures import (
    BrokerUnreachableError,
    ConnectionLostError,
    HandshakeCutError,
    LoginMissingError,
    MalformedReplyError,
    RequestTimedOutError,
)
from ottla.net.listener import Listener
from ottla.net.memory import Memory
from ottla.net.negotiate import UnsupportedVersionError
from ottla.net.security import Security
from ottla.net.serving import Handler, Reply, ServerConnection

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
