"""DeleteGroups (API key 42). Delete groups."""

from ottla.wire.schema import int16, int32, message, part, v


@message(key=42, versions="0-3", flexible="2+")
class DeleteGroupsRequest:
    """v2 flexible."""

    groups_names: list[str] = v()


@part
class DeletableGroupResult:
    group_id: str = ""
    error_code: int16 = 0
    error_message: str | None = v("3+", None)


@message(key=42, versions="0-3", flexible="2+")
class DeleteGroupsResponse:
    """v2 flexible; v3 adds error_message."""

    throttle_time_ms: int32 = 0
    results: list[DeletableGroupResult] = v()
