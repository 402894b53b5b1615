"""The records of the `__consumer_offsets` topic."""

from ottla.wire.schema import int8, int32, int64, message, part, uuid, v


@message(key=8, versions="0")
class ConsumerGroupCurrentMemberAssignmentKey:
    """The only version so far."""

    group_id: str = ""
    member_id: str = ""


@part
class TopicPartitions:
    topic_id: uuid = v()
    partitions: list[int32] = v()
    assignment_epochs: list[int32] | None = v("0+", None, tag=0)


@message(key=8, versions="0", flexible="0+")
class ConsumerGroupCurrentMemberAssignmentValue:
    """The only version so far."""

    member_epoch: int32 = 0
    previous_member_epoch: int32 = 0
    state: int8 = 0
    assigned_partitions: list[TopicPartitions] = v()
    partitions_pending_revocation: list[TopicPartitions] = v()


@message(key=5, versions="0")
class ConsumerGroupMemberMetadataKey:
    """The only version so far."""

    group_id: str = ""
    member_id: str = ""


@part
class ClassicProtocol:
    name: str = ""
    metadata: bytes = b""


@part
class ClassicMemberMetadata:
    session_timeout_ms: int32 = 0
    supported_protocols: list[ClassicProtocol] = v()


@message(key=5, versions="0", flexible="0+")
class ConsumerGroupMemberMetadataValue:
    """The only version so far."""

    instance_id: str | None = ""
    rack_id: str | None = ""
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: list[str] = v()
    subscribed_topic_regex: str | None = ""
    rebalance_timeout_ms: int32 = -1
    server_assignor: str | None = ""
    classic_member_metadata: ClassicMemberMetadata | None = v("0+", tag=0)


@message(key=3, versions="0")
class ConsumerGroupMetadataKey:
    """The only version so far."""

    group_id: str = ""


@message(key=3, versions="0", flexible="0+")
class ConsumerGroupMetadataValue:
    """The only version so far."""

    epoch: int32 = 0
    metadata_hash: int64 = v("0+", tag=0)


@message(key=4, versions="0")
class ConsumerGroupPartitionMetadataKey:
    """The only version so far."""

    group_id: str = ""


@part
class PartitionMetadata:
    partition: int32 = 0
    racks: list[str] = v()


@part
class TopicMetadata:
    topic_id: uuid = v()
    topic_name: str = ""
    num_partitions: int32 = 0
    partition_metadata: list[PartitionMetadata] = v()


@message(key=4, versions="0", flexible="0+")
class ConsumerGroupPartitionMetadataValue:
    """The only version so far."""

    topics: list[TopicMetadata] = v()


@message(key=16, versions="0")
class ConsumerGroupRegularExpressionKey:
    """The only version so far."""

    group_id: str = ""
    regular_expression: str = ""


@message(key=16, versions="0", flexible="0+")
class ConsumerGroupRegularExpressionValue:
    """The only version so far."""

    topics: list[str] = v()
    version: int64 = 0
    timestamp: int64 = 0


@message(key=7, versions="0")
class ConsumerGroupTargetAssignmentMemberKey:
    """The only version so far."""

    group_id: str = ""
    member_id: str = ""


@part
class TopicPartition:
    topic_id: uuid = v()
    partitions: list[int32] = v()


@message(key=7, versions="0", flexible="0+")
class ConsumerGroupTargetAssignmentMemberValue:
    """The only version so far."""

    topic_partitions: list[TopicPartition] = v()


@message(key=6, versions="0")
class ConsumerGroupTargetAssignmentMetadataKey:
    """The only version so far."""

    group_id: str = ""


@message(key=6, versions="0", flexible="0+")
class ConsumerGroupTargetAssignmentMetadataValue:
    """The only version so far."""

    assignment_epoch: int32 = 0
    assignment_timestamp: int64 = v("0+", tag=0)


@message(key=2, versions="0")
class GroupMetadataKey:
    """The only version so far."""

    group: str = ""


@part
class MemberMetadata:
    member_id: str = ""
    group_instance_id: str | None = v("3+", None)
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout: int32 = v("1+", -1)
    session_timeout: int32 = 0
    subscription: bytes = b""
    assignment: bytes = b""


@message(key=2, versions="0-4", flexible="4+")
class GroupMetadataValue:
    """What each version changed.

    v1 adds rebalance_timeout.
    v2 adds current_state_timestamp.
    v3 adds group_instance_id.
    v4 flexible.
    """

    protocol_type: str = ""
    generation: int32 = 0
    protocol: str | None = ""
    leader: str | None = ""
    current_state_timestamp: int64 = v("2+", -1)
    members: list[MemberMetadata] = v()


@message(key=0, versions="0")
class LegacyOffsetCommitKey:
    """The only version so far."""

    group: str = ""
    topic: str = ""
    partition: int32 = 0


@message(key=0, versions="0")
class LegacyOffsetCommitValue:
    """The only version so far."""

    offset: int64 = 0
    metadata: str = ""
    commit_timestamp: int64 = 0


@message(key=1, versions="0")
class OffsetCommitKey:
    """The only version so far."""

    group: str = ""
    topic: str = ""
    partition: int32 = 0


@message(key=1, versions="0-4", flexible="4+")
class OffsetCommitValue:
    """What each version changed.

    v1 adds expire_timestamp.
    v2 drops expire_timestamp.
    v3 adds leader_epoch.
    v4 adds topic_id; flexible.
    """

    offset: int64 = 0
    leader_epoch: int32 = v("3+", -1)
    metadata: str = ""
    commit_timestamp: int64 = 0
    expire_timestamp: int64 = v("1", -1)
    topic_id: uuid = v("4+", tag=0)
