"""DescribeQuorum (API key 55). The state of the metadata quorum."""

from ottla.wire.schema import int16, int32, int64, message, part, uint16, uuid, v


@part
class PartitionData:
    partition_index: int32 = 0


@part
class TopicData:
    topic_name: str = ""
    partitions: list[PartitionData] = v()


@message(key=55, versions="0-2", flexible="0+")
class DescribeQuorumRequest:
    """No version changed any field."""

    topics: list[TopicData] = v()


@part
class ReplicaState:
    replica_id: int32 = 0
    replica_directory_id: uuid = v("2+")
    log_end_offset: int64 = 0
    last_fetch_timestamp: int64 = v("1+", -1)
    last_caught_up_timestamp: int64 = v("1+", -1)


@part
class ResponsePartitionData:
    partition_index: int32 = 0
    error_code: int16 = 0
    error_message: str | None = v("2+")
    leader_id: int32 = 0
    leader_epoch: int32 = 0
    high_watermark: int64 = 0
    current_voters: list[ReplicaState] = v()
    observers: list[ReplicaState] = v()


@part
class ResponseTopicData:
    topic_name: str = ""
    partitions: list[ResponsePartitionData] = v()


@part
class Listener:
    name: str = ""
    host: str = ""
    port: uint16 = 0


@part
class Node:
    node_id: int32 = 0
    listeners: list[Listener] = v()


@message(key=55, versions="0-2", flexible="0+")
class DescribeQuorumResponse:
    """What each version changed.

    v1 adds last_fetch_timestamp, last_caught_up_timestamp.
    v2 adds error_message, replica_directory_id, nodes.
    """

    error_code: int16 = 0
    error_message: str | None = v("2+")
    topics: list[ResponseTopicData] = v()
    nodes: list[Node] = v("2+")
