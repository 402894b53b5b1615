"""Other people's clients stay behind the proxy, and get over what it does to them."""

import asyncio
from collections.abc import Iterator
from contextlib import closing

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from ottla.testing import TestBroker

from . import FaultProxy, cut_reply, cut_request

TIMEOUT_S = 30.0
COUNT = 1000


@pytest.fixture
def broker() -> Iterator[TestBroker]:
    with TestBroker() as started:
        yield started


@pytest.fixture
def proxy(broker: TestBroker) -> Iterator[FaultProxy]:
    with FaultProxy(broker.bootstrap_servers) as started:
        yield started


def read_by_confluent(bootstrap_servers: str, topic: str, count: int) -> list[bytes]:
    settings = {"bootstrap.servers": bootstrap_servers, "group.id": "readers", "reconnect.backoff.max.ms": 200}
    with closing(Consumer({**settings, "auto.offset.reset": "earliest", "log_level": 2})) as consumer:
        consumer.assign([TopicPartition(topic, 0, 0)])
        values: list[bytes] = []
        while len(values) < count:
            message = consumer.poll(TIMEOUT_S)
            assert message is not None, f"nothing more comes after {len(values)} of {count} records"
            if message.error() is None:
                values.append(message.value() or b"")
        return values


def test_confluent_produces_exactly_once_through_random_faults(broker: TestBroker, proxy: FaultProxy) -> None:
    failures: list[KafkaError] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            failures.append(error)

    settings = {
        "bootstrap.servers": proxy.bootstrap_servers,
        "enable.idempotence": True,
        "batch.num.messages": 20,
        "reconnect.backoff.ms": 10,
        "reconnect.backoff.max.ms": 100,
        "retry.backoff.ms": 10,
        "log_level": 2,
    }
    producer = Producer(settings)
    # The topic is made in peace: what is tried is how records arrive.
    producer.list_topics("counted", timeout=TIMEOUT_S)
    proxy.random_faults(seed=7, rate=0.2)
    expected = [str(number).encode() for number in range(COUNT)]
    for value in expected:
        producer.produce("counted", value, on_delivery=delivered)
    assert producer.flush(TIMEOUT_S) == 0, proxy.report()
    assert failures == []
    assert proxy.faults.total() >= 5, proxy.report()
    proxy.calm()
    assert read_by_confluent(broker.bootstrap_servers, "counted", COUNT) == expected
    assert read_by_confluent(proxy.bootstrap_servers, "counted", COUNT) == expected


def test_aiokafka_sends_again_what_was_cut_and_reads_on_where_it_was(proxy: FaultProxy) -> None:
    async def story() -> None:
        options = {"bootstrap_servers": proxy.bootstrap_servers, "retry_backoff_ms": 10}
        async with AIOKafkaProducer(enable_idempotence=True, **options) as producer:
            lost_request = proxy.on("Produce", cut_request(after=0.5), nth=2)
            lost_reply = proxy.on("Produce", cut_reply(), nth=4)
            for number in range(10):
                await producer.send_and_wait("resent", str(number).encode())
        lost_fetch = proxy.on("Fetch", cut_reply(after=0.5), nth=1)
        settings = {**options, "group_id": "readers", "auto_offset_reset": "earliest"}
        async with AIOKafkaConsumer("resent", **settings) as consumer:
            values = [(await consumer.getone()).value for _ in range(10)]
        assert values == [str(number).encode() for number in range(10)]
        assert (lost_request.done, lost_reply.done, lost_fetch.done) == (1, 1, 1), proxy.report()
        # The client was led back by FindCoordinator, too.
        assert proxy.requests["JoinGroup"] >= 1

    asyncio.run(asyncio.wait_for(story(), TIMEOUT_S))
