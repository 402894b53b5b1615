"""ListPartitionReassignments (API key 46). Moves under way."""

from ottla.wire.schema import int16, int32, message, part, v


@part
class ListPartitionReassignmentsTopics:
    name: str = ""
    partition_indexes: list[int32] = v()


@message(key=46, versions="0", flexible="0+")
class ListPartitionReassignmentsRequest:
    """The only version so far."""

    timeout_ms: int32 = 60000
    topics: list[ListPartitionReassignmentsTopics] | None = None


@part
class OngoingPartitionReassignment:
    partition_index: int32 = 0
    replicas: list[int32] = v()
    adding_replicas: list[int32] = v()
    removing_replicas: list[int32] = v()


@part
class OngoingTopicReassignment:
    name: str = ""
    partitions: list[OngoingPartitionReassignment] = v()


@message(key=46, versions="0", flexible="0+")
class ListPartitionReassignmentsResponse:
    """The only version so far."""

    throttle_time_ms: int32 = 0
    error_code: int16 = 0
    error_message: str | None = ""
    topics: list[OngoingTopicReassignment] = v()
