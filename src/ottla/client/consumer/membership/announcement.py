"""What a member of the consumer protocol tells its coordinator: everything at first, and then what has changed."""

import re
from collections.abc import Iterable
from typing import NamedTuple

from ottla.wire.api.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)

JOINS = 0
LEAVES = -1
LEAVES_FOR_NOW = -2
"""Epochs of a member that comes, goes, or as a static one will be back."""

NO_PATTERN = ""


class Place(NamedTuple):
    """A partition by the id of its topic."""

    topic_id: bytes
    partition: int


class Wish(NamedTuple):
    """What a member wants to read: topics by name, or those that match an expression at the broker."""

    topics: frozenset[str] = frozenset()
    regex: str | None = None


class Announcement:
    """Makes heartbeats, and remembers what the coordinator has heard."""

    def __init__(
        self,
        group_id: str,
        *,
        instance_id: str | None = None,
        rack_id: str | None = None,
        rebalance_timeout_ms: int = -1,
        assignor: str | None = None,
    ) -> None:
        self._full = ConsumerGroupHeartbeatRequest(
            group_id=group_id,
            instance_id=instance_id,
            rack_id=rack_id,
            rebalance_timeout_ms=rebalance_timeout_ms,
            server_assignor=assignor,
        )
        self._heard: tuple[Wish, frozenset[Place]] | None = None

    def request(self, member_id: str, epoch: int, wish: Wish, owned: frozenset[Place]) -> ConsumerGroupHeartbeatRequest:
        """The next heartbeat: in full to a coordinator that may not have heard everything."""
        full, heard = self._full, self._heard
        request = ConsumerGroupHeartbeatRequest(
            group_id=full.group_id, member_id=member_id, member_epoch=epoch, instance_id=full.instance_id
        )
        if heard is None or epoch == JOINS:
            request.rack_id = full.rack_id
            request.rebalance_timeout_ms = full.rebalance_timeout_ms
            request.server_assignor = full.server_assignor
        if heard is None or epoch == JOINS or heard[0] != wish:
            request.subscribed_topic_names = sorted(wish.topics)
            # One who had an expression before has to say that there is none any more.
            had_regex = heard is not None and heard[0].regex is not None
            request.subscribed_topic_regex = NO_PATTERN if had_regex and wish.regex is None else wish.regex
        if heard is None or epoch == JOINS or heard[1] != owned:
            request.topic_partitions = by_topic(owned)
        return request

    def is_news(self, wish: Wish, owned: frozenset[Place]) -> bool:
        """Whether the coordinator has not heard this."""
        return self._heard != (wish, owned)

    def heard(self, wish: Wish, owned: frozenset[Place]) -> None:
        """The coordinator has answered a heartbeat that said so."""
        self._heard = (wish, owned)

    def unheard(self) -> None:
        """It is not known what the coordinator has heard, so it gets everything."""
        self._heard = None


def by_topic(places: Iterable[Place]) -> list[TopicPartitions]:
    """Partitions as a heartbeat has them."""
    found: dict[bytes, list[int]] = {}
    for place in sorted(places):
        found.setdefault(place.topic_id, []).append(place.partition)
    return [TopicPartitions(topic_id=topic_id, partitions=numbers) for topic_id, numbers in found.items()]


def places(assignment: Assignment) -> frozenset[Place]:
    """The partitions that a coordinator gives."""
    return frozenset(
        Place(topic.topic_id, number) for topic in assignment.topic_partitions for number in topic.partitions
    )


def for_broker(pattern: re.Pattern[str]) -> str | None:
    """A pattern of Python in the broker's terms, where it matches whole names; None if it has no counterpart there.

    >>> for_broker(re.compile("orders|payments-"))
    '(?:orders|payments-).*'
    >>> for_broker(re.compile("ORDERS", re.VERBOSE)) is None
    True
    """
    has_flags = pattern.flags & ~(re.UNICODE | re.IGNORECASE)
    if has_flags or not isinstance(pattern.pattern, str):
        return None
    prefix = "(?i)" if pattern.flags & re.IGNORECASE else ""
    return f"{prefix}(?:{pattern.pattern}).*"
