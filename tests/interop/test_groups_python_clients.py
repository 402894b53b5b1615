"""Groups of aiokafka and kafka-python."""

import asyncio
from collections.abc import Coroutine, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Thread
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer
from kafka import KafkaConsumer

from ottla.testing import TestBroker

from .group_story import GROUP, PATIENCE_S, SETTINGS, TOPIC, tell

COMMON: dict[str, Any] = {
    "group_id": GROUP,
    "auto_offset_reset": "earliest",
    "enable_auto_commit": False,
    "heartbeat_interval_ms": 200,
    "session_timeout_ms": 6000,
    "metadata_max_age_ms": 1000,
}


class KafkaPythonMember:
    """A consumer of kafka-python, which polls in a thread of its own.

    A poll that ends while the group rebalances can leave this client without an assignment for ever, so it gets time.
    """

    def __init__(self, broker: TestBroker) -> None:
        self._consumer = KafkaConsumer(TOPIC, bootstrap_servers=broker.bootstrap_servers, **COMMON)
        self._thread = ThreadPoolExecutor(1)
        self._polling: Future[Any] | None = None

    def poll(self) -> list[bytes]:
        if self._polling is None:
            self._polling = self._thread.submit(self._consumer.poll, timeout_ms=5000)
        try:
            found = self._polling.result(0.1)
        except TimeoutError:
            return []
        self._polling = None
        return [record.value for records in found.values() for record in records]

    def partitions(self) -> set[int]:
        return {assigned.partition for assigned in self._consumer.assignment()}

    def commit(self) -> None:
        self._thread.submit(self._consumer.commit).result(PATIENCE_S)

    def close(self) -> None:
        self._thread.submit(self._consumer.close).result(PATIENCE_S)
        self._thread.shutdown()


class AiokafkaMember:
    """A consumer of aiokafka, driven from another thread than the one that its event loop runs in."""

    def __init__(self, broker: TestBroker, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._consumer: AIOKafkaConsumer = self._run(self._start(broker))

    def _run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(PATIENCE_S)

    async def _start(self, broker: TestBroker) -> AIOKafkaConsumer:
        consumer = AIOKafkaConsumer(TOPIC, bootstrap_servers=broker.bootstrap_servers, **COMMON)
        await consumer.start()
        return consumer

    def poll(self) -> list[bytes]:
        found = self._run(self._consumer.getmany(timeout_ms=100))
        return [record.value for records in found.values() for record in records]

    def partitions(self) -> set[int]:
        return {assigned.partition for assigned in self._consumer.assignment()}

    def commit(self) -> None:
        self._run(self._consumer.commit())

    def close(self) -> None:
        self._run(self._consumer.stop())


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    """An event loop that runs in a thread of its own."""
    made = asyncio.new_event_loop()
    thread = Thread(target=made.run_forever)
    thread.start()
    yield made
    made.call_soon_threadsafe(made.stop)
    thread.join()
    made.close()


def test_kafka_python_members_come_and_go_and_nothing_is_lost_or_read_twice() -> None:
    with TestBroker(SETTINGS) as broker:
        tell(broker, lambda: KafkaPythonMember(broker))


def test_aiokafka_members_come_and_go_and_nothing_is_lost_or_read_twice(loop: asyncio.AbstractEventLoop) -> None:
    with TestBroker(SETTINGS) as broker:
        tell(broker, lambda: AiokafkaMember(broker, loop))
