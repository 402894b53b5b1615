"""DeleteAcls (31): remove the rules of access that filters match, and tell which. v1 has resources by prefix."""

from typing import TYPE_CHECKING

from ottla.broker.acl.check import check_allowed
from ottla.broker.acl.wire import no_authorizer, read_filter
from ottla.broker.request import Answer, Request
from ottla.cluster.acl import ACL, ACLFilter, ACLOperation, ResourceType
from ottla.wire.api.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from ottla.wire.errors import KafkaError

if TYPE_CHECKING:
    from ottla.broker.broker import Broker


def handle(broker: "Broker", request: Request) -> Answer:
    """Remove what the sound filters match; each succeeds or fails for itself."""
    body: DeleteAclsRequest = request.body
    try:
        if broker.authorizer is None:
            raise no_authorizer()
        check_allowed(broker, request, ACLOperation.ALTER, ResourceType.CLUSTER)
    except KafkaError as error:
        return DeleteAclsResponse(filter_results=[_refused(error) for _ in body.filters])
    wanted: list[ACLFilter | KafkaError] = []
    for asked in body.filters:
        try:
            wanted.append(read_filter(asked))
        except KafkaError as error:
            wanted.append(error)
    return _delete(broker, wanted)


async def _delete(broker: "Broker", wanted: list[ACLFilter | KafkaError]) -> DeleteAclsResponse:
    matching = iter(await broker.rules.delete([one for one in wanted if isinstance(one, ACLFilter)]))
    return DeleteAclsResponse(
        filter_results=[_refused(one) if isinstance(one, KafkaError) else _removed(next(matching)) for one in wanted]
    )


def _refused(error: KafkaError) -> DeleteAclsFilterResult:
    return DeleteAclsFilterResult(error_code=error.code, error_message=error.message)


def _removed(rules: list[ACL]) -> DeleteAclsFilterResult:
    return DeleteAclsFilterResult(
        error_message=None,
        matching_acls=[
            DeleteAclsMatchingAcl(
                error_message=None,
                resource_type=rule.resource_pattern.resource_type,
                resource_name=rule.resource_pattern.resource_name,
                pattern_type=rule.resource_pattern.pattern_type,
                principal=rule.principal,
                host=rule.host,
                operation=rule.operation,
                permission_type=rule.permission_type,
            )
            for rule in rules
        ],
    )
