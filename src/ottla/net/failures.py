"""What a client is told when a connection fails it."""

from ottla.wire.errors import ErrorCode, KafkaError


class ConnectionLostError(KafkaError):
    """The connection closed while requests were pending, or was closed before.

    >>> print(ConnectionLostError("localhost:9092 closed the connection"))
    NETWORK_EXCEPTION: localhost:9092 closed the connection
    """

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.NETWORK_EXCEPTION, message)


class BrokerUnreachableError(ConnectionLostError):
    """Nobody answers at the broker's address.

    >>> error = BrokerUnreachableError("no broker at localhost:9092: Connection refused")
    >>> isinstance(error, ConnectionLostError), error.retriable
    (True, True)
    """


class HandshakeCutError(BrokerUnreachableError):
    """Whoever is at the broker's address closed the connection instead of speaking TLS.

    >>> isinstance(HandshakeCutError("localhost:9092 closed the connection"), BrokerUnreachableError)
    True
    """


class LoginMissingError(ConnectionLostError):
    """The broker closed the connection at the first request: it may ask for a login, or it has gone just then.

    >>> LoginMissingError("localhost:9092 closed the connection").retriable
    True
    """


class MalformedReplyError(KafkaError):
    """A reply made no sense. What was asked for may have been done nevertheless.

    >>> MalformedReplyError("localhost:9092 answered Fetch v17 with bytes that make no sense").code.name
    'NETWORK_EXCEPTION'
    """

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.NETWORK_EXCEPTION, message)


class RequestTimedOutError(KafkaError):
    """The broker did not answer in time.

    >>> print(RequestTimedOutError("localhost:9092 did not answer Fetch v17 in 30000 ms"))
    REQUEST_TIMED_OUT: localhost:9092 did not answer Fetch v17 in 30000 ms
    """

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.REQUEST_TIMED_OUT, message)
