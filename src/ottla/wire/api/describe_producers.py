"""DescribeProducers (API key 61). Producers that write to a partition."""

from ottla.wire.schema import int16, int32, int64, message, part, v


@part
class TopicRequest:
    name: str = ""
    partition_indexes: list[int32] = v()


@message(key=61, versions="0", flexible="0+")
class DescribeProducersRequest:
    """The only version so far."""

    topics: list[TopicRequest] = v()


@part
class ProducerState:
    producer_id: int64 = 0
    producer_epoch: int32 = 0
    last_sequence: int32 = -1
    last_timestamp: int64 = -1
    coordinator_epoch: int32 = 0
    current_txn_start_offset: int64 = -1


@part
class PartitionResponse:
    partition_index: int32 = 0
    error_code: int16 = 0
    error_message: str | None = None
    active_producers: list[ProducerState] = v()


@part
class TopicResponse:
    name: str = ""
    partitions: list[PartitionResponse] = v()


@message(key=61, versions="0", flexible="0+")
class DescribeProducersResponse:
    """The only version so far."""

    throttle_time_ms: int32 = 0
    topics: list[TopicResponse] = v()
