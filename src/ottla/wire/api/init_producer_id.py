"""InitProducerId (API key 22). An identity for an idempotent or transactional producer."""

from ottla.wire.schema import int16, int32, int64, message, v


@message(key=22, versions="0-6", flexible="2+")
class InitProducerIdRequest:
    """What each version changed.

    v2 flexible.
    v3 adds producer_id, producer_epoch.
    v6 adds enable_2pc, keep_prepared_txn; unstable in Kafka.
    """

    transactional_id: str | None = ""
    transaction_timeout_ms: int32 = 0
    producer_id: int64 = v("3+", -1)
    producer_epoch: int16 = v("3+", -1)
    enable_2pc: bool = v("6+")
    keep_prepared_txn: bool = v("6+")


@message(key=22, versions="0-6", flexible="2+")
class InitProducerIdResponse:
    """v2 flexible; v6 adds ongoing_txn_producer_id, ongoing_txn_producer_epoch."""

    throttle_time_ms: int32 = 0
    error_code: int16 = 0
    producer_id: int64 = -1
    producer_epoch: int16 = 0
    ongoing_txn_producer_id: int64 = v("6+", -1)
    ongoing_txn_producer_epoch: int16 = v("6+", -1)
