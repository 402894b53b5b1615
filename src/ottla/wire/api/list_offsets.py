"""ListOffsets (API key 2). Find offsets by time, and the ends of a log."""

from ottla.wire.schema import int8, int16, int32, int64, message, part, v


@part
class ListOffsetsPartition:
    partition_index: int32 = 0
    current_leader_epoch: int32 = v("4+", -1)
    timestamp: int64 = 0
    max_num_offsets: int32 = v("0", 1)


@part
class ListOffsetsTopic:
    name: str = ""
    partitions: list[ListOffsetsPartition] = v()


@message(key=2, versions="0-11", flexible="6+")
class ListOffsetsRequest:
    """What each version changed.

    v1 drops max_num_offsets; answers one offset by timestamp, not a list of segments.
    v2 adds isolation_level.
    v4 adds current_leader_epoch.
    v6 flexible.
    v7 -3 asks for the largest timestamp.
    v8 -4 asks for the earliest local offset.
    v9 -5 asks for the latest tiered offset.
    v10 adds timeout_ms.
    v11 -6 asks for the earliest offset yet to be tiered.
    """

    replica_id: int32 = 0
    isolation_level: int8 = v("2+")
    topics: list[ListOffsetsTopic] = v()
    timeout_ms: int32 = v("10+")


@part
class ListOffsetsPartitionResponse:
    partition_index: int32 = 0
    error_code: int16 = 0
    old_style_offsets: list[int64] = v("0")
    timestamp: int64 = v("1+", -1)
    offset: int64 = v("1+", -1)
    leader_epoch: int32 = v("4+", -1)


@part
class ListOffsetsTopicResponse:
    name: str = ""
    partitions: list[ListOffsetsPartitionResponse] = v()


@message(key=2, versions="0-11", flexible="6+")
class ListOffsetsResponse:
    """What each version changed.

    v1 adds timestamp, offset; drops old_style_offsets.
    v2 adds throttle_time_ms.
    v4 adds leader_epoch.
    v6 flexible.
    """

    throttle_time_ms: int32 = v("2+")
    topics: list[ListOffsetsTopicResponse] = v()
