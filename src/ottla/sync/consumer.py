"""The consumer without asyncio."""

import asyncio
import inspect
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ottla.client.consumer import Consumer as ClientConsumer
from ottla.client.consumer import ConsumerRebalanceListener
from ottla.client.consumer.membership.listener import check_listener
from ottla.client.given import GivenOffset
from ottla.client.types import ConsumerRecord, OffsetAndTimestamp, TopicPartition
from ottla.sync.face import Face, takes_arguments_of
from ottla.sync.loop import Background

if TYPE_CHECKING:
    import pyarrow as pa


class Consumer(Face):
    """Reads records. It has the options of `ottla.Consumer`, and the same methods without `await`.

    >>> servers = broker.bootstrap_servers
    >>> consumer = Consumer(
    ...     "orders", bootstrap_servers=servers, auto_offset_reset="earliest", consumer_timeout_ms=1000
    ... )
    >>> with consumer:
    ...     [record.value for record in consumer]
    [b'one', b'two', b'three']

    It is for one thread at a time. Fetching, heartbeats and automatic commits go on in the background, whatever that
    thread does. Listeners are called in threads of their own, and may call the consumer; deserializers run in the
    thread of the event loop, and may not. The records that were read last count as finished when it is stopped, unless
    an exception is on its way through the program.
    """

    @takes_arguments_of(ClientConsumer)
    def __init__(self, *topics: str, **options: Any) -> None:
        if options.get("listener") is not None:
            options["listener"] = _Listener(options["listener"])
        self._consumer = ClientConsumer(*topics, **options)
        self._records: Iterator[ConsumerRecord] = iter(())

    async def _start_client(self, background: Background) -> None:
        await self._consumer.start()

    async def _stop_client(self, *, is_finished: bool) -> None:
        await self._consumer._stop(finished=is_finished)

    # Records.

    def __iter__(self) -> Iterator[ConsumerRecord]:
        """Records as they come, without end unless `consumer_timeout_ms` is set.

        >>> for record in consumer:
        ...     print(record.offset, record.value)
        ...     if record.value == b"two":
        ...         break
        0 b'one'
        1 b'two'
        """
        while (records := self._call(self._consumer._next_records)) is not None:
            yield from records

    def __next__(self) -> ConsumerRecord:
        """The next record.

        >>> next(consumer).value
        b'one'
        """
        while True:
            for record in self._records:
                return record
            records = self._call(self._consumer._next_records)
            if records is None:
                raise StopIteration
            self._records = records

    def getone(self, *partitions: TopicPartition) -> ConsumerRecord:
        """The next record, of these partitions if any are given. Waits for it.

        >>> consumer.getone().value
        b'one'
        """
        return self._call(self._consumer.getone, *partitions)

    def getmany(
        self, *partitions: TopicPartition, timeout_ms: int = 0, max_records: int | None = None
    ) -> dict[TopicPartition, list[ConsumerRecord]]:
        """Records that were fetched already, by partition; if there are none, the first that come within `timeout_ms`.

        At most `max_records`, or `max_poll_records` if that is not given.

        >>> for partition, records in consumer.getmany(timeout_ms=10_000, max_records=2).items():
        ...     print(partition, [record.value for record in records])
        orders-0 [b'one', b'two']
        """
        return self._call(self._consumer.getmany, *partitions, timeout_ms=timeout_ms, max_records=max_records)

    def poll(self, timeout_ms: int = 0, max_records: int | None = None) -> dict[TopicPartition, list[ConsumerRecord]]:
        """The same as `getmany`.

        >>> sum(len(records) for records in consumer.poll(timeout_ms=10_000).values())
        3
        """
        return self._call(self._consumer.poll, timeout_ms, max_records)

    def read_arrow(
        self,
        *partitions: TopicPartition,
        max_records: int | None = None,
        timeout_ms: int = 0,
        columns: Sequence[str] | None = None,
        zero_copy: bool = False,
    ) -> "pa.Table":
        """Records as an Arrow table, without an object per record.

        With `max_records` as soon as so many are there, or half of `buffer_memory` is full; or as many as there are
        when `timeout_ms` has passed. Without it some megabytes of what was fetched already, or else the first that come
        in that time. The columns are topic, partition, offset, timestamp, timestamp_type, key, value and headers, or
        those of them that are named. Deserializers are not used. With `zero_copy` values are Arrow's `binary_view` and
        stay in the bytes that were fetched.

        >>> consumer.read_arrow(max_records=3, timeout_ms=10_000, columns=["offset", "value"]).to_pydict()
        {'offset': [0, 1, 2], 'value': [b'one', b'two', b'three']}
        """
        return self._call(
            self._consumer.read_arrow,
            *partitions,
            max_records=max_records,
            timeout_ms=timeout_ms,
            columns=columns,
            zero_copy=zero_copy,
        )

    # What is read.

    def subscribe(
        self,
        topics: Iterable[str] = (),
        pattern: str | re.Pattern[str] | None = None,
        listener: ConsumerRebalanceListener | None = None,
    ) -> None:
        """Read topics, by name or by a pattern that names must begin with, instead of those before.

        >>> consumer.subscribe(pattern="orders.*")
        """
        self._ask(self._consumer.subscribe, topics, pattern, None if listener is None else _Listener(listener))

    def unsubscribe(self) -> None:
        """Read nothing any more.

        >>> consumer.unsubscribe()
        >>> consumer.subscription()
        frozenset()
        """
        self._ask(self._consumer.unsubscribe)

    def subscription(self) -> frozenset[str]:
        """The topics that are subscribed to; those that were found, if it was by pattern.

        >>> consumer.subscription()
        frozenset({'orders'})
        """
        return self._ask(self._consumer.subscription)

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read these partitions, without sharing them with a group.

        >>> consumer.unsubscribe()
        >>> consumer.assign([TopicPartition("orders", 0)])
        >>> consumer.getone().value
        b'one'
        """
        self._ask(self._consumer.assign, partitions)

    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions that are read now.

        >>> consumer.getone().value
        b'one'
        >>> consumer.assignment()
        frozenset({TopicPartition(topic='orders', partition=0)})
        """
        return self._ask(self._consumer.assignment)

    def pause(self, *partitions: TopicPartition) -> None:
        """Hand out nothing of partitions, and fetch no more of them, until `resume`. They stay assigned.

        >>> consumer.getone().value
        b'one'
        >>> consumer.pause(TopicPartition("orders", 0))
        >>> consumer.poll(timeout_ms=100)
        {}
        """
        self._ask(self._consumer.pause, *partitions)

    def resume(self, *partitions: TopicPartition) -> None:
        """Go on with partitions that were paused.

        >>> consumer.getone().value
        b'one'
        >>> consumer.pause(TopicPartition("orders", 0))
        >>> consumer.resume(TopicPartition("orders", 0))
        >>> consumer.getone().value
        b'two'
        """
        self._ask(self._consumer.resume, *partitions)

    def paused(self) -> frozenset[TopicPartition]:
        """The partitions that are paused.

        >>> consumer.paused()
        frozenset()
        """
        return self._ask(self._consumer.paused)

    def topics(self) -> set[str]:
        """The names of all topics that there are.

        >>> consumer.topics()
        {'orders'}
        """
        return self._call(self._consumer.topics)

    def partitions_for_topic(self, topic: str) -> set[int]:
        """The partitions of a topic.

        >>> consumer.partitions_for_topic("orders")
        {0}
        """
        return self._call(self._consumer.partitions_for_topic, topic)

    # Positions.

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Read a partition on from an offset.

        >>> first = consumer.getone()
        >>> consumer.seek(TopicPartition("orders", 0), 2)
        >>> consumer.getone().value
        b'three'
        """
        self._ask(self._consumer.seek, partition, offset)

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """Read partitions, or all that are assigned, from their first record on.

        >>> first = consumer.getone()
        >>> consumer.seek_to_beginning()
        >>> consumer.getone() == first
        True
        """
        self._call(self._consumer.seek_to_beginning, *partitions)

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        """Read partitions, or all that are assigned, from the next record on that comes.

        >>> first = consumer.getone()
        >>> consumer.seek_to_end()
        >>> consumer.position(TopicPartition("orders", 0))
        3
        """
        self._call(self._consumer.seek_to_end, *partitions)

    def seek_to_committed(self, *partitions: TopicPartition) -> dict[TopicPartition, int]:
        """Read partitions, or all that are assigned, from where the group has committed; gives the positions.

        >>> first = consumer.getone()
        >>> consumer.commit()
        >>> second = consumer.getone()
        >>> consumer.seek_to_committed()
        {TopicPartition(topic='orders', partition=0): 1}
        """
        return self._call(self._consumer.seek_to_committed, *partitions)

    def position(self, partition: TopicPartition) -> int:
        """The offset of the next record that the user gets of a partition.

        >>> first = consumer.getone()
        >>> consumer.position(TopicPartition("orders", 0))
        1
        """
        return self._call(self._consumer.position, partition)

    def highwater(self, partition: TopicPartition) -> int | None:
        """The offset after the last record that the last fetch knew of, or None before the first.

        >>> first = consumer.getone()
        >>> consumer.highwater(TopicPartition("orders", 0))
        3
        """
        return self._ask(self._consumer.highwater, partition)

    def last_stable_offset(self, partition: TopicPartition) -> int | None:
        """The offset up to which all transactions had ended at the last fetch, or None before the first.

        >>> first = consumer.getone()
        >>> consumer.last_stable_offset(TopicPartition("orders", 0))
        3
        """
        return self._ask(self._consumer.last_stable_offset, partition)

    def beginning_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The offsets of the first records of partitions.

        >>> consumer.beginning_offsets([TopicPartition("orders", 0)])
        {TopicPartition(topic='orders', partition=0): 0}
        """
        return self._call(self._consumer.beginning_offsets, partitions)

    def end_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The offsets after the last records of partitions; with `read_committed` those up to which one can read.

        >>> consumer.end_offsets([TopicPartition("orders", 0)])
        {TopicPartition(topic='orders', partition=0): 3}
        """
        return self._call(self._consumer.end_offsets, partitions)

    def offsets_for_times(
        self, timestamps: Mapping[TopicPartition, int | datetime]
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """The first records at or after times in milliseconds, or datetimes with a timezone; None where there is none
        so late.

        >>> consumer.offsets_for_times({TopicPartition("orders", 0): 4_000_000_000_000})
        {TopicPartition(topic='orders', partition=0): None}
        """
        return self._call(self._consumer.offsets_for_times, timestamps)

    # The group.

    def commit(self, offsets: Mapping[TopicPartition, GivenOffset] | None = None) -> None:
        """Commit offsets, each that of the next record to read; or, if none are given, all that was handed out.

        >>> for record in consumer:
        ...     consumer.commit()
        ...     break
        >>> consumer.committed(TopicPartition("orders", 0))
        1
        """
        self._call(self._consumer.commit, offsets)

    def committed(self, partition: TopicPartition) -> int | None:
        """The offset that the group has committed for a partition, or None.

        >>> first = consumer.getone()
        >>> consumer.commit({TopicPartition("orders", 0): 2})
        >>> consumer.committed(TopicPartition("orders", 0))
        2
        """
        return self._call(self._consumer.committed, partition)


class _Listener(ConsumerRebalanceListener):
    """Calls a listener of the user in a thread, where he may call the consumer and wait."""

    def __init__(self, listener: Any) -> None:
        check_listener(listener)
        self._listener = listener

    async def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
        await self._tell("on_partitions_revoked", revoked)

    async def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
        await self._tell("on_partitions_assigned", assigned)

    async def on_partitions_lost(self, lost: set[TopicPartition]) -> None:
        # Listeners of other libraries may lack this one.
        has_it = hasattr(self._listener, "on_partitions_lost")
        await self._tell("on_partitions_lost" if has_it else "on_partitions_revoked", lost)

    async def _tell(self, method: str, partitions: set[TopicPartition]) -> None:
        called = await asyncio.to_thread(getattr(self._listener, method), partitions)
        if inspect.isawaitable(called):
            await called
