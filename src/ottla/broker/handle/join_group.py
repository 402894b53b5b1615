"""JoinGroup (11): become a member of a classic group, or stay one when it rebalances.

The reply comes when everyone is there or the time is up, so it may have to be waited for long. v1 has the rebalance
timeout, v4 sends a new member away once to come back with its id, v5 has static members, v7 tells the protocol type, v8
a reason, and v9 lets a leader know that there is nothing to assign.
"""

from typing import TYPE_CHECKING

from ottla.broker.acl.check import check_allowed
from ottla.broker.request import Answer, Request
from ottla.cluster.acl import ACLOperation, ResourceType
from ottla.coordinator.group.shard import GroupShard
from ottla.wire.api.join_group import JoinGroupRequest, JoinGroupResponse
from ottla.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from ottla.broker.broker import Broker


def handle(broker: "Broker", request: Request) -> Answer:
    """Have the group decide."""
    body: JoinGroupRequest = request.body

    def refuse(error: KafkaError) -> JoinGroupResponse:
        return JoinGroupResponse(error_code=error.code, member_id=body.member_id)

    try:
        check_allowed(broker, request, ACLOperation.READ, ResourceType.GROUP, body.group_id)
    except KafkaError as error:
        return refuse(error)
    size = sum(len(protocol.metadata) for protocol in body.protocols)
    if size > broker.config.message_max_bytes:
        # All members are written down in one record, and kept in memory.
        limit = broker.config.message_max_bytes
        return refuse(KafkaError(ErrorCode.MESSAGE_TOO_LARGE, f"metadata of {size} bytes: at most {limit} are allowed"))
    return broker.groups.ask(request, body.group_id, GroupShard.join_group, body, refuse)
