"""What a subscription of the consumer protocol says its sender owns, and since when: each assignor asks elsewhere."""

from collections.abc import Callable, Iterable, Mapping

from ottla.wire.compile import encode
from ottla.wire.embedded.consumer_protocol import ConsumerProtocolSubscription, TopicPartition
from ottla.wire.embedded.sticky_user_data import (
    CooperativeStickyAssignorUserData,
    StickyAssignorUserData,
    read_generation,
    read_sticky_user_data,
)

Owned = Mapping[str, tuple[int, ...]]
"""Partitions by topic, in order."""

Claim = tuple[Owned, int]
"""What a member owns, and the generation in which it was given that; -1 if it does not say."""

ReadClaim = Callable[[ConsumerProtocolSubscription], Claim]
WriteUserData = Callable[[Owned, int], bytes]


def field_claim(subscription: ConsumerProtocolSubscription) -> Claim:
    """What the fields say, which are there from v1 and v2 on."""
    return by_topic(subscription.owned_partitions), subscription.generation_id


def no_user_data(owned: Owned, generation: int) -> bytes:
    """The user data of an assignor that needs none. Empty and not null, which the oldest consumers cannot read."""
    return b""


def sticky_claim(subscription: ConsumerProtocolSubscription) -> Claim:
    """What the user data say: under an eager assignor members own nothing any more when they join."""
    data = read_sticky_user_data(subscription.user_data or b"")
    return ({}, -1) if data is None else (by_topic(data.previous_assignment), data.generation)


def sticky_user_data(owned: Owned, generation: int) -> bytes:
    """What a member was given in that generation; nothing before it has been given anything.

    >>> sticky_user_data({"a": (0, 2)}, 7).hex(" ", 4)
    '000000 01000161 00000002 00000000 00000002 00000007'
    >>> sticky_user_data({}, -1)
    b''
    """
    if generation < 0:
        return b""
    return encode(StickyAssignorUserData(previous_assignment=by_name(owned), generation=generation), 1)


def cooperative_claim(subscription: ConsumerProtocolSubscription) -> Claim:
    """What the fields say, and before v2 the user data for the generation."""
    owned, generation = field_claim(subscription)
    return owned, generation if generation >= 0 else read_generation(subscription.user_data or b"")


def cooperative_user_data(owned: Owned, generation: int) -> bytes:
    """The generation, for leaders that know no v2.

    >>> cooperative_user_data({}, 7).hex()
    '00000007'
    """
    return encode(CooperativeStickyAssignorUserData(generation=generation), 0)


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, tuple[int, ...]]:
    """Partitions as assignors see them: whatever the order on the wire, and if a topic or a partition is there twice.

    >>> by_topic([TopicPartition(topic="a", partitions=[2, 0]), TopicPartition(topic="a", partitions=[2, 1])])
    {'a': (0, 1, 2)}
    """
    indexes: dict[str, set[int]] = {}
    for one in partitions:
        indexes.setdefault(one.topic, set()).update(one.partitions)
    return {topic: tuple(sorted(some)) for topic, some in indexes.items() if some}


def by_name(owned: Owned) -> list[TopicPartition]:
    """Partitions as they travel, in order of topics, so that the same ones have the same bytes.

    >>> by_name({"b": (0,), "a": (1, 2)})
    [TopicPartition(topic='a', partitions=[1, 2]), TopicPartition(topic='b', partitions=[0])]
    """
    return [TopicPartition(topic=topic, partitions=list(owned[topic])) for topic in sorted(owned)]
