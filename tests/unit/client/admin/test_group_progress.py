"""How far groups are behind, and reading elsewhere, against a real broker."""

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from ottla.client.admin import Admin, ConfigResource, GroupLag, NewTopic
from ottla.client.producer import Producer
from ottla.client.types import TopicPartition
from ottla.testing import TestBroker
from tests.unit.client.admin.tools import ask

FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)


@pytest.fixture(scope="module")
def broker() -> Iterator[TestBroker]:
    async def fill(bootstrap_servers: str) -> None:
        async with Admin(bootstrap_servers) as admin, Producer(bootstrap_servers=bootstrap_servers) as producer:
            await admin.create_topics([NewTopic("orders", 2)])
            for second in range(5):
                await producer.send_and_wait("orders", b"v", partition=0, timestamp_ms=second * 1000)
            await admin.delete_records({FIRST: 1})

    with TestBroker() as running:
        asyncio.run(fill(running.bootstrap_servers))
        yield running


def test_lag_is_what_lies_between_the_committed_offset_and_the_end(broker: TestBroker) -> None:
    async def story(admin: Admin) -> None:
        await admin.alter_consumer_group_offsets("behind", {FIRST: 2, SECOND: 0})
        assert await admin.consumer_group_lag("behind") == {FIRST: GroupLag(2, 5, 3), SECOND: GroupLag(0, 0, 0)}

    ask(broker.bootstrap_servers, story)


def test_a_group_that_has_committed_nothing_has_no_lag(broker: TestBroker) -> None:
    assert ask(broker.bootstrap_servers, lambda admin: admin.consumer_group_lag("nobody")) == {}


@pytest.mark.parametrize(
    ("to", "offset"),
    [
        ("earliest", 1),
        ("latest", 5),
        (3, 3),
        (0, 1),
        (99, 5),
        (datetime.fromtimestamp(2.5, UTC), 3),
        (datetime.fromtimestamp(60, UTC), 5),
    ],
)
def test_a_group_reads_on_where_it_was_set(broker: TestBroker, to: str | int | datetime, offset: int) -> None:
    async def story(admin: Admin) -> None:
        assert await admin.reset_consumer_group_offsets("moved", "orders", to) == {FIRST: offset, SECOND: 0}  # type: ignore[arg-type]
        assert {place: one.offset for place, one in (await admin.list_consumer_group_offsets("moved")).items()} == {
            FIRST: offset,
            SECOND: 0,
        }

    ask(broker.bootstrap_servers, story)


def test_single_partitions_are_reset_alone(broker: TestBroker) -> None:
    async def story(admin: Admin) -> None:
        await admin.reset_consumer_group_offsets("partly", [FIRST], "latest")
        assert list(await admin.list_consumer_group_offsets("partly")) == [FIRST]

    ask(broker.bootstrap_servers, story)


@pytest.mark.parametrize(
    ("to", "kind", "words"),
    [
        ("first", ValueError, "to is 'first'; give 'earliest', 'latest'"),
        (-1, ValueError, "to is -1"),
        (None, TypeError, "to is None"),
        (True, TypeError, "to is True"),
        (datetime(2024, 1, 1), ValueError, "has no timezone"),  # noqa: DTZ001 - that is what is wrong
    ],
)
def test_a_place_that_is_none_is_refused(broker: TestBroker, to: object, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        ask(broker.bootstrap_servers, lambda admin: admin.reset_consumer_group_offsets("wrong", "orders", to))  # type: ignore[arg-type]


def test_where_a_config_comes_from_is_readable_when_printed(broker: TestBroker) -> None:
    orders = ConfigResource("topic", "orders")
    entries = ask(broker.bootstrap_servers, lambda admin: admin.describe_configs([orders]))[orders]
    assert str(entries["retention.ms"].source) == "DEFAULT_CONFIG"
