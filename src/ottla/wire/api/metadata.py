"""Metadata (API key 3). Brokers, topics, partitions and who leads them."""

from ottla.wire.schema import int16, int32, message, part, uuid, v


@part
class MetadataRequestTopic:
    topic_id: uuid = v("10+")
    name: str | None = v(nullable="10+")


@message(key=3, versions="0-13", flexible="9+")
class MetadataRequest:
    """What each version changed.

    v0 an empty list asks for all topics. Null does so too: Kafka's own v0 never wrote it, but clients in the
        field do, so it is read.
    v1 null asks for all topics, an empty list for none.
    v4 adds allow_auto_topic_creation.
    v8 adds include_cluster_authorized_operations, include_topic_authorized_operations.
    v9 flexible.
    v10 adds topic_id; name may be null.
    v11 drops include_cluster_authorized_operations.
    v12 topics may be asked for by id alone.
    """

    topics: list[MetadataRequestTopic] | None = v()
    allow_auto_topic_creation: bool = v("4+", True)
    include_cluster_authorized_operations: bool = v("8-10")
    include_topic_authorized_operations: bool = v("8+")


@part
class MetadataResponseBroker:
    node_id: int32 = 0
    host: str = ""
    port: int32 = 0
    rack: str | None = v("1+", None)


@part
class MetadataResponsePartition:
    error_code: int16 = 0
    partition_index: int32 = 0
    leader_id: int32 = 0
    leader_epoch: int32 = v("7+", -1)
    replica_nodes: list[int32] = v()
    isr_nodes: list[int32] = v()
    offline_replicas: list[int32] = v("5+")


@part
class MetadataResponseTopic:
    error_code: int16 = 0
    name: str | None = v(nullable="12+")
    topic_id: uuid = v("10+")
    is_internal: bool = v("1+")
    partitions: list[MetadataResponsePartition] = v()
    topic_authorized_operations: int32 = v("8+", -(2**31))


@message(key=3, versions="0-13", flexible="9+")
class MetadataResponse:
    """What each version changed.

    v1 adds rack, controller_id, is_internal.
    v2 adds cluster_id.
    v3 adds throttle_time_ms.
    v5 adds offline_replicas.
    v7 adds leader_epoch.
    v8 adds topic_authorized_operations, cluster_authorized_operations.
    v9 flexible.
    v10 adds topic_id.
    v11 drops cluster_authorized_operations.
    v12 name may be null.
    v13 adds error_code.
    """

    throttle_time_ms: int32 = v("3+")
    brokers: list[MetadataResponseBroker] = v()
    cluster_id: str | None = v("2+", None)
    controller_id: int32 = v("1+", -1)
    topics: list[MetadataResponseTopic] = v()
    cluster_authorized_operations: int32 = v("8-10", -(2**31))
    error_code: int16 = v("13+")
