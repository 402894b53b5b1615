"""Takes batches to the leaders of their partitions.

Everything happens in `_pump`, which the event loop calls once when there is something to do: it hands queues that are
ready to the lane of their leader, and each lane that has a free slot sends a request with a batch of each. What has to
be waited for, a connection, a leader, an identity, is done by a task meanwhile, and the queues concerned come back.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Coroutine, Iterable, Sequence
from functools import partial
from typing import Any

from ottla.client.cluster import Cluster
from ottla.client.errors import DeliveryTimedOutError, error_of
from ottla.client.picture import NO_LEADER
from ottla.client.producer.accumulator import Accumulator, PartitionQueue
from ottla.client.producer.batch import PendingBatch
from ottla.client.producer.idempotence import NOBODY, Verdict, judge
from ottla.client.producer.identity import obtain_identity
from ottla.client.producer.options import ProducerOptions
from ottla.client.producer.request import (
    FIRST_VERSION_WITH_BATCHES,
    Answer,
    answers,
    payload,
    produce_request,
    version_for,
)
from ottla.net import Connection, ConnectionLostError, MalformedReplyError
from ottla.wire.api.produce import NodeEndpoint, ProduceRequest
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


class _Lane:
    """The way to one broker."""

    __slots__ = ("busy", "connection", "in_flight", "node_id", "ready")

    def __init__(self, node_id: int) -> None:
        self.node_id = node_id
        self.ready: deque[PartitionQueue] = deque()
        self.connection: Connection | None = None
        self.in_flight = 0
        self.busy = False
        """Whether a task has to be done before anything can be sent."""


class Sender:
    """Sends what an accumulator holds, and settles it."""

    def __init__(self, cluster: Cluster, options: ProducerOptions) -> None:
        self._cluster = cluster
        self._options = options
        self.accumulator = Accumulator(options, self.add)
        self.identity = NOBODY
        """The newest of this producer; nobody if it is not idempotent."""
        self._ready: deque[PartitionQueue] = deque()
        self._lanes: dict[int, _Lane] = {}
        self._leaderless: list[PartitionQueue] = []
        self._nameless: list[PartitionQueue] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._scheduled = False
        self._closed = False
        self._expiry: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()

    def add(self, queue: PartitionQueue) -> None:
        """A queue may have something to send."""
        if not queue.listed:
            queue.listed = True
            self._ready.append(queue)
            if not self._scheduled:
                self._scheduled = True
                self._loop.call_soon(self._turn)

    def hasten(self) -> None:
        """Send at once what would be sent when the event loop has its next turn."""
        if self._scheduled:
            self._pump()

    async def close(self, error: KafkaError) -> None:
        """Stop sending; what is not settled fails."""
        self._closed = True
        if self._expiry is not None:
            self._expiry.cancel()
        self.accumulator.close(error)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # From queues to requests.

    def _turn(self) -> None:
        if self._scheduled:
            self._pump()

    def _pump(self) -> None:
        self._scheduled = False
        if self._closed:
            return
        if self._expiry is None:
            self._watch_deadlines()
        ready, self._ready = self._ready, deque()
        for queue in ready:
            self._assign(queue)
        for lane in self._lanes.values():
            self._serve(lane)

    def _assign(self, queue: PartitionQueue) -> None:
        batch = queue.next_batch()
        queue.listed = False
        if batch is None:
            return
        leader = self._cluster.picture.leader(queue.partition)
        if leader is None or leader.node_id == NO_LEADER:
            queue.listed = True
            self._leaderless.append(queue)
            if len(self._leaderless) == 1:
                self._start(self._find_leaders())
        elif not queue.in_flight or queue.node_id == leader.node_id:
            # Those under way to another broker come first; their answers bring the queue back.
            queue.listed = True
            lane = self._lanes.get(leader.node_id)
            if lane is None:
                lane = self._lanes[leader.node_id] = _Lane(leader.node_id)
            lane.ready.append(queue)

    def _serve(self, lane: _Lane) -> None:
        most = self._options.max_in_flight_requests_per_connection
        while lane.ready and not lane.busy and lane.in_flight < most:
            connection = lane.connection
            if connection is None or connection.closed or connection.idle_ms > self._options.connections_max_idle_ms:
                lane.busy = True
                self._start(self._connect(lane))
                return
            taken = self._take(lane)
            if taken:
                self._send(lane, connection, taken)

    def _take(self, lane: _Lane) -> list[PendingBatch]:
        """The next batch of each queue, as many as a request holds."""
        taken: list[PendingBatch] = []
        size = 0
        more: list[PartitionQueue] = []
        while lane.ready:
            queue = lane.ready.popleft()
            leader = self._cluster.picture.leader(queue.partition)
            batch = queue.next_batch()
            if batch is None or leader is None or leader.node_id != lane.node_id:
                queue.listed = False
                if batch is not None:
                    self.add(queue)
                continue
            if not self._seal(queue, batch):
                continue
            assert batch.data is not None
            size += len(batch.data)
            if taken and size > self._options.max_request_size:
                lane.ready.appendleft(queue)
                break
            queue.leave(batch, lane.node_id)
            taken.append(batch)
            if queue.next_batch() is not None:
                more.append(queue)
            else:
                queue.listed = False
        lane.ready.extend(more)
        return taken

    def _seal(self, queue: PartitionQueue, batch: PendingBatch) -> bool:
        """Make the bytes of a batch, under its numbers; False if there is nobody to number it as yet."""
        if batch is queue.open:
            queue.close()
        sequences = queue.sequences
        if sequences is None:
            if batch.data is None:
                batch.seal(NOBODY, -1)
            return True
        if batch.identity is not NOBODY:
            return True
        if sequences.broken:
            identity = sequences.successor(self.identity)
            if identity is None:
                self._nameless.append(queue)
                if len(self._nameless) == 1:
                    self._start(self._renew_identity())
                return False
            sequences.begin(identity)
        batch.place = sequences.batches
        batch.seal(sequences.identity, sequences.take(batch.count))
        return True

    def _send(self, lane: _Lane, connection: Connection, taken: list[PendingBatch]) -> None:
        picture = self._cluster.picture
        try:
            version = connection.version_of(ProduceRequest)
        except KafkaError as error:
            for batch in taken:
                self._fail(batch, error)
            return
        if version < FIRST_VERSION_WITH_BATCHES and self.accumulator.idempotent:
            # It gave out an identity, so it is not that old: it was taken for so when a connection was cut early.
            lane.connection = None
            self._start(connection.close())
            for batch in taken:
                self._come_back(batch, ConnectionLostError(f"{connection.broker} was not understood"), doubtful=False)
            return
        version = version_for(version, {batch.partition.topic for batch in taken}, picture)
        sent: list[PendingBatch] = []
        parts = []
        for batch in taken:
            try:
                parts.append((batch.partition, payload(batch, version)))
                sent.append(batch)
            except KafkaError as error:
                self._fail(batch, error)
        if not sent:
            return
        options = self._options
        request = produce_request(parts, options.required_acks, options.request_timeout_ms, picture)
        if options.required_acks == 0:
            lane.busy = True
            self._start(self._tell(lane, connection, request, version, sent))
            return
        names = {topic.topic_id: topic.name for topic in request.topic_data}
        try:
            answer = connection.post(request, version=version)
        except ConnectionLostError as error:
            for batch in sent:
                self._come_back(batch, error, doubtful=False)
            return
        lane.in_flight += 1
        answer.add_done_callback(partial(self._answered, lane, version, sent, names))

    async def _tell(
        self, lane: _Lane, connection: Connection, request: ProduceRequest, version: int, sent: list[PendingBatch]
    ) -> None:
        try:
            await connection.tell(request, version=version)
        except ConnectionLostError as error:
            for batch in sent:
                self._come_back(batch, error, doubtful=False)
        else:
            for batch in sent:
                self._written(batch, -1, -1)
        finally:
            self._free(lane)

    # From answers to queues.

    def _answered(
        self,
        lane: _Lane,
        version: int,
        sent: list[PendingBatch],
        names: dict[bytes, str],
        reply: "asyncio.Future[Any]",
    ) -> None:
        lane.in_flight -= 1
        if self._closed or reply.cancelled():
            return
        error = reply.exception()
        if error is not None:
            assert isinstance(error, KafkaError), f"a request failed with {error!r}"
            for batch in sent:
                self._come_back(batch, error, doubtful=True)
        else:
            response = reply.result()
            found = dict(answers(response, version, names))
            for batch in sent:
                answer = found.get(batch.partition)
                if answer is None:
                    error = MalformedReplyError(f"the reply to a Produce says nothing of {batch.partition}")
                    self._come_back(batch, error, doubtful=True)
                elif not answer.code:
                    self._written(batch, answer.base_offset, answer.append_time)
                else:
                    self._refused(batch, answer, response.node_endpoints)
        self._serve(lane)

    def _written(self, batch: PendingBatch, base_offset: int, append_time: int) -> None:
        queue = batch.queue
        queue.in_flight.remove(batch)
        queue.failures = 0
        if queue.sequences is not None:
            queue.sequences.confirm(batch)
        if not batch.settled:
            self.accumulator.settle(batch, None, base_offset, append_time)
        self._continue(queue)

    def _refused(self, batch: PendingBatch, answer: Answer, endpoints: Sequence[NodeEndpoint]) -> None:
        error = error_of(answer.code, answer.message)
        verdict = judge(error.code, batch)
        queue = batch.queue
        if verdict is Verdict.WRITTEN:
            self._written(batch, answer.base_offset, answer.append_time)
        elif verdict is Verdict.FAILED or batch.settled:
            self._fail(batch, error)
        elif verdict is Verdict.SPLIT:
            self._split(batch)
        elif verdict is Verdict.REFUSED:
            assert queue.sequences is not None
            queue.sequences.refuse(batch, error.code)
            self._come_back(batch, error, doubtful=False)
        else:
            hinted = answer.leader is not None and self._cluster.picture.take_hint(
                queue.partition, answer.leader, endpoints
            )
            self._come_back(batch, error, doubtful=False, at_once=hinted)

    def _come_back(self, batch: PendingBatch, error: KafkaError, *, doubtful: bool, at_once: bool = False) -> None:
        """A batch is to be sent again, once all of its partition that is under way is answered."""
        queue = batch.queue
        batch.doubtful = batch.doubtful or doubtful
        if batch.settled:
            self._fail(batch, error)
            return
        queue.in_flight.remove(batch)
        queue.returned.append(batch)
        queue.last_error = error
        if error.code in _REPLACED:
            self._cluster.picture.forget_topic(queue.partition.topic)
        elif error.code in _MOVED and not at_once:
            self._cluster.picture.forget_leader(queue.partition)
        log.info("a batch to %s will be sent again: %s", queue.partition, error)
        self._continue(queue, after=None if at_once else error)

    def _split(self, batch: PendingBatch) -> None:
        queue = batch.queue
        assert batch.data is not None
        size = len(batch.data)
        log.info("a batch of %d bytes is too large for %s, and is sent in two", size, queue.partition)
        queue.batch_size = max(_SMALLEST_BATCH, min(queue.batch_size, size // 2))
        parts = batch.split()
        self.accumulator.replace(batch, parts)
        queue.in_flight.remove(batch)
        if queue.sequences is not None:
            queue.sequences.split(batch, parts, [*queue.in_flight, *queue.returned, *queue.waiting])
        queue.returned.extend(parts)
        self._continue(queue)

    def _fail(self, batch: PendingBatch, error: KafkaError) -> None:
        queue = batch.queue
        if batch in queue.in_flight:
            queue.in_flight.remove(batch)
        queue.drop(batch)
        if not batch.settled:
            self.accumulator.settle(batch, error)
        self._continue(queue)

    def _continue(self, queue: PartitionQueue, after: KafkaError | None = None) -> None:
        """Let a queue go on; after an error that may pass, a little later."""
        if after is not None and not queue.resting:
            queue.resting = True
            queue.failures += 1
            self._loop.call_later(self._cluster.backoff_s(queue.failures), self._wake, queue)
        queue.regroup()
        if not queue.resting and queue.next_batch() is not None:
            self.add(queue)

    def _wake(self, queue: PartitionQueue) -> None:
        queue.resting = False
        self._continue(queue)

    # What has to be waited for.

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.error("sending stopped short", exc_info=task.exception())

    def _free(self, lane: _Lane) -> None:
        lane.busy = False
        if not self._closed:
            self._serve(lane)

    async def _connect(self, lane: _Lane) -> None:
        lane.connection = None
        try:
            lane.connection = await self._cluster.broker(lane.node_id)
        except KafkaError as error:
            queues = list(lane.ready)
            lane.ready.clear()
            for queue in queues:
                self._cluster.picture.forget_leader(queue.partition)
            self._trouble(queues, error)
        finally:
            self._free(lane)

    async def _find_leaders(self) -> None:
        # Others may be added meanwhile.
        while queues := list(self._leaderless):
            try:
                found = await self._cluster.find_leaders([queue.partition for queue in queues])
            except KafkaError as error:
                found = None
                self._trouble(queues, error)
            del self._leaderless[: len(queues)]
            if found is not None:
                for queue in queues:
                    self._trouble([queue], found.missing.get(queue.partition))

    async def _renew_identity(self) -> None:
        error: KafkaError | None = None
        try:
            self.identity = await obtain_identity(self._cluster)
        except KafkaError as problem:
            error = problem
        queues, self._nameless = self._nameless, []
        self._trouble(queues, error)

    def _trouble(self, queues: Iterable[PartitionQueue], error: KafkaError | None) -> None:
        """Let queues go on that nobody has on a list any more, unless there is an error."""
        for queue in queues:
            queue.listed = False
            if error is not None and not error.retriable:
                for batch in list(queue.waiting):
                    self._fail(batch, error)
                continue
            if error is not None:
                queue.last_error = error
            self._continue(queue, after=error)

    # Deadlines.

    def _watch_deadlines(self) -> None:
        earliest = min((batch.deadline for batch in self.accumulator.unsettled), default=None)
        self._expiry = None if earliest is None else self._loop.call_at(earliest, self._expire)

    def _expire(self) -> None:
        now = self._loop.time()
        for batch in list(self.accumulator.unsettled):
            if batch.deadline <= now:
                queue = batch.queue
                why = "" if queue.last_error is None else f"; the last error was {queue.last_error}"
                error = DeliveryTimedOutError(
                    f"{batch.count} records to {batch.partition} were not acknowledged within delivery_timeout_ms = "
                    f"{self._options.delivery_timeout_ms}, and may have been written nevertheless{why}"
                )
                queue.drop(batch)
                self.accumulator.settle(batch, error)
                self._continue(queue)
        self._watch_deadlines()
