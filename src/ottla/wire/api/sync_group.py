"""SyncGroup (API key 14). Hand out, or receive, a classic group's assignment."""

from ottla.wire.schema import int16, int32, message, part, v


@part
class SyncGroupRequestAssignment:
    member_id: str = ""
    assignment: bytes = b""


@message(key=14, versions="0-5", flexible="4+")
class SyncGroupRequest:
    """v3 adds group_instance_id; v4 flexible; v5 adds protocol_type, protocol_name."""

    group_id: str = ""
    generation_id: int32 = 0
    member_id: str = ""
    group_instance_id: str | None = v("3+", None)
    protocol_type: str | None = v("5+", None)
    protocol_name: str | None = v("5+", None)
    assignments: list[SyncGroupRequestAssignment] = v()


@message(key=14, versions="0-5", flexible="4+")
class SyncGroupResponse:
    """v1 adds throttle_time_ms; v4 flexible; v5 adds protocol_type, protocol_name."""

    throttle_time_ms: int32 = v("1+")
    error_code: int16 = 0
    protocol_type: str | None = v("5+", None)
    protocol_name: str | None = v("5+", None)
    assignment: bytes = b""
