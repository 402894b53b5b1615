"""OffsetDelete (API key 47). Delete a group's positions."""

from ottla.wire.schema import int16, int32, message, part, v


@part
class OffsetDeleteRequestPartition:
    partition_index: int32 = 0


@part
class OffsetDeleteRequestTopic:
    name: str = ""
    partitions: list[OffsetDeleteRequestPartition] = v()


@message(key=47, versions="0")
class OffsetDeleteRequest:
    """The only version so far."""

    group_id: str = ""
    topics: list[OffsetDeleteRequestTopic] = v()


@part
class OffsetDeleteResponsePartition:
    partition_index: int32 = 0
    error_code: int16 = 0


@part
class OffsetDeleteResponseTopic:
    name: str = ""
    partitions: list[OffsetDeleteResponsePartition] = v()


@message(key=47, versions="0")
class OffsetDeleteResponse:
    """The only version so far."""

    error_code: int16 = 0
    throttle_time_ms: int32 = 0
    topics: list[OffsetDeleteResponseTopic] = v()
