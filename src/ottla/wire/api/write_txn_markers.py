"""WriteTxnMarkers (API key 27). Write the markers that end a transaction."""

from ottla.wire.schema import int8, int16, int32, int64, message, part, v


@part
class WritableTxnMarkerTopic:
    name: str = ""
    partition_indexes: list[int32] = v()


@part
class WritableTxnMarker:
    producer_id: int64 = 0
    producer_epoch: int16 = 0
    transaction_result: bool = False
    topics: list[WritableTxnMarkerTopic] = v()
    coordinator_epoch: int32 = 0
    transaction_version: int8 = v("2+")


@message(key=27, versions="0-2", flexible="1+")
class WriteTxnMarkersRequest:
    """v1 flexible; v2 adds transaction_version."""

    markers: list[WritableTxnMarker] = v()


@part
class WritableTxnMarkerPartitionResult:
    partition_index: int32 = 0
    error_code: int16 = 0


@part
class WritableTxnMarkerTopicResult:
    name: str = ""
    partitions: list[WritableTxnMarkerPartitionResult] = v()


@part
class WritableTxnMarkerResult:
    producer_id: int64 = 0
    topics: list[WritableTxnMarkerTopicResult] = v()


@message(key=27, versions="0-2", flexible="1+")
class WriteTxnMarkersResponse:
    """v1 flexible."""

    markers: list[WritableTxnMarkerResult] = v()
