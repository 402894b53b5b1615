"""DescribeGroups (API key 15). State and members of classic groups."""

from ottla.wire.schema import int16, int32, message, part, v


@message(key=15, versions="0-6", flexible="5+")
class DescribeGroupsRequest:
    """v3 adds include_authorized_operations; v5 flexible."""

    groups: list[str] = v()
    include_authorized_operations: bool = v("3+")


@part
class DescribedGroupMember:
    member_id: str = ""
    group_instance_id: str | None = v("4+", None)
    client_id: str = ""
    client_host: str = ""
    member_metadata: bytes = b""
    member_assignment: bytes = b""


@part
class DescribedGroup:
    error_code: int16 = 0
    error_message: str | None = v("6+", None)
    group_id: str = ""
    group_state: str = ""
    protocol_type: str = ""
    protocol_data: str = ""
    members: list[DescribedGroupMember] = v()
    authorized_operations: int32 = v("3+", -(2**31))


@message(key=15, versions="0-6", flexible="5+")
class DescribeGroupsResponse:
    """What each version changed.

    v1 adds throttle_time_ms.
    v3 adds authorized_operations.
    v4 adds group_instance_id.
    v5 flexible.
    v6 adds error_message.
    """

    throttle_time_ms: int32 = v("1+")
    groups: list[DescribedGroup] = v()
