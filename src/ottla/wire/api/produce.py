"""Produce (API key 0). Append records to partitions."""

from ottla.wire.schema import int16, int32, int64, message, part, record_set, uuid, v


@part
class PartitionProduceData:
    index: int32 = 0
    records: record_set | None = None


@part
class TopicProduceData:
    name: str = v("0-12")
    topic_id: uuid = v("13+")
    partition_data: list[PartitionProduceData] = v()


@message(key=0, versions="0-13", flexible="9+")
class ProduceRequest:
    """What each version changed.

    v1 the reply has a throttle time.
    v2 message sets of magic 1, with timestamps.
    v3 adds transactional_id; exactly one batch of magic 2 per partition.
    v7 zstd allowed.
    v9 flexible.
    v10 the reply names a new leader.
    v12 partitions join their transaction by being written to.
    v13 adds topic_id; drops name.
    """

    transactional_id: str | None = v("3+", None)
    acks: int16 = 0
    timeout_ms: int32 = 0
    topic_data: list[TopicProduceData] = v()


@part
class BatchIndexAndErrorMessage:
    batch_index: int32 = 0
    batch_index_error_message: str | None = None


@part
class LeaderIdAndEpoch:
    leader_id: int32 = -1
    leader_epoch: int32 = -1


@part
class PartitionProduceResponse:
    index: int32 = 0
    error_code: int16 = 0
    base_offset: int64 = 0
    log_append_time_ms: int64 = v("2+", -1)
    log_start_offset: int64 = v("5+", -1)
    record_errors: list[BatchIndexAndErrorMessage] = v("8+")
    error_message: str | None = v("8+", None)
    current_leader: LeaderIdAndEpoch | None = v("10+", nullable="none", tag=0)


@part
class TopicProduceResponse:
    name: str = v("0-12")
    topic_id: uuid = v("13+")
    partition_responses: list[PartitionProduceResponse] = v()


@part
class NodeEndpoint:
    node_id: int32 = 0
    host: str = ""
    port: int32 = 0
    rack: str | None = None


@message(key=0, versions="0-13", flexible="9+")
class ProduceResponse:
    """What each version changed.

    v1 adds throttle_time_ms.
    v2 adds log_append_time_ms.
    v5 adds log_start_offset.
    v8 adds record_errors, error_message.
    v9 flexible.
    v10 adds current_leader, node_endpoints.
    v13 adds topic_id; drops name.
    """

    responses: list[TopicProduceResponse] = v()
    throttle_time_ms: int32 = v("1+")
    node_endpoints: list[NodeEndpoint] = v("10+", tag=0)
