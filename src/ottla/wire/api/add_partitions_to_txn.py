"""AddPartitionsToTxn (API key 24). Declare partitions of a transaction."""

from ottla.wire.schema import int16, int32, int64, message, part, v


@part
class AddPartitionsToTxnTopic:
    name: str = ""
    partitions: list[int32] = v()


@part
class AddPartitionsToTxnTransaction:
    transactional_id: str = ""
    producer_id: int64 = 0
    producer_epoch: int16 = 0
    verify_only: bool = False
    topics: list[AddPartitionsToTxnTopic] = v()


@message(key=24, versions="0-5", flexible="3+")
class AddPartitionsToTxnRequest:
    """What each version changed.

    v3 flexible.
    v4 adds transactions; drops v3_and_below_transactional_id, v3_and_below_producer_id,
        v3_and_below_producer_epoch, v3_and_below_topics.
    """

    transactions: list[AddPartitionsToTxnTransaction] = v("4+")
    v3_and_below_transactional_id: str = v("0-3")
    v3_and_below_producer_id: int64 = v("0-3")
    v3_and_below_producer_epoch: int16 = v("0-3")
    v3_and_below_topics: list[AddPartitionsToTxnTopic] = v("0-3")


@part
class AddPartitionsToTxnPartitionResult:
    partition_index: int32 = 0
    partition_error_code: int16 = 0


@part
class AddPartitionsToTxnTopicResult:
    name: str = ""
    results_by_partition: list[AddPartitionsToTxnPartitionResult] = v()


@part
class AddPartitionsToTxnResult:
    transactional_id: str = ""
    topic_results: list[AddPartitionsToTxnTopicResult] = v()


@message(key=24, versions="0-5", flexible="3+")
class AddPartitionsToTxnResponse:
    """What each version changed.

    v3 flexible.
    v4 adds error_code, results_by_transaction; drops results_by_topic_v3_and_below.
    """

    throttle_time_ms: int32 = 0
    error_code: int16 = v("4+")
    results_by_transaction: list[AddPartitionsToTxnResult] = v("4+")
    results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = v("0-3")
