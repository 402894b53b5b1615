"""OffsetCommit (API key 8). Store a group's positions."""

from ottla.wire.schema import int16, int32, int64, message, part, uuid, v


@part
class OffsetCommitRequestPartition:
    partition_index: int32 = 0
    committed_offset: int64 = 0
    committed_leader_epoch: int32 = v("6+", -1)
    commit_timestamp: int64 = v("1", -1)
    committed_metadata: str | None = ""


@part
class OffsetCommitRequestTopic:
    name: str = v("0-9")
    topic_id: uuid = v("10+")
    partitions: list[OffsetCommitRequestPartition] = v()


@message(key=8, versions="0-10", flexible="8+")
class OffsetCommitRequest:
    """What each version changed.

    v0 kept in the metadata store, not in the offsets topic.
    v1 adds generation_id_or_member_epoch, member_id, commit_timestamp.
    v2 adds retention_time_ms; drops commit_timestamp.
    v5 drops retention_time_ms.
    v6 adds committed_leader_epoch.
    v7 adds group_instance_id.
    v8 flexible.
    v9 member epochs of the consumer protocol.
    v10 adds topic_id; drops name.
    """

    group_id: str = ""
    generation_id_or_member_epoch: int32 = v("1+", -1)
    member_id: str = v("1+")
    group_instance_id: str | None = v("7+", None)
    retention_time_ms: int64 = v("2-4", -1)
    topics: list[OffsetCommitRequestTopic] = v()


@part
class OffsetCommitResponsePartition:
    partition_index: int32 = 0
    error_code: int16 = 0


@part
class OffsetCommitResponseTopic:
    name: str = v("0-9")
    topic_id: uuid = v("10+")
    partitions: list[OffsetCommitResponsePartition] = v()


@message(key=8, versions="0-10", flexible="8+")
class OffsetCommitResponse:
    """v3 adds throttle_time_ms; v8 flexible; v10 adds topic_id; drops name."""

    throttle_time_ms: int32 = v("3+")
    topics: list[OffsetCommitResponseTopic] = v()
