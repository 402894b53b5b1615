"""What a consumer reads, and from where: the part of its face that is not about records."""

import asyncio
import re
from collections.abc import Iterable, Mapping
from datetime import datetime

from ottla.client.checks import check_number, place_of, shown
from ottla.client.consumer.core import Core
from ottla.client.consumer.membership import ConsumerRebalanceListener, Group
from ottla.client.consumer.membership.identity import in_listener
from ottla.client.consumer.membership.listener import check_listener
from ottla.client.consumer.subscription import PartitionState, Start
from ottla.client.errors import IllegalStateError, RequestTimedOutError
from ottla.client.given import GivenOffset
from ottla.client.offsets import EARLIEST, LATEST, find_offsets, time_of
from ottla.client.types import OffsetAndTimestamp, TopicPartition
from ottla.record._kernel_types import LARGEST_INT64


class Places:
    """Topics, partitions and positions of a consumer."""

    _core: Core

    # What is read.

    def subscribe(
        self,
        topics: Iterable[str] = (),
        pattern: str | re.Pattern[str] | None = None,
        listener: ConsumerRebalanceListener | None = None,
    ) -> None:
        """Read topics instead of those before: by name, or all whose names begin with what matches a pattern.

        A listener stays until another one is given.

        >>> consumer = Consumer()
        >>> consumer.subscribe(["orders", "payments"])
        >>> sorted(consumer.subscription())
        ['orders', 'payments']
        """
        if listener is not None:
            check_listener(listener)
        self._core.subscription.subscribe(topics, pattern)
        if listener is not None:
            self._core.listener = listener
            if self._core.group is not None:
                self._core.group.listener = listener

    def unsubscribe(self) -> None:
        """Read nothing any more.

        >>> consumer = Consumer("orders")
        >>> consumer.unsubscribe()
        >>> consumer.subscription()
        frozenset()
        """
        self._core.subscription.user_returned()
        self._core.subscription.unsubscribe()

    def subscription(self) -> frozenset[str]:
        """The topics that are subscribed to; those that were found, if it was by pattern.

        >>> Consumer("orders").subscription()
        frozenset({'orders'})
        """
        return self._core.subscription.topics or self._core.subscription.matched

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read these partitions, without sharing them with a group.

        >>> consumer = Consumer()
        >>> consumer.assign([TopicPartition("orders", 0)])
        >>> consumer.assignment()
        frozenset({TopicPartition(topic='orders', partition=0)})
        """
        self._core.subscription.assign_by_user(partitions)

    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions that are read now.

        >>> async def mine(consumer: Consumer) -> frozenset[TopicPartition]:
        ...     await consumer.getone()
        ...     return consumer.assignment()
        >>> run(mine)
        frozenset({TopicPartition(topic='orders', partition=0)})
        """
        return frozenset(self._core.subscription.assigned)

    def pause(self, *partitions: TopicPartition) -> None:
        """Hand out nothing of partitions, and fetch no more of them, until `resume`. They stay assigned.

        >>> consumer = Consumer()
        >>> consumer.assign([TopicPartition("orders", 0), TopicPartition("orders", 1)])
        >>> consumer.pause(TopicPartition("orders", 1))
        >>> consumer.paused()
        frozenset({TopicPartition(topic='orders', partition=1)})
        """
        for state in [self._state(partition) for partition in partitions]:
            state.paused = True
            state.stop_run()

    def resume(self, *partitions: TopicPartition) -> None:
        """Go on with partitions that were paused.

        >>> consumer = Consumer()
        >>> consumer.assign([TopicPartition("orders", 0)])
        >>> consumer.pause(TopicPartition("orders", 0))
        >>> consumer.resume(TopicPartition("orders", 0))
        >>> consumer.paused()
        frozenset()
        """
        for state in [self._state(partition) for partition in partitions]:
            state.paused = False
        self._core.signal.notify()

    def paused(self) -> frozenset[TopicPartition]:
        """The partitions that are paused.

        >>> Consumer("orders").paused()
        frozenset()
        """
        states = self._core.subscription.assigned.values()
        return frozenset(state.partition for state in states if state.paused)

    async def topics(self) -> set[str]:
        """The names of all topics that there are.

        >>> run(lambda consumer: consumer.topics())
        {'orders'}
        """
        cluster = self._core.cluster
        response = await cluster.retrying(lambda: cluster.metadata(None))
        hidden = self._core.options.exclude_internal_topics
        return {one.name for one in response.topics if one.name and not (hidden and one.is_internal)}

    async def partitions_for_topic(self, topic: str) -> set[int]:
        """The partitions of a topic.

        >>> run(lambda consumer: consumer.partitions_for_topic("orders"))
        {0}
        """
        return set(await self._core.cluster.partitions(topic))

    # Positions.

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Read a partition on from an offset.

        >>> async def again(consumer: Consumer) -> bytes:
        ...     first = await consumer.getone()
        ...     consumer.seek(first.topic_partition, first.offset)
        ...     return (await consumer.getone()).value
        >>> run(again)
        b'one'
        """
        check_number("offset", offset, most=LARGEST_INT64)
        if offset < 0:
            raise ValueError(f"offset is {offset}; it must be at least 0, or use seek_to_beginning() or seek_to_end()")
        self._state(partition).seek(offset)
        self._core.signal.notify()

    async def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """Read partitions, or all that are assigned, from their first record on.

        >>> async def again(consumer: Consumer) -> bytes:
        ...     await consumer.getone()
        ...     await consumer.seek_to_beginning()
        ...     return (await consumer.getone()).value
        >>> run(again)
        b'one'
        """
        await self._begin_at(Start.EARLIEST, partitions)

    async def seek_to_end(self, *partitions: TopicPartition) -> None:
        """Read partitions, or all that are assigned, from the next record on that comes.

        >>> async def end(consumer: Consumer) -> int:
        ...     await consumer.getone()
        ...     await consumer.seek_to_end()
        ...     return await consumer.position(TopicPartition("orders", 0))
        >>> run(end)
        3
        """
        await self._begin_at(Start.LATEST, partitions)

    async def seek_to_committed(self, *partitions: TopicPartition) -> dict[TopicPartition, int]:
        """Read partitions, or all that are assigned, from where the group has committed; gives the positions.

        >>> async def back(consumer: Consumer) -> dict[TopicPartition, int]:
        ...     await consumer.getone()
        ...     await consumer.commit({TopicPartition("orders", 0): 2})
        ...     return await consumer.seek_to_committed()
        >>> run(back)
        {TopicPartition(topic='orders', partition=0): 2}
        """
        self._group("seek_to_committed")
        return await self._begin_at(Start.COMMITTED, partitions)

    async def _begin_at(self, start: Start, partitions: tuple[TopicPartition, ...]) -> dict[TopicPartition, int]:
        self._core.handout.check_open()
        states = [self._state(one) for one in partitions] or list(self._core.subscription.assigned.values())
        for state in states:
            state.begin_at(start)
        self._core.subscription.unsettled.notify()
        return {state.partition: await self.position(state.partition) for state in states}

    async def position(self, partition: TopicPartition) -> int:
        """The offset of the next record that the user gets of a partition.

        >>> async def after_one(consumer: Consumer) -> int:
        ...     record = await consumer.getone()
        ...     return await consumer.position(record.topic_partition)
        >>> run(after_one)
        1
        """
        self._core.handout.check_open()
        partition = place_of(partition, "partition")
        timeout_ms = self._core.options.client.request_timeout_ms
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                while (position := self._state(partition).position) is None:
                    self._core.handout.raise_failures((partition,))
                    await self._core.signal.wait()
                return position
        except TimeoutError:
            raise RequestTimedOutError(f"the position of {partition} was not found in {timeout_ms} ms") from None

    def highwater(self, partition: TopicPartition) -> int | None:
        """The offset after the last record that the last fetch knew of, or None before the first.

        >>> async def lag(consumer: Consumer) -> int:
        ...     record = await consumer.getone()
        ...     return consumer.highwater(record.topic_partition) - record.offset - 1
        >>> run(lag)
        2
        """
        return self._state(partition).high_watermark

    def last_stable_offset(self, partition: TopicPartition) -> int | None:
        """The offset up to which all transactions had ended at the last fetch, or None before the first.

        >>> async def stable(consumer: Consumer) -> int | None:
        ...     return consumer.last_stable_offset((await consumer.getone()).topic_partition)
        >>> run(stable)
        3
        """
        return self._state(partition).last_stable_offset

    async def beginning_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The offsets of the first records of partitions.

        >>> run(lambda consumer: consumer.beginning_offsets([TopicPartition("orders", 0)]))
        {TopicPartition(topic='orders', partition=0): 0}
        """
        return await self._ends(partitions, EARLIEST)

    async def end_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The offsets after the last records of partitions; with `read_committed` those up to which one can read.

        >>> run(lambda consumer: consumer.end_offsets([TopicPartition("orders", 0)]))
        {TopicPartition(topic='orders', partition=0): 3}
        """
        return await self._ends(partitions, LATEST)

    async def _ends(self, partitions: Iterable[TopicPartition], end: int) -> dict[TopicPartition, int]:
        specs = dict.fromkeys(places_of(partitions), end)
        found = await find_offsets(self._core.cluster, specs, self._core.options.isolation_level)
        return {partition: answer.offset for partition, answer in found.items() if answer is not None}

    async def offsets_for_times(
        self, timestamps: Mapping[TopicPartition, int | datetime]
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """The first records at or after times in milliseconds, or datetimes with a timezone; None where there is none
        so late.

        >>> long_ago = {TopicPartition("orders", 0): 1_000_000_000_000}
        >>> run(lambda consumer: consumer.offsets_for_times(long_ago))[TopicPartition("orders", 0)].offset
        0
        """
        if not isinstance(timestamps, Mapping):
            raise TypeError(
                f"timestamps is {shown(timestamps)}; give a dict, as in {{TopicPartition('orders', 0): time}}"
            )
        places = {place_of(place, "timestamps"): time for place, time in timestamps.items()}
        specs = {place: time_of(place, time) for place, time in places.items()}
        return await find_offsets(self._core.cluster, specs, self._core.options.isolation_level)

    # The group's positions.

    async def commit(self, offsets: Mapping[TopicPartition, GivenOffset] | None = None) -> None:
        """Commit offsets, each that of the next record to read; or, if none are given, all that was handed out.

        >>> async def read_one(consumer: Consumer) -> int | None:
        ...     record = await consumer.getone()
        ...     await consumer.commit()
        ...     return await consumer.committed(record.topic_partition)
        >>> run(read_one)
        1
        """
        await self._group("commit").commit(offsets)

    async def committed(self, partition: TopicPartition) -> int | None:
        """The offset that the group has committed for a partition, or None.

        >>> print(run(lambda consumer: consumer.committed(TopicPartition("orders", 0))))
        None
        """
        (found,) = (await self._group("committed").committed([partition])).values()
        return None if found is None else found.offset

    def _group(self, call: str) -> Group:
        # A listener may still commit while the consumer stops.
        if not in_listener.get():
            self._core.handout.check_open()
        if self._core.group is None:
            raise IllegalStateError(f"{call}() needs a group; give the consumer a group_id")
        return self._core.group

    def _state(self, partition: TopicPartition) -> PartitionState:
        return self._core.subscription.state(place_of(partition, "partition"))


def places_of(partitions: Iterable[TopicPartition]) -> tuple[TopicPartition, ...]:
    """Partitions that the user has named, perhaps as plain tuples."""
    return tuple(place_of(partition, "partitions") for partition in partitions)
