"""Ranges of topics that change between two readings."""

import asyncio

import pytest

from ottla import Admin, NewTopic, Producer
from ottla.client.cluster import Cluster
from ottla.client.errors import OffsetOutOfRangeError
from ottla.client.options import ClientOptions
from ottla.client.ranges import RangeReader
from ottla.client.types import TopicPartition
from ottla.testing import TestBroker

TOPIC = "orders"
SOON_S = 10


async def _fill(bootstrap_servers: str, count: int) -> None:
    async with Admin(bootstrap_servers=bootstrap_servers) as admin:
        await admin.create_topics([NewTopic(TOPIC, 1)])
    async with Producer(bootstrap_servers=bootstrap_servers) as producer:
        for number in range(count):
            await producer.send(TOPIC, b"%d" % number)


async def _read(cluster: Cluster, start: int, end: int) -> list[bytes]:
    reader = RangeReader(cluster, {TopicPartition(TOPIC, 0): (start, end)}, columns=["value"])
    return [value.as_py() async for batch in reader.batches() for value in batch["value"]]


def test_whoever_reads_a_topic_that_was_made_again_is_told_at_once_and_can_go_on() -> None:
    async def story(bootstrap_servers: str) -> None:
        await _fill(bootstrap_servers, 5)
        async with Cluster(ClientOptions(bootstrap_servers=bootstrap_servers)) as cluster:
            assert len(await _read(cluster, 0, 5)) == 5
            async with Admin(bootstrap_servers=bootstrap_servers) as admin:
                await admin.delete_topics([TOPIC])
            await _fill(bootstrap_servers, 2)
            # A request may take three times as long.
            async with asyncio.timeout(SOON_S):
                with pytest.raises(OffsetOutOfRangeError, match="the topic was made again"):
                    await _read(cluster, 0, 2)
                assert await _read(cluster, 0, 2) == [b"0", b"1"]

    with TestBroker() as broker:
        asyncio.run(story(broker.bootstrap_servers))
