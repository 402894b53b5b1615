"""AlterClientQuotas (49): set and remove quotas of users, client ids and addresses. They hold at once."""

from typing import TYPE_CHECKING

from ottla.broker.acl.check import check_allowed
from ottla.broker.request import Answer, Request
from ottla.cluster.acl import ACLOperation, ResourceType
from ottla.cluster.quota import QuotaEntity, QuotaValues, check_quota, quota_entity
from ottla.wire.api.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntryData,
    ResponseEntryData,
)
from ottla.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from ottla.broker.broker import Broker


async def handle(broker: "Broker", request: Request) -> Answer:
    """Change entity by entity, and say what became of each."""
    body: AlterClientQuotasRequest = request.body
    response = AlterClientQuotasResponse()
    seen: set[QuotaEntity] = set()
    for entry in body.entries:
        result = ResponseEntryData(entity=entry.entity, error_message=None)
        response.entries.append(result)
        try:
            check_allowed(broker, request, ACLOperation.ALTER_CONFIGS, ResourceType.CLUSTER)
            entity = quota_entity([(part.entity_type, part.entity_name) for part in entry.entity])
            if entity in seen:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "the same entity is there twice")
            seen.add(entity)
            _check(entity, entry)
            if not body.validate_only:
                await broker.quotas.alter(entity, lambda before, entry=entry: _altered(before, entry))  # type: ignore[misc]
        except KafkaError as error:
            result.error_code, result.error_message = error.code, error.message
    return response


def _check(entity: QuotaEntity, entry: EntryData) -> None:
    keys = [change.key for change in entry.ops]
    if len(set(keys)) < len(keys):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "the same quota is there twice")
    for change in entry.ops:
        check_quota(entity, change.key, 1.0 if change.remove else change.value)


def _altered(before: QuotaValues, entry: EntryData) -> QuotaValues:
    removed = {change.key for change in entry.ops if change.remove}
    kept = {key: value for key, value in before.items() if key not in removed}
    return {**kept, **{change.key: change.value for change in entry.ops if not change.remove}}
