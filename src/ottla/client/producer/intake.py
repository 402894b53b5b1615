"""From records to open batches: the part of sending that is not done for every record."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from ottla.client.checks import check_topic
from ottla.client.cluster import Cluster
from ottla.client.errors import RequestTimedOutError
from ottla.client.producer.accumulator import FIRST_BYTES, Accumulator, PartitionQueue
from ottla.client.producer.batch import Delivery, Rows
from ottla.client.producer.options import ProducerOptions
from ottla.client.producer.partitioners import PartitionerFunction, Routes
from ottla.client.producer.taking import Headers
from ottla.ports import Chance
from ottla.wire.errors import KafkaError

BATCHES_IN_A_ROW = 4
"""How many batches are begun before the event loop gets a turn."""

PARTIAL_MAX_AGE_MS = 1_000
"""When to look again at a topic of which not all partitions had a leader."""

ROWS_BYTES = 1_000_000
"""How large batches of rows are made, where that is more than `batch_size`: they are there all at once."""


class Intake:
    """Opens batches and lets them grow, as memory allows."""

    def __init__(
        self,
        cluster: Cluster,
        accumulator: Accumulator,
        options: ProducerOptions,
        partitioner: str | PartitionerFunction,
        chance: Chance,
    ) -> None:
        self.accumulator = accumulator
        self.routes: dict[str, Routes] = {}
        """Of the topics that were used."""
        self._cluster = cluster
        self._options = options
        self._partitioner = partitioner
        self._chance = chance
        self._begun = 0

    async def known(self, topic: str) -> Routes:
        """What is known of a topic, brought up to date."""
        check_topic(topic)
        routes = self.routes.get(topic)
        if routes is not None and self._cluster.picture.topics.get(topic) is routes.topic:
            if self._is_fresh(routes, asyncio.get_running_loop().time()):
                return routes
            if not routes.is_complete:
                # Partitions that have no leader yet would be passed over until the next look.
                with suppress(KafkaError):
                    await self._cluster.metadata([topic])
        try:
            async with asyncio.timeout(self._options.max_block_ms / 1000):
                found = await self._cluster.topic(topic, create=True)
        except TimeoutError:
            error = self._cluster.last_error
            why = "" if error is None else f"; the last error was {error}"
            raise RequestTimedOutError(
                f"nothing was heard of topic {topic!r} within max_block_ms = {self._options.max_block_ms}{why}"
            ) from error
        routes = self.routes.get(topic)
        if routes is None:
            queue_of = self.accumulator.queue
            routes = self.routes[topic] = Routes(found, self._partitioner, queue_of, self._chance)
        elif routes.topic is not found:
            routes.take(found)
        return routes

    def known_now(self, topic: str, now: float) -> Routes | None:
        """What is known of a topic, if that is up to date."""
        routes = self.routes.get(topic)
        if routes is None or self._cluster.picture.topics.get(topic) is not routes.topic:
            return None
        return routes if self._is_fresh(routes, now) else None

    def _is_fresh(self, routes: Routes, now: float) -> bool:
        max_age_ms = self._options.metadata_max_age_ms if routes.is_complete else PARTIAL_MAX_AGE_MS
        return (now - routes.topic.seen_at) * 1000 < max_age_ms

    async def _looked_up_again(self, topic: str) -> Routes:
        """What is known of a topic that may have got more partitions."""
        with suppress(KafkaError):
            await self._cluster.metadata([topic])
        return await self.known(topic)

    async def add(
        self,
        queue: PartitionQueue | None,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        partition: int | None,
        timestamp_ms: int,
        headers: Headers,
    ) -> Delivery:
        """Take a record where there is no open batch that it fits in. The queue is given if it is known already."""
        accumulator = self.accumulator
        if queue is not None and queue.open is not None and accumulator.grow(queue):
            index = queue.open.append(timestamp_ms, key, value, headers)
            if index is not None:
                queue.open.has_headers = queue.open.has_headers or bool(headers)
                return Delivery(queue.open, index, timestamp_ms)
        await self.give_way()
        routes = await self.known(topic)
        if partition is not None and partition not in routes.topic.leaders:
            routes = await self._looked_up_again(topic)
        if queue is None:
            queue = routes.of(key, partition)
        free = partition is None and routes.is_free(key)
        charged = 0
        try:
            while True:
                if free:
                    queue = routes.stick()
                batch = queue.open
                if batch is not None:
                    index = batch.append(timestamp_ms, key, value, headers)
                    if index is None:
                        accumulator.make_room(queue)
                        continue
                else:
                    builder = accumulator.new_builder()
                    index = builder.append(timestamp_ms, key, value, headers)
                    size = accumulator.size_of(builder, queue.partition)
                    if charged < size and not accumulator.memory.take(size - charged):
                        await accumulator.wait_for_memory(size - charged)
                        charged = size
                        # Others may have taken records meanwhile.
                        continue
                    batch = accumulator.begin(queue, builder, max(charged, size))
                    charged = 0
                assert index is not None, "the first record of a batch always fits"
                if headers:
                    batch.has_headers = True
                return Delivery(batch, index, timestamp_ms)
        finally:
            if charged:
                accumulator.memory.give(charged)

    async def add_rows(
        self,
        choose: Callable[[], PartitionQueue],
        columns: dict[str, Any],
        selection: Any,
        count: int,
        estimate: int,
    ) -> list[Rows]:
        """Take rows of columns, as many batches as it takes, and tell where they are.

        `choose` is asked for each batch, `selection` says which rows, or all if it is None, and `estimate` is what they
        take in bytes, more or less.
        """
        accumulator = self.accumulator
        added: list[Rows] = []
        turn = 0
        while turn < count:
            await self.give_way()
            queue = choose()
            batch = queue.open
            if batch is not None and batch.builder is not None:
                first = batch.count
                rows = batch.builder.append_rows(turn, count, **columns, selection=selection)
                if turn + rows < count:
                    accumulator.make_room(queue)
            else:
                first = 0
                wanted = self._size_for_rows(queue, estimate * (count - turn) // count)
                builder = accumulator.new_builder(wanted)
                rows = builder.append_rows(turn, count, **columns, selection=selection)
                size = accumulator.size_of(builder, queue.partition)
                if not accumulator.memory.take(size):
                    await accumulator.wait_for_memory(size)
                    if queue.open is not None or choose() is not queue:
                        # Others have taken records meanwhile.
                        accumulator.memory.give(size)
                        continue
                batch = accumulator.begin(queue, builder, size)
            if rows:
                batch.has_headers = batch.has_headers or "headers" in columns
                added.append(Rows(batch, first, rows))
                turn += rows
        return added

    def _size_for_rows(self, queue: PartitionQueue, estimate: int) -> int:
        options = self._options
        largest = queue.batch_size
        if largest == options.batch_size:
            largest = max(largest, min(ROWS_BYTES, options.max_request_size, options.buffer_memory))
        return min(largest, max(estimate, FIRST_BYTES))

    def turn_given(self) -> None:
        """The caller waits, so the event loop gets its turn anyway."""
        self._begun = 0

    async def give_way(self) -> None:
        """Let the event loop run now and then, however fast records come: it is what sends them."""
        self._begun += 1
        if self._begun >= BATCHES_IN_A_ROW:
            self._begun = 0
            await asyncio.sleep(0)
