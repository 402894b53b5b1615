"""ShareFetch (API key 78). Acquire records for a share group."""

from ottla.wire.schema import int8, int16, int32, int64, message, part, record_set, uuid, v


@part
class AcknowledgementBatch:
    first_offset: int64 = 0
    last_offset: int64 = 0
    acknowledge_types: list[int8] = v()


@part
class FetchPartition:
    partition_index: int32 = 0
    partition_max_bytes: int32 = v("0")
    acknowledgement_batches: list[AcknowledgementBatch] = v()


@part
class FetchTopic:
    topic_id: uuid = v()
    partitions: list[FetchPartition] = v()


@part
class ForgottenTopic:
    topic_id: uuid = v()
    partitions: list[int32] = v()


@message(key=78, versions="1-2", flexible="0+")
class ShareFetchRequest:
    """v2 adds share_acquire_mode, is_renew_ack."""

    group_id: str | None = None
    member_id: str | None = ""
    share_session_epoch: int32 = 0
    max_wait_ms: int32 = 0
    min_bytes: int32 = 0
    max_bytes: int32 = 0x7FFFFFFF
    max_records: int32 = 0
    batch_size: int32 = 0
    share_acquire_mode: int8 = v("2+")
    is_renew_ack: bool = v("2+")
    topics: list[FetchTopic] = v()
    forgotten_topics_data: list[ForgottenTopic] = v()


@part
class LeaderIdAndEpoch:
    leader_id: int32 = 0
    leader_epoch: int32 = 0


@part
class AcquiredRecords:
    first_offset: int64 = 0
    last_offset: int64 = 0
    delivery_count: int16 = 0


@part
class PartitionData:
    partition_index: int32 = 0
    error_code: int16 = 0
    error_message: str | None = None
    acknowledge_error_code: int16 = 0
    acknowledge_error_message: str | None = None
    current_leader: LeaderIdAndEpoch = v()
    records: record_set | None = v(nullable="0")
    acquired_records: list[AcquiredRecords] = v()


@part
class ShareFetchableTopicResponse:
    topic_id: uuid = v()
    partitions: list[PartitionData] = v()


@part
class NodeEndpoint:
    node_id: int32 = 0
    host: str = ""
    port: int32 = 0
    rack: str | None = None


@message(key=78, versions="1-2", flexible="0+")
class ShareFetchResponse:
    """No version changed any field."""

    throttle_time_ms: int32 = 0
    error_code: int16 = 0
    error_message: str | None = None
    acquisition_lock_timeout_ms: int32 = 0
    responses: list[ShareFetchableTopicResponse] = v()
    node_endpoints: list[NodeEndpoint] = v()
