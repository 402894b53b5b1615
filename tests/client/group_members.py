"""Members of groups for tests: they read in a task of their own, and note what happens to them."""

import asyncio
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, Self

import pytest
from confluent_kafka import Producer

from ottla.client.consumer.consumer import Consumer
from ottla.client.types import TopicPartition
from tests.peers.fixtures import Broker
from tests.peers.kafka import KAFKA_3
from tests.waiting import eventually

PATIENCE_S = 60.0

KINDS: dict[str, dict[str, Any]] = {
    "eager": {"partition_assignment_strategy": ["range"], "heartbeat_interval_ms": 200},
    "cooperative": {"partition_assignment_strategy": ["cooperative-sticky"], "heartbeat_interval_ms": 200},
    "modern": {"group_protocol": "consumer"},
}
"""Ways to be in a group, as options of a consumer."""


def options_of(kind: str, broker: Broker) -> dict[str, Any]:
    """The options of a kind; skips the test where the broker does not have it."""
    if kind == "modern" and getattr(broker, "version", None) == KAFKA_3:
        pytest.skip("Kafka 3.9 does not offer the protocol unless it is told to")
    return KINDS[kind]


async def until(condition: Callable[[], object], what: Callable[[], object] = lambda: "what the test says") -> None:
    """Wait until something is so; with rebalances that may take a while."""
    await eventually(condition, what, PATIENCE_S)


async def produce(broker: Broker, topic: str, values: Iterable[bytes], partition: int | None = None) -> None:
    """Write values, to all partitions in turn or to one."""
    await asyncio.to_thread(_produce, broker, topic, list(values), partition)


def _produce(broker: Broker, topic: str, values: list[bytes], partition: int | None) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    # News of a topic that was just created may not have reached the broker's metadata yet.
    while not (count := len(producer.list_topics(topic, PATIENCE_S).topics[topic].partitions)):
        producer.poll(0.01)
    for number, value in enumerate(values):
        producer.produce(topic, value=value, partition=number % count if partition is None else partition)
    assert producer.flush(PATIENCE_S) == 0


def numbered(name: str, count: int) -> list[bytes]:
    """Values that are all different."""
    return [b"%s-%d" % (name.encode(), number) for number in range(count)]


class Member:
    """A consumer that reads all the while. It is its own listener."""

    def __init__(self, broker: Broker, *topics: str, group_id: str, **options: Any) -> None:
        self.consumer = Consumer(
            *topics,
            bootstrap_servers=broker.bootstrap_servers,
            group_id=group_id,
            listener=self,  # type: ignore[arg-type]
            **{"auto_offset_reset": "earliest", "fetch_max_wait_ms": 100, **options},
        )
        self.values: Counter[bytes] = Counter()
        self.events: list[tuple[str, set[int]]] = []
        self._reading: asyncio.Task[None] | None = None

    @property
    def partitions(self) -> set[int]:
        """The partitions that it has."""
        return {one.partition for one in self.consumer.assignment()}

    @property
    def rounds(self) -> int:
        """How often it was told what it is assigned."""
        return sum(what == "assigned" for what, _ in self.events)

    def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
        """Note it."""
        self.events.append(("assigned", {one.partition for one in assigned}))

    async def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
        """Note it."""
        self.events.append(("revoked", {one.partition for one in revoked}))

    def on_partitions_lost(self, lost: set[TopicPartition]) -> None:
        """Note it."""
        self.events.append(("lost", {one.partition for one in lost}))

    async def start(self) -> "Member":
        """Join, and begin to read."""
        await self.consumer.start()
        self._reading = asyncio.create_task(self._read())
        return self

    async def _read(self) -> None:
        async for record in self.consumer:
            self.values[record.value] += 1

    async def stop(self) -> None:
        """Leave. What the reading raised is raised here."""
        await self.consumer.stop()
        if self._reading is not None:
            await self._reading

    async def stopped(self) -> None:
        """Wait until the reading has ended, and raise what it raised."""
        assert self._reading is not None
        reading, self._reading = self._reading, None
        await reading

    async def __aenter__(self) -> "Member":
        return await self.start()

    async def __aexit__(self, *details: object) -> None:
        await self.stop()


def are_shared(members: list[Member], count: int) -> bool:
    """Whether members have so many partitions among them, each a fair part and none two of them."""
    parts = [member.partitions for member in members]
    sizes = [len(part) for part in parts]
    return len(set().union(*parts)) == sum(sizes) == count and max(sizes) - min(sizes) <= 1


PROGRAM = """
import asyncio, json, sys
from ottla.client.consumer.consumer import Consumer

async def main(options):
    async with Consumer(options.pop("topic"), **options) as consumer:
        async for record in consumer:
            print(len(consumer.assignment()), flush=True)

asyncio.run(main(json.loads(sys.argv[1])))
"""


class ProcessMember:
    """A member in a process of its own, which can be killed."""

    def __init__(self, topic: str, **options: Any) -> None:
        self._arguments = [sys.executable, "-c", PROGRAM, json.dumps({"topic": topic, **options})]

    def __enter__(self) -> Self:
        """Start it, and return when it has read a record."""
        self._process = subprocess.Popen(self._arguments, stdout=subprocess.PIPE)
        assert self._process.stdout is not None
        if not self._process.stdout.readline():
            self.__exit__()
            raise AssertionError("it ended before it had read anything")
        return self

    def __exit__(self, *details: object) -> None:
        with self._process:
            self._process.kill()

    def kill(self) -> None:
        """End it at once, without a word to the group."""
        self._process.kill()
        self._process.wait()
