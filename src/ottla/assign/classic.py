"""The classic protocol's assignment, in which a consumer that leads its group shares out for all.

What members tell each other travels as bytes that the broker only passes on, so they are the bytes that Java,
librdkafka, kafka-python and aiokafka read and write too.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ottla.assign import claims
from ottla.assign.assignor import Assignor, Member
from ottla.assign.assignors import check_assignment
from ottla.assign.claims import Owned
from ottla.assign.range import RangeAssignor
from ottla.assign.round_robin import RoundRobinAssignor
from ottla.assign.sticky import CooperativeStickyAssignor, StickyAssignor
from ottla.wire.embedded import decode_versioned, encode_versioned, read_prefix
from ottla.wire.embedded.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from ottla.wire.errors import ProtocolError
from ottla.wire.schema import Bytes

NEWEST_VERSION = 3
"""Of subscriptions and assignments: versions only add to the end, and old members leave alone what they do not know."""


@dataclass(frozen=True, slots=True)
class ClassicAssignor:
    """An assignor, and how it speaks in subscriptions."""

    assignor: Assignor
    read_claim: claims.ReadClaim = claims.field_claim
    write_user_data: claims.WriteUserData = claims.no_user_data
    is_cooperative: bool = False
    """Whether members may go on reading during a rebalance. All assignors of a consumer must allow it."""
    is_built_in: bool = True
    """Whether it comes with Ottla, so that its answers need no check."""

    @property
    def name(self) -> str:
        """What members agree on: the name of the protocol in JoinGroup."""
        return self.assignor.name


_built_in = {
    one.name: one
    for one in (
        ClassicAssignor(RangeAssignor()),
        ClassicAssignor(RoundRobinAssignor()),
        ClassicAssignor(StickyAssignor(), claims.sticky_claim, claims.sticky_user_data),
        ClassicAssignor(
            CooperativeStickyAssignor(), claims.cooperative_claim, claims.cooperative_user_data, is_cooperative=True
        ),
    )
}


def find(choice: str | Assignor) -> ClassicAssignor:
    """The assignor of that name, or an assignor of one's own, which is eager.

    >>> find("sticky").name
    'sticky'
    >>> find("fair")
    Traceback (most recent call last):
        ...
    ValueError: no assignor is called 'fair': give range, roundrobin, sticky, cooperative-sticky or one of your own
    """
    if isinstance(choice, str):
        if choice not in _built_in:
            message = f"no assignor is called {choice!r}: give {', '.join(_built_in)} or one of your own"
            raise ValueError(message)
        return _built_in[choice]
    if isinstance(choice, type) or not isinstance(getattr(choice, "name", None), str) or not hasattr(choice, "assign"):
        raise ValueError(f"{choice!r} is no assignor: give an object with a name and a method assign")
    built_in = _built_in.get(choice.name)
    if built_in is None:
        return ClassicAssignor(choice, is_built_in=False)
    if type(choice) is not type(built_in.assignor):
        message = f"{choice!r} calls itself {choice.name!r}, as one of Kafka's assignors does: give it another name"
        raise ValueError(message)
    return built_in


def is_cooperative(choice: str | Assignor) -> bool:
    """Whether members under this assignor may keep partitions during a rebalance.

    >>> is_cooperative("cooperative-sticky"), is_cooperative("sticky")
    (True, False)
    """
    return find(choice).is_cooperative


def subscription_user_data(choice: str | Assignor, owned: Owned, generation: int) -> bytes:
    """What the assignor has a member tell the leader: what it was last given, and in which generation (-1: never).

    Under an eager assignor a member owns nothing any more when it joins; here it says what it had until then.

    >>> subscription_user_data("cooperative-sticky", {"orders": (0,)}, 7).hex()
    '00000007'
    >>> subscription_user_data("range", {"orders": (0,)}, 7)
    b''
    """
    return find(choice).write_user_data(owned, generation)


def encode_subscription(
    topics: Iterable[str],
    user_data: bytes = b"",
    owned: Owned | None = None,
    generation: int = -1,
    rack_id: str | None = None,
) -> bytes:
    """A member's metadata in JoinGroup.

    `owned` is what it goes on reading meanwhile: nothing, unless all its assignors are cooperative.

    >>> subscribed_topics({"a": encode_subscription({"orders"}), "b": encode_subscription(["payments", "orders"])})
    ['orders', 'payments']
    """
    subscription = ConsumerProtocolSubscription(
        topics=sorted(topics),
        user_data=user_data,
        owned_partitions=claims.by_name(owned or {}),
        generation_id=generation,
        rack_id=rack_id,
    )
    return encode_versioned(subscription, NEWEST_VERSION)


def subscribed_topics(subscriptions: Mapping[str, Bytes]) -> list[str]:
    """All topics that members read, in order: those whose partition counts the leader has to know."""
    decoded = (_decode_subscription(member_id, data) for member_id, data in subscriptions.items())
    return sorted({topic for subscription in decoded for topic in subscription.topics})


def assign_members(
    choice: str | Assignor,
    subscriptions: Mapping[str, Bytes],
    instance_ids: Mapping[str, str | None],
    partition_counts: Mapping[str, int],
) -> dict[str, bytes]:
    """Share out: from the members' metadata in the reply to JoinGroup to their assignments in SyncGroup.

    Topics that `partition_counts` does not know are nobody's. A subscription that cannot be read is a ProtocolError; an
    assignor of one's own that leaves a partition out, or gives it to two, is a ValueError.

    >>> subscriptions = {"a": encode_subscription(["orders"]), "b": encode_subscription(["orders"])}
    >>> assignments = assign_members("range", subscriptions, {"b": "the first"}, {"orders": 3})
    >>> decode_assignment(assignments["b"])
    {'orders': (0, 1)}
    """
    classic = find(choice)
    members: dict[str, Member[str]] = {}
    for member_id, data in subscriptions.items():
        subscription = _decode_subscription(member_id, data)
        owned, generation = classic.read_claim(subscription)
        members[member_id] = Member(
            frozenset(subscription.topics), owned, instance_ids.get(member_id), subscription.rack_id, generation
        )
    answer = classic.assignor.assign(members, partition_counts)
    if not classic.is_built_in and (complaint := check_assignment(members, partition_counts, answer)) is not None:
        raise ValueError(f"assignor {classic.name!r} failed: {complaint}")
    # A member surely reads the version in which it writes.
    return {
        member_id: _encode_assignment(partitions, min(read_prefix(subscriptions[member_id]), NEWEST_VERSION))
        for member_id, partitions in answer.items()
    }


def decode_assignment(data: Bytes) -> dict[str, tuple[int, ...]]:
    """The partitions that a member got in the reply to SyncGroup. A leader may leave a member out: no bytes at all.

    >>> decode_assignment(b"")
    {}
    """
    if len(data) == 0:
        return {}
    return claims.by_topic(decode_versioned(ConsumerProtocolAssignment, data, from_the_future=True).assigned_partitions)


def _encode_assignment(partitions: Owned, version: int) -> bytes:
    assignment = ConsumerProtocolAssignment(assigned_partitions=claims.by_name(partitions), user_data=b"")
    return encode_versioned(assignment, version)


def _decode_subscription(member_id: str, data: Bytes) -> ConsumerProtocolSubscription:
    try:
        return decode_versioned(ConsumerProtocolSubscription, data, from_the_future=True)
    except ProtocolError as error:
        reason = (
            f"the subscription of member {member_id!r} cannot be read; all members must be consumers: {error.reason}"
        )
        raise ProtocolError(reason, offset=error.offset, where=error.where) from error
