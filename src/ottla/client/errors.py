"""What can go wrong, as exceptions that say what to do.

All are `KafkaError`s: `errno` is the number on the wire, `retriable` says whether the same may succeed later, and the
message says what was wrong and what to do. What has no class of its own is a plain `KafkaError` with its code.

>>> error = error_of(36, "topic 'orders'")
>>> type(error).__name__, error.errno, error.retriable
('TopicAlreadyExistsError', 36, False)
>>> print(error)
TOPIC_ALREADY_EXISTS: topic 'orders'; choose another name, or use the one that is there
"""

from collections.abc import Callable, Hashable, Mapping

from ottla.client.broker_errors.administration import (
    BrokerNotAvailableError,
    DuplicateResourceError,
    InvalidConfigError,
    InvalidPartitionsError,
    InvalidReplicationFactorError,
    InvalidRequestError,
    InvalidTopicError,
    NotControllerError,
    PolicyViolationError,
    ResourceNotFoundError,
    TopicAlreadyExistsError,
)
from ottla.client.broker_errors.base import BrokerError
from ottla.client.broker_errors.groups import (
    FencedInstanceIdError,
    FencedMemberEpochError,
    GroupCoordinatorNotAvailableError,
    GroupIdNotFoundError,
    GroupLoadInProgressError,
    GroupMaxSizeReachedError,
    GroupSubscribedToTopicError,
    IllegalGenerationError,
    InconsistentGroupProtocolError,
    InvalidGroupIdError,
    InvalidRegularExpressionError,
    InvalidSessionTimeoutError,
    MemberIdRequiredError,
    NonEmptyGroupError,
    NotCoordinatorForGroupError,
    RebalanceInProgressError,
    StaleMemberEpochError,
    UnknownMemberIdError,
    UnreleasedInstanceIdError,
    UnstableOffsetCommitError,
    UnsupportedAssignorError,
)
from ottla.client.broker_errors.records import (
    CorruptRecordError,
    FencedLeaderEpochError,
    InvalidProducerEpochError,
    InvalidRecordError,
    InvalidRequiredAcksError,
    InvalidTimestampError,
    KafkaStorageError,
    LeaderNotAvailableError,
    MessageSizeTooLargeError,
    NotEnoughReplicasAfterAppendError,
    NotEnoughReplicasError,
    NotLeaderForPartitionError,
    OffsetOutOfRangeError,
    OutOfOrderSequenceNumberError,
    ProducerFencedError,
    RecordListTooLargeError,
    UnknownProducerIdError,
    UnknownTopicOrPartitionError,
    UnsupportedCompressionTypeError,
    UnsupportedForMessageFormatError,
)
from ottla.client.broker_errors.security import (
    ClusterAuthorizationFailedError,
    GroupAuthorizationFailedError,
    ThrottlingQuotaExceededError,
    TopicAuthorizationFailedError,
    UnacceptableCredentialError,
)
from ottla.client.types import TopicPartition
from ottla.net import (
    BrokerUnreachableError,
    ConnectionLostError,
    HandshakeCutError,
    LoginMissingError,
    MalformedReplyError,
    RequestTimedOutError,
    UnsupportedVersionError,
)
from ottla.net.authenticate import AuthenticationFailedError, IllegalSaslStateError, UnsupportedSaslMechanismError
from ottla.net.pem import TlsSettingsError
from ottla.net.tls_errors import (
    CertificateExpiredError,
    CertificateRevokedError,
    ClientCertificateError,
    SecurityProtocolError,
    SslAuthenticationError,
    UntrustedCertificateError,
    WrongHostnameError,
)
from ottla.wire.errors import ErrorCode, KafkaError

__all__ = [
    "AuthenticationFailedError",
    "BrokerError",
    "BrokerNotAvailableError",
    "BrokerUnreachableError",
    "BufferFullError",
    "CertificateExpiredError",
    "CertificateRevokedError",
    "ClientCertificateError",
    "ClientClosedError",
    "ClusterAuthorizationFailedError",
    "CommitFailedError",
    "ConnectionLostError",
    "CorruptRecordError",
    "DeliveryTimedOutError",
    "DuplicateResourceError",
    "ErrorCode",
    "FencedInstanceIdError",
    "FencedLeaderEpochError",
    "FencedMemberEpochError",
    "GroupAuthorizationFailedError",
    "GroupCoordinatorNotAvailableError",
    "GroupIdNotFoundError",
    "GroupLoadInProgressError",
    "GroupMaxSizeReachedError",
    "GroupSubscribedToTopicError",
    "HandshakeCutError",
    "IllegalGenerationError",
    "IllegalSaslStateError",
    "IllegalStateError",
    "InconsistentGroupProtocolError",
    "InvalidConfigError",
    "InvalidGroupIdError",
    "InvalidPartitionsError",
    "InvalidProducerEpochError",
    "InvalidRecordError",
    "InvalidRegularExpressionError",
    "InvalidReplicationFactorError",
    "InvalidRequestError",
    "InvalidRequiredAcksError",
    "InvalidSessionTimeoutError",
    "InvalidTimestampError",
    "InvalidTopicError",
    "KafkaError",
    "KafkaStorageError",
    "LeaderNotAvailableError",
    "LogTruncationError",
    "LoginMissingError",
    "MalformedReplyError",
    "MemberIdRequiredError",
    "MessageSizeTooLargeError",
    "NoOffsetForPartitionError",
    "NonEmptyGroupError",
    "NotControllerError",
    "NotCoordinatorForGroupError",
    "NotEnoughReplicasAfterAppendError",
    "NotEnoughReplicasError",
    "NotLeaderForPartitionError",
    "OffsetOutOfRangeError",
    "OutOfOrderSequenceNumberError",
    "PolicyViolationError",
    "ProducerFencedError",
    "RebalanceInProgressError",
    "RecordDeserializationError",
    "RecordListTooLargeError",
    "RequestTimedOutError",
    "ResourceNotFoundError",
    "SecurityProtocolError",
    "SeveralFailedError",
    "SslAuthenticationError",
    "StaleMemberEpochError",
    "ThrottlingQuotaExceededError",
    "TlsSettingsError",
    "TopicAlreadyExistsError",
    "TopicAuthorizationFailedError",
    "UnacceptableCredentialError",
    "UnknownMemberIdError",
    "UnknownProducerIdError",
    "UnknownTopicOrPartitionError",
    "UnreleasedInstanceIdError",
    "UnstableOffsetCommitError",
    "UnsupportedAssignorError",
    "UnsupportedCompressionTypeError",
    "UnsupportedForMessageFormatError",
    "UnsupportedSaslMechanismError",
    "UnsupportedVersionError",
    "UntrustedCertificateError",
    "WrongHostnameError",
    "check",
    "error_of",
]

KEEP_UP = (
    "the records since the last commit may be read again by another member: process records faster, fetch fewer at a "
    "time (max_poll_records), or raise max_poll_interval_ms"
)
"""What to do when the group has moved on without a member."""

LISTED_FAILURES = 5
"""How many failures the message of a `SeveralFailedError` lists."""


class IllegalStateError(KafkaError):
    """The call does not suit what was called before it, such as `seek` in a partition that is not assigned.

    >>> from ottla import Consumer, TopicPartition
    >>> Consumer("orders").assign([TopicPartition("orders", 0)])
    Traceback (most recent call last):
    ottla.errors.IllegalStateError: topics were subscribed to; call unsubscribe() before assign()
    """

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.UNKNOWN_SERVER_ERROR, message)
        # There is no code for what no broker has a part in, and the name of this one would blame it.
        self.args = (self.message,)


class ClientClosedError(IllegalStateError):
    """The client is stopped, or was not started.

    >>> import asyncio
    >>> from ottla import Producer
    >>> async def story() -> None:
    ...     await Producer().send("orders", b"two apples")
    >>> asyncio.run(story())
    Traceback (most recent call last):
    ottla.errors.ClientClosedError: the producer does not run; use it in `async with Producer(...)`, or start() it
    """


class BufferFullError(KafkaError):
    """There was no room for a record within `max_block_ms`: records come faster than the broker takes them.

    >>> BufferFullError("no room for 300 bytes within 60000 ms").retriable
    True
    """

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.REQUEST_TIMED_OUT, message)


class DeliveryTimedOutError(KafkaError):
    """A record was not acknowledged within `delivery_timeout_ms`. It may have been written nevertheless.

    >>> print(DeliveryTimedOutError("orders-0: 120000 ms have passed"))
    REQUEST_TIMED_OUT: orders-0: 120000 ms have passed
    """

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.REQUEST_TIMED_OUT, message)


class CommitFailedError(KafkaError):
    """Positions could not be committed, since the partitions are not this member's, or not any more.

    >>> print(CommitFailedError(ErrorCode.ILLEGAL_GENERATION, "group 'billing' has moved on", "subscribe again"))
    ILLEGAL_GENERATION: group 'billing' has moved on; subscribe again
    """

    def __init__(self, code: ErrorCode, message: str, advice: str = KEEP_UP) -> None:
        super().__init__(code, f"{message}; {advice}")


class NoOffsetForPartitionError(KafkaError):
    """Nothing is committed for a partition, and `auto_offset_reset` is "none".

    >>> NoOffsetForPartitionError("group 'billing' has no offset for orders-0").message
    "group 'billing' has no offset for orders-0; seek to an offset, or set auto_offset_reset to 'earliest' or 'latest'"
    """

    def __init__(self, message: str) -> None:
        super().__init__(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"{message}; seek to an offset, or set auto_offset_reset to 'earliest' or 'latest'",
        )


class RecordDeserializationError(KafkaError):
    """A deserializer raised an exception, which is the cause of this one. The consumer's position is at the record.

    `consumer.seek(error.topic_partition, error.offset + 1)` leaves the record out.

    >>> from ottla import TopicPartition
    >>> error = RecordDeserializationError(TopicPartition("orders", 0), 17, "no JSON")
    >>> error.topic_partition, error.offset
    (TopicPartition(topic='orders', partition=0), 17)
    """

    def __init__(self, topic_partition: TopicPartition, offset: int, reason: str) -> None:
        super().__init__(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            f"a deserializer failed at offset {offset} of {topic_partition}: {reason}; seek past the record to read on",
        )
        self.args = (self.message,)
        self.topic_partition = topic_partition
        self.offset = offset


class LogTruncationError(KafkaError):
    """The log was cut before the position, as an election of a leader that was behind does: records were lost.

    >>> LogTruncationError("orders-0 ends at 15, before the position 17").message
    'orders-0 ends at 15, before the position 17; seek to an offset, or set auto_offset_reset'
    """

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.OFFSET_OUT_OF_RANGE, f"{message}; seek to an offset, or set auto_offset_reset")


class SeveralFailedError(KafkaError):
    """Several of the things asked for in one call failed; `failures` says which, and why. The others were done.

    >>> error = SeveralFailedError({"a": error_of(36, "topic 'a'"), "b": error_of(17, "topic 'b'")})
    >>> [(name, one.code.name) for name, one in error.failures.items()]
    [('a', 'TOPIC_ALREADY_EXISTS'), ('b', 'INVALID_TOPIC_EXCEPTION')]
    >>> error.code.name, error.retriable
    ('TOPIC_ALREADY_EXISTS', False)
    """

    def __init__(self, failures: Mapping[Hashable, KafkaError]) -> None:
        errors = list(failures.values())
        # What holds for all of them, as that a broker has no rules of access, is said once.
        said = list(dict.fromkeys(map(str, errors)))
        listed = "; ".join(said[:LISTED_FAILURES])
        more = f"; and {len(said) - LISTED_FAILURES} more" if len(said) > LISTED_FAILURES else ""
        super().__init__(errors[0].code, f"{len(errors)} failed: {listed}{more}")
        self.failures: dict[Hashable, KafkaError] = dict(failures)
        """Why each failed, by what it was asked for: the name of a topic or group, a partition, a config resource."""

    @property
    def retriable(self) -> bool:
        """Whether trying again can help all of them."""
        return all(error.retriable for error in self.failures.values())


_BY_CODE: dict[int, Callable[[str], KafkaError]] = {
    **{kind.code_of_class: kind for kind in BrokerError.__subclasses__()},
    ErrorCode.UNSUPPORTED_VERSION: UnsupportedVersionError,
    ErrorCode.REQUEST_TIMED_OUT: RequestTimedOutError,
    ErrorCode.UNSUPPORTED_SASL_MECHANISM: UnsupportedSaslMechanismError,
}


def check(code: int, message: str | None) -> None:
    """Raise the exception for a code, unless it is that of success.

    >>> check(0, "topic 'orders'")
    >>> check(3, "topic 'orders'")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ottla.errors.UnknownTopicOrPartitionError: UNKNOWN_TOPIC_OR_PARTITION: topic 'orders'; create ...
    """
    if code:
        raise error_of(code, message)


def error_of(code: int, message: str | None) -> KafkaError:
    """The exception for a code, which may be one that only a newer broker knows.

    >>> error_of(15, "group 'billing'").retriable, error_of(1234, None).message
    (True, 'the broker gave no reason (error code 1234 is not known here)')
    """
    message = message or "the broker gave no reason"
    if (kind := _BY_CODE.get(code)) is not None:
        return kind(message)
    try:
        return KafkaError(ErrorCode(code), message)
    except ValueError:
        return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"{message} (error code {code} is not known here)")


def _name_by_home() -> None:
    """Have tracebacks call the exceptions by where users get them from."""
    for name in __all__:
        kind = globals()[name]
        # The base class is also the broker's, which has no clients.
        if isinstance(kind, type) and issubclass(kind, KafkaError) and kind is not KafkaError:
            kind.__module__ = "ottla.errors"


_name_by_home()
