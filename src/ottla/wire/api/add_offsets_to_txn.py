"""AddOffsetsToTxn (API key 25). Declare a group's offsets part of a transaction."""

from ottla.wire.schema import int16, int32, int64, message


@message(key=25, versions="0-4", flexible="3+")
class AddOffsetsToTxnRequest:
    """v3 flexible."""

    transactional_id: str = ""
    producer_id: int64 = 0
    producer_epoch: int16 = 0
    group_id: str = ""


@message(key=25, versions="0-4", flexible="3+")
class AddOffsetsToTxnResponse:
    """v3 flexible."""

    throttle_time_ms: int32 = 0
    error_code: int16 = 0
