"""The error codes of brokers as exceptions: one class for each that a user of a client may want to catch."""

from typing import ClassVar, Self

from ottla.client.types import TopicPartition
from ottla.wire.errors import ErrorCode, KafkaError


class BrokerError(KafkaError):
    """A broker answered with an error code; the subclasses are the codes."""

    code_of_class: ClassVar[ErrorCode]
    advice: str = ""
    """What to do; of the class, unless something else fits better."""

    def __init__(self, message: str, advice: str | None = None) -> None:
        super().__init__(self.code_of_class, message)
        if advice is not None:
            self.advice = advice

    def __str__(self) -> str:
        return f"{self.code.name}: {self.message.rstrip('.')}; {self.advice}"


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
    """

    code_of_class = ErrorCode.OFFSET_OUT_OF_RANGE
    advice = "seek to an offset between beginning_offsets and end_offsets, or set auto_offset_reset"


class CorruptRecordError(PlacedError, BrokerError):
    """A batch of records fails its checksum.

    A consumer's has the place that it read at as `topic_partition` and `offset`.
    """

    code_of_class = ErrorCode.CORRUPT_MESSAGE
    advice = "look at the network and the broker's disk; check_crcs=False reads it nevertheless"


class UnknownTopicOrPartitionError(BrokerError):
    """There is no such topic or partition."""

    code_of_class = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    advice = "create the topic first, or check its name"


class NotLeaderForPartitionError(BrokerError):
    """The broker that was asked does not lead the partition (any more)."""

    code_of_class = ErrorCode.NOT_LEADER_OR_FOLLOWER
    advice = "try again: the leader is being looked for"


class LeaderNotAvailableError(BrokerError):
    """The partition has no leader at the moment."""

    code_of_class = ErrorCode.LEADER_NOT_AVAILABLE
    advice = "try again, and see whether its brokers run"


class BrokerNotAvailableError(BrokerError):
    """The cluster has no such broker."""

    code_of_class = ErrorCode.BROKER_NOT_AVAILABLE
    advice = "see describe_cluster for those that it has"


class MessageSizeTooLargeError(BrokerError):
    """A record is larger than somebody takes."""

    code_of_class = ErrorCode.MESSAGE_TOO_LARGE
    advice = "send smaller records, or raise max_request_size and the topic's max.message.bytes"


class RecordListTooLargeError(BrokerError):
    """A batch is larger than the topic takes."""

    code_of_class = ErrorCode.RECORD_LIST_TOO_LARGE
    advice = "lower batch_size, or raise the topic's segment.bytes"


class NotEnoughReplicasError(BrokerError):
    """Fewer replicas are in sync than min.insync.replicas asks for."""

    code_of_class = ErrorCode.NOT_ENOUGH_REPLICAS
    advice = "try again when the brokers are back"


class NotEnoughReplicasAfterAppendError(BrokerError):
    """The record was written, but to too few replicas."""

    code_of_class = ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
    advice = "try again when the brokers are back; without idempotence this may write it twice"


class InvalidRequiredAcksError(BrokerError):
    """The broker does not know this kind of acknowledgement."""

    code_of_class = ErrorCode.INVALID_REQUIRED_ACKS
    advice = "use acks 0, 1 or 'all'"


class InvalidTopicError(BrokerError):
    """The name is not one that a topic can have, or it is the broker's own."""

    code_of_class = ErrorCode.INVALID_TOPIC_EXCEPTION
    advice = "use up to 249 letters, digits, dots, dashes and underscores"


class GroupLoadInProgressError(BrokerError):
    """The coordinator is reading what it knows of the group."""

    code_of_class = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    advice = "try again"


class GroupCoordinatorNotAvailableError(BrokerError):
    """The group has no coordinator at the moment."""

    code_of_class = ErrorCode.COORDINATOR_NOT_AVAILABLE
    advice = "try again"


class NotCoordinatorForGroupError(BrokerError):
    """The broker that was asked is not the group's coordinator (any more)."""

    code_of_class = ErrorCode.NOT_COORDINATOR
    advice = "try again: the coordinator is being looked for"


class IllegalGenerationError(BrokerError):
    """The group has moved on without this member."""

    code_of_class = ErrorCode.ILLEGAL_GENERATION
    advice = "process the records again that were not committed: somebody else may have got them"


class UnknownMemberIdError(BrokerError):
    """The group does not know this member: it was silent for too long, or was removed."""

    code_of_class = ErrorCode.UNKNOWN_MEMBER_ID
    advice = "process the records again that were not committed: somebody else may have got them"


class InconsistentGroupProtocolError(BrokerError):
    """The group's members have no assignor in common with this one, or another kind of membership."""

    code_of_class = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    advice = "give all members one partition_assignment_strategy in common"


class InvalidGroupIdError(BrokerError):
    """The group id is not one that a group can have."""

    code_of_class = ErrorCode.INVALID_GROUP_ID
    advice = "give a group_id that is not empty"


class InvalidSessionTimeoutError(BrokerError):
    """The broker does not take this session timeout."""

    code_of_class = ErrorCode.INVALID_SESSION_TIMEOUT
    advice = (
        "choose session_timeout_ms within the broker's group.min.session.timeout.ms and group.max.session.timeout.ms"
    )


class RebalanceInProgressError(BrokerError):
    """The group is sharing out its partitions."""

    code_of_class = ErrorCode.REBALANCE_IN_PROGRESS
    advice = "go on consuming: the member joins again by itself"


class TopicAuthorizationFailedError(BrokerError):
    """This client may not do that with the topic."""

    code_of_class = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    advice = "have the broker's administrator allow it"


class GroupAuthorizationFailedError(BrokerError):
    """This client may not do that with the group."""

    code_of_class = ErrorCode.GROUP_AUTHORIZATION_FAILED
    advice = "have the broker's administrator allow it"


class ClusterAuthorizationFailedError(BrokerError):
    """This client may not do that with the cluster."""

    code_of_class = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    advice = "have the broker's administrator allow it"


class InvalidTimestampError(BrokerError):
    """The timestamp is further from the broker's clock than the topic takes."""

    code_of_class = ErrorCode.INVALID_TIMESTAMP
    advice = "set the clock, or the topic's message.timestamp.before.max.ms and message.timestamp.after.max.ms"


class TopicAlreadyExistsError(BrokerError):
    """There is a topic of that name already."""

    code_of_class = ErrorCode.TOPIC_ALREADY_EXISTS
    advice = "choose another name, or use the one that is there"


class InvalidPartitionsError(BrokerError):
    """The number of partitions is not one that the topic can have."""

    code_of_class = ErrorCode.INVALID_PARTITIONS
    advice = "a topic has at least one partition, and never loses one"


class InvalidReplicationFactorError(BrokerError):
    """There are fewer brokers than replicas were asked for."""

    code_of_class = ErrorCode.INVALID_REPLICATION_FACTOR
    advice = "ask for at most as many replicas as there are brokers"


class InvalidConfigError(BrokerError):
    """A config's name or value is wrong."""

    code_of_class = ErrorCode.INVALID_CONFIG
    advice = "see describe_configs for names and values"


class NotControllerError(BrokerError):
    """The broker that was asked is not the controller (any more)."""

    code_of_class = ErrorCode.NOT_CONTROLLER
    advice = "try again"


class InvalidRequestError(BrokerError):
    """The broker takes the request for nonsense."""

    code_of_class = ErrorCode.INVALID_REQUEST
    advice = "look at the arguments and at the broker's log"


class UnsupportedForMessageFormatError(BrokerError):
    """The records' format cannot carry that."""

    code_of_class = ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT
    advice = "send no headers to brokers before 0.11"


class PolicyViolationError(BrokerError):
    """The broker's policy forbids it."""

    code_of_class = ErrorCode.POLICY_VIOLATION
    advice = "ask the broker's administrator what is allowed"


class OutOfOrderSequenceNumberError(BrokerError):
    """The broker misses records that were sent before this one."""

    code_of_class = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    advice = "see which of them were acknowledged before sending them again"


class InvalidProducerEpochError(BrokerError):
    """Another producer has taken this one's place."""

    code_of_class = ErrorCode.INVALID_PRODUCER_EPOCH
    advice = "make a new producer"


class ProducerFencedError(BrokerError):
    """Another producer has taken this one's place."""

    code_of_class = ErrorCode.PRODUCER_FENCED
    advice = "make a new producer; let only one run under a transactional id"


class KafkaStorageError(BrokerError):
    """The broker cannot read or write its disk."""

    code_of_class = ErrorCode.KAFKA_STORAGE_ERROR
    advice = "look at the broker's log and disk"


class UnknownProducerIdError(BrokerError):
    """The broker has forgotten this producer, since its records are gone."""

    code_of_class = ErrorCode.UNKNOWN_PRODUCER_ID
    advice = "see which records were acknowledged before sending them again"


class NonEmptyGroupError(BrokerError):
    """The group has members."""

    code_of_class = ErrorCode.NON_EMPTY_GROUP
    advice = "stop its members first"


class GroupIdNotFoundError(BrokerError):
    """There is no such group."""

    code_of_class = ErrorCode.GROUP_ID_NOT_FOUND
    advice = "check its name; a group is made when a member joins or offsets are committed"


class FencedLeaderEpochError(BrokerError):
    """The partition has a newer leader than the one that was asked."""

    code_of_class = ErrorCode.FENCED_LEADER_EPOCH
    advice = "try again"


class UnsupportedCompressionTypeError(BrokerError):
    """The broker is too old for this codec."""

    code_of_class = ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    advice = "use gzip, snappy or lz4"


class MemberIdRequiredError(BrokerError):
    """The coordinator has given the member an id to join with."""

    code_of_class = ErrorCode.MEMBER_ID_REQUIRED
    advice = "join again with it"


class GroupMaxSizeReachedError(BrokerError):
    """The group has as many members as the broker allows."""

    code_of_class = ErrorCode.GROUP_MAX_SIZE_REACHED
    advice = "raise the broker's group.max.size"


class FencedInstanceIdError(BrokerError):
    """Another member has joined with the same group_instance_id."""

    code_of_class = ErrorCode.FENCED_INSTANCE_ID
    advice = "give each running member a group_instance_id of its own"


class GroupSubscribedToTopicError(BrokerError):
    """Members of the group read the topic."""

    code_of_class = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
    advice = "stop them first"


class InvalidRecordError(BrokerError):
    """The broker refuses a record."""

    code_of_class = ErrorCode.INVALID_RECORD
    advice = "on a compacted topic every record needs a key"


class UnstableOffsetCommitError(BrokerError):
    """A transaction that commits offsets is not finished."""

    code_of_class = ErrorCode.UNSTABLE_OFFSET_COMMIT
    advice = "try again"


class ThrottlingQuotaExceededError(BrokerError):
    """A quota is used up."""

    code_of_class = ErrorCode.THROTTLING_QUOTA_EXCEEDED
    advice = "try again later"


class FencedMemberEpochError(BrokerError):
    """The group has moved on without this member."""

    code_of_class = ErrorCode.FENCED_MEMBER_EPOCH
    advice = "process the records again that were not committed: somebody else may have got them"


class UnreleasedInstanceIdError(BrokerError):
    """A member with this group_instance_id is still in the group."""

    code_of_class = ErrorCode.UNRELEASED_INSTANCE_ID
    advice = "stop the other one first, or wait until its session ends"


class UnsupportedAssignorError(BrokerError):
    """The broker does not have the assignor that was asked for."""

    code_of_class = ErrorCode.UNSUPPORTED_ASSIGNOR
    advice = "choose one of the broker's group.consumer.assignors, or none"


class StaleMemberEpochError(BrokerError):
    """The member's epoch is an old one."""

    code_of_class = ErrorCode.STALE_MEMBER_EPOCH
    advice = "process the records again that were not committed: somebody else may have got them"


class InvalidRegularExpressionError(BrokerError):
    """The broker cannot read the pattern."""

    code_of_class = ErrorCode.INVALID_REGULAR_EXPRESSION
    advice = "write it in RE2's syntax"
