"""ListGroups (16): the groups that this broker coordinates.

v4 can ask for groups in certain states, and tells theirs; v5 likewise for the protocol that they speak. While groups
are being loaded the list is not known, and the client is told to ask again.
"""

from typing import TYPE_CHECKING

from ottla.broker.acl.check import allowed_names, is_allowed
from ottla.broker.coordinator import together
from ottla.broker.request import Answer, Request
from ottla.cluster.acl import ACLOperation, ResourceType
from ottla.coordinator.group.shard import GroupShard
from ottla.wire.api.list_groups import ListGroupsRequest, ListGroupsResponse
from ottla.wire.errors import KafkaError

if TYPE_CHECKING:
    from ottla.broker.broker import Broker


def handle(broker: "Broker", request: Request) -> Answer:
    """Put the lists of all shards together; to see all groups, one must be allowed to look at the cluster."""
    body: ListGroupsRequest = request.body

    def merge(answers: list[ListGroupsResponse]) -> ListGroupsResponse:
        response = _merge(answers)
        if not is_allowed(broker, request, ACLOperation.DESCRIBE, ResourceType.CLUSTER):
            names = [group.group_id for group in response.groups]
            visible = set(allowed_names(broker, request, ACLOperation.DESCRIBE, ResourceType.GROUP, names))
            response.groups = [group for group in response.groups if group.group_id in visible]
        return response

    return together(broker.groups.ask_all(request, GroupShard.list_groups, body, _refuse), merge)


def _refuse(error: KafkaError) -> ListGroupsResponse:
    return ListGroupsResponse(error_code=error.code)


def _merge(answers: list[ListGroupsResponse]) -> ListGroupsResponse:
    failed = next((answer for answer in answers if answer.error_code), None)
    return failed or ListGroupsResponse(groups=[group for answer in answers for group in answer.groups])
