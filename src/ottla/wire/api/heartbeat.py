"""Heartbeat (API key 12). Stay a member of a classic group."""

from ottla.wire.schema import int16, int32, message, v


@message(key=12, versions="0-4", flexible="4+")
class HeartbeatRequest:
    """v3 adds group_instance_id; v4 flexible."""

    group_id: str = ""
    generation_id: int32 = 0
    member_id: str = ""
    group_instance_id: str | None = v("3+", None)


@message(key=12, versions="0-4", flexible="4+")
class HeartbeatResponse:
    """v1 adds throttle_time_ms; v4 flexible."""

    throttle_time_ms: int32 = v("1+")
    error_code: int16 = 0
