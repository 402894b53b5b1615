"""What cannot be asked of a cluster is refused before anybody is asked, by the name of the argument."""

from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from ottla.client.admin import Admin, ConfigResource, NewPartitions, NewTopic
from ottla.testing import TestBroker

from .tools import ask


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
        (lambda admin: admin.delete_records({"orders": 1}), r"records_to_delete has 'orders', a str; give a TopicPart"),
    ],
)
def test_what_is_asked_is_checked(servers: str, call: Callable[[Admin], Awaitable[Any]], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        ask(servers, call)
