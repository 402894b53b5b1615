"""CreateTopics (API key 19). Create topics."""

from ottla.wire.schema import int8, int16, int32, message, part, uuid, v


@part
class CreatableReplicaAssignment:
    partition_index: int32 = 0
    broker_ids: list[int32] = v()


@part
class CreatableTopicConfig:
    name: str = ""
    value: str | None = ""


@part
class CreatableTopic:
    name: str = ""
    num_partitions: int32 = 0
    replication_factor: int16 = 0
    assignments: list[CreatableReplicaAssignment] = v()
    configs: list[CreatableTopicConfig] = v()


@message(key=19, versions="0-7", flexible="5+")
class CreateTopicsRequest:
    """What each version changed.

    v1 adds validate_only.
    v4 -1 partitions and -1 replicas mean the broker's defaults.
    v5 flexible.
    """

    topics: list[CreatableTopic] = v()
    timeout_ms: int32 = 60000
    validate_only: bool = v("1+")


@part
class CreatableTopicConfigs:
    name: str = ""
    value: str | None = ""
    read_only: bool = False
    config_source: int8 = -1
    is_sensitive: bool = False


@part
class CreatableTopicResult:
    name: str = ""
    topic_id: uuid = v("7+")
    error_code: int16 = 0
    error_message: str | None = v("1+")
    topic_config_error_code: int16 = v("5+", tag=0)
    num_partitions: int32 = v("5+", -1)
    replication_factor: int16 = v("5+", -1)
    configs: list[CreatableTopicConfigs] | None = v("5+")


@message(key=19, versions="0-7", flexible="5+")
class CreateTopicsResponse:
    """What each version changed.

    v1 adds error_message.
    v2 adds throttle_time_ms.
    v5 adds topic_config_error_code, num_partitions, replication_factor, configs; flexible.
    v7 adds topic_id.
    """

    throttle_time_ms: int32 = v("2+")
    topics: list[CreatableTopicResult] = v()
