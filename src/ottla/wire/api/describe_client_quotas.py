"""DescribeClientQuotas (API key 48). Look quotas up."""

from ottla.wire.schema import int8, int16, int32, message, part, v


@part
class ComponentData:
    entity_type: str = ""
    match_type: int8 = 0
    match: str | None = ""


@message(key=48, versions="0-1", flexible="1+")
class DescribeClientQuotasRequest:
    """v1 flexible."""

    components: list[ComponentData] = v()
    strict: bool = False


@part
class EntityData:
    entity_type: str = ""
    entity_name: str | None = ""


@part
class ValueData:
    key: str = ""
    value: float = 0.0


@part
class EntryData:
    entity: list[EntityData] = v()
    values: list[ValueData] = v()


@message(key=48, versions="0-1", flexible="1+")
class DescribeClientQuotasResponse:
    """v1 flexible."""

    throttle_time_ms: int32 = 0
    error_code: int16 = 0
    error_message: str | None = ""
    entries: list[EntryData] | None = v()
