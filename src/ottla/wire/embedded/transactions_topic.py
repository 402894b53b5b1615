"""The records of the `__transaction_state` topic."""

from ottla.wire.schema import int8, int16, int32, int64, message, part, v


@message(key=0, versions="0")
class TransactionLogKey:
    """The only version so far."""

    transactional_id: str = ""


@part
class PartitionsSchema:
    topic: str = ""
    partition_ids: list[int32] = v()


@message(key=0, versions="0-1", flexible="1+")
class TransactionLogValue:
    """What each version changed.

    v1 adds previous_producer_id, next_producer_id, next_producer_epoch, client_transaction_version;
        flexible.
    """

    producer_id: int64 = 0
    previous_producer_id: int64 = v("1+", -1, tag=0)
    next_producer_id: int64 = v("1+", -1, tag=1)
    producer_epoch: int16 = 0
    next_producer_epoch: int16 = v("1+", -1, tag=3)
    transaction_timeout_ms: int32 = 0
    transaction_status: int8 = 0
    transaction_partitions: list[PartitionsSchema] | None = v()
    transaction_last_update_timestamp_ms: int64 = 0
    transaction_start_timestamp_ms: int64 = 0
    client_transaction_version: int16 = v("1+", tag=2)
