from typing import Any

import pytest

from ottla.wire.api.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.wire.errors import ErrorCode
from tests.unit.broker.small_broker import SmallBroker


def delete(small: SmallBroker, *topics: DeleteTopicState, timeout_ms: int = 1000, version: int = 6) -> list[Any]:
    body = DeleteTopicsRequest(timeout_ms=timeout_ms)
    if version >= 6:
        body.topics = list(topics)
    else:
        body.topic_names = [topic.name or "" for topic in topics]
    results: list[Any] = small.ask(body, version).responses
    return results


@pytest.mark.parametrize("version", range(7))
def test_every_version_deletes_by_name(small: SmallBroker, version: int) -> None:
    topic_id = small.create("orders", partitions=2)
    small.append("orders")
    (result,) = delete(small, DeleteTopicState(name="orders"), version=version)
    assert (result.name, result.error_code) == ("orders", 0)
    assert result.topic_id == (topic_id if version >= 6 else bytes(16))
    assert small.broker.image.topics == {}
    assert small.broker.logs.partitions == {}
    assert not any(name.startswith("orders") for name in small.broker.disk.list())


def test_a_topic_can_be_deleted_by_its_id(small: SmallBroker) -> None:
    topic_id = small.create("orders")
    (result,) = delete(small, DeleteTopicState(topic_id=topic_id))
    assert (result.name, result.topic_id, result.error_code) == ("orders", topic_id, 0)
    assert small.broker.image.topics == {}


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (DeleteTopicState(name="nothing"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (DeleteTopicState(name="no/name"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (DeleteTopicState(topic_id=b"1" * 16), ErrorCode.UNKNOWN_TOPIC_ID),
        (DeleteTopicState(), ErrorCode.INVALID_REQUEST),
        (DeleteTopicState(name="orders", topic_id=b"1" * 16), ErrorCode.INVALID_REQUEST),
    ],
)
def test_what_cannot_be_deleted_says_why_and_leaves_the_others_alone(
    small: SmallBroker, asked: DeleteTopicState, code: ErrorCode
) -> None:
    small.create("orders")
    small.create("other")
    refused, deleted = delete(small, asked, DeleteTopicState(name="other"))
    assert (refused.name, refused.topic_id, refused.error_code) == (asked.name, asked.topic_id, code)
    assert refused.error_message
    assert deleted.error_code == 0
    assert set(small.broker.image.topics) == {"orders"}


@pytest.mark.parametrize("second_by_id", [False, True])
def test_a_topic_that_is_there_twice_is_refused_once_and_stays(small: SmallBroker, second_by_id: bool) -> None:
    topic_id = small.create("orders")
    again = DeleteTopicState(topic_id=topic_id) if second_by_id else DeleteTopicState(name="orders")
    (result,) = delete(small, DeleteTopicState(name="orders"), again)
    assert (result.name, result.error_code) == ("orders", ErrorCode.INVALID_REQUEST)
    assert "orders" in small.broker.image.topics


@pytest.mark.parametrize("settings", [{"delete.topic.enable": "false"}])
@pytest.mark.parametrize(
    ("version", "code"),
    [(2, ErrorCode.INVALID_REQUEST), (3, ErrorCode.TOPIC_DELETION_DISABLED), (6, ErrorCode.TOPIC_DELETION_DISABLED)],
)
def test_a_broker_that_deletes_nothing_says_so(small: SmallBroker, version: int, code: ErrorCode) -> None:
    small.create("orders")
    (result,) = delete(small, DeleteTopicState(name="orders"), version=version)
    assert result.error_code == code
    assert "orders" in small.broker.image.topics


def test_without_time_to_wait_the_topic_goes_and_the_answer_is_a_timeout(small: SmallBroker) -> None:
    small.create("orders")
    (result,) = delete(small, DeleteTopicState(name="orders"), timeout_ms=0)
    assert result.error_code == ErrorCode.REQUEST_TIMED_OUT
    assert small.broker.image.topics == {}


def test_a_new_topic_of_a_deleted_ones_name_is_empty_and_has_another_id(small: SmallBroker) -> None:
    first = small.create("orders")
    small.append("orders", count=3)
    delete(small, DeleteTopicState(name="orders"))
    assert small.create("orders") != first
    assert small.broker.leader("orders", 0).log.end_offset == 0
