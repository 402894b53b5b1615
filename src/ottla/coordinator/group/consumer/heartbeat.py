"""ConsumerGroupHeartbeat: how members of the consumer protocol join, stay, follow the assignment and leave."""

from base64 import urlsafe_b64encode
from dataclasses import replace

from ottla.coordinator.group.consumer import partitions
from ottla.coordinator.group.consumer.check import (
    check_epoch,
    check_request,
    check_room,
    existing_member,
)
from ottla.coordinator.group.consumer.core import Core
from ottla.coordinator.group.consumer.draft import Draft
from ottla.coordinator.group.consumer.member import JOINS, LEAVES, LEAVES_FOR_NOW, Current, Member
from ottla.coordinator.group.consumer.watch import JOIN, SYNC
from ottla.coordinator.outcome import Call, Outcome
from ottla.wire.api.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from ottla.wire.errors import ErrorCode, KafkaError


def heartbeat(core: Core, now_ms: int, call: Call) -> Outcome:
    """Answer a heartbeat. Errors are raised."""
    request: ConsumerGroupHeartbeatRequest = call.body
    check_request(core.context.config, call.version, request)
    core.start_watching(now_ms)
    if request.member_epoch in (LEAVES, LEAVES_FOR_NOW):
        return _leave(core, now_ms, request)
    draft = core.draft(now_ms)
    former = _joining(core, draft, request) if request.member_epoch == JOINS else _staying(core, request)
    member = _described(core, former, call)
    is_new = not draft.has(member.member_id)
    if is_new or member is not former:
        draft.describe(member)
    if is_new or _subscription(member) != _subscription(former):
        draft.refresh(rise=True)
    elif core.hear_regex(member.profile.regex, call.may_see):
        draft.refresh()
    owned = None if request.topic_partitions is None else partitions.from_wire(request.topic_partitions)
    member = core.step(now_ms, draft, member, owned)
    core.watch.heard(now_ms, member)
    if former.is_classic:
        core.watch.end(JOIN, member.member_id)
        core.watch.end(SYNC, member.member_id)
    response = ConsumerGroupHeartbeatResponse(
        member_id=member.member_id,
        member_epoch=member.current.epoch,
        heartbeat_interval_ms=core.context.config.group_consumer_heartbeat_interval_ms,
    )
    if _is_full(request) or member.current.assigned != former.current.assigned:
        held = partitions.to_wire(TopicPartitions, member.current.assigned)
        response.assignment = Assignment(topic_partitions=held)
    return Outcome(response, draft.records)


def _joining(core: Core, draft: Draft, request: ConsumerGroupHeartbeatRequest) -> Member:
    """The member that joins: a new one, one that lost its way, or a static one in the place of its former self."""
    state = core.state
    check_room(state, core.context.config.group_consumer_max_size, request.member_id, request.instance_id)
    member_id = request.member_id or urlsafe_b64encode(core.context.chance.uuid()).decode().rstrip("=")
    former = state.static_member(request.instance_id)
    if former is None or former.member_id == member_id:
        return state.members.get(member_id, Member(member_id))
    if not former.is_classic and former.current.epoch != LEAVES_FOR_NOW:
        message = f"instance id {request.instance_id!r} belongs to member {former.member_id!r}, which has not left"
        raise KafkaError(ErrorCode.UNRELEASED_INSTANCE_ID, message)
    core.watch.forget(former.member_id)
    return draft.take_over(former, member_id)


def _staying(core: Core, request: ConsumerGroupHeartbeatRequest) -> Member:
    member = existing_member(core.state, request.member_id, request.instance_id)
    owned = None if request.topic_partitions is None else partitions.from_wire(request.topic_partitions)
    check_epoch(member, request.member_epoch, owned)
    return member


def _described(core: Core, member: Member, call: Call) -> Member:
    """The member with what the request says of it; what it leaves out has not changed."""
    request: ConsumerGroupHeartbeatRequest = call.body
    former = member.profile
    names, regex = request.subscribed_topic_names, request.subscribed_topic_regex
    if regex:
        core.take_regex(regex, call.may_see)
    profile = replace(
        former,
        instance_id=former.instance_id if request.instance_id is None else request.instance_id,
        rack_id=former.rack_id if request.rack_id is None else request.rack_id,
        client_id=call.client_id,
        client_host=call.client_host,
        topics=former.topics if names is None else frozenset(names),
        # librdkafka says "" where it means that there is none.
        regex=former.regex if regex is None else regex or None,
        rebalance_timeout_ms=former.rebalance_timeout_ms
        if request.rebalance_timeout_ms < 0
        else request.rebalance_timeout_ms,
        assignor=former.assignor if request.server_assignor is None else request.server_assignor,
        classic=None,
    )
    return member if profile == former else replace(member, profile=profile)


def _subscription(member: Member) -> tuple[frozenset[str], str | None]:
    return member.profile.topics, member.profile.regex


def _is_full(request: ConsumerGroupHeartbeatRequest) -> bool:
    """Whether the member tells everything, as it does when it does not know what of it arrived."""
    has_subscription = request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
    told_all = request.rebalance_timeout_ms != -1 and has_subscription and request.topic_partitions is not None
    return request.member_epoch == JOINS or told_all


def _leave(core: Core, now_ms: int, request: ConsumerGroupHeartbeatRequest) -> Outcome:
    member = existing_member(core.state, request.member_id, request.instance_id)
    response = ConsumerGroupHeartbeatResponse(member_id=member.member_id, member_epoch=request.member_epoch)
    if request.member_epoch == LEAVES:
        return Outcome(response, core.part(now_ms, [member.member_id]))
    # Its partitions stay its own until it is back, or its session ends.
    current = Current(LEAVES_FOR_NOW, member.current.previous_epoch, member.current.progress, member.current.assigned)
    core.watch.heard(now_ms, member)
    return Outcome(response, [current.record(core.state.group_id, member.member_id)])
