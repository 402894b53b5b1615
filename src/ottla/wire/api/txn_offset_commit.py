"""TxnOffsetCommit (API key 28). Store a group's positions as part of a transaction."""

from ottla.wire.schema import int16, int32, int64, message, part, uuid, v


@part
class TxnOffsetCommitRequestPartition:
    partition_index: int32 = 0
    committed_offset: int64 = 0
    committed_leader_epoch: int32 = v("2+", -1)
    committed_metadata: str | None = ""


@part
class TxnOffsetCommitRequestTopic:
    name: str = v("0-5")
    topic_id: uuid = v("6+")
    partitions: list[TxnOffsetCommitRequestPartition] = v()


@message(key=28, versions="0-6", flexible="3+")
class TxnOffsetCommitRequest:
    """What each version changed.

    v2 adds committed_leader_epoch.
    v3 adds generation_id_or_member_epoch, member_id, group_instance_id; flexible.
    v5 the group joins the transaction by being written to.
    v6 adds topic_id; drops name.
    """

    transactional_id: str = ""
    group_id: str = ""
    producer_id: int64 = 0
    producer_epoch: int16 = 0
    generation_id_or_member_epoch: int32 = v("3+", -1)
    member_id: str = v("3+")
    group_instance_id: str | None = v("3+", None)
    topics: list[TxnOffsetCommitRequestTopic] = v()


@part
class TxnOffsetCommitResponsePartition:
    partition_index: int32 = 0
    error_code: int16 = 0


@part
class TxnOffsetCommitResponseTopic:
    name: str = v("0-5")
    topic_id: uuid = v("6+")
    partitions: list[TxnOffsetCommitResponsePartition] = v()


@message(key=28, versions="0-6", flexible="3+")
class TxnOffsetCommitResponse:
    """v3 flexible; v6 adds topic_id; drops name."""

    throttle_time_ms: int32 = 0
    topics: list[TxnOffsetCommitResponseTopic] = v()
