"""StreamsGroupHeartbeat (API key 88). Join, stay in and leave a Streams group."""

from ottla.wire.schema import int8, int16, int32, int64, message, part, uint16, v


@part
class KeyValue:
    key: str = ""
    value: str = ""


@part
class TopicInfo:
    name: str = ""
    partitions: int32 = 0
    replication_factor: int16 = 0
    topic_configs: list[KeyValue] = v()


@part
class CopartitionGroup:
    source_topics: list[int16] = v()
    source_topic_regex: list[int16] = v()
    repartition_source_topics: list[int16] = v()


@part
class Subtopology:
    subtopology_id: str = ""
    source_topics: list[str] = v()
    source_topic_regex: list[str] = v()
    state_changelog_topics: list[TopicInfo] = v()
    repartition_sink_topics: list[str] = v()
    repartition_source_topics: list[TopicInfo] = v()
    copartition_groups: list[CopartitionGroup] = v()


@part
class Topology:
    epoch: int32 = 0
    subtopologies: list[Subtopology] = v()


@part
class TaskIds:
    subtopology_id: str = ""
    partitions: list[int32] = v()


@part
class Endpoint:
    host: str = ""
    port: uint16 = 0


@part
class TaskOffset:
    subtopology_id: str = ""
    partition: int32 = 0
    offset: int64 = 0


@message(key=88, versions="0-1", flexible="0+")
class StreamsGroupHeartbeatRequest:
    """No version changed any field."""

    group_id: str = ""
    member_id: str = ""
    member_epoch: int32 = 0
    endpoint_information_epoch: int32 = 0
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int32 = -1
    topology: Topology | None = v()
    active_tasks: list[TaskIds] | None = None
    standby_tasks: list[TaskIds] | None = None
    warmup_tasks: list[TaskIds] | None = None
    process_id: str | None = None
    user_endpoint: Endpoint | None = v()
    client_tags: list[KeyValue] | None = None
    task_offsets: list[TaskOffset] | None = None
    task_end_offsets: list[TaskOffset] | None = None
    shutdown_application: bool = False


@part
class Status:
    status_code: int8 = 0
    status_detail: str = ""


@part
class TopicPartition:
    topic: str = ""
    partitions: list[int32] = v()


@part
class EndpointToPartitions:
    user_endpoint: Endpoint = v()
    active_partitions: list[TopicPartition] = v()
    standby_partitions: list[TopicPartition] = v()


@message(key=88, versions="0-1", flexible="0+")
class StreamsGroupHeartbeatResponse:
    """What each version changed.

    v1 adds acceptable_recovery_lag, topology_description_required; drops acceptable_recovery_lag_legacy.
    """

    throttle_time_ms: int32 = 0
    error_code: int16 = 0
    error_message: str | None = None
    member_id: str = ""
    member_epoch: int32 = 0
    heartbeat_interval_ms: int32 = 0
    acceptable_recovery_lag_legacy: int32 = v("0")
    task_offset_interval_ms: int32 = 0
    acceptable_recovery_lag: int64 = v("1+", -1)
    status: list[Status] | None = v()
    active_tasks: list[TaskIds] | None = None
    standby_tasks: list[TaskIds] | None = None
    warmup_tasks: list[TaskIds] | None = None
    topology_description_required: bool = v("1+")
    endpoint_information_epoch: int32 = 0
    partitions_by_user_endpoint: list[EndpointToPartitions] | None = None
