"""ShareGroupHeartbeat (API key 76). Join, stay in and leave a share group."""

from ottla.wire.schema import int16, int32, message, part, uuid, v


@message(key=76, versions="1", flexible="0+")
class ShareGroupHeartbeatRequest:
    """The only version so far."""

    group_id: str = ""
    member_id: str = ""
    member_epoch: int32 = 0
    rack_id: str | None = None
    subscribed_topic_names: list[str] | None = None


@part
class TopicPartitions:
    topic_id: uuid = v()
    partitions: list[int32] = v()


@part
class Assignment:
    topic_partitions: list[TopicPartitions] = v()


@message(key=76, versions="1", flexible="0+")
class ShareGroupHeartbeatResponse:
    """The only version so far."""

    throttle_time_ms: int32 = 0
    error_code: int16 = 0
    error_message: str | None = None
    member_id: str | None = None
    member_epoch: int32 = 0
    heartbeat_interval_ms: int32 = 0
    assignment: Assignment | None = v()
