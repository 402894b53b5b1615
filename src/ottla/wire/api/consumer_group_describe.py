"""ConsumerGroupDescribe (API key 69). State and members of groups of the consumer protocol."""

from ottla.wire.schema import int8, int16, int32, message, part, uuid, v


@message(key=69, versions="0-1", flexible="0+")
class ConsumerGroupDescribeRequest:
    """No version changed any field."""

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
    instance_id: str | None = None
    rack_id: str | None = None
    member_epoch: int32 = 0
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: list[str] = v()
    subscribed_topic_regex: str | None = None
    assignment: Assignment = v()
    target_assignment: Assignment = v()
    member_type: int8 = v("1+", -1)


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


@message(key=69, versions="0-1", flexible="0+")
class ConsumerGroupDescribeResponse:
    """v1 adds member_type."""

    throttle_time_ms: int32 = 0
    groups: list[DescribedGroup] = v()
