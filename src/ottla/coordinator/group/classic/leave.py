"""LeaveGroup: be a member no more, at once rather than at the end of the session.

v3 names several members, by member id or, where an administrator removes static members, by instance id alone.
"""

from ottla.coordinator.group.classic.rebalance import SESSION, RebalancingGroup
from ottla.coordinator.group.classic.state import ClassicState
from ottla.coordinator.outcome import Call, Outcome
from ottla.wire.api.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity, MemberResponse
from ottla.wire.errors import ErrorCode, KafkaError


def leave(group: RebalancingGroup, now_ms: int, call: Call) -> Outcome:
    """Answer a LeaveGroup request."""
    request: LeaveGroupRequest = call.body
    outcome = Outcome()
    size = len(group.members)
    if call.version < 3:
        error = _remove(group, MemberIdentity(member_id=request.member_id), outcome)
        outcome.reply = LeaveGroupResponse(error_code=error)
    else:
        outcome.reply = LeaveGroupResponse(
            members=[
                MemberResponse(
                    member_id=identity.member_id,
                    group_instance_id=identity.group_instance_id,
                    error_code=_remove(group, identity, outcome),
                )
                for identity in request.members
            ]
        )
    if len(group.members) < size:
        group.rebalance(now_ms, outcome)
    elif group.state is ClassicState.PREPARING_REBALANCE:
        # One whom the others waited for may have been among those who never came.
        group.complete_if_all_joined(now_ms, outcome)
    return outcome


def _remove(group: RebalancingGroup, identity: MemberIdentity, outcome: Outcome) -> ErrorCode:
    member_id = identity.member_id or group.members.id_of(identity.group_instance_id) or ""
    if member_id in group.pending:
        del group.pending[member_id]
        group.context.timers.cancel((group.group_id, SESSION, member_id))
        return ErrorCode.NONE
    try:
        group.check_member(member_id, identity.group_instance_id)
    except KafkaError as error:
        return error.code
    group.remove(member_id, outcome)
    return ErrorCode.NONE
