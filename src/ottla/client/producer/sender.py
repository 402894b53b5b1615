"""Takes batches to the leaders of their partitions.

Everything happens in `_pump`, which the event loop calls once when there is something to do: it hands queues that are
ready to the lane of their leader, and each lane that has a free slot sends a request with a batch of each. What has to
be waited for, a connection, a leader, an identity, is done by a task meanwhile, and the queues concerned come back.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Coroutine, Iterable
from functools import partial
from typing import Any

from ottla.client.cluster import Cluster
from ottla.client.picture import NO_LEADER
from ottla.client.producer.accumulator import Accumulator, PartitionQueue
from ottla.client.producer.batch import PendingBatch
from ottla.client.producer.express import Express
from ottla.client.producer.idempotence import NOBODY
from ottla.client.producer.identity import obtain_identity
from ottla.client.producer.lane import Lane
from ottla.client.producer.options import ProducerOptions
from ottla.client.producer.outcomes import Outcomes
from ottla.client.producer.request import (
    FIRST_VERSION_WITH_BATCHES,
    Sent,
    answers,
    payload,
    produce_request,
    version_for,
)
from ottla.net import Connection, ConnectionLostError, MalformedReplyError, RequestTimedOutError
from ottla.record._kernel_types import Buffer
from ottla.wire.api.produce import ProduceRequest, ProduceResponse
from ottla.wire.errors import KafkaError

LOOK_SECONDS = 1.0
"""How often to look whether what waits for a broker that wants to be left alone has another leader by now."""

log = logging.getLogger(__name__)


class Sender:
    """Sends what an accumulator holds, and settles it."""

    def __init__(self, cluster: Cluster, options: ProducerOptions) -> None:
        self._cluster = cluster
        self._options = options
        self._acks = options.required_acks
        self.accumulator = Accumulator(options, self.add)
        self._outcomes = Outcomes(cluster, self.accumulator, options, self.add)
        self.identity = NOBODY
        """The newest of this producer; nobody if it is not idempotent."""
        self._ready: deque[PartitionQueue] = deque()
        self._lanes: dict[int, Lane] = {}
        self.express = Express(
            cluster, options, self.accumulator, self._outcomes, self._lanes, self._serve, self._answered
        )
        """For a record that is waited for."""
        self._leaderless: list[PartitionQueue] = []
        self._nameless: list[PartitionQueue] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._scheduled = False
        self._closed = False
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
        self._outcomes.close()
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
        self._outcomes.watch_deadlines()
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
                lane = self._lanes[leader.node_id] = Lane(leader.node_id)
            lane.ready.append(queue)

    def _serve(self, lane: Lane) -> None:
        most = self._options.max_in_flight_requests_per_connection
        while lane.ready and not lane.busy and lane.in_flight < most:
            connection = lane.open_connection(self._options)
            if connection is None:
                lane.busy = True
                self._start(self._connect(lane))
                return
            if connection.is_quiet:
                lane.busy = True
                self._start(self._rest(lane, connection))
                return
            taken = self._take(lane)
            if taken:
                self._send(lane, connection, taken)

    def _take(self, lane: Lane) -> list[PendingBatch]:
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

    def _send(self, lane: Lane, connection: Connection, taken: list[PendingBatch]) -> None:
        picture = self._cluster.picture
        version = version_for(lane.version, taken, picture)
        parts: list[tuple[PendingBatch, Buffer]] = []
        for batch in taken:
            try:
                parts.append((batch, payload(batch, version)))
            except KafkaError as error:
                self._outcomes.fail(batch, error)
        if not parts:
            return
        request, sent = produce_request(parts, version, self._acks, self._options.request_timeout_ms, picture)
        if self._acks == 0:
            lane.busy = True
            self._start(self._tell(lane, connection, request, version, sent))
            return
        try:
            connection.post(request, partial(self._answered, lane, version, sent), version=version)
        except ConnectionLostError as error:
            for batch in sent.values():
                self._outcomes.come_back(batch, error, doubtful=False)
            return
        lane.in_flight += 1

    async def _tell(
        self, lane: Lane, connection: Connection, request: ProduceRequest, version: int, sent: Sent
    ) -> None:
        try:
            await connection.tell(request, version=version)
        except (ConnectionLostError, RequestTimedOutError) as error:
            for batch in sent.values():
                self._outcomes.come_back(batch, error, doubtful=False)
        else:
            for batch in sent.values():
                self._outcomes.written(batch, -1, -1)
        finally:
            self._free(lane)

    # From answers to queues.

    def _answered(
        self, lane: Lane, version: int, sent: Sent, response: ProduceResponse, error: KafkaError | None
    ) -> None:
        lane.in_flight -= 1
        if self._closed:
            return
        if error is not None:
            for batch in sent.values():
                self._outcomes.come_back(batch, error, doubtful=True)
        else:
            for batch, answer in answers(response, version, sent):
                if answer is None:
                    silence = MalformedReplyError(f"the reply to a Produce says nothing of {batch.partition}")
                    self._outcomes.come_back(batch, silence, doubtful=True)
                elif not answer.code:
                    self._outcomes.written(batch, answer.base_offset, answer.append_time)
                else:
                    self._outcomes.refused(batch, answer, response.node_endpoints)
        self._serve(lane)

    # What has to be waited for.

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.error("sending stopped short", exc_info=task.exception())

    def _free(self, lane: Lane) -> None:
        lane.busy = False
        if not self._closed:
            self._serve(lane)

    async def _rest(self, lane: Lane, connection: Connection) -> None:
        try:
            while connection.is_quiet:
                self._give_back(lane)
                await connection.quiet(LOOK_SECONDS)
        finally:
            self._free(lane)

    def _give_back(self, lane: Lane) -> None:
        """Let go of queues that another broker leads by now."""
        for _ in range(len(lane.ready)):
            queue = lane.ready.popleft()
            leader = self._cluster.picture.leader(queue.partition)
            if leader is not None and leader.node_id == lane.node_id:
                lane.ready.append(queue)
            else:
                queue.listed = False
                self.add(queue)

    async def _connect(self, lane: Lane) -> None:
        lane.connection = None
        try:
            connection = await self._cluster.broker(lane.node_id)
            lane.version = connection.version_of(ProduceRequest)
            if lane.version < FIRST_VERSION_WITH_BATCHES and self.accumulator.idempotent:
                # It gave out an identity, so it is not that old: it was taken for so when a connection was cut early.
                await connection.close()
                raise ConnectionLostError(f"{connection.broker} was not understood")
            lane.connection = connection
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
                # A topic that was deleted meanwhile is made as it was at first: by being written to.
                found = await self._cluster.find_leaders([queue.partition for queue in queues], create=True)
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
                    self._outcomes.fail(batch, error)
                continue
            if error is not None:
                queue.last_error = error
            self._outcomes.resume(queue, after=error)
