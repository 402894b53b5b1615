from typing import Any

import pytest

from ottla.wire.api.describe_topic_partitions import Cursor, DescribeTopicPartitionsRequest, TopicRequest
from ottla.wire.errors import ErrorCode
from tests.unit.broker.small_broker import SmallBroker


def describe(small: SmallBroker, *names: str, cursor: Cursor | None = None, limit: int = 2000) -> Any:
    body = DescribeTopicPartitionsRequest(
        topics=[TopicRequest(name=name) for name in names], response_partition_limit=limit, cursor=cursor
    )
    return small.ask(body, 0)


def page(answer: Any) -> list[tuple[str, list[int]]]:
    return [(topic.name, [partition.partition_index for partition in topic.partitions]) for topic in answer.topics]


@pytest.fixture
def topics(small: SmallBroker) -> SmallBroker:
    small.create("c", partitions=2)
    small.create("a", partitions=3)
    small.create("b", partitions=1)
    return small


def test_no_names_ask_for_all_topics_sorted(topics: SmallBroker) -> None:
    answer = describe(topics)
    assert page(answer) == [("a", [0, 1, 2]), ("b", [0]), ("c", [0, 1])]
    assert answer.next_cursor is None


def test_a_topic_is_described_with_its_partitions(small: SmallBroker) -> None:
    topic_id = small.create("orders")
    (topic,) = describe(small, "orders").topics
    assert (topic.error_code, topic.topic_id, topic.is_internal) == (0, topic_id, False)
    assert [bit for bit in range(32) if topic.topic_authorized_operations & 1 << bit] == [3, 4, 5, 6, 7, 8, 10, 11]
    (partition,) = topic.partitions
    assert (partition.error_code, partition.leader_id, partition.leader_epoch) == (0, 1, 0)
    assert (partition.replica_nodes, partition.isr_nodes, partition.offline_replicas) == ([1], [1], [])
    assert (partition.eligible_leader_replicas, partition.last_known_elr) == ([], [])


def test_names_are_sorted_and_those_that_are_not_there_say_so(topics: SmallBroker) -> None:
    answer = describe(topics, "c", "no/name", "b", "nothing", "b")
    assert [(topic.name, topic.error_code) for topic in answer.topics] == [
        ("b", 0),
        ("c", 0),
        ("no/name", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("nothing", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 6])
@pytest.mark.parametrize("names", [(), ("a", "b", "c")])
def test_following_the_cursor_gives_every_partition_once(
    topics: SmallBroker, names: tuple[str, ...], limit: int
) -> None:
    cursor, found, pages = None, [], 0
    while pages == 0 or cursor is not None:
        answer = describe(topics, *names, cursor=cursor, limit=limit)
        described = [(name, index) for name, indexes in page(answer) for index in indexes]
        assert 1 <= len(described) <= limit
        found += described
        cursor = answer.next_cursor
        pages += 1
    assert found == [("a", 0), ("a", 1), ("a", 2), ("b", 0), ("c", 0), ("c", 1)]


def test_a_full_page_ends_where_the_next_topic_begins(topics: SmallBroker) -> None:
    answer = describe(topics, limit=3)
    assert page(answer) == [("a", [0, 1, 2])]
    assert (answer.next_cursor.topic_name, answer.next_cursor.partition_index) == ("b", 0)


def test_a_limit_below_one_counts_as_one(topics: SmallBroker) -> None:
    answer = describe(topics, limit=0)
    assert page(answer) == [("a", [0])]


def test_a_cursor_at_a_topic_that_has_gone_continues_after_it(topics: SmallBroker) -> None:
    assert page(describe(topics, cursor=Cursor(topic_name="aa", partition_index=2))) == [("b", [0]), ("c", [0, 1])]


def test_a_cursor_below_zero_is_refused(topics: SmallBroker) -> None:
    (topic,) = describe(topics, "a", cursor=Cursor(topic_name="a", partition_index=-1)).topics
    assert (topic.error_code, topic.partitions) == (ErrorCode.INVALID_REQUEST, [])
