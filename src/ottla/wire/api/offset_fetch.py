"""OffsetFetch (API key 9). Read a group's positions."""

from ottla.wire.schema import int16, int32, int64, message, part, uuid, v


@part
class OffsetFetchRequestTopic:
    name: str = ""
    partition_indexes: list[int32] = v()


@part
class OffsetFetchRequestTopics:
    name: str = v("8-9")
    topic_id: uuid = v("10+")
    partition_indexes: list[int32] = v()


@part
class OffsetFetchRequestGroup:
    group_id: str = ""
    member_id: str | None = v("9+", None)
    member_epoch: int32 = v("9+", -1)
    topics: list[OffsetFetchRequestTopics] | None = v()


@message(key=9, versions="0-10", flexible="6+")
class OffsetFetchRequest:
    """What each version changed.

    v0 read from the metadata store, not from the offsets topic.
    v2 topics may be null.
    v6 flexible.
    v7 adds require_stable.
    v8 adds groups; drops group_id, topics, name, partition_indexes.
    v9 adds member_id, member_epoch.
    v10 adds topic_id; drops name.
    """

    group_id: str = v("0-7")
    topics: list[OffsetFetchRequestTopic] | None = v("0-7", nullable="2-7")
    groups: list[OffsetFetchRequestGroup] = v("8+")
    require_stable: bool = v("7+")


@part
class OffsetFetchResponsePartition:
    partition_index: int32 = 0
    committed_offset: int64 = 0
    committed_leader_epoch: int32 = v("5-7", -1)
    metadata: str | None = ""
    error_code: int16 = 0


@part
class OffsetFetchResponseTopic:
    name: str = ""
    partitions: list[OffsetFetchResponsePartition] = v()


@part
class OffsetFetchResponsePartitions:
    partition_index: int32 = 0
    committed_offset: int64 = 0
    committed_leader_epoch: int32 = -1
    metadata: str | None = ""
    error_code: int16 = 0


@part
class OffsetFetchResponseTopics:
    name: str = v("8-9")
    topic_id: uuid = v("10+")
    partitions: list[OffsetFetchResponsePartitions] = v()


@part
class OffsetFetchResponseGroup:
    group_id: str = ""
    topics: list[OffsetFetchResponseTopics] = v()
    error_code: int16 = 0


@message(key=9, versions="0-10", flexible="6+")
class OffsetFetchResponse:
    """What each version changed.

    v2 adds error_code.
    v3 adds throttle_time_ms.
    v5 adds committed_leader_epoch.
    v6 flexible.
    v8 adds groups; drops topics, name, partitions, partition_index, committed_offset,
        committed_leader_epoch, metadata, error_code.
    v10 adds topic_id; drops name.
    """

    throttle_time_ms: int32 = v("3+")
    topics: list[OffsetFetchResponseTopic] = v("0-7")
    error_code: int16 = v("2-7")
    groups: list[OffsetFetchResponseGroup] = v("8+")
