"""The admin client, against every broker that the tests have."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer

from ottla.client.admin import Admin, ConfigResource, ConfigSource, MemberToRemove, NewTopic
from ottla.client.errors import (
    GroupIdNotFoundError,
    InvalidConfigError,
    InvalidPartitionsError,
    NonEmptyGroupError,
    OffsetOutOfRangeError,
    SeveralFailedError,
    TopicAlreadyExistsError,
    UnknownTopicOrPartitionError,
    UnsupportedVersionError,
)
from ottla.client.offsets import OffsetSpec
from ottla.client.types import OffsetAndMetadata, TopicPartition
from ottla.testing import TestBroker
from tests.peers.fixtures import Broker, NewTopicFunction, has_consumer_protocol, wait_for_topic
from tests.waiting import eventually

NODE_ID = 1
START_MS = 1_700_000_000_000
PATIENCE_S = 20

Ask = Callable[[Callable[[Admin], Awaitable[Any]]], Any]


@pytest.fixture
def ask(broker: Broker) -> Ask:
    """Runs a story with an admin client of the broker."""

    def run(story: Callable[[Admin], Awaitable[Any]]) -> Any:
        async def connected() -> Any:
            async with Admin(broker.bootstrap_servers) as admin:
                return await asyncio.wait_for(story(admin), 60)

        return asyncio.run(connected())

    return run


async def until(question: Callable[[], Awaitable[bool]]) -> None:
    """Kafka's brokers hear of changes a moment after the controller has made them."""
    await eventually(question, question.__name__)


def produce(broker: Broker, topic: str, *times_ms: int) -> None:
    """Write records with these timestamps to the first partition."""
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "enable.idempotence": True})
    for time_ms in times_ms:
        producer.produce(topic, b"value", partition=0, timestamp=time_ms)
    assert producer.flush(PATIENCE_S) == 0


@pytest.fixture
def member(broker: Broker, name: str, request: pytest.FixtureRequest) -> Iterator[Callable[..., Consumer]]:
    """Makes members of a group, of another library."""
    members: list[Consumer] = []

    def join(topic: str, **settings: str) -> Consumer:
        consumer = Consumer(
            {
                "bootstrap.servers": broker.bootstrap_servers,
                "group.id": name,
                "client.id": "reader",
                **{key.replace("_", "."): value for key, value in settings.items()},
            }
        )
        members.append(consumer)
        consumer.subscribe([topic])
        deadline = time.monotonic() + PATIENCE_S
        while not consumer.assignment():
            assert time.monotonic() < deadline, "the member got no partitions"
            consumer.poll(0.05)
        return consumer

    yield join
    for one in members:
        one.close()


def test_topics_go_from_creation_to_deletion(ask: Ask, broker: Broker, name: str) -> None:
    first, second = f"{name}-1", f"{name}-2"

    async def story(admin: Admin) -> None:
        await admin.create_topics([NewTopic(f"{name}-0", 3)], validate_only=True)
        await admin.create_topics([NewTopic(first, 3, 1, topic_configs={"retention.ms": "60000"}), second])
        await asyncio.to_thread(wait_for_topic, broker, first, 3)
        await asyncio.to_thread(wait_for_topic, broker, second)
        topics = await admin.describe_topics([first, second])
        assert [one.partition for one in topics[first].partitions] == [0, 1, 2]
        assert {one.replicas for one in topics[first].partitions} == {(NODE_ID,)}
        assert topics[first].topic_id not in (None, topics[second].topic_id)
        assert (topics[first].replication_factor, topics[first].is_internal) == (1, False)
        assert {first, second} <= set(await admin.list_topics())

        with pytest.raises(TopicAlreadyExistsError, match=first):
            await admin.create_topics([first, f"{name}-3"])
        with pytest.raises(SeveralFailedError) as caught:
            await admin.create_topics([first, second])
        assert list(caught.value.failures) == [first, second]

        await admin.create_partitions({first: 5})

        async def has_grown() -> bool:
            return len((await admin.describe_topics([first]))[first].partitions) == 5

        await until(has_grown)
        with pytest.raises(InvalidPartitionsError, match=first):
            await admin.create_partitions({first: 2})

        await admin.delete_topics([first, second])

        async def is_gone() -> bool:
            return not {first, second} & set(await admin.list_topics())

        await until(is_gone)
        assert f"{name}-3" in await admin.list_topics()
        assert f"{name}-0" not in await admin.list_topics()
        with pytest.raises(UnknownTopicOrPartitionError, match=f"there is no topic '{first}'"):
            await admin.delete_topics([first])
        with pytest.raises(UnknownTopicOrPartitionError, match=f"there is no topic '{first}'"):
            await admin.describe_topics([first])
        await admin.delete_topics([f"{name}-3"])

    ask(story)


def test_a_topic_is_made_on_brokers_of_choice(ask: Ask, broker: Broker, name: str) -> None:
    async def story(admin: Admin) -> None:
        await admin.create_topics([NewTopic(name, replica_assignments={0: [NODE_ID], 1: [NODE_ID]})])
        await asyncio.to_thread(wait_for_topic, broker, name, 2)
        assert len((await admin.describe_topics([name]))[name].partitions) == 2
        await admin.delete_topics([name])

    ask(story)


def test_configs_are_set_extended_and_put_back(ask: Ask, new_topic: NewTopicFunction) -> None:
    topic = new_topic(retention_ms=60_000)

    async def set_on_topic(admin: Admin) -> dict[str, str | None]:
        resource = ConfigResource("topic", topic)
        entries = (await admin.describe_configs([resource]))[resource].values()
        return {one.name: one.value for one in entries if one.source is ConfigSource.DYNAMIC_TOPIC_CONFIG}

    async def story(admin: Admin) -> None:
        changes = {"segment.ms": "70000", "cleanup.policy": ("append", "compact"), "retention.ms": None}
        await admin.alter_configs([ConfigResource("topic", topic, changes)])

        async def is_set() -> bool:
            return await set_on_topic(admin) == {"segment.ms": "70000", "cleanup.policy": "delete,compact"}

        await until(is_set)
        with pytest.raises(InvalidConfigError):
            await admin.alter_configs([ConfigResource("topic", topic, {"segment.ms": "soon"})])
        broker_config = ConfigResource("broker", NODE_ID, ["log.retention.hours"])
        found = await admin.describe_configs([broker_config], include_synonyms=True, include_documentation=True)
        entry = found[broker_config]["log.retention.hours"]
        assert (entry.value, entry.is_default, entry.config_type.name) == ("168", True, "INT")
        assert entry.documentation
        with pytest.raises(UnknownTopicOrPartitionError):
            await admin.describe_configs([ConfigResource("topic", f"{topic}-nope")])

    ask(story)


def test_the_cluster_and_what_its_brokers_offer(ask: Ask, broker: Broker, new_topic: NewTopicFunction) -> None:
    topic = new_topic(partitions=2)
    produce(broker, topic, START_MS)

    async def story(admin: Admin) -> None:
        cluster = await admin.describe_cluster()
        assert [(one.node_id, one.host, one.port) for one in cluster.brokers] == [(NODE_ID, broker.host, broker.port)]
        assert cluster.controller_id == NODE_ID
        assert cluster.cluster_id
        assert (await admin.api_versions())["CreateTopics"].last == 7
        assert isinstance(await admin.describe_features(), dict)
        (folder,) = (await admin.describe_log_dirs([TopicPartition(topic, 0)]))[NODE_ID]
        assert folder.error is None
        assert folder.replicas[TopicPartition(topic, 0)].size_bytes > 0
        assert await admin.find_coordinator("anyone") == NODE_ID

    ask(story)


def test_offsets_are_found_and_records_deleted(ask: Ask, broker: Broker, new_topic: NewTopicFunction) -> None:
    topic = new_topic(partitions=2)
    filled, empty = TopicPartition(topic, 0), TopicPartition(topic, 1)
    produce(broker, topic, START_MS, START_MS + 2000, START_MS + 1000)

    async def story(admin: Admin) -> None:
        assert await admin.beginning_offsets([topic]) == {filled: 0, empty: 0}
        assert await admin.end_offsets([topic], isolation_level="read_committed") == {filled: 3, empty: 0}
        for spec in (START_MS + 500, OffsetSpec.MAX_TIMESTAMP):
            found = await admin.list_offsets({filled: spec, empty: spec})
            place = found[filled]
            assert place is not None
            assert (place.offset, place.timestamp, found[empty]) == (1, START_MS + 2000, None)
        (producer,) = (await admin.describe_producers([filled, empty]))[filled]
        assert (producer.producer_epoch, producer.last_sequence) == (0, 2)
        assert producer.current_transaction_start_offset is None

        assert await admin.delete_records({filled: 2}) == {filled: 2}
        assert await admin.beginning_offsets([filled]) == {filled: 2}
        with pytest.raises(OffsetOutOfRangeError, match=str(filled)):
            await admin.delete_records({filled: 9})
        assert await admin.delete_records({filled: -1, empty: -1}) == {filled: 3, empty: 0}
        with pytest.raises(UnknownTopicOrPartitionError, match="has no partition 7"):
            await admin.end_offsets([filled, TopicPartition(topic, 7)])

    ask(story)


def test_a_group_without_members_is_given_offsets_and_deleted(ask: Ask, name: str, new_topic: NewTopicFunction) -> None:
    topic = new_topic(partitions=2)
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)

    async def story(admin: Admin) -> None:
        assert await admin.list_consumer_group_offsets(name) == {}
        await admin.alter_consumer_group_offsets(name, {first: 5, second: OffsetAndMetadata(7, "note", 0)})
        assert await admin.list_consumer_group_offsets(name) == {
            first: OffsetAndMetadata(5),
            second: OffsetAndMetadata(7, "note", 0),
        }
        assert await admin.list_consumer_group_offsets(name, [first]) == {first: OffsetAndMetadata(5)}
        assert name in {one.group_id for one in await admin.list_consumer_groups()}
        (listed,) = [one for one in await admin.list_groups(states_filter=["Empty"]) if one.group_id == name]
        assert (listed.state, listed.group_type) == ("Empty", "classic")
        group = (await admin.describe_consumer_groups([name]))[name]
        assert (group.state, group.members, group.is_active) == ("Empty", (), False)
        with pytest.raises(UnknownTopicOrPartitionError, match=f"{topic}-9"):
            await admin.alter_consumer_group_offsets(name, {TopicPartition(topic, 9): 1})
        await admin.delete_consumer_group_offsets(name, [first])
        assert list(await admin.list_consumer_group_offsets(name)) == [second]
        await admin.delete_consumer_groups([name])
        for question in (admin.describe_consumer_groups, admin.delete_consumer_groups):
            with pytest.raises(GroupIdNotFoundError, match=f"there is no group '{name}'"):
                await question([name])

    ask(story)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_with_members_is_described_and_left_alone(
    ask: Ask,
    broker: Broker,
    name: str,
    new_topic: NewTopicFunction,
    member: Callable[..., Consumer],
    protocol: str,
) -> None:
    if protocol == "consumer" and not has_consumer_protocol(broker):
        pytest.skip("this release has the classic protocol alone")
    topic = new_topic(partitions=2)
    member(topic, group_protocol=protocol)
    places = (TopicPartition(topic, 0), TopicPartition(topic, 1))

    async def story(admin: Admin) -> None:
        group = (await admin.describe_consumer_groups([name]))[name]
        assert (group.group_type, group.protocol_type, group.state) == (protocol, "consumer", "Stable")
        assert group.coordinator == broker.bootstrap_servers
        assert group.is_active
        (one,) = group.members
        assert (one.client_id, one.assignment, one.subscription) == ("reader", places, (topic,))
        assert one.target_assignment == (places if protocol == "consumer" else None)
        with pytest.raises(NonEmptyGroupError, match=name):
            await admin.delete_consumer_groups([name])
        with pytest.raises(NonEmptyGroupError, match=name):
            await admin.alter_consumer_group_offsets(name, {places[0]: 0})

    ask(story)


def test_members_that_have_gone_are_removed_from_their_group(
    ask: Ask, name: str, new_topic: NewTopicFunction, member: Callable[..., Consumer]
) -> None:
    topic = new_topic()
    # A static member stays in its group when it closes.
    member(topic, group_instance_id="reader-1").close()

    async def story(admin: Admin) -> None:
        (one,) = (await admin.describe_consumer_groups([name]))[name].members
        assert one.group_instance_id == "reader-1"
        await admin.remove_group_members(name, [MemberToRemove(group_instance_id="reader-1", reason="gone")])
        assert (await admin.describe_consumer_groups([name]))[name].members == ()

    ask(story)


def test_replicas_are_moved_and_leaders_elected_where_the_broker_offers_it(
    ask: Ask, broker: Broker, new_topic: NewTopicFunction
) -> None:
    place = TopicPartition(new_topic(), 0)

    async def story(admin: Admin) -> None:
        if isinstance(broker, TestBroker):
            with pytest.raises(UnsupportedVersionError, match="does not offer ElectLeaders"):
                await admin.elect_leaders("preferred", [place])
            return
        assert await admin.elect_leaders("preferred", [place]) == {place: False}
        with pytest.raises(UnknownTopicOrPartitionError):
            await admin.elect_leaders("preferred", [place, TopicPartition("nope", 0)])
        await admin.alter_partition_reassignments({place: [NODE_ID]})

        async def is_done() -> bool:
            return await admin.list_partition_reassignments([place]) == {}

        await until(is_done)

    ask(story)
