"""ElectLeaders (API key 43). Ask for leader elections."""

from ottla.wire.schema import int8, int16, int32, message, part, v


@part
class TopicPartitions:
    topic: str = ""
    partitions: list[int32] = v()


@message(key=43, versions="0-2", flexible="2+")
class ElectLeadersRequest:
    """v1 adds election_type; v2 flexible."""

    election_type: int8 = v("1+")
    topic_partitions: list[TopicPartitions] | None = v()
    timeout_ms: int32 = 60000


@part
class PartitionResult:
    partition_id: int32 = 0
    error_code: int16 = 0
    error_message: str | None = ""


@part
class ReplicaElectionResult:
    topic: str = ""
    partition_result: list[PartitionResult] = v()


@message(key=43, versions="0-2", flexible="2+")
class ElectLeadersResponse:
    """v1 adds error_code; v2 flexible."""

    throttle_time_ms: int32 = 0
    error_code: int16 = v("1+")
    replica_election_results: list[ReplicaElectionResult] = v()
