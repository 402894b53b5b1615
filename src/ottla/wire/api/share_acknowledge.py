"""ShareAcknowledge (API key 79). Accept, release or reject acquired records."""

from ottla.wire.schema import int8, int16, int32, int64, message, part, uuid, v


@part
class AcknowledgementBatch:
    first_offset: int64 = 0
    last_offset: int64 = 0
    acknowledge_types: list[int8] = v()


@part
class AcknowledgePartition:
    partition_index: int32 = 0
    acknowledgement_batches: list[AcknowledgementBatch] = v()


@part
class AcknowledgeTopic:
    topic_id: uuid = v()
    partitions: list[AcknowledgePartition] = v()


@message(key=79, versions="1-2", flexible="0+")
class ShareAcknowledgeRequest:
    """v2 adds is_renew_ack."""

    group_id: str | None = None
    member_id: str | None = ""
    share_session_epoch: int32 = 0
    is_renew_ack: bool = v("2+")
    topics: list[AcknowledgeTopic] = v()


@part
class LeaderIdAndEpoch:
    leader_id: int32 = 0
    leader_epoch: int32 = 0


@part
class PartitionData:
    partition_index: int32 = 0
    error_code: int16 = 0
    error_message: str | None = None
    current_leader: LeaderIdAndEpoch = v()


@part
class ShareAcknowledgeTopicResponse:
    topic_id: uuid = v()
    partitions: list[PartitionData] = v()


@part
class NodeEndpoint:
    node_id: int32 = 0
    host: str = ""
    port: int32 = 0
    rack: str | None = None


@message(key=79, versions="1-2", flexible="0+")
class ShareAcknowledgeResponse:
    """v2 adds acquisition_lock_timeout_ms."""

    throttle_time_ms: int32 = 0
    error_code: int16 = 0
    error_message: str | None = None
    acquisition_lock_timeout_ms: int32 = v("2+")
    responses: list[ShareAcknowledgeTopicResponse] = v()
    node_endpoints: list[NodeEndpoint] = v()
