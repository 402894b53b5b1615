"""Where partitions begin and end, and where in them a time is."""

import asyncio
from collections.abc import Iterable, Mapping
from datetime import datetime

from ottla.client.admin.part import AdminPart, Answers, list_of
from ottla.client.checks import place_of
from ottla.client.errors import error_of
from ottla.client.offsets import IsolationLevel, OffsetSpec, ask_offsets, time_of
from ottla.client.types import OffsetAndTimestamp, TopicPartition
from ottla.net import Connection
from ottla.wire.errors import ErrorCode

_SPECS: frozenset[int] = frozenset(OffsetSpec)
"""Plain numbers among them, as other clients have it."""


class OffsetAdmin(AdminPart):
    """The methods that concern offsets of partitions, which are asked for at their leaders."""

    async def list_offsets(
        self,
        topic_partition_specs: Mapping[TopicPartition, OffsetSpec | int | datetime],
        isolation_level: IsolationLevel = "read_uncommitted",
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Offsets in partitions: at an end, of the latest record, or of the first at or after a time: milliseconds,
        or a datetime with a timezone.

        None where there is no such record. With `read_committed` a partition ends where the first transaction begins
        that is not finished.

        >>> run(lambda admin: admin.create_topics(["orders"]))
        >>> orders = TopicPartition("orders", 0)
        >>> run(lambda admin: admin.list_offsets({orders: OffsetSpec.LATEST}))[orders].offset
        0
        >>> run(lambda admin: admin.list_offsets({orders: 1_700_000_000_000}))[orders] is None
        True
        """
        places = {place_of(place, "topic_partition_specs"): spec for place, spec in topic_partition_specs.items()}
        wanted = {place: _spec_of(place, spec) for place, spec in places.items()}

        async def ask_one(
            connection: Connection, left: list[TopicPartition]
        ) -> Answers[TopicPartition, OffsetAndTimestamp | None]:
            return await ask_offsets(connection, {place: wanted[place] for place in left}, isolation_level)

        async def ask(left: list[TopicPartition]) -> Answers[TopicPartition, OffsetAndTimestamp | None]:
            return await self._ask_leaders(left, ask_one)

        return await self._each(wanted, ask)

    async def beginning_offsets(self, topics: Iterable[str | TopicPartition]) -> dict[TopicPartition, int]:
        """The offsets of the first records that are still there, in all partitions of topics, or in single ones.

        >>> run(lambda admin: admin.create_topics([NewTopic("orders", 2)]))
        >>> run(lambda admin: admin.beginning_offsets(["orders"]))
        {TopicPartition(topic='orders', partition=0): 0, TopicPartition(topic='orders', partition=1): 0}
        """
        return await self._ends(topics, OffsetSpec.EARLIEST, "read_uncommitted")

    async def end_offsets(
        self, topics: Iterable[str | TopicPartition], isolation_level: IsolationLevel = "read_uncommitted"
    ) -> dict[TopicPartition, int]:
        """The offsets that the next records will get, in all partitions of topics, or in single ones.

        >>> run(lambda admin: admin.create_topics(["orders"]))
        >>> run(lambda admin: admin.end_offsets([TopicPartition("orders", 0)]))
        {TopicPartition(topic='orders', partition=0): 0}
        """
        return await self._ends(topics, OffsetSpec.LATEST, isolation_level)

    async def _ends(
        self, topics: Iterable[str | TopicPartition], spec: OffsetSpec, isolation_level: IsolationLevel
    ) -> dict[TopicPartition, int]:
        async def partitions(one: str | TopicPartition) -> list[TopicPartition]:
            if not isinstance(one, str):
                return [place_of(one, "topics")]
            return [TopicPartition(one, index) for index in await self._cluster.partitions(one)]

        named = await asyncio.gather(*map(partitions, list_of(topics, "topics")))
        specs = {place: spec for places in named for place in places}
        found = await self.list_offsets(specs, isolation_level)
        return {place: _there(place, one) for place, one in found.items()}


def _there(place: TopicPartition, found: OffsetAndTimestamp | None) -> int:
    if found is None:
        raise error_of(ErrorCode.OFFSET_NOT_AVAILABLE, f"the leader of {place} does not know its offsets yet")
    return found.offset


def _spec_of(place: TopicPartition, spec: int | datetime) -> int:
    return int(spec) if isinstance(spec, int) and spec in _SPECS else time_of(place, spec)
