"""AlterPartitionReassignments (API key 45). Move partitions to other brokers."""

from ottla.wire.schema import int16, int32, message, part, v


@part
class ReassignablePartition:
    partition_index: int32 = 0
    replicas: list[int32] | None = None


@part
class ReassignableTopic:
    name: str = ""
    partitions: list[ReassignablePartition] = v()


@message(key=45, versions="0-1", flexible="0+")
class AlterPartitionReassignmentsRequest:
    """v1 adds allow_replication_factor_change."""

    timeout_ms: int32 = 60000
    allow_replication_factor_change: bool = v("1+", True)
    topics: list[ReassignableTopic] = v()


@part
class ReassignablePartitionResponse:
    partition_index: int32 = 0
    error_code: int16 = 0
    error_message: str | None = ""


@part
class ReassignableTopicResponse:
    name: str = ""
    partitions: list[ReassignablePartitionResponse] = v()


@message(key=45, versions="0-1", flexible="0+")
class AlterPartitionReassignmentsResponse:
    """v1 adds allow_replication_factor_change."""

    throttle_time_ms: int32 = 0
    allow_replication_factor_change: bool = v("1+", True)
    error_code: int16 = 0
    error_message: str | None = ""
    responses: list[ReassignableTopicResponse] = v()
