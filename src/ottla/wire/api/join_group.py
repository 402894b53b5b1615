"""JoinGroup (API key 11). Become a member of a classic group."""

from ottla.wire.schema import int16, int32, message, part, v


@part
class JoinGroupRequestProtocol:
    name: str = ""
    metadata: bytes = b""


@message(key=11, versions="0-9", flexible="6+")
class JoinGroupRequest:
    """What each version changed.

    v1 adds rebalance_timeout_ms.
    v4 a new member is told its id and must join again with it.
    v5 adds group_instance_id.
    v6 flexible.
    v8 adds reason.
    """

    group_id: str = ""
    session_timeout_ms: int32 = 0
    rebalance_timeout_ms: int32 = v("1+", -1)
    member_id: str = ""
    group_instance_id: str | None = v("5+", None)
    protocol_type: str = ""
    protocols: list[JoinGroupRequestProtocol] = v()
    reason: str | None = v("8+", None)


@part
class JoinGroupResponseMember:
    member_id: str = ""
    group_instance_id: str | None = v("5+", None)
    metadata: bytes = b""


@message(key=11, versions="0-9", flexible="6+")
class JoinGroupResponse:
    """What each version changed.

    v2 adds throttle_time_ms.
    v5 adds group_instance_id.
    v6 flexible.
    v7 adds protocol_type; protocol_name may be null.
    v9 adds skip_assignment.
    """

    throttle_time_ms: int32 = v("2+")
    error_code: int16 = 0
    generation_id: int32 = -1
    protocol_type: str | None = v("7+", None)
    protocol_name: str | None = v(nullable="7+")
    leader: str = ""
    skip_assignment: bool = v("9+")
    member_id: str = ""
    members: list[JoinGroupResponseMember] = v()
