"""Groups as their coordinators describe them, in both protocols."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from ottla.client.types import TopicPartition
from ottla.wire.api.consumer_group_describe import DescribedGroup as DescribedConsumerGroup
from ottla.wire.api.describe_groups import DescribedGroup, DescribedGroupMember
from ottla.wire.embedded import decode_versioned
from ottla.wire.embedded.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from ottla.wire.errors import ProtocolError

M = TypeVar("M")

OF_CONSUMERS = "consumer"
"""The protocol type of groups that share out partitions. A group that never had members has none."""


@dataclass(frozen=True, slots=True)
class GroupListing:
    """A group in a list.

    >>> GroupListing("readers", "consumer", "Stable", "classic").state
    'Stable'
    """

    group_id: str
    protocol_type: str
    """`consumer` for groups of consumers, empty for one that only has offsets, or what its members call it."""
    state: str | None
    """None where the broker is too old to tell."""
    group_type: str
    """The protocol that its members speak: `classic`, `consumer`, or what newer brokers have."""


@dataclass(frozen=True, slots=True)
class MemberDescription:
    """A member of a group.

    >>> places = (TopicPartition("orders", 0), TopicPartition("orders", 1))
    >>> member = MemberDescription("reader-7ac1", None, "reader", "/10.0.0.1", places, ("orders",))
    >>> len(member.assignment), member.subscription
    (2, ('orders',))
    """

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    assignment: tuple[TopicPartition, ...] | None
    """None where the members share out something else than partitions, or in a way that is theirs alone."""
    subscription: tuple[str, ...] | None
    """The topics that it asked for by name; None where that cannot be told."""
    target_assignment: tuple[TopicPartition, ...] | None = None
    """What it will have once all members have given up what they are to give up; None in classic groups."""
    member_epoch: int | None = None
    """How far it has come with that; None in classic groups."""


@dataclass(frozen=True, slots=True)
class GroupDescription:
    """A group as its coordinator sees it.

    >>> GroupDescription("readers", "classic", "Empty", "consumer", "", "localhost:9092").is_active
    False
    """

    group_id: str
    group_type: str
    """`classic` or `consumer`: the protocol that its members speak."""
    state: str
    protocol_type: str
    assignor: str
    """Who shares out the partitions, and how."""
    coordinator: str
    """The broker that looks after it, as `host:port`."""
    members: tuple[MemberDescription, ...] = ()

    @property
    def is_active(self) -> bool:
        """Whether it has members: its offsets are theirs then.

        >>> GroupDescription("readers", "classic", "Stable", "consumer", "range", "localhost:9092").is_active
        True
        """
        return bool(self.members) or self.state not in ("Empty", "Dead")


@dataclass(frozen=True, slots=True)
class MemberToRemove:
    """A member that is to leave its group: by the id that the coordinator gave it, or by the name that is its own.

    >>> MemberToRemove(group_instance_id="reader-1").member_id is None
    True
    >>> MemberToRemove()
    Traceback (most recent call last):
    ValueError: a member to remove needs a member_id or a group_instance_id
    """

    member_id: str | None = None
    group_instance_id: str | None = None
    reason: str | None = None
    """Kept in the broker's log, if it is new enough."""

    def __post_init__(self) -> None:
        if self.member_id is None and self.group_instance_id is None:
            raise ValueError("a member to remove needs a member_id or a group_instance_id")

    def __str__(self) -> str:
        return self.member_id or self.group_instance_id or ""


def consumer_group(described: DescribedConsumerGroup, broker: str) -> GroupDescription:
    """A group of the consumer protocol."""
    members = [
        MemberDescription(
            one.member_id,
            one.instance_id,
            one.client_id,
            one.client_host,
            _partitions((topic.topic_name, topic.partitions) for topic in one.assignment.topic_partitions),
            tuple(sorted(one.subscribed_topic_names)),
            _partitions((topic.topic_name, topic.partitions) for topic in one.target_assignment.topic_partitions),
            one.member_epoch,
        )
        for one in described.members
    ]
    return GroupDescription(
        described.group_id,
        "consumer",
        described.group_state,
        OF_CONSUMERS,
        described.assignor_name,
        broker,
        tuple(members),
    )


def classic_group(described: DescribedGroup, broker: str) -> GroupDescription:
    """A group of the classic protocol."""
    return GroupDescription(
        described.group_id,
        "classic",
        described.group_state,
        described.protocol_type,
        described.protocol_data,
        broker,
        tuple(_classic_member(described.protocol_type, one) for one in described.members),
    )


def _classic_member(protocol_type: str, member: DescribedGroupMember) -> MemberDescription:
    assigned: Any = None
    subscribed: Any = None
    if protocol_type == OF_CONSUMERS:
        assigned = _decoded(ConsumerProtocolAssignment, member.member_assignment)
        subscribed = _decoded(ConsumerProtocolSubscription, member.member_metadata)
    return MemberDescription(
        member.member_id,
        member.group_instance_id,
        member.client_id,
        member.client_host,
        None if assigned is None else _partitions((one.topic, one.partitions) for one in assigned.assigned_partitions),
        None if subscribed is None else tuple(sorted(subscribed.topics)),
    )


def _decoded(kind: type[M], data: bytes) -> M | None:
    if not data:
        return kind()
    try:
        return decode_versioned(kind, data, from_the_future=True)
    except ProtocolError:
        return None


def _partitions(topics: Iterable[tuple[str, Iterable[int]]]) -> tuple[TopicPartition, ...]:
    return tuple(sorted(TopicPartition(topic, index) for topic, indexes in topics for index in indexes))
