"""FindCoordinator (API key 10). Which broker looks after a group or a transaction."""

from ottla.wire.schema import int8, int16, int32, message, part, v


@message(key=10, versions="0-6", flexible="3+")
class FindCoordinatorRequest:
    """What each version changed.

    v1 adds key_type.
    v3 flexible.
    v4 adds coordinator_keys; drops key; asks for many keys at once.
    """

    key: str = v("0-3")
    key_type: int8 = v("1+")
    coordinator_keys: list[str] = v("4+")


@part
class Coordinator:
    key: str = ""
    node_id: int32 = 0
    host: str = ""
    port: int32 = 0
    error_code: int16 = 0
    error_message: str | None = ""


@message(key=10, versions="0-6", flexible="3+")
class FindCoordinatorResponse:
    """What each version changed.

    v1 adds throttle_time_ms, error_message.
    v3 flexible.
    v4 adds coordinators; drops error_code, error_message, node_id, host, port.
    """

    throttle_time_ms: int32 = v("1+")
    error_code: int16 = v("0-3")
    error_message: str | None = v("1-3")
    node_id: int32 = v("0-3")
    host: str = v("0-3")
    port: int32 = v("0-3")
    coordinators: list[Coordinator] = v("4+")
