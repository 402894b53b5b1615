"""LeaveGroup (13): leave a classic group. From v3 on several members at a time, also static ones by their names."""

from typing import TYPE_CHECKING

from ottla.broker.acl.check import check_allowed
from ottla.broker.request import Answer, Request
from ottla.cluster.acl import ACLOperation, ResourceType
from ottla.coordinator.group.shard import GroupShard
from ottla.wire.api.leave_group import LeaveGroupRequest, LeaveGroupResponse
from ottla.wire.errors import KafkaError

if TYPE_CHECKING:
    from ottla.broker.broker import Broker


def handle(broker: "Broker", request: Request) -> Answer:
    """Have the group decide."""
    body: LeaveGroupRequest = request.body
    try:
        check_allowed(broker, request, ACLOperation.READ, ResourceType.GROUP, body.group_id)
    except KafkaError as error:
        return _refuse(error)
    return broker.groups.ask(request, body.group_id, GroupShard.leave_group, body, _refuse)


def _refuse(error: KafkaError) -> LeaveGroupResponse:
    return LeaveGroupResponse(error_code=error.code)
