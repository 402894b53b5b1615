"""OffsetForLeaderEpoch (API key 23). Where a leader's epoch ended."""

from ottla.wire.schema import int16, int32, int64, message, part, v


@part
class OffsetForLeaderPartition:
    partition: int32 = 0
    current_leader_epoch: int32 = v("2+", -1)
    leader_epoch: int32 = 0


@part
class OffsetForLeaderTopic:
    topic: str = ""
    partitions: list[OffsetForLeaderPartition] = v()


@message(key=23, versions="0-4", flexible="4+")
class OffsetForLeaderEpochRequest:
    """v2 adds current_leader_epoch; v3 adds replica_id; v4 flexible."""

    replica_id: int32 = v("3+", -2)
    topics: list[OffsetForLeaderTopic] = v()


@part
class EpochEndOffset:
    error_code: int16 = 0
    partition: int32 = 0
    leader_epoch: int32 = v("1+", -1)
    end_offset: int64 = -1


@part
class OffsetForLeaderTopicResult:
    topic: str = ""
    partitions: list[EpochEndOffset] = v()


@message(key=23, versions="0-4", flexible="4+")
class OffsetForLeaderEpochResponse:
    """v1 adds leader_epoch; v2 adds throttle_time_ms; v4 flexible."""

    throttle_time_ms: int32 = v("2+")
    topics: list[OffsetForLeaderTopicResult] = v()
