"""Records of partitions, from given offsets on."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ottla.client.cluster import Cluster
from ottla.client.errors import error_of
from ottla.client.picture import NO_TOPIC_ID
from ottla.client.types import TopicPartition
from ottla.record import Batch, batches, records
from ottla.record.legacy import messages
from ottla.wire.api.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, PartitionData
from ottla.wire.errors import ErrorCode, KafkaError

MAX_BYTES = 50 * 1024 * 1024
PARTITION_MAX_BYTES = 1024 * 1024
LIMIT = 2**28
"""Bytes that one batch may decompress to."""

LAST_VERSION_WITH_NAMES = 12
NO_TIMESTAMP_TYPE, CREATE_TIME, LOG_APPEND_TIME = -1, 0, 1


class ConsumerRecord(NamedTuple):
    """A record with where it came from."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    timestamp_type: int
    """0: by its producer; 1: by the broker; -1: it has none."""
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]]


class Fetcher:
    """Fetches from all leaders at once. `positions` says what comes next in each partition."""

    def __init__(
        self, cluster: Cluster, positions: Mapping[TopicPartition, int], *, max_wait_ms: int = 500, min_bytes: int = 1
    ) -> None:
        self.positions = dict(positions)
        self._cluster = cluster
        self._max_wait_ms = max_wait_ms
        self._min_bytes = min_bytes
        self._running: dict[int, asyncio.Task[list[ConsumerRecord]]] = {}

    async def fetch(self) -> list[ConsumerRecord]:
        """The next records, in order within each partition; none if none came within `max_wait_ms`."""
        for node_id, partitions in (await self._cluster.retrying(self._idle_leaders)).items():
            self._running[node_id] = asyncio.create_task(self._fetch_from(node_id, partitions))
        await asyncio.wait(self._running.values(), return_when=asyncio.FIRST_COMPLETED)
        found: list[ConsumerRecord] = []
        for node_id in [node_id for node_id, task in self._running.items() if task.done()]:
            found += self._running.pop(node_id).result()
        return found

    async def close(self) -> None:
        """Give up what is being fetched."""
        for task in self._running.values():
            task.cancel()
        await asyncio.gather(*self._running.values(), return_exceptions=True)
        self._running.clear()

    def drop(self, partition: TopicPartition) -> None:
        """Fetch a partition no more."""
        self.positions.pop(partition, None)

    async def _idle_leaders(self) -> dict[int, list[TopicPartition]]:
        grouped = await self._cluster.by_leader(self.positions)
        return {node_id: led for node_id, led in grouped.items() if node_id not in self._running}

    async def _fetch_from(self, node_id: int, partitions: list[TopicPartition]) -> list[ConsumerRecord]:
        try:
            connection = await self._cluster.broker(node_id)
            version = connection.version_of(FetchRequest)
            if any(self._cluster.topic_id(one.topic) == NO_TOPIC_ID for one in partitions):
                version = min(version, LAST_VERSION_WITH_NAMES)
            response = await connection.request(
                self._request(partitions),
                version=version,
                timeout_ms=self._max_wait_ms + self._cluster.request_timeout_ms,
            )
            return list(self._records(response, version))
        except KafkaError as error:
            if not error.retriable:
                raise
            for one in partitions:
                self._cluster.forget_leader(one)
            await asyncio.sleep(0.1)
            return []

    def _request(self, partitions: list[TopicPartition]) -> FetchRequest:
        topics: dict[str, FetchTopic] = {}
        for one in partitions:
            if one not in self.positions:
                continue
            topic = topics.setdefault(
                one.topic, FetchTopic(topic=one.topic, topic_id=self._cluster.topic_id(one.topic))
            )
            topic.partitions.append(
                FetchPartition(
                    partition=one.partition,
                    fetch_offset=self.positions[one],
                    partition_max_bytes=PARTITION_MAX_BYTES,
                )
            )
        return FetchRequest(
            max_wait_ms=self._max_wait_ms,
            min_bytes=self._min_bytes,
            max_bytes=MAX_BYTES,
            topics=list(topics.values()),
        )

    def _records(self, response: FetchResponse, version: int) -> Iterator[ConsumerRecord]:
        if response.error_code:
            raise error_of(response.error_code, "fetch")
        for topic in response.responses:
            name = topic.topic if version <= LAST_VERSION_WITH_NAMES else self._cluster.topic_name(topic.topic_id)
            for data in topic.partitions:
                partition = TopicPartition(name, data.partition_index)
                position = self.positions.get(partition)
                if position is not None:
                    yield from self._partition_records(partition, position, data)
                    # Partitions that had something to send wait behind those that had not.
                    self.positions[partition] = self.positions.pop(partition)

    def _partition_records(
        self, partition: TopicPartition, position: int, data: PartitionData
    ) -> Iterator[ConsumerRecord]:
        if data.error_code:
            error = error_of(data.error_code, f"{partition.topic}-{partition.partition} at offset {position}")
            if not error.retriable:
                raise error
            self._cluster.forget_leader(partition)
            return
        if not data.records:
            return
        first = position
        for item in batches(data.records):
            if isinstance(item, Batch):
                yield from _of_batch(partition, item, position)
                position = max(position, item.next_offset)
            else:
                for record in _of_message_set(partition, item.data):
                    if record.offset >= position:
                        yield record
                        position = record.offset + 1
            self.positions[partition] = position
        if position == first:
            raise KafkaError(
                ErrorCode.MESSAGE_TOO_LARGE,
                f"the message at offset {position} of {partition.topic}-{partition.partition} is larger than "
                f"{PARTITION_MAX_BYTES} bytes, and the broker is too old to send it nevertheless",
            )


def _of_batch(partition: TopicPartition, batch: Batch, position: int) -> Iterator[ConsumerRecord]:
    if batch.control or batch.next_offset <= position:
        return
    batch.check_crc()
    timestamp_type = LOG_APPEND_TIME if batch.log_append_time else CREATE_TIME
    for record in records(batch, LIMIT):
        # A broker sends whole batches, also where the offset that was asked for lies inside.
        if record.offset >= position:
            yield ConsumerRecord(
                partition.topic,
                partition.partition,
                record.offset,
                record.timestamp,
                timestamp_type,
                record.key,
                record.value,
                record.headers,
            )


def _of_message_set(partition: TopicPartition, entry: memoryview) -> Iterator[ConsumerRecord]:
    for message in messages(entry, LIMIT):
        timestamp_type = LOG_APPEND_TIME if message.log_append_time else CREATE_TIME
        yield ConsumerRecord(
            partition.topic,
            partition.partition,
            message.offset,
            message.timestamp,
            timestamp_type if message.magic else NO_TIMESTAMP_TYPE,
            message.key,
            message.value,
            (),
        )
