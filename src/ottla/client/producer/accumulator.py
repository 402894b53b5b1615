"""Records that wait to be sent: a queue of batches per partition, within a bound of memory."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable

from ottla.client.errors import MessageSizeTooLargeError
from ottla.client.outage import tell_others
from ottla.client.producer.batch import PendingBatch
from ottla.client.producer.idempotence import Sequences
from ottla.client.producer.memory import Memory
from ottla.client.producer.options import ProducerOptions
from ottla.client.types import TopicPartition
from ottla.record import BatchBuilder
from ottla.record._kernel_types import Buffer
from ottla.record.batch import HEADER_SIZE
from ottla.wire.errors import KafkaError

FIRST_BYTES = 16 * 1024
"""What a new batch takes of the memory."""

GROWTH = 4
"""How many times as much it takes whenever that is full, up to `batch_size`."""

KEPT_FAILURES = 1_000
"""How many failed batches are remembered until `flush`, the first ones."""

log = logging.getLogger(__name__)


class PartitionQueue:
    """The batches of one partition, in order: those under way, then those that wait, of which the last may be open."""

    __slots__ = (
        "batch_size",
        "bytes_closed",
        "failures",
        "in_flight",
        "last_error",
        "listed",
        "node_id",
        "open",
        "partition",
        "resting",
        "returned",
        "sequences",
        "waiting",
    )

    def __init__(self, partition: TopicPartition, batch_size: int, *, idempotent: bool) -> None:
        self.partition = partition
        self.batch_size = batch_size
        """How large its batches grow: less than was asked for where the broker wants smaller ones."""
        self.open: PendingBatch | None = None
        """The batch that takes records."""
        self.waiting: deque[PendingBatch] = deque()
        self.in_flight: list[PendingBatch] = []
        self.returned: list[PendingBatch] = []
        """Batches to be sent again. Nothing leaves until all that is under way is answered, so that order is kept."""
        self.sequences = Sequences() if idempotent else None
        self.bytes_closed = 0
        """What went into batches that are closed; a batch that was full counts as `batch_size`."""
        # For the sender.
        self.node_id = -1
        """Where its batches under way are."""
        self.listed = False
        """Whether the sender has it on a list."""
        self.resting = False
        """Whether it waits before it tries again."""
        self.failures = 0
        self.last_error: KafkaError | None = None

    def next_batch(self) -> PendingBatch | None:
        """The batch that may leave now."""
        if not self.waiting or self.resting or self.returned or not self.waiting[0].ripe:
            return None
        if self.sequences is None:
            # Two under way might change places when the first has to be sent again.
            return None if self.in_flight else self.waiting[0]
        batch = self.waiting[0]
        return batch if self.sequences.may_leave(batch, self.in_flight[0] if self.in_flight else None) else None

    def close(self) -> None:
        """Let the open batch take no more records."""
        if self.open is not None:
            assert self.open.builder is not None
            self.bytes_closed += self.open.builder.batch_size
            self.open.ripe = True
            self.open = None

    def leave(self, batch: PendingBatch, node_id: int) -> None:
        """The first batch is being sent."""
        assert self.waiting[0] is batch, "batches leave in order"
        self.waiting.popleft()
        self.in_flight.append(batch)
        self.node_id = node_id

    def regroup(self) -> bool:
        """Once nothing is under way, put what came back in front of what waits; whether anything did."""
        if self.in_flight or not self.returned:
            return False
        self.returned.sort(key=lambda batch: (batch.serial, batch.first))
        self.waiting.extendleft(reversed(self.returned))
        self.returned.clear()
        if self.sequences is not None:
            self.sequences.regroup(self.waiting)
        return True

    def drop(self, batch: PendingBatch) -> None:
        """A batch will not be sent (again). One under way stays until it is answered."""
        if self.open is batch:
            self.close()
        if batch in self.in_flight:
            return
        if batch in self.waiting:
            self.waiting.remove(batch)
        elif batch in self.returned:
            self.returned.remove(batch)
        if self.sequences is not None:
            self.sequences.give_up(batch)


class Accumulator:
    """All records of a producer that are not settled. `on_ready` is told of queues that have something to send."""

    def __init__(self, options: ProducerOptions, on_ready: Callable[[PartitionQueue], None]) -> None:
        self._options = options
        self._on_ready = on_ready
        self.memory = Memory(options.buffer_memory)
        self.idempotent = False
        self.unsettled: dict[PendingBatch, None] = {}
        """In the order of their beginning."""
        self._lost = 0
        """Records that failed unnoticed since one was delivered."""
        self.records_sent = 0
        self._queues: dict[TopicPartition, PartitionQueue] = {}
        self._serial = 0
        self._lingering: deque[tuple[float, PartitionQueue, PendingBatch]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._failed: list[PendingBatch] = []
        self._flushing = 0
        """How many wait until all is settled, and will be told what failed."""
        self._refusal: KafkaError | None = None

    def queue(self, partition: TopicPartition) -> PartitionQueue:
        """The queue of a partition."""
        found = self._queues.get(partition)
        if found is None:
            found = PartitionQueue(partition, self._options.batch_size, idempotent=self.idempotent)
            self._queues[partition] = found
        return found

    # Taking records.

    def new_builder(self, limit: int = 0) -> BatchBuilder:
        """An empty batch, to begin with."""
        options = self._options
        # One that takes more than there is would wait for it in vain.
        size = min(max(limit, min(FIRST_BYTES, options.batch_size)), options.buffer_memory)
        return BatchBuilder(options.codec, max_size=size, level=options.compression_level)

    def size_of(self, builder: BatchBuilder, partition: TopicPartition) -> int:
        """What a new batch takes of the memory; MessageSizeTooLargeError if its first record is too large for any."""
        size, options = builder.batch_size, self._options
        if size > options.max_request_size or size > options.buffer_memory:
            name = "max_request_size" if size > options.max_request_size else "buffer_memory"
            limit = getattr(options, name)
            raise MessageSizeTooLargeError(f"a record to {partition} takes {size} bytes, above {name} = {limit}")
        return max(size, HEADER_SIZE + builder.limit)

    @property
    def takes_more(self) -> bool:
        """Whether records are taken still."""
        return self._refusal is None

    async def wait_for_memory(self, size: int) -> None:
        """Take memory for a new batch, as soon as there is some."""
        # What lingers holds the memory that is waited for.
        self.hurry()
        await self.memory.wait(size, self._options.max_block_ms)

    def begin(self, queue: PartitionQueue, builder: BatchBuilder, charged: int) -> PendingBatch:
        """Open a batch that has a record or more, for which memory is taken."""
        if self._refusal is not None:
            raise self._refusal
        assert queue.open is None, "one batch is open at a time"
        now = asyncio.get_running_loop().time()
        self._serial += 1
        deadline = now + self._options.delivery_timeout_ms / 1000
        batch = PendingBatch(queue, builder, serial=self._serial, deadline=deadline, charged=charged)
        queue.open = batch
        queue.waiting.append(batch)
        self.unsettled[batch] = None
        linger_ms = self._options.linger_ms
        if not linger_ms or self.memory.short:
            batch.ripe = True
            self._on_ready(queue)
        else:
            self._lingering.append((now + linger_ms / 1000, queue, batch))
            if self._timer is None:
                self._timer = asyncio.get_running_loop().call_later(linger_ms / 1000, self._linger_over)
        return batch

    def begin_single(self, queue: PartitionQueue, data: Buffer, now: float) -> PendingBatch:
        """The batch of a record that leaves by itself, and for which memory is taken."""
        self._serial += 1
        batch = PendingBatch.single(
            queue, data, serial=self._serial, deadline=now + self._options.delivery_timeout_ms / 1000
        )
        queue.bytes_closed += len(data)
        self.unsettled[batch] = None
        return batch

    def grow(self, queue: PartitionQueue) -> bool:
        """Let the open batch take more bytes, if it may and there is memory for them."""
        batch = queue.open
        assert batch is not None
        assert batch.builder is not None
        limit = batch.builder.limit + HEADER_SIZE
        step = min((GROWTH - 1) * limit, queue.batch_size - limit)
        if step <= 0 or not self.memory.take(step):
            return False
        batch.charged += step
        batch.builder.limit += step
        return True

    def make_room(self, queue: PartitionQueue) -> None:
        """A record did not fit in the open batch: let the batch grow, or close it."""
        if self.grow(queue):
            return
        batch = queue.open
        assert batch is not None
        assert batch.builder is not None
        if batch.builder.limit + HEADER_SIZE >= queue.batch_size:
            queue.bytes_closed += queue.batch_size - batch.builder.batch_size
        queue.close()
        self._on_ready(queue)

    # Lingering.

    def hurry(self) -> None:
        """Let all go that lingers."""
        lingering, self._lingering = self._lingering, deque()
        for _, queue, batch in lingering:
            self._end_lingering(queue, batch)

    def _linger_over(self) -> None:
        self._timer = None
        loop = asyncio.get_running_loop()
        now = loop.time()
        while self._lingering and self._lingering[0][0] <= now:
            _, queue, batch = self._lingering.popleft()
            self._end_lingering(queue, batch)
        if self._lingering:
            self._timer = loop.call_at(self._lingering[0][0], self._linger_over)

    def _end_lingering(self, queue: PartitionQueue, batch: PendingBatch) -> None:
        if not batch.ripe:
            batch.ripe = True
            self._on_ready(queue)

    # What became of them.

    def settle(
        self, batch: PendingBatch, error: KafkaError | None, base_offset: int = -1, append_time: int = -1
    ) -> None:
        """It is known what became of a batch."""
        del self.unsettled[batch]
        if error is None:
            self.records_sent += batch.count
            if self._lost:
                log.warning("%d records were not delivered before those that are now", self._lost)
                self._lost = 0
        else:
            if not self._flushing and not batch.is_noticed:
                # In an outage one batch after another fails, all for the same reason.
                level = logging.DEBUG if self._lost else logging.WARNING
                log.log(level, "%d records to %s were not delivered: %s", batch.count, batch.partition, error)
                self._lost += batch.count
            self._failed = [one for one in self._failed if not one.is_noticed]
            if len(self._failed) < KEPT_FAILURES:
                self._failed.append(batch)
        batch.settle(error, base_offset, append_time)
        self.memory.give(batch.charged)

    def replace(self, batch: PendingBatch, parts: Iterable[PendingBatch]) -> None:
        """A batch was split."""
        del self.unsettled[batch]
        self.unsettled.update(dict.fromkeys(parts))

    async def settled(self) -> None:
        """Return when all that was taken before is settled."""
        self.hurry()
        last = self._serial
        self._flushing += 1
        try:
            while pending := [batch for batch in self.unsettled if batch.serial <= last]:
                for batch in pending:
                    await batch.watch(0)
        finally:
            self._flushing -= 1

    def take_failure(self) -> KafkaError | None:
        """The first failure that nobody knows of; the others are logged."""
        failed, self._failed = self._failed, []
        unnoticed = [batch for batch in failed if not batch.is_noticed]
        tell_others(log, [batch.error for batch in unnoticed[1:]])
        return unnoticed[0].error if unnoticed else None

    def refuse(self, error: KafkaError) -> None:
        """Take no more records; those who wait for room are told at once."""
        self._refusal = error
        self.memory.refuse(error)

    def close(self, error: KafkaError) -> None:
        """Give up all that is not settled."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._lingering.clear()
        for batch in list(self.unsettled):
            batch.queue.drop(batch)
            self.settle(batch, error)
