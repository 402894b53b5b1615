"""DescribeClientQuotas (48): the quotas that are set for users, client ids and addresses."""

from typing import TYPE_CHECKING

from ottla.broker.acl.check import check_allowed
from ottla.broker.request import Answer, Request
from ottla.cluster.acl import ACLOperation, ResourceType
from ottla.cluster.quota import CLIENT_ID, IP, USER, QuotaEntity
from ottla.config.address import plain_host
from ottla.wire.api.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)
from ottla.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

EXACT, DEFAULT, ANY = 0, 1, 2


def handle(broker: "Broker", request: Request) -> Answer:
    """Answer with the entities that match every component; with `strict`, and have no other parts."""
    body: DescribeClientQuotasRequest = request.body
    try:
        check_allowed(broker, request, ACLOperation.DESCRIBE_CONFIGS, ResourceType.CLUSTER)
        wanted = _components(body.components)
    except KafkaError as error:
        return DescribeClientQuotasResponse(error_code=error.code, error_message=error.message, entries=None)
    entries = [
        EntryData(
            entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
            values=[ValueData(key=key, value=value) for key, value in sorted(values.items())],
        )
        for entity, values in sorted(broker.quotas.limits.items(), key=lambda item: _order(item[0]))
        if _matches(entity, wanted, body.strict)
    ]
    return DescribeClientQuotasResponse(error_message=None, entries=entries)


def _components(components: list[ComponentData]) -> dict[str, ComponentData]:
    wanted: dict[str, ComponentData] = {}
    for one in components:
        if one.entity_type not in (USER, CLIENT_ID, IP):
            raise _invalid(f"there are no quotas for a {one.entity_type!r}; there are for user, client-id and ip")
        if one.entity_type in wanted:
            raise _invalid(f"{one.entity_type} is asked for twice")
        if one.match_type not in (EXACT, DEFAULT, ANY):
            raise _invalid(f"match type {one.match_type} is none of 0, 1 and 2")
        if (one.match_type == EXACT) != (one.match is not None):
            raise _invalid("an exact match needs a name, and others have none")
        wanted[one.entity_type] = one
    if IP in wanted and len(wanted) > 1:
        raise _invalid("no quota is for an ip and something else")
    return wanted


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)


def _matches(entity: QuotaEntity, wanted: dict[str, ComponentData], strict: bool) -> bool:
    parts = dict(entity)
    if wanted.keys() - parts.keys() or (strict and len(parts) != len(wanted)):
        return False
    return all(one.match_type == ANY or parts[kind] == _name(one) for kind, one in wanted.items())


def _name(one: ComponentData) -> str | None:
    if one.match_type != EXACT or one.match is None:
        return None
    # Addresses are kept in one of their forms.
    return plain_host(one.match) if one.entity_type == IP else one.match


def _order(entity: QuotaEntity) -> list[tuple[str, str]]:
    return [(kind, name or "") for kind, name in entity]
