"""ListGroups (API key 16). The groups that a broker looks after."""

from ottla.wire.schema import int16, int32, message, part, v


@message(key=16, versions="0-5", flexible="3+")
class ListGroupsRequest:
    """v3 flexible; v4 adds states_filter; v5 adds types_filter."""

    states_filter: list[str] = v("4+")
    types_filter: list[str] = v("5+")


@part
class ListedGroup:
    group_id: str = ""
    protocol_type: str = ""
    group_state: str = v("4+")
    group_type: str = v("5+")


@message(key=16, versions="0-5", flexible="3+")
class ListGroupsResponse:
    """v1 adds throttle_time_ms; v3 flexible; v4 adds group_state; v5 adds group_type."""

    throttle_time_ms: int32 = v("1+")
    error_code: int16 = 0
    groups: list[ListedGroup] = v()
