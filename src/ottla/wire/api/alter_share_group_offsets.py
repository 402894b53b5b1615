"""AlterShareGroupOffsets (API key 91). Set a share group's positions."""

from ottla.wire.schema import int16, int32, int64, message, part, uuid, v


@part
class AlterShareGroupOffsetsRequestPartition:
    partition_index: int32 = 0
    start_offset: int64 = 0


@part
class AlterShareGroupOffsetsRequestTopic:
    topic_name: str = ""
    partitions: list[AlterShareGroupOffsetsRequestPartition] = v()


@message(key=91, versions="0", flexible="0+")
class AlterShareGroupOffsetsRequest:
    """The only version so far."""

    group_id: str = ""
    topics: list[AlterShareGroupOffsetsRequestTopic] = v()


@part
class AlterShareGroupOffsetsResponsePartition:
    partition_index: int32 = 0
    error_code: int16 = 0
    error_message: str | None = None


@part
class AlterShareGroupOffsetsResponseTopic:
    topic_name: str = ""
    topic_id: uuid = v()
    partitions: list[AlterShareGroupOffsetsResponsePartition] = v()


@message(key=91, versions="0", flexible="0+")
class AlterShareGroupOffsetsResponse:
    """The only version so far."""

    throttle_time_ms: int32 = 0
    error_code: int16 = 0
    error_message: str | None = None
    responses: list[AlterShareGroupOffsetsResponseTopic] = v()
