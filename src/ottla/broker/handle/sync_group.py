"""SyncGroup (14): the leader of a classic group hands out the assignment, and everyone gets their own.

v3 has static members; v5 names protocol type and protocol, which must be the group's.
"""

from typing import TYPE_CHECKING

from ottla.broker.acl.check import check_allowed
from ottla.broker.request import Answer, Request
from ottla.cluster.acl import ACLOperation, ResourceType
from ottla.coordinator.group.shard import GroupShard
from ottla.wire.api.sync_group import SyncGroupRequest, SyncGroupResponse
from ottla.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from ottla.broker.broker import Broker


def handle(broker: "Broker", request: Request) -> Answer:
    """Have the group decide."""
    body: SyncGroupRequest = request.body
    try:
        check_allowed(broker, request, ACLOperation.READ, ResourceType.GROUP, body.group_id)
    except KafkaError as error:
        return _refuse(error)
    limit = broker.config.message_max_bytes
    for share in body.assignments:
        if len(share.assignment) > limit:
            message = (
                f"assignment of {len(share.assignment)} bytes for {share.member_id!r}: at most {limit} are allowed"
            )
            return _refuse(KafkaError(ErrorCode.MESSAGE_TOO_LARGE, message))
    return broker.groups.ask(request, body.group_id, GroupShard.sync_group, body, _refuse)


def _refuse(error: KafkaError) -> SyncGroupResponse:
    # A coordinator that loads has lost the rebalance that this belongs to. Clients do not expect to hear of loading
    # here, and join again if they are told of a rebalance.
    loading = error.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    return SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS if loading else error.code)
