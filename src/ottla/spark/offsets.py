"""Offsets of many partitions as Spark keeps them: `{"orders": {"0": 17}}`, as in the official connector."""

from collections.abc import Mapping
from typing import Any

from ottla.client.offsets import EARLIEST, LATEST
from ottla.client.types import TopicPartition

Offsets = dict[TopicPartition, int]

START_KEY = "@start"
"""Where a query began, in the end offset of its first batch. No topic can have that name."""


def to_json_dict(offsets: Mapping[TopicPartition, int]) -> dict[str, Any]:
    """Offsets by topic and partition, in order: Spark compares them as text.

    >>> to_json_dict({TopicPartition("b", 10): 3, TopicPartition("b", 9): 2, TopicPartition("a", 0): 1})
    {'a': {'0': 1}, 'b': {'9': 2, '10': 3}}
    """
    found: dict[str, Any] = {}
    for place in sorted(offsets):
        found.setdefault(place.topic, {})[str(place.partition)] = offsets[place]
    return found


def from_json_dict(offsets: Mapping[str, Any]) -> Offsets:
    """The other way round.

    >>> from_json_dict({"orders": {"0": 17}})
    {TopicPartition(topic='orders', partition=0): 17}
    """
    return {
        TopicPartition(topic, int(partition)): offset
        for topic, partitions in offsets.items()
        if topic != START_KEY
        for partition, offset in partitions.items()
    }


def with_start(offsets: dict[str, Any], start: Mapping[str, Any]) -> dict[str, Any]:
    """The end of a query's first batch, which remembers where the query began.

    Spark writes down where batches end, and asks the source anew where the first one begins if it must do it again
    after a crash. The latest offsets would not be the same then.
    """
    return {**offsets, START_KEY: dict(start)}


def start_of(start: Mapping[str, Any], end: Mapping[str, Any]) -> Offsets:
    """Where a batch begins: where the query did if its end remembers that."""
    return from_json_dict(end.get(START_KEY, start))


def check_offset(offset: object) -> int:
    """An offset as users write it: -1 is the latest, -2 the earliest.

    >>> check_offset(-3)
    Traceback (most recent call last):
    ValueError: -3 is no offset; -2 means the earliest and -1 the latest
    """
    if isinstance(offset, bool) or not isinstance(offset, int) or offset < EARLIEST:
        raise ValueError(f"{offset!r} is no offset; {EARLIEST} means the earliest and {LATEST} the latest")
    return offset
