"""EndTxn (API key 26). Commit or abort a transaction."""

from ottla.wire.schema import int16, int32, int64, message, v


@message(key=26, versions="0-5", flexible="3+")
class EndTxnRequest:
    """v3 flexible; v5 the epoch is raised with every transaction."""

    transactional_id: str = ""
    producer_id: int64 = 0
    producer_epoch: int16 = 0
    committed: bool = False


@message(key=26, versions="0-5", flexible="3+")
class EndTxnResponse:
    """v3 flexible; v5 adds producer_id, producer_epoch."""

    throttle_time_ms: int32 = 0
    error_code: int16 = 0
    producer_id: int64 = v("5+", -1)
    producer_epoch: int16 = v("5+", -1)
