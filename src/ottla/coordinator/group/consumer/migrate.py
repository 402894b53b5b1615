"""Groups that change their protocol while they run.

A classic group of consumers becomes one of the consumer protocol when a member of that protocol joins it; its members
go on as classic members. When the last member of the consumer protocol is gone, the rest becomes a classic group.
Either way they are asked to join again, and what they have goes with them.
"""

from collections.abc import Collection, Iterable

from ottla.coordinator.group.classic import ClassicGroup, ClassicState
from ottla.coordinator.group.classic import Member as ClassicMember
from ottla.coordinator.group.classic.rebalance import VALUE_VERSION
from ottla.coordinator.group.consumer import partitions, protocol
from ottla.coordinator.group.consumer.member import Current, Member, Profile, target_record
from ottla.coordinator.group.consumer.partitions import Partitions
from ottla.coordinator.group.consumer.state import GroupState
from ottla.coordinator.group.context import Context
from ottla.coordinator.outcome import Record, upsert
from ottla.wire.embedded.consumer_protocol import ConsumerProtocolSubscription
from ottla.wire.embedded.offsets_topic import (
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
)
from ottla.wire.errors import ErrorCode, KafkaError, ProtocolError

NAMELESS = ""
_UPGRADES = frozenset({"upgrade", "bidirectional"})
_DOWNGRADES = frozenset({"downgrade", "bidirectional"})


def upgrade_records(classic: ClassicGroup, context: Context) -> list[Record]:
    """Records that make a classic group one of the consumer protocol; the joining member's own come after them.

    GROUP_ID_NOT_FOUND if that cannot be: there is no consumer group of that id then.
    """
    config = context.config
    if config.group_consumer_migration_policy not in _UPGRADES:
        raise _stays(classic, f"group.consumer.migration.policy is {config.group_consumer_migration_policy}")
    if classic.protocol_type != protocol.CONSUMER:
        raise _stays(classic, f"its protocol type is {classic.protocol_type!r}")
    if len(classic.members) > config.group_consumer_max_size:
        raise _stays(classic, f"it has {len(classic.members)} members, more than group.consumer.max.size")
    try:
        members = _upgraded(classic, context)
    except ProtocolError as error:
        raise _stays(classic, f"what a member says of itself cannot be read: {error}") from error
    group_id, epoch = classic.group_id, classic.generation
    records = classic.removal()
    records += [member.profile.record(group_id, member.member_id) for member in members]
    records.append(upsert(ConsumerGroupMetadataKey(group_id=group_id), ConsumerGroupMetadataValue(epoch=epoch)))
    records += [target_record(group_id, member.member_id, member.current.assigned) for member in members]
    key = ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id)
    records.append(upsert(key, ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=epoch)))
    records += [member.current.record(group_id, member.member_id) for member in members]
    return records


def _upgraded(classic: ClassicGroup, context: Context) -> list[Member]:
    members: list[Member] = []
    held: Partitions = partitions.NONE
    said = {member.member_id: protocol.subscription(_metadata(classic, member)) for member in classic.members}
    # Where two say that they have the same partition, the one that says so of the later generation is right.
    for member in sorted(classic.members, key=lambda member: -said[member.member_id].generation_id):
        subscription = said[member.member_id]
        assigned = partitions.without(_held(classic, member, subscription, context), held)
        held = partitions.together(held, assigned)
        current = Current(classic.generation, classic.generation, assigned=assigned)
        members.append(Member(member.member_id, _profile(classic, member, subscription), current))
    return members


def _metadata(classic: ClassicGroup, member: ClassicMember) -> bytes:
    return member.metadata(classic.protocol) or next(iter(member.protocols.values()), b"")


def _held(
    classic: ClassicGroup, member: ClassicMember, said: ConsumerProtocolSubscription, context: Context
) -> Partitions:
    """What a classic member has: what it was given, or between two assignments what it said when it joined."""
    if member.assignment or classic.state is ClassicState.STABLE:
        return protocol.given(member.assignment, context.image)
    return protocol.by_id(said.owned_partitions, context.image)


def _profile(classic: ClassicGroup, member: ClassicMember, said: ConsumerProtocolSubscription) -> Profile:
    # After a restart it may not be known under which protocol the members said it: it is kept under no name then.
    known = {classic.protocol or NAMELESS: _metadata(classic, member)}
    return Profile(
        instance_id=member.instance_id,
        rack_id=said.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        topics=frozenset(said.topics),
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        classic=classic_metadata(member.session_timeout_ms, (member.protocols or known).items()),
    )


def classic_metadata(session_timeout_ms: int, protocols: Iterable[tuple[str, bytes]]) -> ClassicMemberMetadata:
    """What is kept of a classic member beside its subscription."""
    return ClassicMemberMetadata(
        session_timeout_ms=session_timeout_ms,
        supported_protocols=[ClassicProtocol(name=name, metadata=metadata) for name, metadata in protocols],
    )


def _stays(classic: ClassicGroup, reason: str) -> KafkaError:
    message = f"group {classic.group_id!r} is a classic group with members and stays one: {reason}"
    return KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, message)


def may_downgrade(context: Context, state: GroupState, rest: Collection[Member]) -> bool:
    """Whether a group that only these are left of is to become a classic one."""
    return (
        0 < len(rest) <= context.config.group_max_size
        and all(member.is_classic for member in rest)
        and context.config.group_consumer_migration_policy in _DOWNGRADES
        and any(not member.is_classic for member in state.members.values())
    )


def downgrade_records(context: Context, state: GroupState, rest: Collection[Member], now_ms: int) -> list[Record]:
    """Records that remove a group of the consumer protocol and write down the rest of it as a classic one.

    No protocol is written: that says that the generation is used up, and that all are to join again.
    """
    value = GroupMetadataValue(
        protocol_type=protocol.CONSUMER,
        generation=state.epoch,
        protocol=None,
        leader=None,
        current_state_timestamp=now_ms,
        members=[_downgraded(context, member) for member in rest],
    )
    return [*state.removal(), upsert(GroupMetadataKey(group=state.group_id), value, VALUE_VERSION)]


def _downgraded(context: Context, member: Member) -> MemberMetadata:
    classic = member.profile.classic
    assert classic is not None
    metadata = classic.supported_protocols[0].metadata
    held = partitions.together(member.current.assigned, member.current.revoking)
    return MemberMetadata(
        member_id=member.member_id,
        group_instance_id=member.profile.instance_id,
        client_id=member.profile.client_id,
        client_host=member.profile.client_host,
        rebalance_timeout=member.profile.rebalance_timeout_ms,
        session_timeout=classic.session_timeout_ms,
        subscription=metadata,
        assignment=protocol.assignment_bytes(held, context.image, metadata),
    )
