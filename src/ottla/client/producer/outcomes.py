"""What the brokers' answers mean for batches: settled, sent again, split, or failed; and what comes too late."""

import asyncio
import logging
from collections.abc import Callable, Sequence

from ottla.client.cluster import Cluster
from ottla.client.errors import DeliveryTimedOutError, error_of
from ottla.client.outage import Outage
from ottla.client.producer.accumulator import Accumulator, PartitionQueue
from ottla.client.producer.batch import PendingBatch
from ottla.client.producer.idempotence import Verdict, judge
from ottla.client.producer.options import ProducerOptions
from ottla.client.producer.request import Answer
from ottla.wire.api.produce import NodeEndpoint
from ottla.wire.errors import ErrorCode, KafkaError

log = logging.getLogger(__name__)

_MOVED = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)
"""After these it is asked again who leads the partition."""

_REPLACED = (ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.INCONSISTENT_TOPIC_ID)
"""The topic was deleted and made again."""

_SMALLEST_BATCH = 1024


class Outcomes:
    """Takes answers, settles batches, and lets their queues go on: `add` is told of those that have more to send."""

    def __init__(
        self,
        cluster: Cluster,
        accumulator: Accumulator,
        options: ProducerOptions,
        add: Callable[[PartitionQueue], None],
    ) -> None:
        self._cluster = cluster
        self._accumulator = accumulator
        self._options = options
        self._add = add
        self._loop = asyncio.get_running_loop()
        self._expiry: asyncio.TimerHandle | None = None
        self._outage = Outage(log, "sending")

    def close(self) -> None:
        """Watch no deadlines any more."""
        if self._expiry is not None:
            self._expiry.cancel()

    def written(self, batch: PendingBatch, base_offset: int, append_time: int) -> None:
        """A batch is in the log."""
        queue = batch.queue
        queue.in_flight.remove(batch)
        queue.failures = 0
        queue.last_error = None
        if self._outage.goes_on and not any(one.queue.last_error for one in self._accumulator.unsettled):
            self._outage.over()
        if queue.sequences is not None:
            queue.sequences.confirm(batch)
        if not batch.settled:
            self._accumulator.settle(batch, None, base_offset, append_time)
        if queue.waiting or queue.returned:
            self.resume(queue)

    def refused(self, batch: PendingBatch, answer: Answer, endpoints: Sequence[NodeEndpoint]) -> None:
        """A broker has answered with an error."""
        error = error_of(answer.code, answer.message)
        verdict = judge(error.code, batch)
        queue = batch.queue
        if verdict is Verdict.WRITTEN:
            self.written(batch, answer.base_offset, answer.append_time)
        elif verdict is Verdict.FAILED or batch.settled:
            self.fail(batch, error)
        elif verdict is Verdict.SPLIT:
            self._split(batch)
        elif verdict is Verdict.REFUSED:
            assert queue.sequences is not None
            queue.sequences.refuse(batch, error.code)
            self.come_back(batch, error, doubtful=False)
        else:
            hinted = answer.leader is not None and self._cluster.picture.take_hint(
                queue.partition, answer.leader, endpoints
            )
            self.come_back(batch, error, doubtful=False, at_once=hinted)

    def come_back(self, batch: PendingBatch, error: KafkaError, *, doubtful: bool, at_once: bool = False) -> None:
        """A batch is to be sent again, once all of its partition that is under way is answered."""
        queue = batch.queue
        batch.doubtful = batch.doubtful or doubtful
        if batch.settled:
            self.fail(batch, error)
            return
        queue.in_flight.remove(batch)
        queue.returned.append(batch)
        queue.last_error = error
        if error.code in _REPLACED:
            self._cluster.picture.forget_topic(queue.partition.topic)
        elif error.code in _MOVED and not at_once:
            self._cluster.picture.forget_leader(queue.partition)
        self.resume(queue, after=None if at_once else error)

    def _split(self, batch: PendingBatch) -> None:
        queue = batch.queue
        assert batch.data is not None
        size = len(batch.data)
        log.info("a batch of %d bytes is too large for %s, and is sent in two", size, queue.partition)
        queue.batch_size = max(_SMALLEST_BATCH, min(queue.batch_size, size // 2))
        parts = batch.split()
        self._accumulator.replace(batch, parts)
        queue.in_flight.remove(batch)
        if queue.sequences is not None:
            queue.sequences.split(batch, parts, [*queue.in_flight, *queue.returned, *queue.waiting])
        queue.returned.extend(parts)
        self.resume(queue)

    def fail(self, batch: PendingBatch, error: KafkaError) -> None:
        """A batch is given up."""
        queue = batch.queue
        if batch in queue.in_flight:
            queue.in_flight.remove(batch)
        queue.drop(batch)
        if not batch.settled:
            self._accumulator.settle(batch, error)
        self.resume(queue)

    def resume(self, queue: PartitionQueue, after: KafkaError | None = None) -> None:
        """Let a queue go on; after an error that may pass, a little later."""
        if after is not None and not queue.resting:
            self._outage.met(f"{queue.partition}: {after}")
            queue.resting = True
            queue.failures += 1
            self._loop.call_later(self._cluster.backoff_s(queue.failures), self._wake, queue)
        queue.regroup()
        if not queue.resting and queue.next_batch() is not None:
            self._add(queue)

    def _wake(self, queue: PartitionQueue) -> None:
        queue.resting = False
        self.resume(queue)

    # Deadlines.

    def watch_deadlines(self) -> None:
        """Have batches fail that are not acknowledged in time."""
        if self._expiry is None and self._accumulator.unsettled:
            earliest = min(batch.deadline for batch in self._accumulator.unsettled)
            self._expiry = self._loop.call_at(earliest, self._expire)

    def _expire(self) -> None:
        self._expiry = None
        now = self._loop.time()
        for batch in [batch for batch in self._accumulator.unsettled if batch.deadline <= now]:
            queue = batch.queue
            sent = batch.doubtful or batch in queue.in_flight
            why = "" if queue.last_error is None else f"; the last error was {queue.last_error}"
            error = DeliveryTimedOutError(
                f"{batch.count} records to {batch.partition} were not acknowledged within delivery_timeout_ms = "
                f"{self._options.delivery_timeout_ms}, and {'may have been' if sent else 'were not'} written{why}"
            )
            queue.drop(batch)
            self._accumulator.settle(batch, error)
            self.resume(queue)
        self.watch_deadlines()
