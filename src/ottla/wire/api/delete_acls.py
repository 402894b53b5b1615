"""DeleteAcls (API key 31). Remove rules of access."""

from ottla.wire.schema import int8, int16, int32, message, part, v


@part
class DeleteAclsFilter:
    resource_type_filter: int8 = 0
    resource_name_filter: str | None = ""
    pattern_type_filter: int8 = v("1+", 3)
    principal_filter: str | None = ""
    host_filter: str | None = ""
    operation: int8 = 0
    permission_type: int8 = 0


@message(key=31, versions="0-3", flexible="2+")
class DeleteAclsRequest:
    """v1 adds pattern_type_filter; v2 flexible."""

    filters: list[DeleteAclsFilter] = v()


@part
class DeleteAclsMatchingAcl:
    error_code: int16 = 0
    error_message: str | None = ""
    resource_type: int8 = 0
    resource_name: str = ""
    pattern_type: int8 = v("1+", 3)
    principal: str = ""
    host: str = ""
    operation: int8 = 0
    permission_type: int8 = 0


@part
class DeleteAclsFilterResult:
    error_code: int16 = 0
    error_message: str | None = ""
    matching_acls: list[DeleteAclsMatchingAcl] = v()


@message(key=31, versions="0-3", flexible="2+")
class DeleteAclsResponse:
    """v1 adds pattern_type; v2 flexible."""

    throttle_time_ms: int32 = 0
    filter_results: list[DeleteAclsFilterResult] = v()
