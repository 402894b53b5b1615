"""DeleteGroups (42): remove groups without members, and what they have committed. All versions are alike but for
encoding, and for the message that v3 has.
"""

from typing import TYPE_CHECKING

from ottla.broker.acl.check import check_allowed
from ottla.broker.coordinator import together
from ottla.broker.request import Answer, Request
from ottla.cluster.acl import ACLOperation, ResourceType
from ottla.coordinator.group.shard import GroupShard
from ottla.wire.api.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse
from ottla.wire.errors import KafkaError

if TYPE_CHECKING:
    from ottla.broker.broker import Broker


def handle(broker: "Broker", request: Request) -> Answer:
    """Delete one group after the other; each succeeds or fails for itself."""
    body: DeleteGroupsRequest = request.body
    # Named twice is not deleted twice.
    names = dict.fromkeys(body.groups_names)
    return together([_delete(broker, request, group_id) for group_id in names], _merge)


def _merge(answers: list[DeleteGroupsResponse]) -> DeleteGroupsResponse:
    return DeleteGroupsResponse(results=[result for answer in answers for result in answer.results])


def _delete(broker: "Broker", request: Request, group_id: str) -> Answer:
    def refuse(error: KafkaError) -> DeleteGroupsResponse:
        result = DeletableGroupResult(group_id=group_id, error_code=error.code, error_message=error.message)
        return DeleteGroupsResponse(results=[result])

    try:
        check_allowed(broker, request, ACLOperation.DELETE, ResourceType.GROUP, group_id)
    except KafkaError as error:
        return refuse(error)
    asked = DeleteGroupsRequest(groups_names=[group_id])
    return broker.groups.ask(request, group_id, GroupShard.delete_groups, asked, refuse)
