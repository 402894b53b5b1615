"""Fetch (API key 1). Read records from partitions, waiting for them if asked to."""

from ottla.wire.schema import int8, int16, int32, int64, message, part, record_set, uuid, v


@part
class ReplicaState:
    replica_id: int32 = -1
    replica_epoch: int64 = -1


@part
class FetchPartition:
    partition: int32 = 0
    current_leader_epoch: int32 = v("9+", -1)
    fetch_offset: int64 = 0
    last_fetched_epoch: int32 = v("12+", -1)
    log_start_offset: int64 = v("5+", -1)
    partition_max_bytes: int32 = 0
    replica_directory_id: uuid = v("17+", tag=0)
    high_watermark: int64 = v("18+", 2**63 - 1, tag=1)


@part
class FetchTopic:
    topic: str = v("0-12")
    topic_id: uuid = v("13+")
    partitions: list[FetchPartition] = v()


@part
class ForgottenTopic:
    topic: str = v("7-12")
    topic_id: uuid = v("13+")
    partitions: list[int32] = v()


@message(key=1, versions="0-18", flexible="12+")
class FetchRequest:
    """What each version changed.

    v2 the reply may have message sets of magic 1.
    v3 adds max_bytes.
    v4 adds isolation_level; the reply may have batches of magic 2.
    v5 adds log_start_offset.
    v7 adds session_id, session_epoch, forgotten_topics_data.
    v9 adds current_leader_epoch.
    v10 zstd allowed.
    v11 adds rack_id.
    v12 adds cluster_id, last_fetched_epoch; flexible.
    v13 adds topic_id; drops topic.
    v15 adds replica_state; drops replica_id; replica state is tagged.
    v16 the reply names a new leader.
    v17 adds replica_directory_id.
    v18 adds high_watermark.
    """

    cluster_id: str | None = v("12+", None, tag=0)
    replica_id: int32 = v("0-14", -1)
    replica_state: ReplicaState | None = v("15+", nullable="none", tag=1)
    max_wait_ms: int32 = 0
    min_bytes: int32 = 0
    max_bytes: int32 = v("3+", 0x7FFFFFFF)
    isolation_level: int8 = v("4+")
    session_id: int32 = v("7+")
    session_epoch: int32 = v("7+", -1)
    topics: list[FetchTopic] = v()
    forgotten_topics_data: list[ForgottenTopic] = v("7+")
    rack_id: str = v("11+")


@part
class EpochEndOffset:
    epoch: int32 = -1
    end_offset: int64 = -1


@part
class LeaderIdAndEpoch:
    leader_id: int32 = -1
    leader_epoch: int32 = -1


@part
class SnapshotId:
    end_offset: int64 = -1
    epoch: int32 = -1


@part
class AbortedTransaction:
    producer_id: int64 = 0
    first_offset: int64 = 0


@part
class PartitionData:
    partition_index: int32 = 0
    error_code: int16 = 0
    high_watermark: int64 = 0
    last_stable_offset: int64 = v("4+", -1)
    log_start_offset: int64 = v("5+", -1)
    diverging_epoch: EpochEndOffset | None = v("12+", nullable="none", tag=0)
    current_leader: LeaderIdAndEpoch | None = v("12+", nullable="none", tag=1)
    snapshot_id: SnapshotId | None = v("12+", nullable="none", tag=2)
    aborted_transactions: list[AbortedTransaction] | None = v("4+")
    preferred_read_replica: int32 = v("11+", -1)
    records: record_set | None = None


@part
class FetchableTopicResponse:
    topic: str = v("0-12")
    topic_id: uuid = v("13+")
    partitions: list[PartitionData] = v()


@part
class NodeEndpoint:
    node_id: int32 = 0
    host: str = ""
    port: int32 = 0
    rack: str | None = None


@message(key=1, versions="0-18", flexible="12+")
class FetchResponse:
    """What each version changed.

    v1 adds throttle_time_ms.
    v2 message sets of magic 1.
    v4 adds last_stable_offset, aborted_transactions; batches of magic 2.
    v5 adds log_start_offset.
    v7 adds error_code, session_id.
    v10 zstd allowed.
    v11 adds preferred_read_replica.
    v12 adds diverging_epoch, current_leader, snapshot_id; flexible.
    v13 adds topic_id; drops topic.
    v16 adds node_endpoints.
    """

    throttle_time_ms: int32 = v("1+")
    error_code: int16 = v("7+")
    session_id: int32 = v("7+")
    responses: list[FetchableTopicResponse] = v()
    node_endpoints: list[NodeEndpoint] = v("16+", tag=0)
