"""ShareGroupDescribe (API key 77). State and members of share groups."""

from ottla.wire.schema import int16, int32, message, part, uuid, v


@message(key=77, versions="1", flexible="0+")
class ShareGroupDescribeRequest:
    """The only version so far."""

    group_ids: list[str] = v()
    include_authorized_operations: bool = False


@part
class TopicPartitions:
    topic_id: uuid = v()
    topic_name: str = ""
    partitions: list[int32] = v()


@part
class Assignment:
    topic_partitions: list[TopicPartitions] = v()


@part
class Member:
    member_id: str = ""
    rack_id: str | None = None
    member_epoch: int32 = 0
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: list[str] = v()
    assignment: Assignment = v()


@part
class DescribedGroup:
    error_code: int16 = 0
    error_message: str | None = None
    group_id: str = ""
    group_state: str = ""
    group_epoch: int32 = 0
    assignment_epoch: int32 = 0
    assignor_name: str = ""
    members: list[Member] = v()
    authorized_operations: int32 = -(2**31)


@message(key=77, versions="1", flexible="0+")
class ShareGroupDescribeResponse:
    """The only version so far."""

    throttle_time_ms: int32 = 0
    groups: list[DescribedGroup] = v()
