"""AlterReplicaLogDirs (API key 34). Move replicas between directories."""

from ottla.wire.schema import int16, int32, message, part, v


@part
class AlterReplicaLogDirTopic:
    name: str = ""
    partitions: list[int32] = v()


@part
class AlterReplicaLogDir:
    path: str = ""
    topics: list[AlterReplicaLogDirTopic] = v()


@message(key=34, versions="0-2", flexible="2+")
class AlterReplicaLogDirsRequest:
    """v2 flexible."""

    dirs: list[AlterReplicaLogDir] = v()


@part
class AlterReplicaLogDirPartitionResult:
    partition_index: int32 = 0
    error_code: int16 = 0


@part
class AlterReplicaLogDirTopicResult:
    topic_name: str = ""
    partitions: list[AlterReplicaLogDirPartitionResult] = v()


@message(key=34, versions="0-2", flexible="2+")
class AlterReplicaLogDirsResponse:
    """v2 flexible."""

    throttle_time_ms: int32 = 0
    results: list[AlterReplicaLogDirTopicResult] = v()
