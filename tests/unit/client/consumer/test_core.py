"""How a consumer ends."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from ottla.client.consumer import Consumer, ConsumerRebalanceListener
from ottla.client.consumer.membership import group
from ottla.client.errors import ClientClosedError
from ottla.client.producer import Producer
from ottla.client.types import TopicPartition
from ottla.testing import TestBroker


def run(story: Coroutine[Any, Any, Any]) -> None:
    asyncio.run(asyncio.wait_for(story, 30))


@pytest.mark.parametrize("options", [{}, {"group_id": "g"}, {"group_id": "g", "group_protocol": "consumer"}])
def test_a_stop_that_is_cancelled_leaves_nothing_behind(options: dict[str, Any]) -> None:
    async def story(servers: str) -> None:
        others = asyncio.all_tasks()
        for turns in range(8):
            consumer = await Consumer("orders", bootstrap_servers=servers, **options).start()
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


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_what_a_listener_raises_while_the_consumer_stops_is_in_the_log(
    protocol: Any, caplog: pytest.LogCaptureFixture
) -> None:
    class Forgetful(ConsumerRebalanceListener):
        def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
            raise LookupError("where is it?")

    async def story(servers: str) -> None:
        async with Producer(bootstrap_servers=servers) as producer:
            await producer.send_and_wait("orders", b"one")
        async with Consumer(
            "orders",
            bootstrap_servers=servers,
            group_id="g",
            group_protocol=protocol,
            auto_offset_reset="earliest",
            listener=Forgetful(),
        ) as consumer:
            await consumer.getone()

    with TestBroker() as broker:
        run(story(broker.bootstrap_servers))
    assert "while the consumer stopped: LookupError('where is it?')" in caplog.messages


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
@pytest.mark.parametrize("enable_auto_commit", [True, False])
def test_a_consumer_stops_within_seconds_though_its_listener_commits_and_the_broker_is_gone(
    protocol: str, enable_auto_commit: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert group.LAST_WORK_TIMEOUT_S == 5, "what users wait for"
    monkeypatch.setattr(group, "LAST_WORK_TIMEOUT_S", 0.5)
    told: list[str] = []

    class Committer(ConsumerRebalanceListener):
        async def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
            told.append("revoked")
            await consumer.commit(dict.fromkeys(revoked, 1))

    async def story(broker: TestBroker) -> None:
        await consumer.start()
        async with Producer(bootstrap_servers=broker.bootstrap_servers) as producer:
            await producer.send_and_wait("orders", b"one")
        await consumer.getone()
        await asyncio.to_thread(broker.stop)
        loop = asyncio.get_running_loop()
        begun = loop.time()
        await consumer.stop()
        assert loop.time() - begun < 10
        assert told == ["revoked"]

    with TestBroker() as broker:
        consumer = Consumer(
            "orders",
            bootstrap_servers=broker.bootstrap_servers,
            group_id="g",
            group_protocol=protocol,  # type: ignore[arg-type]
            enable_auto_commit=enable_auto_commit,
            auto_offset_reset="earliest",
            listener=Committer(),
        )
        run(story(broker))
