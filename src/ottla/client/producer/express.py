"""The short way of a record that is waited for while its partition has nothing else under way.

Such a record is a batch by itself, and a request by itself, and leaves at once. Whatever is out of the ordinary takes
the usual way: if it shows before, `take` declines; if it shows in the answer, the batch is one like any other.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

from ottla.client.cluster import Cluster
from ottla.client.picture import NO_TOPIC_ID
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
        self._requests: dict[PartitionQueue, SingleProduce] = {}

    def take(self, record: Untaken, intake: Intake) -> Delivery | None:
        """Send a record now; None if it has to take the usual way."""
        queue, now = record.queue, self._loop.time()
        if not self._possible or queue is None:
            return None
        routes = intake.known_now(record.topic, now)
        if routes is None:
            return None
        if record.partition is None and routes.is_free(record.key):
            queue = routes.stick()
        lane = self._open_lane(queue)
        if lane is None:
            return None
        connection = lane.open_connection(self._options)
        request = self._request_for(queue, lane)
        if connection is None or request is None:
            return None
        batch = self._begin(record, queue, now)
        if batch is None:
            return None
        queue.in_flight.append(batch)
        queue.node_id = lane.node_id
        self._post(batch, request, lane, connection)
        return Delivery(batch, 0, record.timestamp_ms)

    def _open_lane(self, queue: PartitionQueue) -> Lane | None:
        """The way to a queue's leader, if both are idle enough."""
        if queue.listed or queue.waiting or queue.in_flight or queue.returned or queue.resting:
            return None
        sequences = queue.sequences
        if (sequences is not None and sequences.broken) or not self._accumulator.takes_more:
            return None
        leader = self._cluster.picture.leader(queue.partition)
        lane = None if leader is None else self._lanes.get(leader.node_id)
        if lane is None or lane.busy or lane.ready:
            return None
        return lane if lane.in_flight < self._options.max_in_flight_requests_per_connection else None

    def _request_for(self, queue: PartitionQueue, lane: Lane) -> SingleProduce | None:
        topic_id = self._cluster.picture.topic_id(queue.partition.topic)
        version = lane.version if topic_id != NO_TOPIC_ID else min(lane.version, LAST_VERSION_WITH_NAMES)
        if version < FIRST_VERSION:
            return None
        found = self._requests.get(queue)
        if found is None or found.version != version or found.topic_id != topic_id:
            options = self._options
            found = self._requests[queue] = SingleProduce(
                queue.partition,
                topic_id,
                version=version,
                acks=options.required_acks,
                timeout_ms=options.request_timeout_ms,
            )
        return found

    def _begin(self, record: Untaken, queue: PartitionQueue, now: float) -> PendingBatch | None:
        """A record as a batch under its number; None if it is too large, or there is no memory for it."""
        sequences = queue.sequences
        identity, sequence = (NOBODY, -1) if sequences is None else (sequences.identity, sequences.following)
        headers = record.headers
        data = build_single(record.timestamp_ms, record.key, record.value, headers, identity, sequence)
        size = len(data)
        if size > queue.batch_size or size > self._options.max_request_size or not self._accumulator.memory.take(size):
            return None
        batch = self._accumulator.begin_single(queue, data, now)
        batch.has_headers = bool(headers)
        if sequences is not None:
            batch.place = sequences.batches
            batch.identity, batch.sequence = identity, sequences.take(1)
        return batch

    def _post(self, batch: PendingBatch, request: SingleProduce, lane: Lane, connection: Connection) -> None:
        assert batch.data is not None
        then = partial(self._told, lane, request, batch)
        try:
            connection.post_encoded(ProduceRequest, request.version, request.body(batch.data), request.glance, then)
        except ConnectionLostError as error:
            self._outcomes.come_back(batch, error, doubtful=False)
        else:
            lane.in_flight += 1
        self._outcomes.watch_deadlines()

    def _told(
        self, lane: Lane, request: SingleProduce, batch: PendingBatch, response: Any, error: KafkaError | None
    ) -> None:
        if isinstance(response, Written):
            lane.in_flight -= 1
            self._outcomes.written(batch, response.base_offset, response.append_time)
            self._serve(lane)
            return
        topic, index = batch.partition
        name = request.topic_id if request.version > LAST_VERSION_WITH_NAMES else topic
        self._answered(lane, request.version, {(name, index): batch}, response, error)
