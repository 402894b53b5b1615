"""A consumer that has nothing to read says so: to the log if topics are missing, to the user if he named none."""

import asyncio
import logging
from typing import Any

import pytest

from ottla import sync
from ottla.client.admin import Admin, NewTopic
from ottla.client.consumer import Consumer
from ottla.client.consumer.missing import MissingTopics
from ottla.client.errors import IllegalStateError
from ottla.client.producer import Producer
from ottla.client.types import TopicPartition
from ottla.testing import TestBroker
from ottla.wire.api.metadata import MetadataResponse, MetadataResponseTopic
from ottla.wire.errors import ErrorCode
from tests.waiting import eventually

LOGGER = "ottla.client.consumer.missing"
UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
PLACE = TopicPartition("ordres", 0)
KINDS: list[dict[str, Any]] = [{}, {"group_id": "g"}, {"group_id": "g", "group_protocol": "consumer"}]


@pytest.mark.parametrize("kind", KINDS, ids=["alone", "classic", "consumer"])
def test_a_topic_that_does_not_exist_is_told_of_once(kind: dict[str, Any], caplog: pytest.LogCaptureFixture) -> None:
    async def story(servers: str) -> None:
        consumer = Consumer(
            "ordres",
            "orders",
            bootstrap_servers=servers,
            allow_auto_create_topics=False,
            auto_offset_reset="earliest",
            retry_backoff_max_ms=100,
            **kind,
        )
        async with Admin(servers) as admin, consumer:
            await admin.create_topics(["orders"])
            async with Producer(bootstrap_servers=servers) as producer:
                await producer.send_and_wait("orders", b"one")
                assert (await consumer.getone()).value == b"one"
                await eventually(lambda: "'ordres' does not exist (yet)" in caplog.text, "it is told of")
                assert [one.levelno for one in caplog.records if "'ordres' does not exist (yet)" in one.message] == [30]
                await admin.create_topics(["ordres"])
                await producer.send_and_wait("ordres", b"two")
            assert (await asyncio.wait_for(consumer.getone(), 30)).value == b"two"
        assert sum(one.name == LOGGER and "'ordres'" in one.message for one in caplog.records) == 1

    with TestBroker({"group.consumer.heartbeat.interval.ms": "200"}) as broker:
        asyncio.run(story(broker.bootstrap_servers))


def test_a_topic_is_told_of_again_if_it_has_existed_meanwhile(caplog: pytest.LogCaptureFixture) -> None:
    missing = MissingTopics()
    told = []
    for code in (UNKNOWN, UNKNOWN, ErrorCode.LEADER_NOT_AVAILABLE, UNKNOWN, ErrorCode.NONE, UNKNOWN):
        missing.look(MetadataResponse(topics=[MetadataResponseTopic(name="ordres", error_code=code)]))
        told.append(len(caplog.records))
    assert told == [1, 1, 1, 1, 1, 2]


def test_a_partition_of_a_topic_that_does_not_exist_is_told_of(caplog: pytest.LogCaptureFixture) -> None:
    async def story(servers: str) -> None:
        async with Consumer(bootstrap_servers=servers, allow_auto_create_topics=False) as consumer:
            consumer.assign([PLACE])
            await eventually(lambda: [one for one in caplog.records if one.name == LOGGER])

    with TestBroker() as broker:
        asyncio.run(story(broker.bootstrap_servers))


def test_a_partition_that_a_topic_lacks_is_told_of_and_read_once_it_is_there(caplog: pytest.LogCaptureFixture) -> None:
    third = TopicPartition("orders", 2)

    async def story(servers: str) -> None:
        consumer = Consumer(bootstrap_servers=servers, auto_offset_reset="earliest", retry_backoff_max_ms=100)
        async with Admin(servers) as admin, consumer:
            await admin.create_topics([NewTopic("orders", 2)])
            consumer.assign([TopicPartition("orders", 1), third])
            await eventually(lambda: [one for one in caplog.records if one.name == LOGGER])
            await admin.create_partitions({"orders": 3})
            async with Producer(bootstrap_servers=servers) as producer:
                await producer.send_and_wait("orders", b"one", partition=2)
            assert (await asyncio.wait_for(consumer.getone(), 30)).partition == 2
        (line,) = [one.message for one in caplog.records if one.name == LOGGER]
        assert line.startswith("orders-2 does not exist (yet), topic 'orders' has 2 partitions; it is read as soon as")

    with TestBroker() as broker:
        asyncio.run(story(broker.bootstrap_servers))


def test_reading_without_anything_to_read_is_an_error() -> None:
    async def story(servers: str) -> None:
        async with Consumer(bootstrap_servers=servers) as consumer:
            with pytest.raises(IllegalStateError, match="subscribe to topics, or assign partitions first"):
                await consumer.getone()
            with pytest.raises(IllegalStateError, match="subscribe to topics, or assign partitions first"):
                async for _ in consumer:
                    pass
            # As in other libraries.
            assert await consumer.getmany() == {}

    with TestBroker() as broker:
        asyncio.run(story(broker.bootstrap_servers))
        with (
            sync.Consumer(bootstrap_servers=broker.bootstrap_servers) as consumer,
            pytest.raises(IllegalStateError, match="subscribe to topics, or assign partitions first"),
        ):
            next(consumer)


def test_a_position_outside_the_log_that_is_reset_is_told_of(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "ottla")

    async def story(servers: str) -> None:
        async with Producer(bootstrap_servers=servers) as producer:
            await producer.send_and_wait("ordres", b"one")
        async with Consumer(bootstrap_servers=servers, auto_offset_reset="earliest") as consumer:
            consumer.assign([PLACE])
            consumer.seek(PLACE, 100)
            assert (await consumer.getone()).offset == 0
        told = [one.message for one in caplog.records if one.name == "ottla.client.consumer.replies"]
        (line,) = told
        assert line.endswith("outside the log: ordres-0 at offset 100; reading goes on where auto_offset_reset says")

    with TestBroker() as broker:
        asyncio.run(story(broker.bootstrap_servers))
