"""One group with members of several libraries: all get partitions, and together they read everything once."""

import asyncio
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import confluent_kafka
import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from kafka import KafkaConsumer

from tests.peers.fixtures import Broker

from .group_members import PATIENCE_S, Member, numbered, options_of, produce, until

NewTopic = Callable[..., str]


class Aiokafka:
    """A consumer of aiokafka."""

    def __init__(self, broker: Broker, topic: str, group_id: str) -> None:
        self.values: Counter[bytes] = Counter()
        self._arguments = (broker, topic, group_id)

    @property
    def partitions(self) -> set[int]:
        return {one.partition for one in self._consumer.assignment()}

    async def start(self) -> None:
        broker, topic, group_id = self._arguments
        self._consumer = AIOKafkaConsumer(
            topic,
            bootstrap_servers=broker.bootstrap_servers,
            group_id=group_id,
            auto_offset_reset="earliest",
            heartbeat_interval_ms=200,
            session_timeout_ms=6000,
            partition_assignment_strategy=[RangePartitionAssignor],
        )
        await self._consumer.start()
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        async for record in self._consumer:
            self.values[record.value] += 1

    async def stop(self) -> None:
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)
        await self._consumer.stop()


class Blocking:
    """A consumer that blocks, in a thread of its own."""

    def __init__(self) -> None:
        self.values: Counter[bytes] = Counter()
        self.partitions: set[int] = set()
        self._thread = ThreadPoolExecutor(1)
        self._stop = Event()

    async def start(self) -> None:
        self._reading = asyncio.get_running_loop().run_in_executor(self._thread, self._run)

    async def stop(self) -> None:
        self._stop.set()
        await self._reading
        self._thread.shutdown()

    def _run(self) -> None:
        raise NotImplementedError


class KafkaPython(Blocking):
    """A consumer of kafka-python."""

    def __init__(self, broker: Broker, topic: str, group_id: str) -> None:
        super().__init__()
        self._arguments = (broker, topic, group_id)

    def _run(self) -> None:
        broker, topic, group_id = self._arguments
        consumer = KafkaConsumer(
            topic,
            bootstrap_servers=broker.bootstrap_servers,
            group_id=group_id,
            auto_offset_reset="earliest",
            heartbeat_interval_ms=200,
            session_timeout_ms=6000,
        )
        while not self._stop.is_set():
            # A poll that ends while the group rebalances can leave this client without an assignment for ever.
            found = consumer.poll(timeout_ms=3000)
            self.values.update(record.value for records in found.values() for record in records)
            self.partitions = {one.partition for one in consumer.assignment()}
        consumer.close()


class Confluent(Blocking):
    """A consumer of confluent-kafka."""

    def __init__(self, broker: Broker, topic: str, group_id: str, **settings: Any) -> None:
        super().__init__()
        self._topic = topic
        self._settings = {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": group_id,
            "auto.offset.reset": "earliest",
            **settings,
        }

    def _run(self) -> None:
        consumer = confluent_kafka.Consumer(self._settings)
        consumer.subscribe([self._topic])
        while not self._stop.is_set():
            message = consumer.poll(0.1)
            if message is not None and message.error() is None:
                value = message.value()
                assert isinstance(value, bytes)
                self.values[value] += 1
            self.partitions = {one.partition for one in consumer.assignment()}
        consumer.close()


CLASSIC = {"session.timeout.ms": 6000, "heartbeat.interval.ms": 200}


async def read_together(broker: Broker, topic: str, members: list[Any], count: int) -> None:
    """Have them all in the group, then write, and see that each record is read by one of them."""
    for member in members:
        await member.start()
    try:

        def parts() -> list[set[int]]:
            return [member.partitions for member in members]

        await until(lambda: all(parts()) and sum(map(len, parts())) == count == len(set().union(*parts())), parts)
        values = numbered("value", 50 * count)
        await produce(broker, topic, values)

        def read() -> Counter[bytes]:
            return sum((member.values for member in members), Counter())

        await until(lambda: len(read()) == len(values), lambda: (len(read()), parts()))
        assert read() == Counter(values)
        assert all(member.values for member in members)
    finally:
        async with asyncio.timeout(PATIENCE_S):
            endings = await asyncio.gather(*[member.stop() for member in members], return_exceptions=True)
    assert endings == [None] * len(members)


@pytest.mark.parametrize("leader", ["ours", "theirs"])
def test_four_libraries_share_one_group(broker: Broker, new_topic: NewTopic, name: str, leader: str) -> None:
    topic = new_topic(partitions=8)

    async def story() -> None:
        ours = [Member(broker, topic, group_id=name, **options_of("eager", broker)) for _ in range(2)]
        theirs: list[Any] = [
            Confluent(broker, topic, name, **CLASSIC, **{"partition.assignment.strategy": "range"}),
            Aiokafka(broker, topic, name),
            KafkaPython(broker, topic, name),
        ]
        # Who comes first shares out for all.
        members = ours + theirs if leader == "ours" else theirs + ours
        await read_together(broker, topic, members, 8)

    asyncio.run(story())


@pytest.mark.parametrize("leader", ["ours", "theirs"])
def test_cooperative_members_of_librdkafka_and_ours_share_one_group(
    broker: Broker, new_topic: NewTopic, name: str, leader: str
) -> None:
    topic = new_topic(partitions=6)

    async def story() -> None:
        ours = [Member(broker, topic, group_id=name, **options_of("cooperative", broker)) for _ in range(2)]
        strategy = {"partition.assignment.strategy": "cooperative-sticky"}
        theirs = [Confluent(broker, topic, name, **CLASSIC, **strategy)]
        members = [*ours, *theirs] if leader == "ours" else [*theirs, *ours]
        await read_together(broker, topic, members, 6)

    asyncio.run(story())


def test_members_of_the_consumer_protocol_and_the_classic_one_share_one_group(
    broker: Broker, new_topic: NewTopic, name: str
) -> None:
    topic = new_topic(partitions=8)

    async def story() -> None:
        members: list[Any] = [
            Member(broker, topic, group_id=name, **options_of("modern", broker)),
            Confluent(broker, topic, name, **{"group.protocol": "consumer"}),
            Member(broker, topic, group_id=name, **options_of("eager", broker)),
            Aiokafka(broker, topic, name),
        ]
        await read_together(broker, topic, members, 8)

    asyncio.run(story())
