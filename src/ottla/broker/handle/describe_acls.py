"""DescribeAcls (29): the rules of access that a filter matches. v1 has resources by prefix."""

from typing import TYPE_CHECKING

from ottla.broker.acl.check import check_allowed
from ottla.broker.acl.wire import no_authorizer, read_filter
from ottla.broker.request import Answer, Request
from ottla.cluster.acl import ACL, ACLOperation, ResourcePattern, ResourceType
from ottla.wire.api.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)
from ottla.wire.errors import KafkaError

if TYPE_CHECKING:
    from ottla.broker.broker import Broker


def handle(broker: "Broker", request: Request) -> Answer:
    """List rules by the resources that they are about."""
    body: DescribeAclsRequest = request.body
    try:
        if broker.authorizer is None:
            raise no_authorizer()
        check_allowed(broker, request, ACLOperation.DESCRIBE, ResourceType.CLUSTER)
        wanted = read_filter(body)
    except KafkaError as error:
        return DescribeAclsResponse(error_code=error.code, error_message=error.message)
    response = DescribeAclsResponse(error_message=None)
    for pattern, rules in broker.image.acls.items():
        found = [rule for rule in rules if wanted.matches(rule)]
        if found:
            response.resources.append(_described(pattern, found))
    return response


def _described(pattern: ResourcePattern, rules: list[ACL]) -> DescribeAclsResource:
    return DescribeAclsResource(
        resource_type=pattern.resource_type,
        resource_name=pattern.resource_name,
        pattern_type=pattern.pattern_type,
        acls=[
            AclDescription(
                principal=rule.principal,
                host=rule.host,
                operation=rule.operation,
                permission_type=rule.permission_type,
            )
            for rule in rules
        ],
    )
