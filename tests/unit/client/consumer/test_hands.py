"""Whose hands records are in when a consumer is stopped."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from ottla.client.consumer import Consumer
from ottla.client.producer import Producer
from ottla.testing import TestBroker


async def killed(worker: "asyncio.Task[None]", at_work: asyncio.Event) -> None:
    await at_work.wait()
    worker.cancel()
    await asyncio.wait([worker])


async def still_at_work(worker: "asyncio.Task[None]", at_work: asyncio.Event) -> None:
    await at_work.wait()


Ending = Callable[["asyncio.Task[None]", asyncio.Event], Coroutine[Any, Any, None]]


@pytest.mark.parametrize("ending", [killed, still_at_work])
def test_a_record_that_another_task_has_not_finished_is_not_committed_by_a_stop(ending: Ending) -> None:
    async def story(servers: str) -> None:
        async with Producer(bootstrap_servers=servers) as producer:
            for number in range(5):
                await producer.send("orders", b"%d" % number)
        consumer = Consumer("orders", bootstrap_servers=servers, group_id="g", auto_offset_reset="earliest")
        await consumer.start()
        at_work = asyncio.Event()

        async def work() -> None:
            async for record in consumer:
                if record.offset == 3:
                    at_work.set()
                    await asyncio.sleep(60)

        worker = asyncio.create_task(work())
        await ending(worker, at_work)
        await consumer.stop()
        worker.cancel()
        await asyncio.wait([worker])
        async with Consumer("orders", bootstrap_servers=servers, group_id="g", auto_offset_reset="earliest") as another:
            assert (await another.getone()).offset == 3

    with TestBroker() as broker:
        asyncio.run(asyncio.wait_for(story(broker.bootstrap_servers), 30))


def test_a_record_that_another_task_has_finished_is_committed_by_a_stop() -> None:
    async def story(servers: str) -> None:
        async with Producer(bootstrap_servers=servers) as producer:
            for number in range(5):
                await producer.send("orders", b"%d" % number)
        consumer = Consumer("orders", bootstrap_servers=servers, group_id="g", auto_offset_reset="earliest")
        await consumer.start()

        async def work() -> None:
            async for record in consumer:
                if record.offset == 3:
                    return

        await asyncio.create_task(work())
        await consumer.stop()
        async with Consumer("orders", bootstrap_servers=servers, group_id="g", auto_offset_reset="earliest") as another:
            assert (await another.getone()).offset == 4

    with TestBroker() as broker:
        asyncio.run(asyncio.wait_for(story(broker.bootstrap_servers), 30))
