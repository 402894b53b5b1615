"""DeleteRecords (API key 21). Forget records before an offset."""

from ottla.wire.schema import int16, int32, int64, message, part, v


@part
class DeleteRecordsPartition:
    partition_index: int32 = 0
    offset: int64 = 0


@part
class DeleteRecordsTopic:
    name: str = ""
    partitions: list[DeleteRecordsPartition] = v()


@message(key=21, versions="0-2", flexible="2+")
class DeleteRecordsRequest:
    """v2 flexible."""

    topics: list[DeleteRecordsTopic] = v()
    timeout_ms: int32 = 0


@part
class DeleteRecordsPartitionResult:
    partition_index: int32 = 0
    low_watermark: int64 = 0
    error_code: int16 = 0


@part
class DeleteRecordsTopicResult:
    name: str = ""
    partitions: list[DeleteRecordsPartitionResult] = v()


@message(key=21, versions="0-2", flexible="2+")
class DeleteRecordsResponse:
    """v2 flexible."""

    throttle_time_ms: int32 = 0
    topics: list[DeleteRecordsTopicResult] = v()
