"""The short way of a record that is waited for while its partition has nothing else under way.

Such a record is a batch by itself, and a request by itself, and leaves at once. Whatever is out of the ordinary takes
the usual way: if it shows before, `take` declines; if it shows in the answer, the batch is one like any other.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from ottla.client.cluster import Cluster
from ottla.client.picture import NO_TOPIC_ID, Leader, Topic
from ottla.client.producer._taking_types import Untaken
from ottla.client.producer.accumulator import Accumulator, PartitionQueue
from ottla.client.producer.batch import Delivery, PendingBatch
from ottla.client.producer.idempotence import NOBODY
from ottla.client.producer.intake import Intake
from ottla.client.producer.lane import Lane
from ottla.client.producer.options import ProducerOptions
from ottla.client.producer.outcomes import Outcomes
from ottla.client.producer.request import LAST_VERSION_WITH_NAMES, Sent
from ottla.client.producer.single import FIRST_VERSION, SingleProduce, Written
from ottla.net import Connection, ConnectionLostError
from ottla.record._kernel_types import Buffer
from ottla.record.build import build_single
from ottla.wire.api.produce import ProduceRequest, ProduceResponse
from ottla.wire.errors import KafkaError

Answered = Callable[[Lane, int, Sent, ProduceResponse, KafkaError | None], None]
"""What is done with an answer that has to be looked at."""


class Express:
    """Sends single records over lanes that are open."""

    def __init__(
        self,
        cluster: Cluster,
        options: ProducerOptions,
        accumulator: Accumulator,
        outcomes: Outcomes,
        lanes: dict[int, Lane],
        serve: Callable[[Lane], None],
        answered: Answered,
    ) -> None:
        self._cluster = cluster
        self._options = options
        self._accumulator = accumulator
        self._outcomes = outcomes
        self._lanes = lanes
        self._serve = serve
        self._answered = answered
        self._loop = asyncio.get_running_loop()
        # Others might join a batch that lingers, and compressing may take long.
        self._possible = not options.linger_ms and not options.codec and options.required_acks != 0
        self._ways: dict[PartitionQueue, _Way] = {}

    def take(self, record: Untaken, intake: Intake) -> Delivery | None:
        """Send a record now; None if it has to take the usual way."""
        queue, now = record.queue, self._loop.time()
        if not self._possible or queue is None or not self._accumulator.takes_more:
            return None
        routes = intake.known_now(record.topic, now)
        if routes is None:
            return None
        if record.partition is None and routes.is_free(record.key):
            queue = routes.stick()
        way = None if _is_busy(queue) else self._way(queue, routes.topic)
        data = None if way is None else self._build(record, queue)
        if way is None or data is None:
            return None
        connection, request = way.connection, way.request
        number = connection.next_correlation_id()
        try:
            connection.write_frame(request.frame(data, number))
        except ConnectionLostError:
            # Nothing has left, and the usual way will find another connection.
            self._accumulator.memory.give(len(data))
            return None
        # While the broker is at it.
        batch = self._note(record, queue, data, now)
        queue.node_id = way.lane.node_id
        way.lane.in_flight += 1
        connection.expect_frame(
            number, ProduceRequest, request.version, request.glance, partial(self._told, way, batch)
        )
        self._outcomes.watch_deadlines()
        if way.lane.in_flight == 1:
            way.lane.vigil.begin()
        return Delivery(batch, 0, record.timestamp_ms)

    def _way(self, queue: PartitionQueue, topic: Topic) -> "_Way | None":
        """How to get to a queue's leader, if that can be said at once."""
        leader = topic.leaders.get(queue.partition.partition)
        way = self._ways.get(queue)
        if way is None or not way.is_as_it_was(topic, leader):
            way = None if leader is None else self._find_way(queue, topic, leader)
        if way is None or way.lane.busy or way.lane.ready or way.lane.open_connection(self._options) is None:
            return None
        if way.connection.is_quiet:
            return None
        return way if way.lane.in_flight < self._options.max_in_flight_requests_per_connection else None

    def _find_way(self, queue: PartitionQueue, topic: Topic, leader: Leader) -> "_Way | None":
        lane = self._lanes.get(leader.node_id)
        if lane is None or lane.connection is None:
            return None
        version = lane.version if topic.topic_id != NO_TOPIC_ID else min(lane.version, LAST_VERSION_WITH_NAMES)
        if version < FIRST_VERSION:
            return None
        request = SingleProduce(
            queue.partition,
            topic.topic_id,
            version=version,
            acks=self._options.required_acks,
            timeout_ms=self._options.request_timeout_ms,
            client_id=lane.connection.client_id,
        )
        found = self._ways[queue] = _Way(topic, leader, lane, lane.connection, request)
        return found

    def _build(self, record: Untaken, queue: PartitionQueue) -> Buffer | None:
        """A record as a batch under its number; None if it is too large, or there is no memory for it."""
        sequences = queue.sequences
        identity, sequence = (NOBODY, -1) if sequences is None else (sequences.identity, sequences.following)
        data = build_single(record.timestamp_ms, record.key, record.value, record.headers, identity, sequence)
        size = len(data)
        if size > queue.batch_size or size > self._options.max_request_size or not self._accumulator.memory.take(size):
            return None
        return data

    def _note(self, record: Untaken, queue: PartitionQueue, data: Buffer, now: float) -> PendingBatch:
        """Keep a batch that has left until it is known what became of it; its number is taken now."""
        batch = self._accumulator.begin_single(queue, data, now)
        batch.has_headers = bool(record.headers)
        sequences = queue.sequences
        if sequences is not None:
            batch.place = sequences.batches
            batch.identity, batch.sequence = sequences.identity, sequences.take(1)
        queue.in_flight.append(batch)
        return batch

    def _told(self, way: "_Way", batch: PendingBatch, response: Any, error: KafkaError | None) -> None:
        lane, request = way.lane, way.request
        lane.vigil.end()
        if isinstance(response, Written):
            lane.in_flight -= 1
            self._outcomes.written(batch, response.base_offset, response.append_time)
            if lane.ready:
                self._serve(lane)
            return
        topic, index = batch.partition
        name = request.topic_id if request.version > LAST_VERSION_WITH_NAMES else topic
        self._answered(lane, request.version, {(name, index): batch}, response, error)


class _Way(NamedTuple):
    """How to get to the leader of a partition, as long as nothing of this has changed."""

    topic: Topic
    leader: Leader
    lane: Lane
    connection: Connection
    request: SingleProduce

    def is_as_it_was(self, topic: Topic, leader: Leader | None) -> bool:
        """Whether it leads there still."""
        return self.leader is leader and self.topic is topic and self.lane.connection is self.connection


def _is_busy(queue: PartitionQueue) -> bool:
    """Whether anything of a partition is under way already, or has to wait."""
    if queue.listed or queue.waiting or queue.in_flight or queue.returned or queue.resting:
        return True
    return queue.sequences is not None and queue.sequences.broken
