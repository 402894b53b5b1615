"""AlterClientQuotas (API key 49). Change quotas."""

from ottla.wire.schema import int16, int32, message, part, v


@part
class EntityData:
    entity_type: str = ""
    entity_name: str | None = ""


@part
class OpData:
    key: str = ""
    value: float = 0.0
    remove: bool = False


@part
class EntryData:
    entity: list[EntityData] = v()
    ops: list[OpData] = v()


@message(key=49, versions="0-1", flexible="1+")
class AlterClientQuotasRequest:
    """v1 flexible."""

    entries: list[EntryData] = v()
    validate_only: bool = False


@part
class ResponseEntryData:
    error_code: int16 = 0
    error_message: str | None = ""
    entity: list[EntityData] = v()


@message(key=49, versions="0-1", flexible="1+")
class AlterClientQuotasResponse:
    """v1 flexible."""

    throttle_time_ms: int32 = 0
    entries: list[ResponseEntryData] = v()
