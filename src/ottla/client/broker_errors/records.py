"""Errors of brokers that concern records: writing them, reading them, and the partitions that they are in."""

from typing import Self

from ottla.client.broker_errors.base import BrokerError
from ottla.client.types import TopicPartition
from ottla.wire.errors import ErrorCode, KafkaError


class PlacedError(KafkaError):
    """What concerns a place in a log, where that is known."""

    topic_partition: TopicPartition | None = None
    offset: int | None = None

    def at(self, topic_partition: TopicPartition, offset: int) -> Self:
        """The same error, with its place."""
        self.topic_partition, self.offset = topic_partition, offset
        return self


class OffsetOutOfRangeError(PlacedError, BrokerError):
    """The offset is not in the log: its record was deleted, or not written yet.

    A consumer's has it as `topic_partition` and `offset`.

    >>> print(OffsetOutOfRangeError("orders-0"))
    OFFSET_OUT_OF_RANGE: orders-0; seek to an offset between beginning_offsets and end_offsets, or set auto_offset_reset
    """

    code_of_class = ErrorCode.OFFSET_OUT_OF_RANGE
    advice = "seek to an offset between beginning_offsets and end_offsets, or set auto_offset_reset"


class CorruptRecordError(PlacedError, BrokerError):
    """A batch of records fails its checksum.

    A consumer's has the place that it read at as `topic_partition` and `offset`.

    >>> print(CorruptRecordError("orders-0"))
    CORRUPT_MESSAGE: orders-0; look at the network and the broker's disk; check_crcs=False reads it nevertheless
    """

    code_of_class = ErrorCode.CORRUPT_MESSAGE
    advice = "look at the network and the broker's disk; check_crcs=False reads it nevertheless"


class UnknownTopicOrPartitionError(BrokerError):
    """There is no such topic or partition.

    >>> print(UnknownTopicOrPartitionError("orders-0"))
    UNKNOWN_TOPIC_OR_PARTITION: orders-0; create the topic first, or check its name
    """

    code_of_class = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    advice = "create the topic first, or check its name"


class NotLeaderForPartitionError(BrokerError):
    """The broker that was asked does not lead the partition (any more).

    >>> print(NotLeaderForPartitionError("orders-0"))
    NOT_LEADER_OR_FOLLOWER: orders-0; try again: the leader is being looked for
    """

    code_of_class = ErrorCode.NOT_LEADER_OR_FOLLOWER
    advice = "try again: the leader is being looked for"


class LeaderNotAvailableError(BrokerError):
    """The partition has no leader at the moment.

    >>> print(LeaderNotAvailableError("orders-0"))
    LEADER_NOT_AVAILABLE: orders-0; try again, and see whether its brokers run
    """

    code_of_class = ErrorCode.LEADER_NOT_AVAILABLE
    advice = "try again, and see whether its brokers run"


class MessageSizeTooLargeError(BrokerError):
    """A record is larger than somebody takes.

    >>> print(MessageSizeTooLargeError("orders-0"))
    MESSAGE_TOO_LARGE: orders-0; send smaller records, or raise max_request_size and the topic's max.message.bytes
    """

    code_of_class = ErrorCode.MESSAGE_TOO_LARGE
    advice = "send smaller records, or raise max_request_size and the topic's max.message.bytes"


class RecordListTooLargeError(BrokerError):
    """A batch is larger than the topic takes.

    >>> print(RecordListTooLargeError("orders-0"))
    RECORD_LIST_TOO_LARGE: orders-0; lower batch_size, or raise the topic's segment.bytes
    """

    code_of_class = ErrorCode.RECORD_LIST_TOO_LARGE
    advice = "lower batch_size, or raise the topic's segment.bytes"


class NotEnoughReplicasError(BrokerError):
    """Fewer replicas are in sync than min.insync.replicas asks for.

    >>> print(NotEnoughReplicasError("orders-0"))
    NOT_ENOUGH_REPLICAS: orders-0; try again when the brokers are back
    """

    code_of_class = ErrorCode.NOT_ENOUGH_REPLICAS
    advice = "try again when the brokers are back"


class NotEnoughReplicasAfterAppendError(BrokerError):
    r"""The record was written, but to too few replicas.

    >>> print(str(NotEnoughReplicasAfterAppendError("orders-0")).replace("; ", ";\n", 1))
    NOT_ENOUGH_REPLICAS_AFTER_APPEND: orders-0;
    try again when the brokers are back; without idempotence this may write it twice
    """

    code_of_class = ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
    advice = "try again when the brokers are back; without idempotence this may write it twice"


class InvalidRequiredAcksError(BrokerError):
    """The broker does not know this kind of acknowledgement.

    >>> print(InvalidRequiredAcksError("orders-0"))
    INVALID_REQUIRED_ACKS: orders-0; use acks 0, 1 or 'all'
    """

    code_of_class = ErrorCode.INVALID_REQUIRED_ACKS
    advice = "use acks 0, 1 or 'all'"


class InvalidTimestampError(BrokerError):
    r"""The timestamp is further from the broker's clock than the topic takes.

    >>> print(str(InvalidTimestampError("orders-0")).replace("; ", ";\n", 1))
    INVALID_TIMESTAMP: orders-0;
    set the clock, or the topic's message.timestamp.before.max.ms and message.timestamp.after.max.ms
    """

    code_of_class = ErrorCode.INVALID_TIMESTAMP
    advice = "set the clock, or the topic's message.timestamp.before.max.ms and message.timestamp.after.max.ms"


class UnsupportedForMessageFormatError(BrokerError):
    """The records' format cannot carry that.

    >>> print(UnsupportedForMessageFormatError("orders-0"))
    UNSUPPORTED_FOR_MESSAGE_FORMAT: orders-0; send no headers to brokers before 0.11
    """

    code_of_class = ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT
    advice = "send no headers to brokers before 0.11"


class OutOfOrderSequenceNumberError(BrokerError):
    """The broker misses records that were sent before this one.

    >>> print(OutOfOrderSequenceNumberError("producer 17 of orders-0"))
    OUT_OF_ORDER_SEQUENCE_NUMBER: producer 17 of orders-0; see which of them were acknowledged before sending them again
    """

    code_of_class = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    advice = "see which of them were acknowledged before sending them again"


class InvalidProducerEpochError(BrokerError):
    """Another producer has taken this one's place.

    >>> print(InvalidProducerEpochError("producer 17 of orders-0"))
    INVALID_PRODUCER_EPOCH: producer 17 of orders-0; make a new producer
    """

    code_of_class = ErrorCode.INVALID_PRODUCER_EPOCH
    advice = "make a new producer"


class ProducerFencedError(BrokerError):
    """Another producer has taken this one's place.

    >>> print(ProducerFencedError("producer 17 of orders-0"))
    PRODUCER_FENCED: producer 17 of orders-0; make a new producer; let only one run under a transactional id
    """

    code_of_class = ErrorCode.PRODUCER_FENCED
    advice = "make a new producer; let only one run under a transactional id"


class KafkaStorageError(BrokerError):
    """The broker cannot read or write its disk.

    >>> print(KafkaStorageError("orders-0"))
    KAFKA_STORAGE_ERROR: orders-0; look at the broker's log and disk
    """

    code_of_class = ErrorCode.KAFKA_STORAGE_ERROR
    advice = "look at the broker's log and disk"


class UnknownProducerIdError(BrokerError):
    """The broker has forgotten this producer, since its records are gone.

    >>> print(UnknownProducerIdError("producer 17 of orders-0"))
    UNKNOWN_PRODUCER_ID: producer 17 of orders-0; see which records were acknowledged before sending them again
    """

    code_of_class = ErrorCode.UNKNOWN_PRODUCER_ID
    advice = "see which records were acknowledged before sending them again"


class FencedLeaderEpochError(BrokerError):
    """The partition has a newer leader than the one that was asked.

    >>> print(FencedLeaderEpochError("orders-0"))
    FENCED_LEADER_EPOCH: orders-0; try again
    """

    code_of_class = ErrorCode.FENCED_LEADER_EPOCH
    advice = "try again"


class UnsupportedCompressionTypeError(BrokerError):
    """The broker is too old for this codec.

    >>> print(UnsupportedCompressionTypeError("orders-0"))
    UNSUPPORTED_COMPRESSION_TYPE: orders-0; use gzip, snappy or lz4
    """

    code_of_class = ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    advice = "use gzip, snappy or lz4"


class InvalidRecordError(BrokerError):
    """The broker refuses a record.

    >>> print(InvalidRecordError("orders-0"))
    INVALID_RECORD: orders-0; on a compacted topic every record needs a key
    """

    code_of_class = ErrorCode.INVALID_RECORD
    advice = "on a compacted topic every record needs a key"
