"""The error codes of brokers as exceptions: one class for each that a user of a client may want to catch."""

from typing import ClassVar, Self

from ottla.client.types import TopicPartition
from ottla.wire.errors import ErrorCode, KafkaError


class BrokerError(KafkaError):
    """A broker answered with an error code; the subclasses are the codes.

    >>> try:
    ...     raise UnknownTopicOrPartitionError("topic 'orders'")
    ... except BrokerError as error:
    ...     print(error.errno, error.retriable, error.advice, sep=", ")
    3, True, create the topic first, or check its name
    """

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


class BrokerNotAvailableError(BrokerError):
    """The cluster has no such broker.

    >>> print(BrokerNotAvailableError("broker 1"))
    BROKER_NOT_AVAILABLE: broker 1; see describe_cluster for those that it has
    """

    code_of_class = ErrorCode.BROKER_NOT_AVAILABLE
    advice = "see describe_cluster for those that it has"


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


class InvalidTopicError(BrokerError):
    """The name is not one that a topic can have, or it is the broker's own.

    >>> print(InvalidTopicError("topic 'orders'"))
    INVALID_TOPIC_EXCEPTION: topic 'orders'; use up to 249 letters, digits, dots, dashes and underscores
    """

    code_of_class = ErrorCode.INVALID_TOPIC_EXCEPTION
    advice = "use up to 249 letters, digits, dots, dashes and underscores"


class GroupLoadInProgressError(BrokerError):
    """The coordinator is reading what it knows of the group.

    >>> print(GroupLoadInProgressError("group 'billing'"))
    COORDINATOR_LOAD_IN_PROGRESS: group 'billing'; try again
    """

    code_of_class = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    advice = "try again"


class GroupCoordinatorNotAvailableError(BrokerError):
    """The group has no coordinator at the moment.

    >>> print(GroupCoordinatorNotAvailableError("group 'billing'"))
    COORDINATOR_NOT_AVAILABLE: group 'billing'; try again
    """

    code_of_class = ErrorCode.COORDINATOR_NOT_AVAILABLE
    advice = "try again"


class NotCoordinatorForGroupError(BrokerError):
    """The broker that was asked is not the group's coordinator (any more).

    >>> print(NotCoordinatorForGroupError("group 'billing'"))
    NOT_COORDINATOR: group 'billing'; try again: the coordinator is being looked for
    """

    code_of_class = ErrorCode.NOT_COORDINATOR
    advice = "try again: the coordinator is being looked for"


class IllegalGenerationError(BrokerError):
    r"""The group has moved on without this member.

    >>> print(str(IllegalGenerationError("group 'billing'")).replace("; ", ";\n", 1))
    ILLEGAL_GENERATION: group 'billing';
    process the records again that were not committed: somebody else may have got them
    """

    code_of_class = ErrorCode.ILLEGAL_GENERATION
    advice = "process the records again that were not committed: somebody else may have got them"


class UnknownMemberIdError(BrokerError):
    r"""The group does not know this member: it was silent for too long, or was removed.

    >>> print(str(UnknownMemberIdError("group 'billing', member 'ottla-1'")).replace("; ", ";\n", 1))
    UNKNOWN_MEMBER_ID: group 'billing', member 'ottla-1';
    process the records again that were not committed: somebody else may have got them
    """

    code_of_class = ErrorCode.UNKNOWN_MEMBER_ID
    advice = "process the records again that were not committed: somebody else may have got them"


class InconsistentGroupProtocolError(BrokerError):
    """The group's members have no assignor in common with this one, or another kind of membership.

    >>> print(InconsistentGroupProtocolError("group 'billing'"))
    INCONSISTENT_GROUP_PROTOCOL: group 'billing'; give all members one partition_assignment_strategy in common
    """

    code_of_class = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    advice = "give all members one partition_assignment_strategy in common"


class InvalidGroupIdError(BrokerError):
    """The group id is not one that a group can have.

    >>> print(InvalidGroupIdError("group 'billing'"))
    INVALID_GROUP_ID: group 'billing'; give a group_id that is not empty
    """

    code_of_class = ErrorCode.INVALID_GROUP_ID
    advice = "give a group_id that is not empty"


class InvalidSessionTimeoutError(BrokerError):
    r"""The broker does not take this session timeout.

    >>> print(str(InvalidSessionTimeoutError("session_timeout_ms = 10")).replace("; ", ";\n", 1))
    INVALID_SESSION_TIMEOUT: session_timeout_ms = 10;
    choose session_timeout_ms within the broker's group.min.session.timeout.ms and group.max.session.timeout.ms
    """

    code_of_class = ErrorCode.INVALID_SESSION_TIMEOUT
    advice = (
        "choose session_timeout_ms within the broker's group.min.session.timeout.ms and group.max.session.timeout.ms"
    )


class RebalanceInProgressError(BrokerError):
    """The group is sharing out its partitions.

    >>> print(RebalanceInProgressError("group 'billing', member 'ottla-1'"))
    REBALANCE_IN_PROGRESS: group 'billing', member 'ottla-1'; go on consuming: the member joins again by itself
    """

    code_of_class = ErrorCode.REBALANCE_IN_PROGRESS
    advice = "go on consuming: the member joins again by itself"


class TopicAuthorizationFailedError(BrokerError):
    """This client may not do that with the topic.

    >>> print(TopicAuthorizationFailedError("topic 'orders'"))
    TOPIC_AUTHORIZATION_FAILED: topic 'orders'; have the broker's administrator allow it
    """

    code_of_class = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    advice = "have the broker's administrator allow it"


class GroupAuthorizationFailedError(BrokerError):
    """This client may not do that with the group.

    >>> print(GroupAuthorizationFailedError("group 'billing'"))
    GROUP_AUTHORIZATION_FAILED: group 'billing'; have the broker's administrator allow it
    """

    code_of_class = ErrorCode.GROUP_AUTHORIZATION_FAILED
    advice = "have the broker's administrator allow it"


class ClusterAuthorizationFailedError(BrokerError):
    """This client may not do that with the cluster.

    >>> print(ClusterAuthorizationFailedError("broker 1"))
    CLUSTER_AUTHORIZATION_FAILED: broker 1; have the broker's administrator allow it
    """

    code_of_class = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    advice = "have the broker's administrator allow it"


class InvalidTimestampError(BrokerError):
    r"""The timestamp is further from the broker's clock than the topic takes.

    >>> print(str(InvalidTimestampError("orders-0")).replace("; ", ";\n", 1))
    INVALID_TIMESTAMP: orders-0;
    set the clock, or the topic's message.timestamp.before.max.ms and message.timestamp.after.max.ms
    """

    code_of_class = ErrorCode.INVALID_TIMESTAMP
    advice = "set the clock, or the topic's message.timestamp.before.max.ms and message.timestamp.after.max.ms"


class TopicAlreadyExistsError(BrokerError):
    """There is a topic of that name already.

    >>> print(TopicAlreadyExistsError("topic 'orders'"))
    TOPIC_ALREADY_EXISTS: topic 'orders'; choose another name, or use the one that is there
    """

    code_of_class = ErrorCode.TOPIC_ALREADY_EXISTS
    advice = "choose another name, or use the one that is there"


class InvalidPartitionsError(BrokerError):
    """The number of partitions is not one that the topic can have.

    >>> print(InvalidPartitionsError("topic 'orders'"))
    INVALID_PARTITIONS: topic 'orders'; a topic has at least one partition, and never loses one
    """

    code_of_class = ErrorCode.INVALID_PARTITIONS
    advice = "a topic has at least one partition, and never loses one"


class InvalidReplicationFactorError(BrokerError):
    """There are fewer brokers than replicas were asked for.

    >>> print(InvalidReplicationFactorError("topic 'orders'"))
    INVALID_REPLICATION_FACTOR: topic 'orders'; ask for at most as many replicas as there are brokers
    """

    code_of_class = ErrorCode.INVALID_REPLICATION_FACTOR
    advice = "ask for at most as many replicas as there are brokers"


class InvalidConfigError(BrokerError):
    """A config's name or value is wrong.

    >>> print(InvalidConfigError("topic 'orders'"))
    INVALID_CONFIG: topic 'orders'; see describe_configs for names and values
    """

    code_of_class = ErrorCode.INVALID_CONFIG
    advice = "see describe_configs for names and values"


class NotControllerError(BrokerError):
    """The broker that was asked is not the controller (any more).

    >>> print(NotControllerError("broker 1"))
    NOT_CONTROLLER: broker 1; try again
    """

    code_of_class = ErrorCode.NOT_CONTROLLER
    advice = "try again"


class InvalidRequestError(BrokerError):
    """The broker takes the request for nonsense.

    >>> print(InvalidRequestError("broker 1"))
    INVALID_REQUEST: broker 1; look at the arguments and at the broker's log
    """

    code_of_class = ErrorCode.INVALID_REQUEST
    advice = "look at the arguments and at the broker's log"


class UnsupportedForMessageFormatError(BrokerError):
    """The records' format cannot carry that.

    >>> print(UnsupportedForMessageFormatError("orders-0"))
    UNSUPPORTED_FOR_MESSAGE_FORMAT: orders-0; send no headers to brokers before 0.11
    """

    code_of_class = ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT
    advice = "send no headers to brokers before 0.11"


class PolicyViolationError(BrokerError):
    """The broker's policy forbids it.

    >>> print(PolicyViolationError("topic 'orders'"))
    POLICY_VIOLATION: topic 'orders'; ask the broker's administrator what is allowed
    """

    code_of_class = ErrorCode.POLICY_VIOLATION
    advice = "ask the broker's administrator what is allowed"


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


class NonEmptyGroupError(BrokerError):
    """The group has members.

    >>> print(NonEmptyGroupError("group 'billing'"))
    NON_EMPTY_GROUP: group 'billing'; stop its members first
    """

    code_of_class = ErrorCode.NON_EMPTY_GROUP
    advice = "stop its members first"


class GroupIdNotFoundError(BrokerError):
    """There is no such group.

    >>> print(GroupIdNotFoundError("group 'billing'"))
    GROUP_ID_NOT_FOUND: group 'billing'; check its name; a group is made when a member joins or offsets are committed
    """

    code_of_class = ErrorCode.GROUP_ID_NOT_FOUND
    advice = "check its name; a group is made when a member joins or offsets are committed"


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


class MemberIdRequiredError(BrokerError):
    """The coordinator has given the member an id to join with.

    >>> print(MemberIdRequiredError("group 'billing', member 'ottla-1'"))
    MEMBER_ID_REQUIRED: group 'billing', member 'ottla-1'; join again with it
    """

    code_of_class = ErrorCode.MEMBER_ID_REQUIRED
    advice = "join again with it"


class GroupMaxSizeReachedError(BrokerError):
    """The group has as many members as the broker allows.

    >>> print(GroupMaxSizeReachedError("group 'billing'"))
    GROUP_MAX_SIZE_REACHED: group 'billing'; raise the broker's group.max.size
    """

    code_of_class = ErrorCode.GROUP_MAX_SIZE_REACHED
    advice = "raise the broker's group.max.size"


class FencedInstanceIdError(BrokerError):
    """Another member has joined with the same group_instance_id.

    >>> print(FencedInstanceIdError("group 'billing', member 'ottla-1'"))
    FENCED_INSTANCE_ID: group 'billing', member 'ottla-1'; give each running member a group_instance_id of its own
    """

    code_of_class = ErrorCode.FENCED_INSTANCE_ID
    advice = "give each running member a group_instance_id of its own"


class GroupSubscribedToTopicError(BrokerError):
    """Members of the group read the topic.

    >>> print(GroupSubscribedToTopicError("group 'billing'"))
    GROUP_SUBSCRIBED_TO_TOPIC: group 'billing'; stop them first
    """

    code_of_class = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
    advice = "stop them first"


class InvalidRecordError(BrokerError):
    """The broker refuses a record.

    >>> print(InvalidRecordError("orders-0"))
    INVALID_RECORD: orders-0; on a compacted topic every record needs a key
    """

    code_of_class = ErrorCode.INVALID_RECORD
    advice = "on a compacted topic every record needs a key"


class UnstableOffsetCommitError(BrokerError):
    """A transaction that commits offsets is not finished.

    >>> print(UnstableOffsetCommitError("orders-0"))
    UNSTABLE_OFFSET_COMMIT: orders-0; try again
    """

    code_of_class = ErrorCode.UNSTABLE_OFFSET_COMMIT
    advice = "try again"


class ThrottlingQuotaExceededError(BrokerError):
    """A quota is used up.

    >>> print(ThrottlingQuotaExceededError("broker 1"))
    THROTTLING_QUOTA_EXCEEDED: broker 1; try again later
    """

    code_of_class = ErrorCode.THROTTLING_QUOTA_EXCEEDED
    advice = "try again later"


class FencedMemberEpochError(BrokerError):
    r"""The group has moved on without this member.

    >>> print(str(FencedMemberEpochError("group 'billing', member 'ottla-1'")).replace("; ", ";\n", 1))
    FENCED_MEMBER_EPOCH: group 'billing', member 'ottla-1';
    process the records again that were not committed: somebody else may have got them
    """

    code_of_class = ErrorCode.FENCED_MEMBER_EPOCH
    advice = "process the records again that were not committed: somebody else may have got them"


class UnreleasedInstanceIdError(BrokerError):
    """A member with this group_instance_id is still in the group.

    >>> print(UnreleasedInstanceIdError("group 'billing', member 'ottla-1'"))
    UNRELEASED_INSTANCE_ID: group 'billing', member 'ottla-1'; stop the other one first, or wait until its session ends
    """

    code_of_class = ErrorCode.UNRELEASED_INSTANCE_ID
    advice = "stop the other one first, or wait until its session ends"


class UnsupportedAssignorError(BrokerError):
    r"""The broker does not have the assignor that was asked for.

    >>> print(str(UnsupportedAssignorError("group 'billing', member 'ottla-1'")).replace("; ", ";\n", 1))
    UNSUPPORTED_ASSIGNOR: group 'billing', member 'ottla-1';
    choose one of the broker's group.consumer.assignors, or none
    """

    code_of_class = ErrorCode.UNSUPPORTED_ASSIGNOR
    advice = "choose one of the broker's group.consumer.assignors, or none"


class StaleMemberEpochError(BrokerError):
    r"""The member's epoch is an old one.

    >>> print(str(StaleMemberEpochError("group 'billing', member 'ottla-1'")).replace("; ", ";\n", 1))
    STALE_MEMBER_EPOCH: group 'billing', member 'ottla-1';
    process the records again that were not committed: somebody else may have got them
    """

    code_of_class = ErrorCode.STALE_MEMBER_EPOCH
    advice = "process the records again that were not committed: somebody else may have got them"


class InvalidRegularExpressionError(BrokerError):
    """The broker cannot read the pattern.

    >>> print(InvalidRegularExpressionError("pattern 'orders-['"))
    INVALID_REGULAR_EXPRESSION: pattern 'orders-['; write it in RE2's syntax
    """

    code_of_class = ErrorCode.INVALID_REGULAR_EXPRESSION
    advice = "write it in RE2's syntax"


class ResourceNotFoundError(BrokerError):
    """What is to be described or deleted does not exist.

    >>> print(ResourceNotFoundError("there is no user 'alice'"))
    RESOURCE_NOT_FOUND: there is no user 'alice'; look what there is, and check the name
    """

    code_of_class = ErrorCode.RESOURCE_NOT_FOUND
    advice = "look what there is, and check the name"


class DuplicateResourceError(BrokerError):
    """The same thing is named twice in one request.

    >>> print(DuplicateResourceError("user 'alice'"))
    DUPLICATE_RESOURCE: user 'alice'; name it once
    """

    code_of_class = ErrorCode.DUPLICATE_RESOURCE
    advice = "name it once"


class UnacceptableCredentialError(BrokerError):
    """A credential that the broker does not take.

    >>> print(UnacceptableCredentialError("user 'alice': 100 iterations"))
    UNACCEPTABLE_CREDENTIAL: user 'alice': 100 iterations; take 4096 to 16384 iterations, and a name that is not empty
    """

    code_of_class = ErrorCode.UNACCEPTABLE_CREDENTIAL
    advice = "take 4096 to 16384 iterations, and a name that is not empty"
