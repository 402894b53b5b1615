"""JoinGroup: become a member, or come along into the next generation.

v1 brings a rebalance timeout; before, the session timeout is both.
v4 a new member is given its id first, and is let in when it comes back with it: whoever loses the answer and tries
   again does not leave a member behind that nobody is.
v5 brings static members, who are known by a name of their own.
v9 a static leader that comes back is told about the members and that it need not share out.
"""

from dataclasses import replace
from uuid import UUID

from ottla.coordinator.group.classic.member import Member
from ottla.coordinator.group.classic.rebalance import SESSION, RebalancingGroup
from ottla.coordinator.group.classic.state import ClassicState
from ottla.coordinator.outcome import Call, Outcome
from ottla.wire.api.join_group import JoinGroupRequest, JoinGroupResponse
from ottla.wire.errors import ErrorCode, KafkaError

NEWCOMER_TIMEOUT_MS = 300_000
"""How long a new member waits for its first answer. It does not know its id yet and can send no heartbeats; if it went
away and joined again, what it left behind must not be waited for without end. A client that is still there retries."""

MOST_PENDING = 10_000
"""Ids that are given out and not used yet. The oldest is forgotten; its owner is told so, and asks for another."""


def join(group: RebalancingGroup, now_ms: int, call: Call) -> Outcome:
    """Answer a JoinGroup request."""
    request: JoinGroupRequest = call.body
    outcome = Outcome()
    try:
        # A static member that comes back without its id takes its own place.
        known_as = request.member_id or group.members.id_of(request.group_instance_id) or ""
        _check(group, request, known_as)
        if not _has_room(group, known_as):
            _refuse_for_lack_of_room(group, now_ms, request.member_id, outcome)
        elif not request.member_id:
            _join_without_id(group, now_ms, call, known_as, outcome)
        elif request.member_id in group.pending and request.group_instance_id is None:
            _admit(group, now_ms, call, request.member_id, outcome)
        else:
            _rejoin(group, now_ms, call, outcome)
    except KafkaError as error:
        outcome.reply = JoinGroupResponse(error_code=error.code, member_id=request.member_id)
    return outcome


def _check(group: RebalancingGroup, request: JoinGroupRequest, known_as: str) -> None:
    if not group.group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID, "the group id is empty: name a group")
    config, timeout_ms = group.context.config, request.session_timeout_ms
    if not config.group_min_session_timeout_ms <= timeout_ms <= config.group_max_session_timeout_ms:
        raise KafkaError(
            ErrorCode.INVALID_SESSION_TIMEOUT,
            f"session timeout {timeout_ms} ms is not between group.min.session.timeout.ms = "
            f"{config.group_min_session_timeout_ms} and group.max.session.timeout.ms = "
            f"{config.group_max_session_timeout_ms}",
        )
    names = [protocol.name for protocol in request.protocols]
    if not request.protocol_type or not names:
        raise KafkaError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "a member needs a protocol type and at least one protocol: name them"
        )
    if not group.members:
        return
    if request.protocol_type != group.protocol_type or not group.members.can_agree(names, apart_from=known_as):
        raise KafkaError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            f"protocols {names} of type {request.protocol_type!r} have nothing in common with the members of group "
            f"{group.group_id!r}, which is of type {group.protocol_type!r}",
        )


def _has_room(group: RebalancingGroup, known_as: str) -> bool:
    most = group.context.config.group_max_size
    if group.state is ClassicState.PREPARING_REBALANCE:
        # Who has joined counts, not who is known: if the setting was lowered, the last ones to join are left out.
        return known_as in group.joining or len(group.joining) < most
    return known_as in group.members or len(group.members) < most


def _refuse_for_lack_of_room(group: RebalancingGroup, now_ms: int, member_id: str, outcome: Outcome) -> None:
    outcome.reply = JoinGroupResponse(error_code=ErrorCode.GROUP_MAX_SIZE_REACHED)
    group.pending.pop(member_id, None)
    if member_id in group.members:
        group.remove(member_id, outcome)
        group.rebalance(now_ms, outcome)


def _join_without_id(group: RebalancingGroup, now_ms: int, call: Call, known_as: str, outcome: Outcome) -> None:
    request: JoinGroupRequest = call.body
    instance_id = request.group_instance_id
    uuid = UUID(bytes=group.context.chance.uuid())
    member_id = f"{call.client_id if instance_id is None else instance_id}-{uuid}"
    if known_as:
        _take_over(group, now_ms, call, known_as, member_id, outcome)
    elif call.version >= 4 and instance_id is None:
        while len(group.pending) >= min(MOST_PENDING, group.context.config.group_max_size):
            forgotten = next(iter(group.pending))
            del group.pending[forgotten]
            group.context.timers.cancel((group.group_id, SESSION, forgotten))
        group.pending[member_id] = None
        group.context.timers.set((group.group_id, SESSION, member_id), now_ms + request.session_timeout_ms)
        outcome.reply = JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id=member_id)
    else:
        _admit(group, now_ms, call, member_id, outcome)


def _admit(group: RebalancingGroup, now_ms: int, call: Call, member_id: str, outcome: Outcome) -> None:
    if not group.members:
        group.protocol_type = call.body.protocol_type
    group.pending.pop(member_id, None)
    group.members.put(_member(call, member_id))
    group.newcomers.add(member_id)
    group.somebody_came = True
    group.context.timers.set((group.group_id, SESSION, member_id), now_ms + NEWCOMER_TIMEOUT_MS)
    group.wait_for_join(member_id, outcome)
    group.rebalance(now_ms, outcome)


def _rejoin(group: RebalancingGroup, now_ms: int, call: Call, outcome: Outcome) -> None:
    request: JoinGroupRequest = call.body
    member = group.check_member(request.member_id, request.group_instance_id)
    changed = _member(call, member.member_id, before=member)
    is_leader = member.member_id == group.leader
    # A leader that joins again has seen something that members do not tell, such as new partitions of a topic. If it
    # only missed the answer, it is still expected to share out.
    nothing_new = member.says(changed.protocols) and (
        group.state is ClassicState.COMPLETING_REBALANCE or (group.state is ClassicState.STABLE and not is_leader)
    )
    if nothing_new:
        outcome.reply = group.join_reply(member.member_id, group.generation, group.leader)
        group.watch(now_ms, member.member_id)
    else:
        group.members.put(changed)
        group.wait_for_join(member.member_id, outcome)
        group.rebalance(now_ms, outcome)


def _take_over(group: RebalancingGroup, now_ms: int, call: Call, old_id: str, new_id: str, outcome: Outcome) -> None:
    """A static member was started again: it takes the place of its former self, whose id is worth nothing any more."""
    before = group.members[old_id]
    was_unsynced = old_id in group.unsynced
    group.remove(old_id, outcome, ErrorCode.FENCED_INSTANCE_ID)
    member = _member(call, new_id, before=before)
    group.members.put(member)
    if (
        group.state is not ClassicState.STABLE
        or group.members.vote() != group.protocol
        or _reads_other(group, before, member)
    ):
        group.wait_for_join(new_id, outcome)
        group.rebalance(now_ms, outcome)
        return
    if was_unsynced:
        group.unsynced.add(new_id)
    leader = new_id if group.leader == old_id else group.leader
    assignments = {member.member_id: member.assignment for member in group.members}
    outcome.records.append(group.record(now_ms, group.generation, leader, group.protocol, assignments))
    if call.version >= 9:
        outcome.reply = group.join_reply(new_id, group.generation, leader)
        outcome.reply.skip_assignment = new_id == leader
    else:
        # An old client that hears that it leads would share out anew, and the others would not hear of it.
        outcome.reply = group.join_reply(new_id, group.generation, group.leader)
    group.watch(now_ms, new_id)


def _reads_other(group: RebalancingGroup, before: Member, after: Member) -> bool:
    # Not the bytes are compared: they also tell what a consumer owned, which one that was started again does not know.
    return group.protocol_type == "consumer" and before.topics() != after.topics()


def _member(call: Call, member_id: str, before: Member | None = None) -> Member:
    request: JoinGroupRequest = call.body
    protocols: dict[str, bytes] = {}
    for protocol in request.protocols:
        protocols.setdefault(protocol.name, protocol.metadata)
    timeout_ms = request.rebalance_timeout_ms
    member = Member(
        member_id=member_id,
        instance_id=request.group_instance_id,
        client_id=call.client_id,
        client_host=call.client_host,
        session_timeout_ms=request.session_timeout_ms,
        rebalance_timeout_ms=timeout_ms if timeout_ms >= 0 else request.session_timeout_ms,
        protocols=protocols,
    )
    if before is None:
        return member
    return replace(
        member, instance_id=before.instance_id, subscription=before.subscription, assignment=before.assignment
    )
