"""The admin client when connections are cut: every change is made once, and no answer is missing."""

import asyncio
import time
from collections.abc import Iterator

import pytest

from ottla.client.admin import Admin, ConfigResource, NewTopic
from ottla.client.errors import RequestTimedOutError
from ottla.client.types import TopicPartition
from ottla.testing import TestBroker
from tests.faults import Action, FaultProxy, drop_reply, duplicate_reply, every_cut, stray_reply

GROUP = "readers"


@pytest.fixture(scope="module")
def broker() -> Iterator[TestBroker]:
    with TestBroker() as running:
        yield running


@pytest.fixture(scope="module")
def proxy(broker: TestBroker) -> Iterator[FaultProxy]:
    with FaultProxy(broker.bootstrap_servers) as running:
        yield running


async def live_a_life(bootstrap_servers: str) -> None:
    """From the creation of a topic and a group to their deletion, with a look at what came of each step."""
    place = TopicPartition("orders", 0)
    async with Admin(bootstrap_servers, retry_backoff_ms=1, reconnect_backoff_ms=1, request_timeout_ms=5000) as admin:
        await admin.create_topics([NewTopic("orders", 2), "payments"])
        assert {"orders", "payments"} <= set(await admin.list_topics())
        await admin.delete_topics(["payments"])
        change = ConfigResource("topic", "orders", {"cleanup.policy": ("append", "compact")})
        await admin.alter_configs([change])
        (entry,) = (await admin.describe_configs([change]))[change].values()
        assert entry.value == "delete,compact"
        await admin.alter_consumer_group_offsets(GROUP, {place: 0})
        assert (await admin.describe_consumer_groups([GROUP]))[GROUP].state == "Empty"
        assert await admin.end_offsets(["orders"]) == {place: 0, TopicPartition("orders", 1): 0}
        assert await admin.delete_records({place: 0}) == {place: 0}
        await admin.delete_consumer_groups([GROUP])
        assert await admin.list_groups() == []
        await admin.delete_topics(["orders"])


@pytest.fixture(scope="module")
def request_count(proxy: FaultProxy) -> int:
    """How many requests a life takes."""
    # The first one also waits for the offsets topic.
    asyncio.run(live_a_life(proxy.bootstrap_servers))
    before = proxy.requests.total()
    asyncio.run(live_a_life(proxy.bootstrap_servers))
    return proxy.requests.total() - before


@pytest.mark.slow
@pytest.mark.parametrize("action", [*every_cut(), duplicate_reply(), stray_reply()], ids=str)
def test_whatever_is_cut_is_made_good(proxy: FaultProxy, request_count: int, action: Action) -> None:
    for nth in range(1, request_count + 1):
        proxy.calm()
        before = proxy.faults[action.name]
        proxy.on(None, action, nth=nth)
        asyncio.run(asyncio.wait_for(live_a_life(proxy.bootstrap_servers), 30))
        # The proxy counts a fault when it is over, which may be a moment after the last reply has come.
        deadline = time.monotonic() + 10
        while proxy.faults[action.name] == before:
            assert time.monotonic() < deadline, proxy.report()
            time.sleep(0.001)


def test_an_answer_that_never_comes_ends_in_a_typed_error_or_a_second_attempt(proxy: FaultProxy) -> None:
    async def story() -> None:
        async with Admin(proxy.bootstrap_servers, request_timeout_ms=300) as admin:
            proxy.on("ListGroups", drop_reply(), times=None)
            with pytest.raises(RequestTimedOutError):
                await admin.list_groups()
            proxy.calm()
            assert await admin.list_groups() == []

    proxy.calm()
    asyncio.run(asyncio.wait_for(story(), 30))
