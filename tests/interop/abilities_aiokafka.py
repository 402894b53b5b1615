"""aiokafka."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any, ClassVar

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from ottla.record import Codec, Record

from .abilities import LIMIT, PATIENCE_S, Ability, Administrator, Client


class Aiokafka(Client):
    """aiokafka's producer and consumer."""

    name = "aiokafka"
    lacks: ClassVar[dict[Ability, str]] = {Ability.NEITHER: "it asks for at least one"}

    def write(self, topic: str, records: Sequence[Record], codec: Codec = Codec.NONE) -> None:
        async def run() -> None:
            producer = AIOKafkaProducer(
                bootstrap_servers=self.servers,
                compression_type=None if codec is Codec.NONE else codec.name.lower(),
                max_request_size=LIMIT,
                linger_ms=50,
            )
            async with producer:
                sent = [
                    await producer.send(
                        topic,
                        key=record.key,
                        value=record.value,
                        partition=0,
                        timestamp_ms=record.timestamp,
                        headers=list(record.headers),
                    )
                    for record in records
                ]
                await asyncio.wait_for(asyncio.gather(*sent), PATIENCE_S)

        asyncio.run(run())

    def read(self, topic: str, offset: int, count: int) -> list[Record]:
        async def run() -> list[Record]:
            async with self._consumer(topic) as (consumer, partition):
                consumer.seek(partition, offset)
                return await _take(consumer, count)

        return asyncio.run(run())

    def read_since(self, topic: str, timestamp: int, count: int) -> list[Record]:
        async def run() -> list[Record]:
            async with self._consumer(topic) as (consumer, partition):
                consumer.seek(partition, (await consumer.offsets_for_times({partition: timestamp}))[partition].offset)
                return await _take(consumer, count)

        return asyncio.run(run())

    def read_new(self, topic: str, when_at_end: Callable[[], None], count: int) -> list[Record]:
        async def run() -> list[Record]:
            async with self._consumer(topic) as (consumer, partition):
                await consumer.seek_to_end(partition)
                await consumer.position(partition)
                await asyncio.to_thread(when_at_end)
                return await _take(consumer, count)

        return asyncio.run(run())

    @asynccontextmanager
    async def _consumer(self, topic: str) -> AsyncIterator[tuple[Any, TopicPartition]]:
        partition = TopicPartition(topic, 0)
        consumer = AIOKafkaConsumer(
            bootstrap_servers=self.servers, enable_auto_commit=False, max_partition_fetch_bytes=LIMIT
        )
        async with consumer:
            consumer.assign([partition])
            yield consumer, partition


async def _take(consumer: Any, count: int) -> list[Record]:
    found = [await asyncio.wait_for(consumer.getone(), PATIENCE_S) for _ in range(count)]
    return [Record(one.offset, one.timestamp, one.key, one.value, one.headers) for one in found]


class AiokafkaAdministrator(Administrator):
    """aiokafka's administration client."""

    name = Aiokafka.name

    def create(self, topic: str, partitions: int, configs: dict[str, str]) -> None:
        response = self._call(
            lambda admin: admin.create_topics([NewTopic(topic, partitions, 1, topic_configs=configs)])
        )
        assert response.topic_errors[0][1] == 0, response

    def partitions(self, topic: str) -> int:
        (described,) = self._call(lambda admin: admin.describe_topics([topic]))
        return len(described["partitions"])

    def topics(self) -> set[str]:
        return set(self._call(lambda admin: admin.list_topics()))

    def config(self, topic: str, name: str) -> str:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic)
        (response,) = self._call(lambda admin: admin.describe_configs([resource]))
        ((error_code, _, _, _, entries),) = response.resources
        assert error_code == 0, response
        return str({entry[0]: entry[1] for entry in entries}[name])

    def set_config(self, topic: str, name: str, value: str) -> None:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic, {name: value})
        (response,) = self._call(lambda admin: admin.alter_configs([resource]))
        assert response.resources[0][0] == 0, response

    def grow(self, topic: str, partitions: int) -> None:
        response = self._call(lambda admin: admin.create_partitions({topic: NewPartitions(partitions)}))
        assert response.topic_errors[0][1] == 0, response

    def delete_records(self, topic: str, before: int) -> None:
        partition = TopicPartition(topic, 0)
        marks = self._call(lambda admin: admin.delete_records({partition: RecordsToDelete(before)}))
        assert marks == {partition: before}

    def delete(self, topic: str) -> None:
        response = self._call(lambda admin: admin.delete_topics([topic]))
        assert response.topic_error_codes[0][1] == 0, response

    def _call(self, call: Callable[[Any], Coroutine[Any, Any, Any]]) -> Any:
        async def run() -> Any:
            admin = AIOKafkaAdminClient(bootstrap_servers=self.servers)
            await admin.start()
            try:
                return await asyncio.wait_for(call(admin), PATIENCE_S)
            finally:
                await admin.close()

        return asyncio.run(run())
