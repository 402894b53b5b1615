"""ListTransactions (API key 66). Transactions that a broker looks after."""

from ottla.wire.schema import int16, int32, int64, message, part, v


@message(key=66, versions="0-2", flexible="0+")
class ListTransactionsRequest:
    """v1 adds duration_filter; v2 adds transactional_id_pattern."""

    state_filters: list[str] = v()
    producer_id_filters: list[int64] = v()
    duration_filter: int64 = v("1+", -1)
    transactional_id_pattern: str | None = v("2+", None)


@part
class TransactionState:
    transactional_id: str = ""
    producer_id: int64 = 0
    transaction_state: str = ""


@message(key=66, versions="0-2", flexible="0+")
class ListTransactionsResponse:
    """No version changed any field."""

    throttle_time_ms: int32 = 0
    error_code: int16 = 0
    unknown_state_filters: list[str] = v()
    transaction_states: list[TransactionState] = v()
