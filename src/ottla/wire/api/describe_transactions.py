"""DescribeTransactions (API key 65). The state of transactions."""

from ottla.wire.schema import int16, int32, int64, message, part, v


@message(key=65, versions="0", flexible="0+")
class DescribeTransactionsRequest:
    """The only version so far."""

    transactional_ids: list[str] = v()


@part
class TopicData:
    topic: str = ""
    partitions: list[int32] = v()


@part
class TransactionState:
    error_code: int16 = 0
    transactional_id: str = ""
    transaction_state: str = ""
    transaction_timeout_ms: int32 = 0
    transaction_start_time_ms: int64 = 0
    producer_id: int64 = 0
    producer_epoch: int16 = 0
    topics: list[TopicData] = v()


@message(key=65, versions="0", flexible="0+")
class DescribeTransactionsResponse:
    """The only version so far."""

    throttle_time_ms: int32 = 0
    transaction_states: list[TransactionState] = v()
