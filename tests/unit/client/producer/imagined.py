"""A cluster that is only imagined: no sockets, a log in a list, and whatever answers a test wants.

It keeps Kafka's rules for numbered batches with the code of the broker that ships.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

from ottla.client.cluster import Cluster
from ottla.client.connections import Lane
from ottla.client.picture import Leader, Topic
from ottla.client.producer.options import ProducerOptions
from ottla.client.types import TopicPartition
from ottla.log.producers import Producers
from ottla.net import Connection, ConnectionLostError
from ottla.net.connection import Then
from ottla.ports import Chance
from ottla.record import Batch, records
from ottla.wire.api.init_producer_id import InitProducerIdResponse
from ottla.wire.api.metadata import MetadataResponse
from ottla.wire.api.produce import PartitionProduceResponse, ProduceRequest, ProduceResponse, TopicProduceResponse
from ottla.wire.errors import ErrorCode, KafkaError

TOPIC = "t"
TOPIC_ID = bytes(15) + b"\1"


class ImaginedLog:
    """The records of one partition."""

    def __init__(self) -> None:
        self.values: list[bytes | None] = []
        self.producers = Producers()

    def append(self, data: bytes) -> PartitionProduceResponse:
        copy = bytearray(data)
        batch = Batch(copy)
        batch.validate()
        if batch.producer_id >= 0:
            try:
                duplicate = self.producers.check(batch)
            except KafkaError as error:
                return PartitionProduceResponse(error_code=error.code, base_offset=-1)
            if duplicate is not None:
                return PartitionProduceResponse(base_offset=duplicate.first_offset)
        batch.assign(len(self.values), 0)
        if batch.producer_id >= 0:
            self.producers.note(batch, 0)
        base_offset = len(self.values)
        self.values += [record.value for record in records(batch)]
        return PartitionProduceResponse(base_offset=base_offset)


class ImaginedCluster(Cluster):
    """One broker, one topic. `answer` decides on each request; without it all is written and acknowledged."""

    def __init__(self, options: ProducerOptions, *, partitions: int = 1, chance: Chance | None = None) -> None:
        super().__init__(options, chance=chance)
        self.logs: dict[int, ImaginedLog] = defaultdict(ImaginedLog)
        self.answer: Callable[[ImaginedConnection, ProduceRequest, asyncio.Future[Any]], None] | None = None
        self.identities = 0
        self.partition_count = partitions
        self._connection: ImaginedConnection | None = None
        self._describe()

    def _describe(self) -> None:
        leaders = {number: Leader(1, 0) for number in range(self.partition_count)}
        self.picture.topics[TOPIC] = Topic(TOPIC, TOPIC_ID, False, leaders, asyncio.get_running_loop().time())
        self.picture.brokers = {1: ("nowhere", 1)}

    async def metadata(self, topics: Iterable[str] | None, *, create: bool = False) -> MetadataResponse:
        self._describe()
        return MetadataResponse()

    async def broker(self, node_id: int, lane: Lane = Lane.GENERAL) -> Connection:
        if self._connection is None or self._connection.closed:
            self._connection = ImaginedConnection(self)
        return self._connection  # type: ignore[return-value]

    async def any_broker(self) -> Connection:
        return await self.broker(1)

    def write(self, request: ProduceRequest) -> ProduceResponse:
        """Write what a request brings, and answer it."""
        response = ProduceResponse()
        for topic in request.topic_data:
            answered = TopicProduceResponse(topic_id=topic.topic_id)
            response.responses.append(answered)
            for part in topic.partition_data:
                assert part.records is not None
                result = self.logs[part.index].append(bytes(part.records))
                result.index = part.index
                answered.partition_responses.append(result)
        return response

    def values(self, partition: int = 0) -> list[bytes | None]:
        return self.logs[partition].values


class ImaginedConnection:
    """What the sender uses of a connection."""

    broker = "nowhere:1"
    idle_ms = 0.0
    is_quiet = False

    def __init__(self, cluster: ImaginedCluster) -> None:
        self._cluster = cluster
        self.closed = False
        self.pending: list[asyncio.Future[Any]] = []

    def version_of(self, request: type[Any]) -> int:
        return 13

    def post(self, message: ProduceRequest, then: Then, *, version: int) -> None:
        if self.closed:
            raise ConnectionLostError("it was cut")
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        def done(future: asyncio.Future[Any]) -> None:
            if not future.cancelled():
                error = future.exception()
                assert error is None or isinstance(error, KafkaError)
                then(None if error else future.result(), error)

        future.add_done_callback(done)
        self.pending.append(future)
        if self._cluster.answer is None:
            future.set_result(self._cluster.write(message))
        else:
            self._cluster.answer(self, message, future)

    async def request(self, message: object) -> InitProducerIdResponse:
        self._cluster.identities += 1
        return InitProducerIdResponse(producer_id=self._cluster.identities, producer_epoch=0)

    def cut(self) -> None:
        """All that is not answered is lost."""
        self.closed = True
        for future in self.pending:
            if not future.done():
                future.set_exception(ConnectionLostError("it was cut"))


def refusal(request: ProduceRequest, code: ErrorCode, message: str | None = None) -> ProduceResponse:
    """The same error for every partition of a request."""
    response = ProduceResponse()
    for topic in request.topic_data:
        results = [
            PartitionProduceResponse(index=part.index, error_code=code, error_message=message, base_offset=-1)
            for part in topic.partition_data
        ]
        response.responses.append(TopicProduceResponse(topic_id=topic.topic_id, partition_responses=results))
    return response


PARTITION = TopicPartition(TOPIC, 0)
