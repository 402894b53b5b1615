"""DescribeLogDirs (API key 35). What lies in the log directories."""

from ottla.wire.schema import int16, int32, int64, message, part, v


@part
class DescribableLogDirTopic:
    topic: str = ""
    partitions: list[int32] = v()


@message(key=35, versions="0-5", flexible="2+")
class DescribeLogDirsRequest:
    """v2 flexible."""

    topics: list[DescribableLogDirTopic] | None = v()


@part
class DescribeLogDirsPartition:
    partition_index: int32 = 0
    partition_size: int64 = 0
    offset_lag: int64 = 0
    is_future_key: bool = False


@part
class DescribeLogDirsTopic:
    name: str = ""
    partitions: list[DescribeLogDirsPartition] = v()


@part
class DescribeLogDirsResult:
    error_code: int16 = 0
    log_dir: str = ""
    topics: list[DescribeLogDirsTopic] = v()
    total_bytes: int64 = v("4+", -1)
    usable_bytes: int64 = v("4+", -1)
    is_cordoned: bool = v("5+")


@message(key=35, versions="0-5", flexible="2+")
class DescribeLogDirsResponse:
    """v2 flexible; v3 adds error_code; v4 adds total_bytes, usable_bytes; v5 adds is_cordoned."""

    throttle_time_ms: int32 = 0
    error_code: int16 = v("3+")
    results: list[DescribeLogDirsResult] = v()
