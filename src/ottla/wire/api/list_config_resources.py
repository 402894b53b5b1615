"""ListConfigResources (API key 74). Resources that have configs."""

from ottla.wire.schema import int8, int16, int32, message, part, v


@message(key=74, versions="0-1", flexible="0+")
class ListConfigResourcesRequest:
    """v0 client metrics resources only; v1 adds resource_types."""

    resource_types: list[int8] = v("1+")


@part
class ConfigResource:
    resource_name: str = ""
    resource_type: int8 = v("1+", 16)


@message(key=74, versions="0-1", flexible="0+")
class ListConfigResourcesResponse:
    """v1 adds resource_type."""

    throttle_time_ms: int32 = 0
    error_code: int16 = 0
    config_resources: list[ConfigResource] = v()
