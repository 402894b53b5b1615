"""StreamsGroupDescribe (API key 89). State and members of Streams groups."""

from ottla.wire.schema import int8, int16, int32, int64, message, part, uint16, v


@message(key=89, versions="0-1", flexible="0+")
class StreamsGroupDescribeRequest:
    """v1 adds include_topology_description."""

    group_ids: list[str] = v()
    include_authorized_operations: bool = False
    include_topology_description: bool = v("1+")


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
class Subtopology:
    subtopology_id: str = ""
    source_topics: list[str] = v()
    repartition_sink_topics: list[str] = v()
    state_changelog_topics: list[TopicInfo] = v()
    repartition_source_topics: list[TopicInfo] = v()


@part
class Topology:
    epoch: int32 = 0
    subtopologies: list[Subtopology] | None = None


@part
class Endpoint:
    host: str = ""
    port: uint16 = 0


@part
class TaskOffset:
    subtopology_id: str = ""
    partition: int32 = 0
    offset: int64 = 0


@part
class TaskIds:
    subtopology_id: str = ""
    partitions: list[int32] = v()


@part
class Assignment:
    active_tasks: list[TaskIds] = v()
    standby_tasks: list[TaskIds] = v()
    warmup_tasks: list[TaskIds] = v()


@part
class Member:
    member_id: str = ""
    member_epoch: int32 = 0
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topology_epoch: int32 = 0
    process_id: str = ""
    user_endpoint: Endpoint | None = v()
    client_tags: list[KeyValue] = v()
    task_offsets: list[TaskOffset] = v()
    task_end_offsets: list[TaskOffset] = v()
    assignment: Assignment = v()
    target_assignment: Assignment = v()
    is_classic: bool = False


@part
class TopologyDescriptionNode:
    name: str = ""
    node_type: int8 = 0
    source_topics: list[str] = v()
    sink_topic: str | None = None
    stores: list[str] = v()
    successors: list[str] = v()


@part
class TopologyDescriptionSubtopology:
    subtopology_id: str = ""
    nodes: list[TopologyDescriptionNode] = v()


@part
class TopologyDescriptionGlobalStore:
    source: TopologyDescriptionNode = v()
    processor: TopologyDescriptionNode = v()


@part
class TopologyDescription:
    subtopologies: list[TopologyDescriptionSubtopology] = v()
    global_stores: list[TopologyDescriptionGlobalStore] = v()


@part
class DescribedGroup:
    error_code: int16 = 0
    error_message: str | None = None
    group_id: str = ""
    group_state: str = ""
    group_epoch: int32 = 0
    assignment_epoch: int32 = 0
    topology: Topology | None = v()
    members: list[Member] = v()
    authorized_operations: int32 = -(2**31)
    topology_description: TopologyDescription | None = v("1+")
    topology_description_status: int8 = v("1+")
    assignor_name: str | None = v("1+", None)


@message(key=89, versions="0-1", flexible="0+")
class StreamsGroupDescribeResponse:
    """v1 adds topology_description, topology_description_status, assignor_name."""

    throttle_time_ms: int32 = 0
    groups: list[DescribedGroup] = v()
