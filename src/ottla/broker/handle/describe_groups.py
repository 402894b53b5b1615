"""DescribeGroups (15): state and members of classic groups.

v3 tells what may be done to a group, v4 has static members; v6 has a code for a group that is not there, which before
was described as dead.
"""

from typing import TYPE_CHECKING

from ottla.broker.acl.check import authorized_operations, check_allowed
from ottla.broker.coordinator import together
from ottla.broker.request import Answer, Request
from ottla.cluster.acl import ACLOperation, ResourceType
from ottla.coordinator.group.shard import GroupShard
from ottla.wire.api.describe_groups import DescribedGroup, DescribeGroupsRequest, DescribeGroupsResponse
from ottla.wire.errors import KafkaError

if TYPE_CHECKING:
    from ottla.broker.broker import Broker


def handle(broker: "Broker", request: Request) -> Answer:
    """Describe each group for itself."""
    body: DescribeGroupsRequest = request.body
    operations = body.include_authorized_operations

    def merge(answers: list[DescribeGroupsResponse]) -> DescribeGroupsResponse:
        groups = [group for answer in answers for group in answer.groups]
        for group in groups:
            if operations and not group.error_code:
                group.authorized_operations = authorized_operations(broker, request, ResourceType.GROUP, group.group_id)
        return DescribeGroupsResponse(groups=groups)

    return together([_describe(broker, request, group_id) for group_id in body.groups], merge)


def _describe(broker: "Broker", request: Request, group_id: str) -> Answer:
    def refuse(error: KafkaError) -> DescribeGroupsResponse:
        group = DescribedGroup(group_id=group_id, error_code=error.code, error_message=error.message)
        return DescribeGroupsResponse(groups=[group])

    try:
        check_allowed(broker, request, ACLOperation.DESCRIBE, ResourceType.GROUP, group_id)
    except KafkaError as error:
        return refuse(error)
    asked = DescribeGroupsRequest(groups=[group_id])
    return broker.groups.ask(request, group_id, GroupShard.describe_groups, asked, refuse)
