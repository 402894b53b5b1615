from typing import Any

import pytest

from ottla.wire.api.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from ottla.wire.errors import ErrorCode
from tests.unit.broker.small_broker import SmallBroker


def topic(name: str = "orders", count: int = 3, assigned: list[list[int]] | None = None) -> CreatePartitionsTopic:
    asked = CreatePartitionsTopic(name=name, count=count, assignments=None)
    if assigned is not None:
        asked.assignments = [CreatePartitionsAssignment(broker_ids=broker_ids) for broker_ids in assigned]
    return asked


def grow(small: SmallBroker, *topics: CreatePartitionsTopic, version: int = 3, **changes: Any) -> list[Any]:
    body = CreatePartitionsRequest(topics=list(topics), **{"timeout_ms": 1000, **changes})
    results: list[Any] = small.ask(body, version).results
    return results


def count(small: SmallBroker, name: str = "orders") -> int:
    return len(small.broker.image.topics[name].partitions)


@pytest.mark.parametrize("version", range(4))
def test_every_version_adds_partitions_and_keeps_those_that_are_there(small: SmallBroker, version: int) -> None:
    small.create("orders")
    small.append("orders", count=5)
    (result,) = grow(small, topic(), version=version)
    assert (result.name, result.error_code, result.error_message) == ("orders", 0, None)
    assert [small.broker.leader("orders", index).log.end_offset for index in range(3)] == [5, 0, 0]


def test_replicas_can_be_assigned_by_hand(small: SmallBroker) -> None:
    small.create("orders")
    (result,) = grow(small, topic(assigned=[[1], [1]]))
    assert (result.error_code, count(small)) == (0, 3)


def test_validate_only_adds_nothing(small: SmallBroker) -> None:
    small.create("orders")
    (result,) = grow(small, topic(), validate_only=True, timeout_ms=0)
    assert (result.error_code, count(small)) == (0, 1)


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (topic("nothing"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (topic(count=2), ErrorCode.INVALID_PARTITIONS),
        (topic(count=1), ErrorCode.INVALID_PARTITIONS),
        (topic(count=-1), ErrorCode.INVALID_PARTITIONS),
        (topic(assigned=[[1], [1]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (topic(assigned=[[7]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (topic(assigned=[[1, 1]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
@pytest.mark.parametrize("validate_only", [False, True])
def test_what_cannot_be_added_says_why_and_leaves_the_others_alone(
    small: SmallBroker, asked: CreatePartitionsTopic, code: ErrorCode, validate_only: bool
) -> None:
    small.create("orders", partitions=2)
    small.create("other")
    refused, grown = grow(small, asked, topic("other"), validate_only=validate_only)
    assert refused.error_code == code
    assert refused.error_message
    assert grown.error_code == 0
    assert (count(small), count(small, "other")) == (2, 1 if validate_only else 3)


def test_a_topic_that_is_there_twice_is_refused_once_and_stays(small: SmallBroker) -> None:
    small.create("orders")
    (result,) = grow(small, topic(count=2), topic(count=3))
    assert (result.error_code, count(small)) == (ErrorCode.INVALID_REQUEST, 1)


def test_without_time_to_wait_partitions_are_added_and_the_answer_is_a_timeout(small: SmallBroker) -> None:
    small.create("orders")
    (result,) = grow(small, topic(), timeout_ms=0)
    assert (result.error_code, count(small)) == (ErrorCode.REQUEST_TIMED_OUT, 3)
