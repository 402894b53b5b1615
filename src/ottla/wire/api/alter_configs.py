"""AlterConfigs (API key 33). Replace all of a resource's configs."""

from ottla.wire.schema import int8, int16, int32, message, part, v


@part
class AlterableConfig:
    name: str = ""
    value: str | None = ""


@part
class AlterConfigsResource:
    resource_type: int8 = 0
    resource_name: str = ""
    configs: list[AlterableConfig] = v()


@message(key=33, versions="0-2", flexible="2+")
class AlterConfigsRequest:
    """v2 flexible."""

    resources: list[AlterConfigsResource] = v()
    validate_only: bool = False


@part
class AlterConfigsResourceResponse:
    error_code: int16 = 0
    error_message: str | None = ""
    resource_type: int8 = 0
    resource_name: str = ""


@message(key=33, versions="0-2", flexible="2+")
class AlterConfigsResponse:
    """v2 flexible."""

    throttle_time_ms: int32 = 0
    responses: list[AlterConfigsResourceResponse] = v()
