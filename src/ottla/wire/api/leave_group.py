"""LeaveGroup (API key 13). Leave a classic group."""

from ottla.wire.schema import int16, int32, message, part, v


@part
class MemberIdentity:
    member_id: str = ""
    group_instance_id: str | None = None
    reason: str | None = v("5+", None)


@message(key=13, versions="0-5", flexible="4+")
class LeaveGroupRequest:
    """v3 adds members; drops member_id; v4 flexible; v5 adds reason."""

    group_id: str = ""
    member_id: str = v("0-2")
    members: list[MemberIdentity] = v("3+")


@part
class MemberResponse:
    member_id: str = ""
    group_instance_id: str | None = ""
    error_code: int16 = 0


@message(key=13, versions="0-5", flexible="4+")
class LeaveGroupResponse:
    """v1 adds throttle_time_ms; v3 adds members; v4 flexible."""

    throttle_time_ms: int32 = v("1+")
    error_code: int16 = 0
    members: list[MemberResponse] = v("3+")
