"""How far groups are behind, and setting them back or forth."""

from collections.abc import Iterable
from datetime import datetime
from typing import Literal, NamedTuple

from ottla.client.admin.group_offsets import GroupOffsetAdmin
from ottla.client.admin.offsets import OffsetAdmin
from ottla.client.offsets import milliseconds_of
from ottla.client.types import TopicPartition

ResetTo = Literal["earliest", "latest"] | int | datetime
"""Where a group is to read on: at an end, at an offset, or at the first record at or after a time."""


class GroupLag(NamedTuple):
    """How far a group is behind in a partition.

    >>> GroupLag(committed=7, end=10, lag=3).lag
    3
    """

    committed: int
    """The offset of the record that it reads next."""
    end: int
    """The offset that the next record will get which is written."""
    lag: int
    """How many offsets are between them."""


class GroupProgressAdmin(GroupOffsetAdmin, OffsetAdmin):
    """The methods that compare what groups have committed with what there is."""

    async def consumer_group_lag(self, group_id: str) -> dict[TopicPartition, GroupLag]:
        """How far a group is behind, in each partition in which it has committed something.

        >>> run(lambda admin: admin.create_topics(["orders"]))
        >>> run(lambda admin: admin.alter_consumer_group_offsets("readers", {TopicPartition("orders", 0): 0}))
        >>> run(lambda admin: admin.consumer_group_lag("readers"))
        {TopicPartition(topic='orders', partition=0): GroupLag(committed=0, end=0, lag=0)}
        """
        committed = await self.list_consumer_group_offsets(group_id)
        ends = await self.end_offsets(committed)
        return {
            place: GroupLag(position.offset, ends[place], max(0, ends[place] - position.offset))
            for place, position in committed.items()
        }

    async def reset_consumer_group_offsets(
        self, group_id: str, topics: str | Iterable[str | TopicPartition], to: ResetTo
    ) -> dict[TopicPartition, int]:
        """Have a group without members read on elsewhere, in a topic, several of them, or single partitions.

        `to` is "earliest", "latest", an offset, or a datetime with a timezone, which stands for the first record at or
        after it. An offset that the log does not have stands for its nearer end. What was committed comes back.

        >>> run(lambda admin: admin.create_topics([NewTopic("orders", 2)]))
        >>> run(lambda admin: admin.reset_consumer_group_offsets("readers", "orders", "earliest"))
        {TopicPartition(topic='orders', partition=0): 0, TopicPartition(topic='orders', partition=1): 0}
        """
        _check_place(to)
        chosen = [topics] if isinstance(topics, str) else list(topics)
        if to == "earliest":
            offsets = await self.beginning_offsets(chosen)
        else:
            offsets = await self.end_offsets(chosen)
        if isinstance(to, datetime):
            found = await self.list_offsets(dict.fromkeys(offsets, milliseconds_of(to, "to")))
            offsets = {place: end if (at := found[place]) is None else at.offset for place, end in offsets.items()}
        elif isinstance(to, int):
            first = await self.beginning_offsets(offsets)
            offsets = {place: max(first[place], min(to, end)) for place, end in offsets.items()}
        await self.alter_consumer_group_offsets(group_id, offsets)
        return offsets


def _check_place(to: object) -> None:
    hint = f"to is {to!r}; give 'earliest', 'latest', an offset of at least 0 or a datetime"
    if isinstance(to, bool) or not isinstance(to, int | str | datetime):
        raise TypeError(hint)
    if (isinstance(to, str) and to not in ("earliest", "latest")) or (isinstance(to, int) and to < 0):
        raise ValueError(hint)
