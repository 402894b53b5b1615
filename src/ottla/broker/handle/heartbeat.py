"""Heartbeat (12): a member of a classic group is alive, and hears whether there is a rebalance.

v3 has static members.
"""

from typing import TYPE_CHECKING

from ottla.broker.acl.check import check_allowed
from ottla.broker.request import Answer, Request
from ottla.cluster.acl import ACLOperation, ResourceType
from ottla.coordinator.group.shard import GroupShard
from ottla.wire.api.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from ottla.broker.broker import Broker


def handle(broker: "Broker", request: Request) -> Answer:
    """Have the group decide."""
    body: HeartbeatRequest = request.body
    try:
        check_allowed(broker, request, ACLOperation.READ, ResourceType.GROUP, body.group_id)
    except KafkaError as error:
        return _refuse(error)
    return broker.groups.ask(request, body.group_id, GroupShard.heartbeat, body, _refuse)


def _refuse(error: KafkaError) -> HeartbeatResponse:
    # Sessions begin anew when the group is loaded, so nothing is missed; clients do not expect to hear of loading here.
    loading = error.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    return HeartbeatResponse(error_code=ErrorCode.NONE if loading else error.code)
