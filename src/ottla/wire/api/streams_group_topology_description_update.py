"""StreamsGroupTopologyDescriptionUpdate (API key 93). Tell the broker a Streams group's topology."""

from ottla.wire.schema import int8, int16, int32, message, part, v


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


@message(key=93, versions="0", flexible="0+")
class StreamsGroupTopologyDescriptionUpdateRequest:
    """The only version so far."""

    group_id: str = ""
    member_id: str = ""
    topology_epoch: int32 = 0
    topology_description: TopologyDescription = v()


@message(key=93, versions="0", flexible="0+")
class StreamsGroupTopologyDescriptionUpdateResponse:
    """The only version so far."""

    throttle_time_ms: int32 = 0
    error_code: int16 = 0
    error_message: str | None = None
