"""CreateAcls (30): add rules of access. One that is there already is fine. v1 has resources by prefix."""

from typing import TYPE_CHECKING

from ottla.broker.acl.check import check_allowed
from ottla.broker.acl.wire import no_authorizer, read_rule
from ottla.broker.request import Answer, Request
from ottla.cluster.acl import ACL, ACLOperation, ResourceType
from ottla.wire.api.create_acls import AclCreationResult, CreateAclsRequest, CreateAclsResponse
from ottla.wire.errors import KafkaError

if TYPE_CHECKING:
    from ottla.broker.broker import Broker


def handle(broker: "Broker", request: Request) -> Answer:
    """Add those that are sound; each succeeds or fails for itself."""
    body: CreateAclsRequest = request.body
    try:
        if broker.authorizer is None:
            raise no_authorizer()
        check_allowed(broker, request, ACLOperation.ALTER, ResourceType.CLUSTER)
    except KafkaError as error:
        return CreateAclsResponse(results=[_result(error) for _ in body.creations])
    wanted: list[ACL | KafkaError] = []
    for creation in body.creations:
        try:
            wanted.append(read_rule(creation))
        except KafkaError as error:
            wanted.append(error)
    return _create(broker, wanted)


async def _create(broker: "Broker", wanted: list[ACL | KafkaError]) -> CreateAclsResponse:
    failed = await broker.rules.create(rule for rule in wanted if isinstance(rule, ACL))
    return CreateAclsResponse(results=[_result(failed.get(rule) if isinstance(rule, ACL) else rule) for rule in wanted])


def _result(error: KafkaError | None) -> AclCreationResult:
    if error is None:
        return AclCreationResult(error_message=None)
    return AclCreationResult(error_code=error.code, error_message=error.message)
