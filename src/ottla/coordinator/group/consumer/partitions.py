"""Sets of partitions: for each topic id the indexes, in order. Topics without any are left out."""

from collections.abc import Iterable, Mapping
from typing import Any

Partitions = Mapping[bytes, tuple[int, ...]]

NONE: Partitions = {}


def from_wire(topics: Iterable[Any]) -> Partitions:
    """What a message's list of topic ids and indexes says, however it is written.

    >>> from ottla.wire.api.consumer_group_heartbeat import TopicPartitions
    >>> from_wire([TopicPartitions(topic_id=b"a" * 16, partitions=[2, 1]), TopicPartitions(topic_id=b"b" * 16)])
    {b'aaaaaaaaaaaaaaaa': (1, 2)}
    """
    found: dict[bytes, set[int]] = {}
    for topic in topics:
        found.setdefault(topic.topic_id, set()).update(topic.partitions)
    return {topic_id: tuple(sorted(indexes)) for topic_id, indexes in found.items() if indexes}


def to_wire(kind: Any, partitions: Partitions) -> list[Any]:
    """The same as a list of a message's own class."""
    return [kind(topic_id=topic_id, partitions=list(indexes)) for topic_id, indexes in partitions.items()]


def common(some: Partitions, others: Partitions) -> Partitions:
    """What is in both."""
    both = {topic_id: tuple(sorted({*some[topic_id]}.intersection(others.get(topic_id, ())))) for topic_id in some}
    return {topic_id: indexes for topic_id, indexes in both.items() if indexes}


def without(some: Partitions, others: Partitions) -> Partitions:
    """What is in the first alone."""
    left = {topic_id: tuple(sorted({*some[topic_id]}.difference(others.get(topic_id, ())))) for topic_id in some}
    return {topic_id: indexes for topic_id, indexes in left.items() if indexes}


def together(some: Partitions, others: Partitions) -> Partitions:
    """What is in either.

    >>> together({b"x": (1,)}, {b"x": (0,), b"y": (5,)})
    {b'x': (0, 1), b'y': (5,)}
    """
    return {
        topic_id: tuple(sorted({*some.get(topic_id, ())}.union(others.get(topic_id, ()))))
        for topic_id in dict.fromkeys((*some, *others))
    }


def overlap(some: Partitions, others: Partitions) -> bool:
    """Whether anything is in both."""
    return any(not {*indexes}.isdisjoint(others.get(topic_id, ())) for topic_id, indexes in some.items())


def within(some: Partitions, others: Partitions) -> bool:
    """Whether all of the first is in the second."""
    return all({*indexes}.issubset(others.get(topic_id, ())) for topic_id, indexes in some.items())
