"""A batch on its way to a partition, and the awaitables of its records."""

import asyncio
from collections.abc import Callable, Generator, Iterator
from struct import Struct
from typing import TYPE_CHECKING, Any, NamedTuple

from ottla.client.producer.idempotence import NOBODY, SEQUENCE_MASK, Identity
from ottla.client.producer.taking import Receipt
from ottla.client.types import CREATE_TIME, LOG_APPEND_TIME, RecordMetadata
from ottla.record import Batch, BatchBuilder, records
from ottla.record._kernel_types import Buffer
from ottla.record.batch import HEADER_SIZE, UNCHECKED
from ottla.wire.errors import KafkaError

if TYPE_CHECKING:
    from ottla.client.producer.accumulator import PartitionQueue

_PRODUCER = Struct(">qhi")
"""Producer id, epoch and base sequence, as they stand before the record count at the end of a batch's header."""
_PRODUCER_AT = HEADER_SIZE - _PRODUCER.size - 4
_CRC = Struct(">I")
_CRC_AT = UNCHECKED.size - _CRC.size


class PendingBatch:
    """Records of one partition from the first `append` until it is known what became of them."""

    __slots__ = (
        "_count",
        "_noticed_runs",
        "_parts",
        "_waiters",
        "append",
        "append_time",
        "base_offset",
        "builder",
        "charged",
        "data",
        "deadline",
        "doubtful",
        "error",
        "first",
        "has_headers",
        "identity",
        "noticed",
        "partition",
        "place",
        "queue",
        "refused",
        "ripe",
        "sequence",
        "serial",
        "settled",
    )

    def __init__(
        self, queue: "PartitionQueue", builder: BatchBuilder | None, *, serial: int, deadline: float, charged: int
    ) -> None:
        self.queue = queue
        self.partition = queue.partition
        self.builder = builder
        if builder is not None:
            self.append = builder.append
        self.data: Buffer | None = None
        """The batch as it is sent, once it has left for the first time."""
        self.serial = serial
        """Grows from batch to batch; parts of one that was split keep its number."""
        self.first = 0
        """Which record of the batch as it was before any splitting is its first."""
        self.deadline = deadline
        self.charged = charged
        """Bytes of the producer's memory that it holds."""
        self.has_headers = False
        self.ripe = False
        """Whether it waits for no more records."""
        # What it is known as to the broker.
        self.identity = NOBODY
        self.sequence = -1
        self.place = -1
        """Which batch of its partition it is, of those that were ever numbered."""
        self.doubtful = False
        """Whether it may have been written without our hearing of it."""
        self.refused = False
        # What became of it.
        self.settled = False
        self.error: KafkaError | None = None
        self.base_offset = -1
        self.append_time = -1
        self.noticed: set[int] = set()
        """The records whose failure somebody knows of, or waits for."""
        self._noticed_runs: set[tuple[int, int]] = set()
        """The same for runs of records: where they begin, and how many they are."""
        self._count = 0
        self._parts: tuple[PendingBatch, PendingBatch] | None = None
        self._waiters: list[tuple[int, asyncio.Future[None]]] = []

    @classmethod
    def single(cls, queue: "PartitionQueue", data: Buffer, *, serial: int, deadline: float) -> "PendingBatch":
        """A batch of one record, as it is sent."""
        batch = cls(queue, None, serial=serial, deadline=deadline, charged=len(data))
        batch.data = data
        batch.ripe = True
        batch._count = 1
        return batch

    @property
    def count(self) -> int:
        """How many records it has."""
        return self._count if self.builder is None else self.builder.count

    @property
    def is_noticed(self) -> bool:
        """Whether somebody knows of the failure of each record."""
        return len(self.noticed) + sum(count for _, count in self._noticed_runs) >= self.count

    def notice_run(self, first: int, count: int) -> None:
        """Somebody asks for a run of records."""
        self._noticed_runs.add((first, count))

    def seal(self, identity: Identity, sequence: int) -> Buffer:
        """Number the batch and give its bytes; none is added from here on. Compressing them is what takes time."""
        if self.builder is not None:
            builder = self.builder
            builder.producer_id, builder.producer_epoch = identity
            builder.base_sequence = sequence
            self.data = builder.build_once()
            self._count = builder.count
            self.builder = None
            del self.append
        else:
            assert self.data is not None
            self.data = renumbered(self.data, identity, sequence)
        self.identity, self.sequence = identity, sequence
        return self.data

    def settle(self, error: KafkaError | None, base_offset: int = -1, append_time: int = -1) -> None:
        """Tell those who wait what became of it."""
        assert not self.settled, "a batch has one end"
        self.error, self.base_offset, self.append_time = error, base_offset, append_time
        self._count = self.count
        self.builder = self.data = None
        # After the rest, as other threads look at it.
        self.settled = True
        waiters, self._waiters = self._waiters, []
        for _, future in waiters:
            if not future.done():
                future.set_result(None)

    def split(self) -> "tuple[PendingBatch, PendingBatch]":
        """Two halves that take its place, with the same numbers."""
        assert self.data is not None
        assert self._count > 1, "one record cannot be split"
        whole = Batch(self.data)
        found = records(whole)
        middle = len(found) // 2
        parts = []
        for first, part in ((0, found[:middle]), (middle, found[middle:])):
            builder = BatchBuilder(whole.codec)
            for record in part:
                builder.append(record.timestamp, record.key, record.value, record.headers)
            half = PendingBatch(self.queue, builder, serial=self.serial, deadline=self.deadline, charged=0)
            half.has_headers = self.has_headers
            half.ripe = True
            half.first = self.first + first
            sequence = -1 if self.sequence < 0 else (self.sequence + first) & SEQUENCE_MASK
            half.seal(self.identity, sequence)
            parts.append(half)
        self._parts = left, right = parts[0], parts[1]
        left.charged = self.charged // 2
        right.charged = self.charged - left.charged
        for index, future in self._waiters:
            half, place = self.find(index)
            half._waiters.append((place, future))
        for index in self.noticed:
            half, place = self.find(index)
            half.noticed.add(place)
        for first, count in self._noticed_runs:
            for rows in Rows(self, first, count).leaves():
                rows.notice()
        self.data = None
        self._waiters = []
        return self._parts

    def find(self, index: int) -> "tuple[PendingBatch, int]":
        """Which batch a record is in by now, and where."""
        batch = self
        while batch._parts is not None:
            left, right = batch._parts
            if index < left._count:
                batch = left
            else:
                batch, index = right, index - left._count
        return batch, index

    def watch(self, index: int) -> "asyncio.Future[None]":
        """A future that is done when it is known what became of a record."""
        batch, index = self.find(index)
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if batch.settled:
            future.set_result(None)
        else:
            batch._waiters.append((index, future))
        return future


class Rows(NamedTuple):
    """Records of one batch, one after another."""

    batch: PendingBatch
    first: int
    length: int

    def leaves(self) -> "Iterator[Rows]":
        """The same records in the batches that they are in by now."""
        first, left = self.first, self.length
        while left:
            batch, place = self.batch.find(first)
            length = left if batch is self.batch else min(left, batch.count - place)
            yield Rows(batch, place, length)
            first, left = first + length, left - length

    def notice(self) -> None:
        """Somebody asks what became of them."""
        self.batch.notice_run(self.first, self.length)


class Delivery(Receipt):
    """What `send` gives: an awaitable with the record's metadata once the record is acknowledged.

    It may be awaited more than once, by several tasks, or not at all; a failure that nobody has asked for is raised by
    `flush` and `stop`. Cancelling one who waits does not take the record back.

    >>> async def story(producer: "Producer") -> None:
    ...     deliveries = [await producer.send("orders", b"%d" % number) for number in range(3)]
    ...     print([metadata.offset for metadata in await asyncio.gather(*deliveries)])
    >>> run(story)
    [0, 1, 2]
    """

    __slots__ = ()

    def __init__(self, batch: PendingBatch, index: int, timestamp_ms: int) -> None:
        super().__init__(batch, index, timestamp_ms)

    def __await__(self) -> Generator[Any, None, RecordMetadata]:
        batch, index = self._batch.find(self._index)
        if not batch.settled:
            batch.noticed.add(index)
            try:
                yield from batch.watch(index)
            except BaseException:
                batch, index = self._batch.find(self._index)
                batch.noticed.discard(index)
                raise
        return self.result()

    def __repr__(self) -> str:
        batch, _ = self._batch.find(self._index)
        state = "on its way" if not batch.settled else "delivered" if batch.error is None else "failed"
        return f"<Delivery to {batch.partition}, {state}>"

    def done(self) -> bool:
        """Whether it is known what became of the record.

        >>> async def story(producer: "Producer") -> None:
        ...     delivery = await producer.send("orders", b"two apples")
        ...     print(delivery.done())
        ...     await delivery
        ...     print(delivery.done())
        >>> run(story)
        False
        True
        """
        return self._batch.find(self._index)[0].settled

    def result(self) -> RecordMetadata:
        """Where the record went, or its failure; `asyncio.InvalidStateError` while it is on its way.

        >>> async def story(producer: "Producer") -> int:
        ...     delivery = await producer.send("orders", b"two apples")
        ...     await producer.flush()
        ...     return delivery.result().offset
        >>> run(story)
        0
        """
        batch, index = self._settled()
        if batch.error is not None:
            raise batch.error.with_traceback(None)
        offset = batch.base_offset + index if batch.base_offset >= 0 else -1
        topic, partition = batch.partition
        if batch.append_time >= 0:
            return RecordMetadata(topic, partition, offset, batch.append_time, LOG_APPEND_TIME)
        return RecordMetadata(topic, partition, offset, self._timestamp_ms, CREATE_TIME)

    def exception(self) -> KafkaError | None:
        """Why the record was not delivered, None if it was; `asyncio.InvalidStateError` while it is on its way.

        >>> async def story(producer: "Producer") -> KafkaError | None:
        ...     delivery = await producer.send("orders", b"two apples")
        ...     await producer.flush()
        ...     return delivery.exception()
        >>> print(run(story))
        None
        """
        return self._settled()[0].error

    def _settled(self) -> tuple[PendingBatch, int]:
        """Where the record was, once it is known what became of it: whoever asks knows of it from now on."""
        batch, index = self._batch.find(self._index)
        if not batch.settled:
            raise asyncio.InvalidStateError(f"the record to {batch.partition} is on its way; await it")
        batch.noticed.add(index)
        return batch, index

    def add_done_callback(self, callback: "Callable[[Delivery], object]") -> None:
        """Have the event loop call something with this delivery as soon as it is done.

        >>> async def story(producer: "Producer") -> None:
        ...     delivery = await producer.send("orders", b"two apples")
        ...     delivery.add_done_callback(lambda delivery: print(delivery.result().offset))
        ...     await delivery
        >>> run(story)
        0
        """
        batch, index = self._batch.find(self._index)
        batch.noticed.add(index)
        batch.watch(index).add_done_callback(lambda _: callback(self))


def renumbered(data: Buffer, identity: Identity, sequence: int) -> bytes:
    """The same batch under another identity."""
    changed = bytearray(data)
    _PRODUCER.pack_into(changed, _PRODUCER_AT, *identity, sequence)
    _CRC.pack_into(changed, _CRC_AT, Batch(changed).compute_crc())
    return bytes(changed)
