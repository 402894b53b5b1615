"""ConsumerGroupHeartbeat (API key 68). Join, stay in and leave a group of the consumer protocol."""

from ottla.wire.schema import int16, int32, message, part, uuid, v


@part
class TopicPartitions:
    topic_id: uuid = v()
    partitions: list[int32] = v()


@message(key=68, versions="0-1", flexible="0+")
class ConsumerGroupHeartbeatRequest:
    """v1 adds subscribed_topic_regex."""

    group_id: str = ""
    member_id: str = ""
    member_epoch: int32 = 0
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int32 = -1
    subscribed_topic_names: list[str] | None = None
    subscribed_topic_regex: str | None = v("1+", None)
    server_assignor: str | None = None
    topic_partitions: list[TopicPartitions] | None = None


@part
class Assignment:
    topic_partitions: list[TopicPartitions] = v()


@message(key=68, versions="0-1", flexible="0+")
class ConsumerGroupHeartbeatResponse:
    """No version changed any field."""

    throttle_time_ms: int32 = 0
    error_code: int16 = 0
    error_message: str | None = None
    member_id: str | None = None
    member_epoch: int32 = 0
    heartbeat_interval_ms: int32 = 0
    assignment: Assignment | None = v()
