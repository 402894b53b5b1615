"""Records to partitions: collected into batches, and the batches sent to the partitions' leaders."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass

from ottla.client.cluster import Cluster
from ottla.client.errors import error_of
from ottla.client.partitioner import partition_for_key
from ottla.client.picture import NO_TOPIC_ID
from ottla.client.types import TopicPartition
from ottla.ports import Chance, Clock, SystemChance, SystemClock
from ottla.record import BatchBuilder, Codec
from ottla.record.convert import downconvert
from ottla.wire.api.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from ottla.wire.errors import ErrorCode, KafkaError

BATCH_BYTES = 256 * 1024
LIMIT = 2**28
FIRST_VERSION_WITH_BATCHES = 3
FIRST_VERSION_WITH_ZSTD = 7
LAST_VERSION_WITH_NAMES = 12


@dataclass(slots=True)
class _Pending:
    """A batch on its way."""

    builder: BatchBuilder
    with_headers: bool = False


class Producer:
    """Collects records and sends them, one request to each leader at a time.

    What `send` takes leaves when a batch is full or `flush` is called. While one round of batches is on its way the
    next is collected, so memory stays within two rounds.
    """

    def __init__(
        self,
        cluster: Cluster,
        *,
        acks: int = -1,
        compression: Codec = Codec.NONE,
        batch_bytes: int = BATCH_BYTES,
        clock: Clock | None = None,
        chance: Chance | None = None,
    ) -> None:
        self._cluster = cluster
        self._acks = acks
        self._compression = compression
        self._batch_bytes = batch_bytes
        self._clock = clock or SystemClock()
        self._chance = chance or SystemChance()
        self._partitions: dict[str, list[int]] = {}
        self._sticky: dict[str, int] = {}
        self._collected: dict[TopicPartition, _Pending] = {}
        self._sending: asyncio.Task[None] | None = None
        self.records_sent = 0
        """How many records have been acknowledged, or with acks=0 handed over."""

    async def send(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None = None,
        *,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Iterable[tuple[str, bytes | None]] = (),
    ) -> None:
        """Take a record. It waits only if a batch is full and the one before is still on its way."""
        partitions = self._partitions.get(topic)
        if partitions is None:
            partitions = self._partitions[topic] = await self._cluster.partitions(topic, create=True)
        target = self._target(topic, partitions, key, partition)
        timestamp_ms = self._clock.now_ms() if timestamp_ms is None else timestamp_ms
        kept = list(headers)
        pending = self._collected.get(target)
        if pending is None:
            builder = BatchBuilder(self._compression, max_size=self._batch_bytes)
            pending = self._collected[target] = _Pending(builder)
        if pending.builder.append(timestamp_ms, key, value, kept) is None:
            await self._start_sending()
            # The first record of a new batch always fits.
            await self.send(topic, value, key, partition=partition, timestamp_ms=timestamp_ms, headers=kept)
            return
        pending.with_headers |= bool(kept)

    async def flush(self) -> None:
        """Return when all that was taken is acknowledged; KafkaError if some of it cannot be."""
        await self._start_sending()
        await self._sent()

    def _target(self, topic: str, partitions: list[int], key: bytes | None, partition: int | None) -> TopicPartition:
        if partition is not None:
            if partition not in partitions:
                raise KafkaError(
                    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                    f"topic {topic!r} has partitions 0 to {len(partitions) - 1}, not {partition}",
                )
            return TopicPartition(topic, partition)
        if key is not None:
            return TopicPartition(topic, partitions[partition_for_key(key, len(partitions))])
        # Records without a key fill a batch of one partition, then of the next.
        if topic not in self._sticky:
            self._sticky[topic] = int(self._chance.uniform(0, len(partitions)))
        return TopicPartition(topic, partitions[self._sticky[topic] % len(partitions)])

    async def _start_sending(self) -> None:
        await self._sent()
        if self._collected:
            collected, self._collected = self._collected, {}
            for topic in {target.topic for target in collected if target.topic in self._sticky}:
                self._sticky[topic] += 1
            self._sending = asyncio.create_task(self._deliver(collected))

    async def _sent(self) -> None:
        sending, self._sending = self._sending, None
        if sending is not None:
            await sending

    async def _deliver(self, collected: dict[TopicPartition, _Pending]) -> None:
        async def attempt() -> None:
            grouped = await self._cluster.by_leader(collected)
            outcomes = await asyncio.gather(
                *[
                    self._send_to(node_id, {target: collected[target] for target in led})
                    for node_id, led in grouped.items()
                ]
            )
            errors = {target: error for outcome in outcomes for target, error in outcome.items()}
            for target in [target for target in collected if target not in errors]:
                self.records_sent += collected.pop(target).builder.count
            for target in errors:
                self._cluster.forget_leader(target)
            # One that cannot be mended comes before those that can.
            for error in sorted(errors.values(), key=lambda error: error.retriable):
                raise error

        await self._cluster.retrying(attempt)

    async def _send_to(self, node_id: int, batches: dict[TopicPartition, _Pending]) -> dict[TopicPartition, KafkaError]:
        """Send batches to the leader of their partitions; return what went wrong."""
        try:
            connection = await self._cluster.broker(node_id)
            version = connection.version_of(ProduceRequest)
            if any(self._cluster.topic_id(target.topic) == NO_TOPIC_ID for target in batches):
                version = min(version, LAST_VERSION_WITH_NAMES)
            request = self._request(batches, version)
            if self._acks == 0:
                await connection.tell(request, version=version)
                return {}
            response: ProduceResponse = await connection.request(request, version=version)
        except KafkaError as error:
            return dict.fromkeys(batches, error)
        errors: dict[TopicPartition, KafkaError] = {}
        for topic in response.responses:
            name = topic.name if version <= LAST_VERSION_WITH_NAMES else self._cluster.topic_name(topic.topic_id)
            for answer in topic.partition_responses:
                if answer.error_code:
                    target = TopicPartition(name, answer.index)
                    errors[target] = error_of(answer.error_code, answer.error_message or f"{name}-{answer.index}")
        return errors

    def _request(self, batches: dict[TopicPartition, _Pending], version: int) -> ProduceRequest:
        topics: dict[str, TopicProduceData] = {}
        for target, pending in batches.items():
            topic = topics.setdefault(
                target.topic, TopicProduceData(name=target.topic, topic_id=self._cluster.topic_id(target.topic))
            )
            data = _encoded(pending, version)
            topic.partition_data.append(PartitionProduceData(index=target.partition, records=data))
        return ProduceRequest(
            acks=self._acks, timeout_ms=self._cluster.request_timeout_ms, topic_data=list(topics.values())
        )


def _encoded(pending: _Pending, version: int) -> bytes:
    """A batch in the format that a version of the request carries."""
    codec = pending.builder.codec
    if codec is Codec.ZSTD and version < FIRST_VERSION_WITH_ZSTD:
        raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, "the broker is too old for zstd; use another codec")
    batch = pending.builder.build()
    if version >= FIRST_VERSION_WITH_BATCHES:
        return batch
    if pending.with_headers:
        raise KafkaError(ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, "the broker is too old for headers; send none")
    return downconvert(batch, 1 if version == 2 else 0, LIMIT)
