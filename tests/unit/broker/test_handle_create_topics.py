from typing import Any

import pytest

from ottla.wire.api.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from ottla.wire.errors import ErrorCode
from tests.unit.broker.small_broker import SmallBroker

NO_ID = bytes(16)


def topic(name: str = "orders", partitions: int = 1, replicas: int = 1, **changes: Any) -> CreatableTopic:
    return CreatableTopic(name=name, num_partitions=partitions, replication_factor=replicas, **changes)


def create(small: SmallBroker, *topics: CreatableTopic, version: int = 7, **changes: Any) -> list[Any]:
    results: list[Any] = small.ask(CreateTopicsRequest(topics=list(topics), **changes), version).topics
    return results


@pytest.mark.parametrize("version", range(8))
def test_every_version_creates_a_topic(small: SmallBroker, version: int) -> None:
    (result,) = create(small, topic(partitions=3), version=version)
    assert (result.name, result.error_code, result.error_message or None) == ("orders", 0, None)
    image = small.broker.image.topics["orders"]
    assert [partition.leader for partition in image.partitions] == [1, 1, 1]
    assert small.broker.leader("orders", 2).log.end_offset == 0
    assert result.topic_id == (image.topic_id if version >= 7 else NO_ID)
    assert (result.num_partitions, result.replication_factor) == ((3, 1) if version >= 5 else (-1, -1))


def test_the_configs_come_back_with_their_sources(small: SmallBroker) -> None:
    asked = topic(configs=[CreatableTopicConfig(name="retention.ms", value=" 1000 ")])
    (result,) = create(small, asked)
    configs = {config.name: (config.value, config.config_source) for config in result.configs}
    assert configs["retention.ms"] == ("1000", 1)
    assert configs["segment.bytes"] == ("1073741824", 5)
    assert dict(small.broker.image.topics["orders"].configs) == {"retention.ms": "1000"}


@pytest.mark.parametrize("settings", [{"num.partitions": "4"}])
def test_counts_of_minus_one_are_the_brokers_defaults(small: SmallBroker) -> None:
    (result,) = create(small, topic(partitions=-1, replicas=-1))
    assert (result.error_code, result.num_partitions, result.replication_factor) == (0, 4, 1)


@pytest.mark.parametrize("version", range(1, 8))
def test_validate_only_creates_nothing(small: SmallBroker, version: int) -> None:
    (result,) = create(small, topic(), version=version, validate_only=True, timeout_ms=0)
    assert (result.error_code, result.topic_id) == (0, NO_ID)
    assert "orders" not in small.broker.image.topics
    assert small.broker.logs.partitions == {}


def test_validate_only_finds_what_is_wrong(small: SmallBroker) -> None:
    (result,) = create(small, topic(partitions=0), validate_only=True)
    assert result.error_code == ErrorCode.INVALID_PARTITIONS


def test_replicas_can_be_assigned_by_hand(small: SmallBroker) -> None:
    assignments = [CreatableReplicaAssignment(partition_index=index, broker_ids=[1]) for index in (1, 0)]
    (result,) = create(small, topic(partitions=-1, replicas=-1, assignments=assignments))
    assert (result.error_code, result.num_partitions) == (0, 2)


def assigned(*partitions: tuple[int, list[int]], count: int = -1) -> CreatableTopic:
    assignments = [CreatableReplicaAssignment(partition_index=index, broker_ids=ids) for index, ids in partitions]
    return topic(partitions=count, replicas=count, assignments=assignments)


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (topic(""), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (topic("a/b"), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (topic("there"), ErrorCode.TOPIC_ALREADY_EXISTS),
        (topic("is_there"), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (topic(partitions=0), ErrorCode.INVALID_PARTITIONS),
        (topic(replicas=2), ErrorCode.INVALID_REPLICATION_FACTOR),
        (topic(replicas=0), ErrorCode.INVALID_REPLICATION_FACTOR),
        (assigned((0, [7])), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (assigned((1, [1])), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (assigned((0, [1]), (0, [1])), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (assigned((0, [1]), count=1), ErrorCode.INVALID_REQUEST),
        (topic(configs=[CreatableTopicConfig(name="retention.ms", value="soon")]), ErrorCode.INVALID_CONFIG),
        (topic(configs=[CreatableTopicConfig(name="no.such.config", value="1")]), ErrorCode.INVALID_CONFIG),
        (topic(configs=[CreatableTopicConfig(name="retention.ms", value=None)]), ErrorCode.INVALID_CONFIG),
    ],
)
def test_what_cannot_be_created_says_why_and_leaves_the_others_alone(
    small: SmallBroker, asked: CreatableTopic, code: ErrorCode
) -> None:
    small.create("there")
    small.create("is.there")
    refused, created = create(small, asked, topic("other"))
    assert refused.error_code == code
    assert refused.error_message
    assert (refused.num_partitions, refused.configs) == (-1, [])
    assert created.error_code == 0
    assert set(small.broker.image.topics) == {"there", "is.there", "other"}


def test_a_name_that_is_there_twice_is_refused_once_and_not_created(small: SmallBroker) -> None:
    results = create(small, topic("twice"), topic("once"), topic("twice", partitions=2))
    assert [(result.name, result.error_code) for result in results] == [
        ("twice", ErrorCode.INVALID_REQUEST),
        ("once", 0),
    ]
    assert set(small.broker.image.topics) == {"once"}


@pytest.mark.parametrize("timeout_ms", [0, -1])
def test_without_time_to_wait_the_topic_is_created_and_the_answer_is_a_timeout(
    small: SmallBroker, timeout_ms: int
) -> None:
    (result,) = create(small, topic(), timeout_ms=timeout_ms)
    assert result.error_code == ErrorCode.REQUEST_TIMED_OUT
    assert "orders" in small.broker.image.topics


def test_a_disk_that_refuses_midway_leaves_nothing_of_the_topic_and_the_others_alone(
    small: SmallBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = small.broker.disk
    make_folder = disk.make_folder

    def refusing(name: str) -> None:
        if name == "large-299":
            raise OSError(28, "No space left on device")
        make_folder(name)

    monkeypatch.setattr(disk, "make_folder", refusing)
    before, large, after = create(small, topic("before"), topic("large", 300), topic("after"))
    assert [before.error_code, large.error_code, after.error_code] == [0, ErrorCode.KAFKA_STORAGE_ERROR, 0]
    assert "No space left on device" in large.error_message
    assert sorted(small.broker.image.topics) == ["after", "before"]
    assert sorted({name for name, _ in small.broker.logs.partitions}) == ["after", "before"]
    assert [folder for folder in disk.list() if folder.startswith("large")] == []
    monkeypatch.undo()
    (again,) = create(small, topic("large", 300))
    assert again.error_code == 0


def test_names_of_one_request_that_metrics_cannot_tell_apart_collide(small: SmallBroker) -> None:
    first, second = create(small, topic("a.b"), topic("a_b"))
    assert (first.error_code, second.error_code) == (0, ErrorCode.INVALID_TOPIC_EXCEPTION)
    assert list(small.broker.image.topics) == ["a.b"]
