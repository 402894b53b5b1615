"""SyncGroup: the leader shares the work out, everybody else asks for a share.

v3 brings static members.
v5 says which protocol the member believes to speak.
"""

from ottla.coordinator.group.classic.member import Member
from ottla.coordinator.group.classic.rebalance import RebalancingGroup
from ottla.coordinator.group.classic.state import ClassicState
from ottla.coordinator.outcome import Call, Outcome
from ottla.wire.api.sync_group import SyncGroupRequest, SyncGroupResponse
from ottla.wire.errors import ErrorCode, KafkaError


def sync(group: RebalancingGroup, now_ms: int, call: Call) -> Outcome:
    """Answer a SyncGroup request."""
    request: SyncGroupRequest = call.body
    outcome = Outcome()
    try:
        member = _check(group, request)
    except KafkaError as error:
        return Outcome(SyncGroupResponse(error_code=error.code))
    group.unsynced.discard(member.member_id)
    if group.state is ClassicState.STABLE:
        outcome.reply = group.sync_reply(member.assignment)
        group.watch(now_ms, member.member_id)
    else:
        group.wait_for_sync(member.member_id, outcome)
        if member.member_id == group.leader:
            _share_out(group, now_ms, request, outcome)
    if not group.unsynced:
        group.expect_no_syncs()
    return outcome


def _check(group: RebalancingGroup, request: SyncGroupRequest) -> Member:
    member = group.check_member(request.member_id, request.group_instance_id)
    group.check_generation(request.generation_id)
    # A group that has been one of the consumer protocol until now has not agreed on anything yet.
    if group.state is ClassicState.PREPARING_REBALANCE or group.protocol is None:
        raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS, f"group {group.group_id!r} rebalances: join again")
    for said, agreed in ((request.protocol_type, group.protocol_type), (request.protocol_name, group.protocol)):
        if said is not None and said != agreed:
            raise KafkaError(
                ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"group {group.group_id!r} agreed on {agreed!r}, not on {said!r}"
            )
    return member


def _share_out(group: RebalancingGroup, now_ms: int, request: SyncGroupRequest, outcome: Outcome) -> None:
    shares = {share.member_id: share.assignment for share in request.assignments}
    group.move_to(ClassicState.STABLE)
    outcome.records.append(group.record(now_ms, group.generation, group.leader, group.protocol, shares))
    for member_id in list(group.syncing):
        group.answer_sync(now_ms, member_id, group.sync_reply(shares.get(member_id, b"")), outcome)
