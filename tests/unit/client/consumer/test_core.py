"""How a consumer ends."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from ottla.client.consumer import Consumer, ConsumerRebalanceListener
from ottla.client.errors import ClientClosedError
from ottla.client.types import TopicPartition
from ottla.testing import TestBroker


def run(story: Coroutine[Any, Any, Any]) -> None:
    asyncio.run(asyncio.wait_for(story, 30))


@pytest.mark.parametrize("group", [{}, {"group_id": "g"}, {"group_id": "g", "group_protocol": "consumer"}])
def test_a_stop_that_is_cancelled_leaves_nothing_behind(group: dict[str, Any]) -> None:
    async def story(servers: str) -> None:
        others = asyncio.all_tasks()
        for turns in range(8):
            consumer = await Consumer("orders", bootstrap_servers=servers, **group).start()
            stopping = asyncio.create_task(consumer.stop())
            for _ in range(turns):
                await asyncio.sleep(0)
            stopping.cancel()
            await asyncio.wait([stopping])
            await consumer.stop()
            assert asyncio.all_tasks() == others, "a second call waits for the end of the first"

    with TestBroker() as broker:
        run(story(broker.bootstrap_servers))


def test_a_listener_may_stop_the_consumer() -> None:
    async def story(servers: str) -> None:
        told: list[str] = []

        class Stopper(ConsumerRebalanceListener):
            async def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
                await consumer.stop()
                told.append("stopped")

            def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
                told.append("revoked")

        consumer = Consumer("orders", bootstrap_servers=servers, group_id="g", listener=Stopper())
        await consumer.start()
        with pytest.raises(ClientClosedError):
            await consumer.getone()
        await consumer.stop()
        assert told == ["stopped", "revoked"]

    with TestBroker() as broker:
        run(story(broker.bootstrap_servers))
