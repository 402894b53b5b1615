"""What a consumer cannot be told is refused where it is said, by the name of the argument."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Coroutine
from datetime import UTC, datetime
from typing import Any

import pytest

from ottla.client.consumer import Consumer
from ottla.client.errors import CommitFailedError
from ottla.client.table import read_table
from ottla.client.types import TopicPartition
from ottla.testing import TestBroker

FIRST = TopicPartition("orders", 0)


@pytest.mark.parametrize(
    ("topics", "options", "message"),
    [
        ([["orders"]], {}, r"a topic is \['orders'\], a list; give names one by one, as in Consumer\(\*names\)"),
        ([b"orders"], {}, "a topic is b'orders', a bytes"),
        ([], {"fetch_min_bytes": "1"}, "fetch_min_bytes is '1', a str; give an int"),
        ([], {"buffer_memory": "1"}, "buffer_memory is '1', a str; give an int"),
        ([], {"consumer_timeout_ms": "4"}, "consumer_timeout_ms is '4', a str; give a number"),
        ([], {"max_poll_records": "4"}, "max_poll_records is '4', a str; give an int"),
        ([], {"group_id": 5}, "group_id is 5, an int; give a str"),
        ([], {"group_id": "readers", "group_instance_id": 5}, "group_instance_id is 5, an int; give a str"),
        ([], {"group_id": "readers", "session_timeout_ms": "9"}, "session_timeout_ms is '9', a str; give an int"),
        (
            [],
            {"value_deserializer": "json"},
            "value_deserializer is 'json', a str; give a function, such as json.loads",
        ),
        ([], {"enable_auto_commit": "false"}, "enable_auto_commit is 'false', a str; give True or False"),
        ([], {"check_crcs": 1}, "check_crcs is 1, an int; give True or False"),
        ([], {"exclude_internal_topics": None}, "exclude_internal_topics is None; give True or False"),
        ([], {"allow_auto_create_topics": "no"}, "allow_auto_create_topics is 'no', a str; give True or False"),
        ([], {"key_deserializer": "utf-8"}, "key_deserializer is 'utf-8', a str; give a function"),
    ],
    ids=str,
)
def test_what_a_consumer_is_made_of_is_checked(topics: list[Any], options: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        Consumer(*topics, **options)


def test_a_static_member_is_of_a_group() -> None:
    with pytest.raises(ValueError, match="group_instance_id is 'first' without a group_id; name the group too"):
        Consumer("orders", group_instance_id="first")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda consumer: consumer.subscribe([["orders"]]), r"topic is \['orders'\], a list; give the name of one"),
        (lambda consumer: consumer.assign(["orders"]), r"partitions has 'orders', a str; give a TopicPartition\("),
        (lambda consumer: consumer.assign([("orders", "0")]), "the partition of partitions is '0', a str; give an int"),
        (lambda consumer: consumer.seek("orders", 0), r"partition has 'orders', a str; give a TopicPartition\("),
        (lambda consumer: consumer.seek(FIRST, "5"), "offset is '5', a str; give an int"),
        (lambda consumer: consumer.seek(FIRST, 1.5), "offset is 1.5, a float; give an int"),
        (lambda consumer: consumer.subscribe(pattern=5), "pattern is 5, an int; give a regular expression as a str"),
        (lambda consumer: consumer.subscribe(pattern=re.compile(b"o")), "pattern is re.compile.*; give a regular expr"),
    ],
)
def test_what_is_read_is_checked(call: Callable[[Consumer], None], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        call(Consumer())


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda consumer: consumer.commit([FIRST]), r"offsets is \[.*\], a list; give a dict, as in {TopicPartition\("),
        (lambda consumer: consumer.commit({"orders": 1}), r"offsets has 'orders', a str; give a TopicPartition\("),
        (lambda consumer: consumer.commit({FIRST: "1"}), "the offset of orders-0 is '1', a str; give an int"),
        (lambda consumer: consumer.commit({FIRST: (1, 2)}), "the note of orders-0 is 2, an int; give a str"),
        (lambda consumer: consumer.offsets_for_times({FIRST: "1"}), "the time for orders-0 is '1', a str; give an int"),
        (
            lambda consumer: consumer.offsets_for_times({FIRST: 1.5}),
            "the time for orders-0 is 1.5, a float; give an int",
        ),
        (lambda consumer: consumer.offsets_for_times([FIRST]), "timestamps is .*, a list; give a dict"),
        (lambda consumer: consumer.read_arrow(zero_copy="yes"), "zero_copy is 'yes', a str; give True or False"),
        (lambda consumer: consumer.getmany(timeout_ms="5"), "timeout_ms is '5', a str; give a number"),
        (lambda consumer: consumer.poll(timeout_ms=None), "timeout_ms is None; give a number"),
        (lambda consumer: consumer.read_arrow(timeout_ms="5"), "timeout_ms is '5', a str; give a number"),
        (lambda consumer: consumer.read_arrow(columns="value"), "columns is 'value', a str; give a list of names"),
        (lambda consumer: consumer.committed("orders"), r"partition has 'orders', a str; give a TopicPartition\("),
        (lambda consumer: consumer.end_offsets(["orders"]), r"partitions has 'orders', a str; give a TopicPartition\("),
    ],
)
def test_what_is_asked_and_committed_is_checked(call: Callable[[Consumer], Awaitable[Any]], message: str) -> None:
    async def story(servers: str) -> None:
        async with Consumer(bootstrap_servers=servers, group_id="readers") as consumer:
            with pytest.raises(TypeError, match=message):
                await call(consumer)

    with TestBroker() as broker:
        asyncio.run(story(broker.bootstrap_servers))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda consumer: consumer.read_arrow(columns=[]), "columns is empty; name some of topic, partition"),
        (
            lambda consumer: consumer.offsets_for_times({FIRST: datetime(2026, 1, 1, tzinfo=UTC).replace(tzinfo=None)}),
            "the time for orders-0 is 2026-01-01 00:00:00, which has no timezone",
        ),
    ],
)
def test_what_stands_for_nothing_is_refused(call: Callable[[Consumer], Coroutine[Any, Any, Any]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        asyncio.run(call(Consumer()))


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"columns": "value"}, TypeError, "columns is 'value', a str; give a list of names"),
        ({"columns": iter(["value"])}, TypeError, "columns is .*, a list_iterator; give a list of names"),
        ({"columns": ["value", "value"]}, ValueError, "columns has 'value' 2 times; name it once"),
        ({"columns": []}, ValueError, "columns is empty; name some of topic, partition"),
        ({"zero_copy": "yes"}, TypeError, "zero_copy is 'yes', a str; give True or False"),
        ({"check_crcs": 0}, TypeError, "check_crcs is 0, an int; give True or False"),
        ({"partitions": 0}, TypeError, "partitions is 0, an int; give a list of ints"),
        ({"partitions": ["0"]}, TypeError, "one of partitions is '0', a str; give an int"),
    ],
)
def test_what_of_a_table_is_wanted_is_checked_before_anybody_is_asked(
    options: dict[str, Any], kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message):
        asyncio.run(read_table("orders", bootstrap_servers="127.0.0.1:1", **options))


def test_who_gives_a_pattern_that_is_none_goes_on_with_what_he_had() -> None:
    consumer = Consumer("orders")
    with pytest.raises(ValueError, match=r"pattern is '\(', which is no regular expression: missing \)"):
        consumer.subscribe(pattern="(")
    assert consumer.subscription() == {"orders"}


def test_a_table_is_of_one_topic() -> None:
    with pytest.raises(TypeError, match=r"topic is \['orders'\], a list; give the name of one topic, a str"):
        asyncio.run(read_table(["orders"]))  # type: ignore[arg-type]


def test_one_who_commits_what_was_never_his_is_not_told_to_hurry() -> None:
    async def story(servers: str) -> None:
        async with Consumer("orders", bootstrap_servers=servers, group_id="readers") as consumer:
            while not consumer.assignment():
                await consumer.getmany(timeout_ms=100)
            with pytest.raises(
                CommitFailedError, match=r"orders-7 is not .*; commit partitions of assignment\(\) only$"
            ):
                await consumer.commit({TopicPartition("orders", 7): 1})

    with TestBroker() as broker:
        asyncio.run(story(broker.bootstrap_servers))
