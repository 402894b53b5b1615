"""Topics through the admin client, with brokers of all ages and with faults."""

import asyncio
from typing import Any

import pytest

from ottla.client.admin import Admin, ConfigResource, ConfigSource, NewPartitions, NewTopic
from ottla.client.errors import (
    InvalidPartitionsError,
    SeveralFailedError,
    TopicAlreadyExistsError,
    UnknownTopicOrPartitionError,
    UnsupportedVersionError,
)
from ottla.wire.errors import ErrorCode
from tests.unit.client.fake_broker import FakeBroker

from .tools import ask

CREATE_TOPICS, DELETE_TOPICS = 19, 20
OLDEST = {CREATE_TOPICS: 0, DELETE_TOPICS: 0, 32: 0, 37: 0, 44: 0}


@pytest.mark.parametrize("newest", [OLDEST, {}], ids=["oldest", "newest"])
def test_topics_and_configs_are_created_changed_and_deleted(newest: dict[int, int]) -> None:
    async def story(admin: Admin) -> None:
        await admin.create_topics([NewTopic("a"), NewTopic("b", 3, 1, topic_configs={"retention.ms": "1000"})])
        assert await admin.list_topics() == ["a", "b"]
        with pytest.raises(TopicAlreadyExistsError):
            await admin.create_topics([NewTopic("a")])
        await admin.create_partitions({"b": 5})
        described = (await admin.describe_topics(["b"]))["b"]
        assert [one.partition for one in described.partitions] == [0, 1, 2, 3, 4]
        resource = ConfigResource("topic", "b", {"cleanup.policy": "compact", "retention.ms": None})
        await admin.alter_configs([resource])
        entries = (await admin.describe_configs([ConfigResource("topic", "b")]))[resource]
        assert entries["cleanup.policy"].value == "compact"
        assert "retention.ms" not in entries
        assert entries["segment.bytes"].source is ConfigSource.DEFAULT_CONFIG
        await admin.delete_topics(["a", "b"])
        with pytest.raises(UnknownTopicOrPartitionError, match="there is no topic 'a'"):
            await admin.delete_topics(["a"])

    with FakeBroker(newest) as broker:
        ask(broker.bootstrap, story)


def test_one_failure_is_raised_as_it_is_and_the_others_are_done() -> None:
    async def story(admin: Admin) -> None:
        with pytest.raises(TopicAlreadyExistsError, match="'taken'"):
            await admin.create_topics(["taken", "new"])

    with FakeBroker() as broker:
        broker.create("taken")
        ask(broker.bootstrap, story)
        assert set(broker.topics) == {"taken", "new"}


def test_several_failures_are_raised_together_by_name() -> None:
    async def story(admin: Admin) -> SeveralFailedError:
        with pytest.raises(SeveralFailedError, match=r"2 failed: .*first.*second") as caught:
            await admin.create_topics(["first", "second", "new"])
        return caught.value

    with FakeBroker() as broker:
        broker.create("first")
        broker.create("second")
        error = ask(broker.bootstrap, story)
        assert {name: type(one) for name, one in error.failures.items()} == {
            "first": TopicAlreadyExistsError,
            "second": TopicAlreadyExistsError,
        }
        assert set(broker.topics) == {"first", "second", "new"}


def test_what_another_controller_has_to_do_is_tried_again_and_nothing_else() -> None:
    with FakeBroker() as broker:
        broker.failures[CREATE_TOPICS] = [ErrorCode.NOT_CONTROLLER]
        ask(broker.bootstrap, lambda admin: admin.create_topics(["a", "b"]))
        assert set(broker.topics) == {"a", "b"}

        create = broker._create_topics

        def fail_one(request: Any, version: int, failure: int) -> Any:
            response = create(request, version, failure)
            if len(request.topics) == 2:
                response.topics[0].error_code = ErrorCode.NOT_CONTROLLER
                del broker.topics[response.topics[0].name]
            return response

        setattr(broker, "_create_topics", fail_one)  # noqa: B010 - mypy forbids to assign to a method
        # "d" exists when "c" is tried again: asking for both would fail.
        ask(broker.bootstrap, lambda admin: admin.create_topics(["c", "d"]))
        assert set(broker.topics) == {"a", "b", "c", "d"}


@pytest.mark.parametrize("change", ["create", "delete"])
def test_a_change_that_was_made_though_its_answer_was_lost_is_no_failure(change: str) -> None:
    with FakeBroker() as broker:
        name = f"_{change}_topics"
        make = getattr(broker, name)

        def answer_once_too_late(request: Any, version: int, failure: int) -> Any:
            response = make(request, version, failure)
            setattr(broker, name, make)
            for one in response.topics if change == "create" else response.responses:
                one.error_code = ErrorCode.REQUEST_TIMED_OUT
            return response

        setattr(broker, name, answer_once_too_late)
        if change == "create":
            ask(broker.bootstrap, lambda admin: admin.create_topics(["a"]))
            assert set(broker.topics) == {"a"}
        else:
            broker.create("a")
            ask(broker.bootstrap, lambda admin: admin.delete_topics(["a"]))
            assert not broker.topics


def test_a_topic_that_brokers_have_not_heard_of_yet_is_waited_for() -> None:
    async def story(broker: FakeBroker) -> None:
        async with Admin(broker.bootstrap) as admin:
            asked = asyncio.create_task(admin.describe_topics(["late"]))
            before = broker.requests.count(("Metadata", broker.versions[3]))
            while broker.requests.count(("Metadata", broker.versions[3])) == before:
                await asyncio.sleep(0.001)
            broker.create("late", 2)
            assert len((await asked)["late"].partitions) == 2

    with FakeBroker(auto_create=False) as broker:
        asyncio.run(asyncio.wait_for(story(broker), 20))


def test_a_trial_is_refused_where_a_broker_would_take_it_for_the_real_thing() -> None:
    async def story(admin: Admin) -> None:
        with pytest.raises(UnsupportedVersionError, match="too old for validate_only"):
            await admin.create_topics(["a"], validate_only=True)

    with FakeBroker(OLDEST) as broker:
        ask(broker.bootstrap, story)
        assert not broker.topics
    with FakeBroker() as broker:
        ask(broker.bootstrap, lambda admin: admin.create_topics(["a"], validate_only=True))
        assert not broker.topics


def test_partitions_can_be_given_with_their_replicas() -> None:
    async def story(admin: Admin) -> None:
        await admin.create_topics([NewTopic("a", replica_assignments={0: [1], 1: [1]})])
        await admin.create_partitions({"a": NewPartitions(3, new_assignments=[[1], [1]])})
        with pytest.raises(InvalidPartitionsError):
            await admin.create_partitions({"a": 2})

    with FakeBroker() as broker:
        ask(broker.bootstrap, story)


def test_arguments_that_make_no_sense_are_refused_with_what_to_do() -> None:
    async def story(admin: Admin) -> None:
        with pytest.raises(TypeError, match=r"give a list, as in topics=\['orders'\]"):
            await admin.delete_topics("orders")
        with pytest.raises(ValueError, match="'orders' twice"):
            await admin.create_topics(["orders", NewTopic("orders", 3)])
        with pytest.raises(ValueError, match="leave out num_partitions and replication_factor"):
            NewTopic("orders", 3, replica_assignments={0: [1]})
        await admin.delete_topics([])

    with FakeBroker() as broker:
        ask(broker.bootstrap, story)
        assert not any(name in ("CreateTopics", "DeleteTopics") for name, _ in broker.requests)
