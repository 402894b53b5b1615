"""What clients say in the log while brokers are gone: once that it is so, and once that it is over."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import pytest

from ottla.client.cluster import Cluster
from ottla.client.consumer import Consumer
from ottla.client.errors import DeliveryTimedOutError, RequestTimedOutError
from ottla.client.options import ClientOptions
from ottla.client.producer import Producer
from ottla.client.types import TopicPartition
from ottla.testing import TestBroker
from tests.waiting import eventually

PLACE = TopicPartition("orders", 0)
FEW_MS: dict[str, Any] = {
    "retry_backoff_ms": 10,
    "retry_backoff_max_ms": 20,
    "reconnect_backoff_ms": 10,
    "reconnect_backoff_max_ms": 20,
}


def lines(caplog: pytest.LogCaptureFixture, module: str, level: int) -> list[str]:
    found = (one for one in caplog.records if one.name.startswith(module) and one.levelno == level)
    return [one.getMessage() for one in found]


@pytest.fixture
def repeats(caplog: pytest.LogCaptureFixture) -> Callable[[str], int]:
    """How often trouble was met after it had been told of."""
    caplog.set_level(logging.DEBUG, "ottla")
    return lambda module: sum("still fails" in line for line in lines(caplog, module, logging.DEBUG))


@pytest.mark.parametrize("group", [{}, {"group_id": "readers"}])
def test_a_consumer_tells_of_an_outage_once_and_of_its_end_once(
    group: dict[str, Any], caplog: pytest.LogCaptureFixture, repeats: Callable[[str], int]
) -> None:
    name = "ottla.client.consumer.fetching"

    async def story(broker: TestBroker) -> None:
        async with Producer(bootstrap_servers=broker.bootstrap_servers) as producer:
            await producer.send_and_wait("orders", b"one")
        consumer = Consumer(
            "orders", bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="earliest", **FEW_MS, **group
        )
        async with consumer:
            await consumer.getone()
            for _ in range(2):
                caplog.clear()
                await asyncio.to_thread(broker.stop)
                await eventually(lambda: repeats(name) >= 3)
                await asyncio.to_thread(broker.start)
                await eventually(lambda: lines(caplog, name, logging.INFO))
                (warning,) = lines(caplog, name, logging.WARNING)
                assert warning.startswith("fetching fails, and is tried again: ")
                assert lines(caplog, name, logging.INFO) == ["fetching works again"]

    with TestBroker() as broker:
        asyncio.run(story(broker))


def test_a_producer_tells_of_an_outage_once_and_of_its_end_once(
    caplog: pytest.LogCaptureFixture, repeats: Callable[[str], int]
) -> None:
    name = "ottla.client.producer"

    async def story(broker: TestBroker) -> None:
        async with Producer(bootstrap_servers=broker.bootstrap_servers, batch_size=1000, **FEW_MS) as producer:
            await producer.send_and_wait("orders", b"one")
            await asyncio.to_thread(broker.stop)
            deliveries = [await producer.send("orders", bytes(900)) for _ in range(10)]
            await eventually(lambda: repeats(name) >= 3)
            await asyncio.to_thread(broker.start)
            await asyncio.gather(*deliveries)
        (warning,) = lines(caplog, name, logging.WARNING)
        assert warning.startswith("sending fails, and is tried again: orders-0: NETWORK_EXCEPTION")
        assert lines(caplog, name, logging.INFO) == ["sending works again"]

    with TestBroker() as broker:
        asyncio.run(story(broker))


def test_records_that_are_lost_are_told_of_once_and_counted_when_others_get_through(
    caplog: pytest.LogCaptureFixture,
) -> None:
    name = "ottla.client.producer"
    caplog.set_level(logging.DEBUG, "ottla")

    def lost(level: int) -> int:
        return sum("1 records to orders-0 were not delivered: " in line for line in lines(caplog, name, level))

    async def story(broker: TestBroker) -> None:
        producer = Producer(
            bootstrap_servers=broker.bootstrap_servers,
            batch_size=1000,
            delivery_timeout_ms=3_000,
            request_timeout_ms=2_000,
            linger_ms=0,
            **FEW_MS,
        )
        async with producer:
            await producer.send_and_wait("orders", b"one")
            await asyncio.to_thread(broker.stop)
            for _ in range(10):
                await producer.send("orders", bytes(900))
            await eventually(lambda: lost(logging.DEBUG) == 9)
            assert lost(logging.WARNING) == 1
            with pytest.raises(DeliveryTimedOutError):
                await producer.flush()
            await asyncio.to_thread(broker.start)
            await producer.send_and_wait("orders", b"two")
        assert "10 records were not delivered before those that are now" in lines(caplog, name, logging.WARNING)

    with TestBroker() as broker:
        asyncio.run(story(broker))


def test_a_topic_that_nothing_is_heard_of_fails_with_the_reason() -> None:
    async def story(broker: TestBroker) -> None:
        async with Producer(bootstrap_servers=broker.bootstrap_servers, max_block_ms=300, **FEW_MS) as producer:
            await asyncio.to_thread(broker.stop)
            with pytest.raises(RequestTimedOutError, match=r"topic 'orders' .* the last error was .*cannot connect to"):
                await producer.send("orders", b"one")

    with TestBroker() as broker:
        asyncio.run(story(broker))


def test_an_error_is_forgotten_when_something_works() -> None:
    async def story(broker: TestBroker) -> None:
        async with Cluster(ClientOptions(bootstrap_servers=broker.bootstrap_servers, **FEW_MS)) as cluster:
            await cluster.retrying(lambda: cluster.metadata([]))
            await asyncio.to_thread(broker.stop)
            asking = asyncio.create_task(cluster.retrying(lambda: cluster.metadata([])))
            await eventually(lambda: cluster.last_error is not None)
            await asyncio.to_thread(broker.start)
            await asking
            assert cluster.last_error is None

    with TestBroker() as broker:
        asyncio.run(story(broker))
