"""What consumers tell each other through JoinGroup and SyncGroup: an int16 version, then one of these."""

from ottla.wire.schema import int32, message, part, v


@part
class TopicPartition:
    topic: str = ""
    partitions: list[int32] = v()


@message(versions="0-3")
class ConsumerProtocolSubscription:
    """v1 adds owned_partitions; v2 adds generation_id; v3 adds rack_id."""

    topics: list[str] = v()
    user_data: bytes | None = None
    owned_partitions: list[TopicPartition] = v("1+")
    generation_id: int32 = v("2+", -1)
    rack_id: str | None = v("3+", None)


@message(versions="0-3")
class ConsumerProtocolAssignment:
    """No version changed any field."""

    assigned_partitions: list[TopicPartition] = v()
    user_data: bytes | None = None
