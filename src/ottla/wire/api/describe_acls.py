"""DescribeAcls (API key 29). Look rules of access up."""

from ottla.wire.schema import int8, int16, int32, message, part, v


@message(key=29, versions="0-3", flexible="2+")
class DescribeAclsRequest:
    """v1 adds pattern_type_filter; v2 flexible."""

    resource_type_filter: int8 = 0
    resource_name_filter: str | None = ""
    pattern_type_filter: int8 = v("1+", 3)
    principal_filter: str | None = ""
    host_filter: str | None = ""
    operation: int8 = 0
    permission_type: int8 = 0


@part
class AclDescription:
    principal: str = ""
    host: str = ""
    operation: int8 = 0
    permission_type: int8 = 0


@part
class DescribeAclsResource:
    resource_type: int8 = 0
    resource_name: str = ""
    pattern_type: int8 = v("1+", 3)
    acls: list[AclDescription] = v()


@message(key=29, versions="0-3", flexible="2+")
class DescribeAclsResponse:
    """v1 adds pattern_type; v2 flexible."""

    throttle_time_ms: int32 = 0
    error_code: int16 = 0
    error_message: str | None = ""
    resources: list[DescribeAclsResource] = v()
