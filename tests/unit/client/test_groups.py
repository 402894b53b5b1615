"""Administration of groups, with what a broker of today offers and with what one of years ago did."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

from ottla.client import ClientOptions, Cluster, NewTopic, TopicPartition
from ottla.client.admin import AdminClient
from ottla.client.groups import GroupAdmin
from ottla.net import connection, negotiate
from ottla.testing import TestBroker
from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.schema import Versions

KAFKA_1_1 = {8: 3, 9: 3, 10: 1, 15: 1, 16: 1, 42: 0}
"""The last versions of the requests for groups that Kafka 1.1 had; newer requests it did not know."""
NEWER = (47, 68, 69)

FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)


@pytest.fixture(scope="module")
def broker() -> Iterator[TestBroker]:
    with TestBroker() as running:
        asyncio.run(_create(running))
        yield running


async def _create(running: TestBroker) -> None:
    async with Cluster(ClientOptions(bootstrap_servers=running.bootstrap_servers)) as cluster:
        await AdminClient(cluster).create_topics([NewTopic("orders", 2)])


def on(broker: TestBroker, story: Callable[[GroupAdmin], Coroutine[Any, Any, Any]]) -> Any:
    async def run() -> Any:
        async with Cluster(ClientOptions(bootstrap_servers=broker.bootstrap_servers)) as cluster:
            return await story(GroupAdmin(cluster))

    return asyncio.run(run())


@pytest.fixture(params=["today", "kafka 1.1"])
def age(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "kafka 1.1":

        def decode_offer(frame: bytes, version: int) -> tuple[ErrorCode, negotiate.Offer]:
            code, offer = negotiate.decode_offer(frame, version)
            return code, {
                key: Versions(versions.first, min(versions.last, KAFKA_1_1.get(key, versions.last)))
                for key, versions in offer.items()
                if key not in NEWER
            }

        monkeypatch.setattr(connection, "decode_offer", decode_offer)
    return str(request.param)


def test_a_group_is_made_looked_at_and_deleted(broker: TestBroker, age: str) -> None:
    group_id = f"group of {age}"

    async def story(admin: GroupAdmin) -> None:
        await admin.commit(group_id, {SECOND: 7, FIRST: 5})
        assert group_id in [group.group_id for group in await admin.list_groups()]
        group = await admin.describe(group_id)
        assert (group.group_type, group.state, group.members, group.is_active) == ("classic", "Empty", [], False)
        committed = await admin.committed(group_id)
        assert {place: one.offset for place, one in committed.items()} == {FIRST: 5, SECOND: 7}
        assert list(committed) == [FIRST, SECOND]
        await admin.delete(group_id)
        assert await admin.committed(group_id) == {}
        for question in (admin.describe, admin.delete):
            with pytest.raises(KafkaError, match=f"there is no group '{group_id}'") as caught:
                await question(group_id)
            assert caught.value.code is ErrorCode.GROUP_ID_NOT_FOUND

    on(broker, story)


def test_offsets_of_partitions_that_do_not_exist_are_refused(broker: TestBroker, age: str) -> None:
    async def story(admin: GroupAdmin) -> None:
        with pytest.raises(KafkaError) as caught:
            await admin.commit("g", {TopicPartition("orders", 9): 1})
        assert caught.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert "orders-9" in caught.value.message

    on(broker, story)


def test_a_broker_that_cannot_delete_offsets_says_so(broker: TestBroker, age: str) -> None:
    async def story(admin: GroupAdmin) -> None:
        await admin.commit("deleting", {FIRST: 5, SECOND: 7})
        if age == "today":
            await admin.delete_offsets("deleting", [FIRST])
            assert list(await admin.committed("deleting")) == [SECOND]
            return
        with pytest.raises(KafkaError, match="does not offer OffsetDelete"):
            await admin.delete_offsets("deleting", [FIRST])

    on(broker, story)
