"""What cannot be asked of a cluster is refused before anybody is asked, by the name of the argument."""

from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from ottla.client.admin import Admin, ConfigResource, NewPartitions, NewTopic
from ottla.client.offsets import OffsetSpec
from ottla.client.types import TopicPartition
from ottla.testing import TestBroker

from .tools import ask

ORDERS = TopicPartition("orders", 0)


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with TestBroker() as broker:
        yield broker.bootstrap_servers


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: NewTopic("orders", "3"), "num_partitions is '3', a str; give an int"),  # type: ignore[arg-type]
        (lambda: NewTopic(b"orders"), "name is b'orders', a bytes; give a str"),  # type: ignore[arg-type]
        (
            lambda: NewTopic("orders", topic_configs={"retention.ms": 60000}),  # type: ignore[dict-item]
            r"topic_configs\['retention.ms'\] is 60000, an int; give text, such as '60000'",
        ),
        (lambda: NewPartitions("3"), "total_count is '3', a str; give an int"),  # type: ignore[arg-type]
    ],
)
def test_what_is_to_be_made_is_checked(make: Callable[[], object], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        make()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda admin: admin.create_topics([5]), r"new_topics has 5, an int; give NewTopic\("),
        (lambda admin: admin.describe_topics([b"orders"]), "topics has b'orders', a bytes; give names"),
        (lambda admin: admin.delete_topics(5), "topics is 5, an int; give a list"),
        (lambda admin: admin.delete_consumer_groups([None]), "group_ids has None; give names"),
        (
            lambda admin: admin.alter_configs({"orders": {"retention.ms": "60000"}}),
            r"config_resources is {.*}, a dict; give a list, as in \[ConfigResource\(",
        ),
        (
            lambda admin: admin.alter_configs(ConfigResource("topic", "orders")),
            r"config_resources is .*, a ConfigResource; give a list, as in \[ConfigResource\(",
        ),
        (lambda admin: admin.describe_configs(["orders"]), r"config_resources has 'orders', a str; give a list, as in"),
        (lambda admin: admin.list_offsets({ORDERS: "latest"}), "the time for orders-0 is 'latest', a str; give an int"),
        (lambda admin: admin.alter_consumer_group_offsets("g", {ORDERS: "4"}), "the offset of orders-0 is '4', a str"),
        (lambda admin: admin.create_topics(["orders"], timeout_ms="5"), "timeout_ms is '5', a str; give an int"),
        (lambda admin: admin.delete_records({"orders": 1}), r"records_to_delete has 'orders', a str; give a TopicPart"),
    ],
)
def test_what_is_asked_is_checked(servers: str, call: Callable[[Admin], Awaitable[Any]], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        ask(servers, call)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda admin: admin.alter_consumer_group_offsets("g", {ORDERS: -4}),
            "the offset of orders-0 is -4; give that",
        ),
        (lambda admin: admin.list_offsets({ORDERS: -9}), "the time for orders-0 is -9; it must be at least 0"),
        (lambda admin: admin.create_topics(["late"], timeout_ms=-1), "timeout_ms is -1; it must be at least 0"),
    ],
)
def test_what_is_too_small_is_refused_and_nothing_done(
    servers: str, call: Callable[[Admin], Awaitable[Any]], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        ask(servers, call)
    assert ask(servers, lambda admin: admin.list_topics()) == []


def test_times_are_milliseconds_or_datetimes() -> None:
    long_ago = datetime(2001, 9, 9, tzinfo=UTC)

    async def story(admin: Admin) -> None:
        await admin.create_topics(["orders"])
        for latest in (OffsetSpec.LATEST, -1):
            found = (await admin.list_offsets({ORDERS: latest}))[ORDERS]
            assert found is not None
            assert found.offset == 0
        assert await admin.list_offsets({ORDERS: long_ago}) == {ORDERS: None}

    # Numbers and truth are written as files have them.
    with TestBroker({"num.partitions": 1, "auto.create.topics.enable": False}) as broker:
        ask(broker.bootstrap_servers, story)
