"""DescribeTopicPartitions (API key 75). Topics and partitions, page by page."""

from ottla.wire.schema import int16, int32, message, part, uuid, v


@part
class TopicRequest:
    name: str = ""


@part
class Cursor:
    topic_name: str = ""
    partition_index: int32 = 0


@message(key=75, versions="0", flexible="0+")
class DescribeTopicPartitionsRequest:
    """The only version so far."""

    topics: list[TopicRequest] = v()
    response_partition_limit: int32 = 2000
    cursor: Cursor | None = v()


@part
class DescribeTopicPartitionsResponsePartition:
    error_code: int16 = 0
    partition_index: int32 = 0
    leader_id: int32 = 0
    leader_epoch: int32 = -1
    replica_nodes: list[int32] = v()
    isr_nodes: list[int32] = v()
    eligible_leader_replicas: list[int32] | None = None
    last_known_elr: list[int32] | None = None
    offline_replicas: list[int32] = v()


@part
class DescribeTopicPartitionsResponseTopic:
    error_code: int16 = 0
    name: str | None = ""
    topic_id: uuid = v()
    is_internal: bool = False
    partitions: list[DescribeTopicPartitionsResponsePartition] = v()
    topic_authorized_operations: int32 = -(2**31)


@message(key=75, versions="0", flexible="0+")
class DescribeTopicPartitionsResponse:
    """The only version so far."""

    throttle_time_ms: int32 = 0
    topics: list[DescribeTopicPartitionsResponseTopic] = v()
    next_cursor: Cursor | None = v()
