"""CreatePartitions (API key 37). Add partitions to topics."""

from ottla.wire.schema import int16, int32, message, part, v


@part
class CreatePartitionsAssignment:
    broker_ids: list[int32] = v()


@part
class CreatePartitionsTopic:
    name: str = ""
    count: int32 = 0
    assignments: list[CreatePartitionsAssignment] | None = v()


@message(key=37, versions="0-3", flexible="2+")
class CreatePartitionsRequest:
    """v2 flexible."""

    topics: list[CreatePartitionsTopic] = v()
    timeout_ms: int32 = 0
    validate_only: bool = False


@part
class CreatePartitionsTopicResult:
    name: str = ""
    error_code: int16 = 0
    error_message: str | None = None


@message(key=37, versions="0-3", flexible="2+")
class CreatePartitionsResponse:
    """v2 flexible."""

    throttle_time_ms: int32 = 0
    results: list[CreatePartitionsTopicResult] = v()
