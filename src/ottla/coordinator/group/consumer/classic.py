"""Classic members of a group of the consumer protocol: JoinGroup, SyncGroup, Heartbeat and LeaveGroup.

Nobody waits. A member that joins is told its epoch as if it were a generation, and fetches what it has by then; a
heartbeat tells it to join again whenever there is something to give up or to get.
"""

from uuid import UUID

from ottla.coordinator.group.consumer import partitions, protocol
from ottla.coordinator.group.consumer.check import check_room, check_same_epoch, existing_member
from ottla.coordinator.group.consumer.core import Core
from ottla.coordinator.group.consumer.draft import Draft
from ottla.coordinator.group.consumer.member import Member, Progress
from ottla.coordinator.group.consumer.migrate import NAMELESS, classic_metadata, may_downgrade
from ottla.coordinator.group.consumer.watch import JOIN, REBALANCE, SYNC
from ottla.coordinator.outcome import Call, Outcome
from ottla.wire.api.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.wire.api.join_group import JoinGroupRequest, JoinGroupResponse
from ottla.wire.api.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity, MemberResponse
from ottla.wire.api.sync_group import SyncGroupRequest, SyncGroupResponse
from ottla.wire.embedded.consumer_protocol import ConsumerProtocolSubscription
from ottla.wire.embedded.offsets_topic import ClassicProtocol
from ottla.wire.errors import ErrorCode, KafkaError, ProtocolError

FIRST_JOIN_VERSION_WITH_KNOWN_IDS = 4
FIRST_LEAVE_VERSION_WITH_MANY = 3


def join(core: Core, now_ms: int, call: Call) -> Outcome:
    """Answer JoinGroup. Errors are raised."""
    request: JoinGroupRequest = call.body
    core.start_watching(now_ms)
    said = _check_join(core, request)
    check_room(core.state, core.context.config.group_consumer_max_size, request.member_id, request.group_instance_id)
    is_nameless = not request.member_id and request.group_instance_id is None
    if is_nameless and call.version >= FIRST_JOIN_VERSION_WITH_KNOWN_IDS:
        member_id = _new_id(core, call.client_id)
        return Outcome(JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id=member_id))
    draft = core.draft(now_ms)
    former = _joining(core, draft, said, call)
    member = _described(former, said, call)
    is_new = not draft.has(member.member_id)
    draft.describe(member)
    if may_downgrade(core.context, core.state, draft.members.values()):
        # A static member of the consumer protocol came back as a classic one, and was the last of its kind.
        records = core.downgrade(now_ms, draft.members.values())
        return Outcome(JoinGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS), records)
    if is_new or member.profile.topics != former.profile.topics or member.profile.regex != former.profile.regex:
        draft.refresh(rise=True)
    member = core.step(now_ms, draft, member, protocol.by_id(said.owned_partitions, core.context.image))
    core.watch.heard(now_ms, member)
    core.watch.end(JOIN, member.member_id)
    core.watch.end(REBALANCE, member.member_id)
    core.watch.begin(now_ms, SYNC, member)
    response = JoinGroupResponse(
        generation_id=member.current.epoch,
        protocol_type=protocol.CONSUMER,
        protocol_name=request.protocols[0].name,
        member_id=member.member_id,
    )
    return Outcome(response, draft.records)


def _check_join(core: Core, request: JoinGroupRequest) -> ConsumerProtocolSubscription:
    config, timeout_ms = core.context.config, request.session_timeout_ms
    if not config.group_min_session_timeout_ms <= timeout_ms <= config.group_max_session_timeout_ms:
        message = f"session timeout {timeout_ms} ms is not within group.min and group.max.session.timeout.ms"
        raise KafkaError(ErrorCode.INVALID_SESSION_TIMEOUT, message)
    names = {one.name for one in request.protocols}
    common = _common_protocols(core, apart_from=request.member_id)
    if request.protocol_type != protocol.CONSUMER or not names or not (common is None or names & common):
        message = f"protocols {sorted(names)[:10]} of type {request.protocol_type!r} do not suit the other members"
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, message)
    try:
        return protocol.subscription(request.protocols[0].metadata)
    except ProtocolError as error:
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"the subscription cannot be read: {error}") from error


def _common_protocols(core: Core, apart_from: str) -> set[str] | None:
    """What all other classic members can do; None if that is anything."""
    common: set[str] | None = None
    for member in core.state.members.values():
        classic = member.profile.classic
        if classic is not None and member.member_id != apart_from:
            names = {one.name for one in classic.supported_protocols}
            if NAMELESS not in names:
                common = names if common is None else common & names
    return common


def _new_id(core: Core, name: str) -> str:
    return f"{name}-{UUID(bytes=core.context.chance.uuid())}"


def _joining(core: Core, draft: Draft, said: ConsumerProtocolSubscription, call: Call) -> Member:
    request: JoinGroupRequest = call.body
    instance_id = request.group_instance_id
    if request.member_id:
        # An id that was given out is not remembered, so one that is not known may be new. But a new member has nothing:
        # one that has was a member once, and must learn that what it has may be another's by now.
        if instance_id is None and request.member_id not in core.state.members and not said.owned_partitions:
            return Member(request.member_id)
        return existing_member(core.state, request.member_id, instance_id)
    member_id = _new_id(core, instance_id or call.client_id)
    former = core.state.static_member(instance_id)
    if former is None:
        return Member(member_id)
    core.watch.forget(former.member_id)
    return draft.take_over(former, member_id)


def _described(former: Member, said: ConsumerProtocolSubscription, call: Call) -> Member:
    request: JoinGroupRequest = call.body
    timeout_ms = request.rebalance_timeout_ms if request.rebalance_timeout_ms >= 0 else request.session_timeout_ms
    protocols = [(one.name, one.metadata) for one in request.protocols]
    return former.with_profile(
        instance_id=request.group_instance_id,
        rack_id=said.rack_id,
        client_id=call.client_id,
        client_host=call.client_host,
        topics=frozenset(said.topics),
        regex=None,
        rebalance_timeout_ms=timeout_ms,
        assignor=None,
        classic=classic_metadata(request.session_timeout_ms, protocols),
    )


def sync(core: Core, now_ms: int, call: Call) -> Outcome:
    """Answer SyncGroup. Errors are raised."""
    request: SyncGroupRequest = call.body
    core.start_watching(now_ms)
    member, known = _classic_member(core, request.member_id, request.group_instance_id, request.generation_id)
    # It may have joined when the group was a classic one, which had agreed on any of its protocols.
    names = {one.name for one in known}
    is_known = request.protocol_name is None or request.protocol_name in names or NAMELESS in names
    if request.protocol_type not in (None, protocol.CONSUMER) or not is_known:
        message = f"{request.protocol_type!r}, {request.protocol_name!r}: not what the member joined with"
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, message)
    must_give_up = member.current.progress is Progress.UNREVOKED_PARTITIONS
    if core.state.epoch > member.current.epoch and not must_give_up:
        core.watch.begin_once(now_ms, JOIN, member)
        raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS, "the assignment has changed meanwhile: join again")
    core.watch.end(SYNC, member.member_id)
    core.watch.heard(now_ms, member)
    response = SyncGroupResponse(
        protocol_type=request.protocol_type,
        protocol_name=request.protocol_name,
        assignment=protocol.assignment_bytes(member.current.assigned, core.context.image, known[0].metadata),
    )
    return Outcome(response)


def heartbeat(core: Core, now_ms: int, call: Call) -> Outcome:
    """Answer Heartbeat. Errors are raised."""
    request: HeartbeatRequest = call.body
    core.start_watching(now_ms)
    member, _ = _classic_member(core, request.member_id, request.group_instance_id, request.generation_id)
    core.watch.heard(now_ms, member)
    if not _is_to_join(core, member):
        return Outcome(HeartbeatResponse())
    core.watch.begin_once(now_ms, JOIN, member)
    return Outcome(HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))


def _is_to_join(core: Core, member: Member) -> bool:
    """Whether there is something to give up, something to get, or a newer epoch."""
    current = member.current
    if current.epoch < core.state.epoch or current.progress is Progress.UNREVOKED_PARTITIONS:
        return True
    if current.progress is not Progress.UNRELEASED_PARTITIONS:
        return False
    lacks = partitions.without(core.state.targets.get(member.member_id, partitions.NONE), current.assigned)
    owners = {core.state.owner(topic_id, index) for topic_id, indexes in lacks.items() for index in indexes}
    return owners <= {None, member.member_id}


def _classic_member(
    core: Core, member_id: str, instance_id: str | None, generation: int
) -> tuple[Member, list[ClassicProtocol]]:
    """The member, and the protocols that it joined with."""
    member = existing_member(core.state, member_id, instance_id)
    classic = member.profile.classic
    if classic is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"member {member_id!r} speaks the consumer protocol")
    check_same_epoch(member, generation)
    return member, classic.supported_protocols


def leave(core: Core, now_ms: int, call: Call) -> Outcome:
    """Answer LeaveGroup."""
    request: LeaveGroupRequest = call.body
    core.start_watching(now_ms)
    is_one = call.version < FIRST_LEAVE_VERSION_WITH_MANY
    identities = [MemberIdentity(member_id=request.member_id)] if is_one else request.members
    leaving: dict[str, None] = {}
    replies = [_leaves(core, identity, leaving) for identity in identities]
    response = LeaveGroupResponse(error_code=replies[0].error_code) if is_one else LeaveGroupResponse(members=replies)
    return Outcome(response, core.part(now_ms, leaving) if leaving else [])


def _leaves(core: Core, identity: MemberIdentity, leaving: dict[str, None]) -> MemberResponse:
    response = MemberResponse(member_id=identity.member_id, group_instance_id=identity.group_instance_id)
    try:
        named = core.state.static_member(identity.group_instance_id)
        # An administrator removes members of both protocols by this request, static ones by their names alone.
        member_id = named.member_id if named is not None and not identity.member_id else identity.member_id
        member = existing_member(core.state, member_id, identity.group_instance_id)
        leaving[member.member_id] = None
    except KafkaError as error:
        response.error_code = error.code
    return response
