"""CreateAcls (API key 30). Add rules of access."""

from ottla.wire.schema import int8, int16, int32, message, part, v


@part
class AclCreation:
    resource_type: int8 = 0
    resource_name: str = ""
    resource_pattern_type: int8 = v("1+", 3)
    principal: str = ""
    host: str = ""
    operation: int8 = 0
    permission_type: int8 = 0


@message(key=30, versions="0-3", flexible="2+")
class CreateAclsRequest:
    """v1 adds resource_pattern_type; v2 flexible."""

    creations: list[AclCreation] = v()


@part
class AclCreationResult:
    error_code: int16 = 0
    error_message: str | None = ""


@message(key=30, versions="0-3", flexible="2+")
class CreateAclsResponse:
    """v2 flexible."""

    throttle_time_ms: int32 = 0
    results: list[AclCreationResult] = v()
