"""DescribeShareGroupOffsets (API key 90). A share group's positions."""

from ottla.wire.schema import int16, int32, int64, message, part, uuid, v


@part
class DescribeShareGroupOffsetsRequestTopic:
    topic_name: str = ""
    partitions: list[int32] = v()


@part
class DescribeShareGroupOffsetsRequestGroup:
    group_id: str = ""
    topics: list[DescribeShareGroupOffsetsRequestTopic] | None = v()


@message(key=90, versions="0-1", flexible="0+")
class DescribeShareGroupOffsetsRequest:
    """No version changed any field."""

    groups: list[DescribeShareGroupOffsetsRequestGroup] = v()


@part
class DescribeShareGroupOffsetsResponsePartition:
    partition_index: int32 = 0
    start_offset: int64 = 0
    leader_epoch: int32 = 0
    lag: int64 = v("1+", -1)
    error_code: int16 = 0
    error_message: str | None = None


@part
class DescribeShareGroupOffsetsResponseTopic:
    topic_name: str = ""
    topic_id: uuid = v()
    partitions: list[DescribeShareGroupOffsetsResponsePartition] = v()


@part
class DescribeShareGroupOffsetsResponseGroup:
    group_id: str = ""
    topics: list[DescribeShareGroupOffsetsResponseTopic] = v()
    error_code: int16 = 0
    error_message: str | None = None


@message(key=90, versions="0-1", flexible="0+")
class DescribeShareGroupOffsetsResponse:
    """v1 adds lag."""

    throttle_time_ms: int32 = 0
    groups: list[DescribeShareGroupOffsetsResponseGroup] = v()
