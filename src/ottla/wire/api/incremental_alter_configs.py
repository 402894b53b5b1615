"""IncrementalAlterConfigs (API key 44). Set, delete, append to and subtract from single configs."""

from ottla.wire.schema import int8, int16, int32, message, part, v


@part
class AlterableConfig:
    name: str = ""
    config_operation: int8 = 0
    value: str | None = ""


@part
class AlterConfigsResource:
    resource_type: int8 = 0
    resource_name: str = ""
    configs: list[AlterableConfig] = v()


@message(key=44, versions="0-1", flexible="1+")
class IncrementalAlterConfigsRequest:
    """v1 flexible."""

    resources: list[AlterConfigsResource] = v()
    validate_only: bool = False


@part
class AlterConfigsResourceResponse:
    error_code: int16 = 0
    error_message: str | None = ""
    resource_type: int8 = 0
    resource_name: str = ""


@message(key=44, versions="0-1", flexible="1+")
class IncrementalAlterConfigsResponse:
    """v1 flexible."""

    throttle_time_ms: int32 = 0
    responses: list[AlterConfigsResourceResponse] = v()
