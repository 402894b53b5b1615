"""A producer that is stopped while it is used, and a topic that grows."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pyarrow as pa
import pytest

from ottla.client.admin import Admin, NewTopic
from ottla.client.errors import ClientClosedError, UnknownTopicOrPartitionError
from ottla.client.producer import Producer
from ottla.net import Connection
from ottla.testing import TestBroker


def run(story: Coroutine[Any, Any, Any]) -> None:
    asyncio.run(asyncio.wait_for(story, 30))


def test_those_who_wait_for_room_are_told_when_the_producer_stops() -> None:
    async def story(servers: str) -> None:
        producer = Producer(
            bootstrap_servers=servers, buffer_memory=100_000, batch_size=80_000, max_request_size=90_000
        )
        await producer.start()
        first = await producer.send("orders", b"x" * 60_000)
        waiting = [asyncio.create_task(producer.send("orders", b"x" * 60_000)) for _ in range(3)]
        await asyncio.sleep(0)
        assert not any(task.done() for task in waiting), "there is room for one"
        await producer.stop()
        assert first.result().offset == 0, "what was taken is delivered"
        for task in waiting:
            with pytest.raises(ClientClosedError, match="stopped before it took the record"):
                await task

    with TestBroker() as broker:
        run(story(broker.bootstrap_servers))


def test_one_who_waits_for_news_of_a_topic_is_told_when_the_producer_stops() -> None:
    async def story(servers: str) -> None:
        producer = await Producer(bootstrap_servers=servers).start()
        waiting = asyncio.create_task(producer.send("orders", b"two apples"))
        await asyncio.sleep(0)
        await producer.stop()
        with pytest.raises(ClientClosedError):
            await asyncio.wait_for(waiting, 5)

    with TestBroker() as broker:
        run(story(broker.bootstrap_servers))


def test_a_stop_that_is_cancelled_leaves_no_connection_open() -> None:
    async def story(servers: str) -> None:
        turns, cancelled = 0, True
        while cancelled:
            turns += 1
            producer = await Producer(bootstrap_servers=servers).start()
            await producer.send_and_wait("orders", b"one")
            stopping = asyncio.create_task(producer.stop())
            for _ in range(turns):
                await asyncio.sleep(0)
            cancelled = stopping.cancel()
            await asyncio.wait([stopping])
            assert opened
            assert all(connection.closed for connection in opened), f"cancelled after {turns} turns"
            opened.clear()

    opened: list[Connection] = []
    with pytest.MonkeyPatch.context() as patch, TestBroker() as broker:
        remember_connections(patch, opened)
        run(story(broker.bootstrap_servers))


def remember_connections(patch: pytest.MonkeyPatch, opened: list[Connection]) -> None:
    made = Connection.connection_made

    def connection_made(connection: Connection, transport: asyncio.BaseTransport) -> None:
        made(connection, transport)
        opened.append(connection)

    patch.setattr(Connection, "connection_made", connection_made)


def test_those_who_stop_it_together_wait_for_the_same_end_and_who_starts_it_then_has_it_run() -> None:
    async def story(servers: str) -> None:
        producer = await Producer(bootstrap_servers=servers).start()
        for _ in range(5):
            await producer.send("orders", b"one")
        await asyncio.gather(producer.stop(), producer.stop(), producer.start())
        assert producer.records_sent == 5
        assert (await producer.send_and_wait("orders", b"two")).offset == 5
        await producer.stop()

    with TestBroker() as broker:
        run(story(broker.bootstrap_servers))


@pytest.mark.parametrize("buffer_memory", [300, 10_000, 100_000])
def test_batches_are_no_larger_than_the_memory(buffer_memory: int) -> None:
    async def story(servers: str) -> None:
        async with Producer(bootstrap_servers=servers, buffer_memory=buffer_memory, max_block_ms=10_000) as producer:
            for _ in range(10):
                await producer.send("orders", bytes(100))
            await producer.send_arrow(pa.table({"value": [bytes(100)] * 2000}), "orders")
            await producer.send_and_wait("orders", bytes(100))
            assert producer.records_sent == 2011

    with TestBroker() as broker:
        run(story(broker.bootstrap_servers))


def test_a_partition_that_was_added_can_be_named_at_once() -> None:
    async def story(servers: str) -> None:
        async with Admin(servers) as admin, Producer(bootstrap_servers=servers) as producer:
            await admin.create_topics([NewTopic("orders", 1)])
            await producer.send_and_wait("orders", b"one", partition=0)
            with pytest.raises(UnknownTopicOrPartitionError, match="has partitions 0 to 0, not 2"):
                await producer.send("orders", b"two", partition=2)
            await admin.create_partitions({"orders": 3})
            metadata = await producer.send_and_wait("orders", b"two", partition=2)
            assert (metadata.partition, metadata.offset) == (2, 0)

    with TestBroker() as broker:
        run(story(broker.bootstrap_servers))


def test_a_topic_that_was_deleted_is_made_again_by_writing_to_it() -> None:
    async def story(servers: str) -> None:
        async with Admin(servers) as admin, Producer(bootstrap_servers=servers) as producer:
            await producer.send_and_wait("orders", b"one")
            await admin.delete_topics(["orders"])
            assert (await producer.send_and_wait("orders", b"two")).offset == 0

    with TestBroker() as broker:
        run(story(broker.bootstrap_servers))
