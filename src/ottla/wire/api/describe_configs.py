"""DescribeConfigs (API key 32). Configs, where they come from and what they mean."""

from ottla.wire.schema import int8, int16, int32, message, part, v


@part
class DescribeConfigsResource:
    resource_type: int8 = 0
    resource_name: str = ""
    configuration_keys: list[str] | None = v()


@message(key=32, versions="0-4", flexible="4+")
class DescribeConfigsRequest:
    """v1 adds include_synonyms; v3 adds include_documentation; v4 flexible."""

    resources: list[DescribeConfigsResource] = v()
    include_synonyms: bool = v("1+")
    include_documentation: bool = v("3+")


@part
class DescribeConfigsSynonym:
    name: str = ""
    value: str | None = ""
    source: int8 = 0


@part
class DescribeConfigsResourceResult:
    name: str = ""
    value: str | None = ""
    read_only: bool = False
    is_default: bool = v("0")
    config_source: int8 = v("1+", -1)
    is_sensitive: bool = False
    synonyms: list[DescribeConfigsSynonym] = v("1+")
    config_type: int8 = v("3+")
    documentation: str | None = v("3+")


@part
class DescribeConfigsResult:
    error_code: int16 = 0
    error_message: str | None = ""
    resource_type: int8 = 0
    resource_name: str = ""
    configs: list[DescribeConfigsResourceResult] = v()


@message(key=32, versions="0-4", flexible="4+")
class DescribeConfigsResponse:
    """What each version changed.

    v1 adds config_source, synonyms; drops is_default.
    v3 adds config_type, documentation.
    v4 flexible.
    """

    throttle_time_ms: int32 = 0
    results: list[DescribeConfigsResult] = v()
