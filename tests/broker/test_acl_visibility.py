"""What one may not see does not show: names are left out, and what is not there looks like what one may not see."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla.broker.handle import fetch
from ottla.broker.request import Request
from ottla.cluster.acl import ACLOperation, ACLPermissionType, ACLResourcePatternType, ResourceType
from ottla.cluster.names import OFFSETS_TOPIC
from ottla.coordinator.group.consumer import ConsumerGroup
from ottla.wire.api.consumer_group_describe import ConsumerGroupDescribeRequest
from ottla.wire.api.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ottla.wire.api.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.api.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.wire.api.describe_cluster import DescribeClusterRequest
from ottla.wire.api.describe_groups import DescribeGroupsRequest
from ottla.wire.api.describe_log_dirs import DescribeLogDirsRequest
from ottla.wire.api.describe_topic_partitions import DescribeTopicPartitionsRequest, TopicRequest
from ottla.wire.api.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.wire.api.find_coordinator import FindCoordinatorRequest
from ottla.wire.api.list_groups import ListGroupsRequest
from ottla.wire.api.metadata import MetadataRequest, MetadataRequestTopic
from ottla.wire.api.offset_commit import OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic
from ottla.wire.api.offset_delete import OffsetDeleteRequest, OffsetDeleteRequestPartition, OffsetDeleteRequestTopic
from ottla.wire.api.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from ottla.wire.errors import ProtocolError
from tests.broker.acl_cases import produce
from tests.broker.acl_world import ALICE, CLASSIC_GROUP, CONSUMER_GROUP, ROOT, SETTINGS, TOPIC, World, codes
from tests.unit.broker.small_broker import SmallBroker, User

Operation, Type = ACLOperation, ResourceType
HIDDEN = "hidden"
NOTHING_SAID = -(1 << 31)


def bits(*operations: ACLOperation) -> int:
    return sum(1 << operation for operation in operations)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    _create(made, HIDDEN)
    yield made
    made.close()


def _create(world: World, name: str) -> bytes:
    asked = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    (created,) = world.ask(CreateTopicsRequest(topics=[asked]), 7, ROOT).topics
    assert created.error_code == 0
    topic_id: bytes = created.topic_id
    return topic_id


def metadata(world: World, *names: str, version: int = 13) -> Any:
    topics = [MetadataRequestTopic(name=name) for name in names]
    return world.ask(MetadataRequest(topics=topics, allow_auto_topic_creation=False), version)


def test_all_topics_are_those_that_one_may_describe(world: World) -> None:
    world.rule(Operation.DESCRIBE, Type.TOPIC, TOPIC)
    assert [topic.name for topic in world.ask(MetadataRequest(topics=None), 13).topics] == [TOPIC]
    assert [topic.name for topic in world.ask(MetadataRequest(topics=[]), 0).topics] == [TOPIC]
    page = world.ask(DescribeTopicPartitionsRequest(response_partition_limit=100, cursor=None), 0)
    assert [topic.name for topic in page.topics] == [TOPIC]


def test_a_topic_that_is_hidden_looks_like_one_that_is_not_there(world: World) -> None:
    for version in range(14):
        hidden = repr(metadata(world, HIDDEN, version=version).topics)
        missing = repr(metadata(world, "missing", version=version).topics)
        assert hidden == missing.replace("missing", HIDDEN)
    described = [
        repr(world.ask(DescribeTopicPartitionsRequest(topics=[TopicRequest(name=name)], cursor=None), 0).topics)
        for name in (HIDDEN, "missing")
    ]
    assert described[0] == described[1].replace("missing", HIDDEN)
    deleted = [
        repr(world.ask(DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=1000), 6))
        for name in (HIDDEN, "missing")
    ]
    assert deleted[0] == deleted[1].replace("missing", HIDDEN)


def test_an_id_does_not_tell_the_name(world: World) -> None:
    topic_id = world.small.broker.image.topics[HIDDEN].topic_id
    asked = MetadataRequest(topics=[MetadataRequestTopic(name=None, topic_id=topic_id)])
    (found,) = world.ask(asked, 13).topics
    assert (found.error_code, found.name or "", found.topic_id) == (29, "", topic_id)
    asked_to_delete = DeleteTopicsRequest(topics=[DeleteTopicState(name=None, topic_id=topic_id)], timeout_ms=1000)
    (refused,) = world.ask(asked_to_delete, 6).responses
    assert (refused.error_code, refused.name, refused.topic_id) == (29, None, topic_id)
    assert HIDDEN not in refused.error_message
    written = produce(world)
    written.topic_data[0].topic_id = topic_id
    (answered,) = world.ask(written, 13).responses
    assert answered.partition_responses[0].error_code == 29
    assert HIDDEN not in repr(answered)
    world.rule(Operation.DESCRIBE, Type.TOPIC, HIDDEN)
    (refused,) = world.ask(asked_to_delete, 6).responses
    assert (refused.error_code, refused.name) == (29, HIDDEN)


def test_groups_are_listed_to_those_who_may_describe_them_or_the_cluster(world: World) -> None:
    def listed() -> set[str]:
        response = world.ask(ListGroupsRequest(), 5)
        assert response.error_code == 0
        return {group.group_id for group in response.groups}

    assert listed() == set()
    world.rule(Operation.READ, Type.GROUP, CLASSIC_GROUP)
    assert listed() == {CLASSIC_GROUP}
    world.rule(Operation.DESCRIBE, Type.CLUSTER)
    assert listed() == {CLASSIC_GROUP, CONSUMER_GROUP}


def _commit(world: World, who: User, *topics: str, version: int = 9) -> dict[str, int]:
    image = world.small.broker.image
    asked = OffsetCommitRequest(
        group_id=CLASSIC_GROUP,
        topics=[
            OffsetCommitRequestTopic(
                name=name,
                topic_id=image.topics[name].topic_id,
                partitions=[OffsetCommitRequestPartition(committed_offset=1)],
            )
            for name in topics
        ],
    )
    names = {topic.topic_id: topic.name for topic in image.topics.values()}
    return {
        topic.name or names[topic.topic_id]: topic.partitions[0].error_code
        for topic in world.ask(asked, version, who).topics
    }


@pytest.mark.parametrize("version", range(11))
def test_a_commit_for_several_topics_is_refused_for_some(world: World, version: int) -> None:
    world.rule(Operation.READ, Type.GROUP, CLASSIC_GROUP)
    world.rule(Operation.READ, Type.TOPIC, TOPIC)
    assert _commit(world, ALICE, TOPIC, HIDDEN, version=version) == {TOPIC: 0, HIDDEN: 29}
    world.rule(Operation.READ, Type.TOPIC, HIDDEN)
    assert _fetched(world, version) == {TOPIC: (1, 0), HIDDEN: (-1, 3 if version == 0 else 0)}


def _fetched(world: World, version: int) -> dict[str, tuple[int, int]]:
    """Offsets and codes of both topics."""
    image = world.small.broker.image
    ids = {image.topics[name].topic_id: name for name in (TOPIC, HIDDEN)}
    asked = OffsetFetchRequest(
        group_id=CLASSIC_GROUP,
        topics=[OffsetFetchRequestTopic(name=name, partition_indexes=[0]) for name in ids.values()],
        groups=[
            OffsetFetchRequestGroup(
                group_id=CLASSIC_GROUP,
                topics=[
                    OffsetFetchRequestTopics(name=name, topic_id=topic_id, partition_indexes=[0])
                    for topic_id, name in ids.items()
                ],
            )
        ],
    )
    response = world.ask(asked, version)
    topics = response.groups[0].topics if version >= 8 else response.topics
    return {
        ids[topic.topic_id] if version >= 10 else topic.name: (
            topic.partitions[0].committed_offset,
            topic.partitions[0].error_code,
        )
        for topic in topics
    }


@pytest.mark.parametrize("version", range(11))
def test_offsets_of_some_topics_are_not_shown(world: World, version: int) -> None:
    assert _commit(world, ROOT, TOPIC, HIDDEN, version=version) == {TOPIC: 0, HIDDEN: 0}
    world.rule(Operation.DESCRIBE, Type.GROUP, CLASSIC_GROUP)
    world.rule(Operation.DESCRIBE, Type.TOPIC, TOPIC)
    assert _fetched(world, version) == {TOPIC: (1, 0), HIDDEN: (-1, 29)}


@pytest.mark.parametrize("version", range(2, 11))
def test_all_offsets_of_a_group_are_those_of_topics_that_one_may_describe(world: World, version: int) -> None:
    assert _commit(world, ROOT, TOPIC, HIDDEN) == {TOPIC: 0, HIDDEN: 0}
    world.rule(Operation.DESCRIBE, Type.GROUP, CLASSIC_GROUP)
    world.rule(Operation.DESCRIBE, Type.TOPIC, TOPIC)
    asked = OffsetFetchRequest(
        group_id=CLASSIC_GROUP,
        topics=None,
        groups=[OffsetFetchRequestGroup(group_id=CLASSIC_GROUP, topics=None)],
    )
    response = world.ask(asked, version)
    topics = response.groups[0].topics if version >= 8 else response.topics
    assert codes(response) == set()
    assert len(topics) == 1
    assert topics[0].name == TOPIC if version < 10 else topics[0].topic_id == world.topic_id


def test_offsets_are_deleted_for_topics_that_one_may_read(world: World) -> None:
    assert _commit(world, ROOT, TOPIC, HIDDEN) == {TOPIC: 0, HIDDEN: 0}
    world.rule(Operation.DELETE, Type.GROUP, CLASSIC_GROUP)
    world.rule(Operation.READ, Type.TOPIC, TOPIC)
    asked = OffsetDeleteRequest(
        group_id=CLASSIC_GROUP,
        topics=[
            OffsetDeleteRequestTopic(name=name, partitions=[OffsetDeleteRequestPartition()]) for name in (TOPIC, HIDDEN)
        ],
    )
    response = world.ask(asked, 0)
    assert {topic.name: topic.partitions[0].error_code for topic in response.topics} == {TOPIC: 0, HIDDEN: 29}
    world.rule(Operation.DESCRIBE, Type.TOPIC, HIDDEN)
    assert _fetched(world, 9) == {TOPIC: (-1, 0), HIDDEN: (1, 0)}


def test_a_topic_is_made_by_one_who_may_not_see_its_configs(world: World) -> None:
    world.rule(Operation.CREATE, Type.TOPIC, "mine")
    asked = CreateTopicsRequest(topics=[CreatableTopic(name="mine", num_partitions=3, replication_factor=1)])
    (made,) = world.ask(asked, 7).topics
    assert (made.error_code, made.topic_config_error_code) == (0, 29)
    assert (made.num_partitions, made.replication_factor, made.configs) == (-1, -1, [])
    assert len(world.small.broker.image.topics["mine"].partitions) == 3


def test_what_one_may_do_is_told_where_it_is_asked_for(world: World) -> None:
    world.rule(Operation.READ, Type.TOPIC, TOPIC)
    world.rule(Operation.ALTER_CONFIGS, Type.TOPIC, "*")
    world.rule(Operation.DESCRIBE_CONFIGS, Type.TOPIC, TOPIC, permission=ACLPermissionType.DENY)
    on_topic = bits(Operation.READ, Operation.DESCRIBE, Operation.ALTER_CONFIGS)
    asked = MetadataRequest(
        topics=[MetadataRequestTopic(name=TOPIC), MetadataRequestTopic(name=HIDDEN)],
        include_topic_authorized_operations=True,
        include_cluster_authorized_operations=True,
    )
    response = world.ask(asked, 10)
    assert [topic.topic_authorized_operations for topic in response.topics] == [on_topic, NOTHING_SAID]
    assert response.cluster_authorized_operations == 0
    page = world.ask(DescribeTopicPartitionsRequest(response_partition_limit=100, cursor=None), 0)
    assert [topic.topic_authorized_operations for topic in page.topics] == [on_topic]

    world.rule(Operation.ALTER, Type.CLUSTER)
    on_cluster = bits(Operation.ALTER, Operation.DESCRIBE)
    assert world.ask(asked, 10).cluster_authorized_operations == on_cluster
    described = world.ask(DescribeClusterRequest(include_cluster_authorized_operations=True), 2)
    assert (described.error_code, described.cluster_authorized_operations) == (0, on_cluster)

    for group_id in (CLASSIC_GROUP, CONSUMER_GROUP):
        world.rule(Operation.DELETE, Type.GROUP, group_id)
    on_group = bits(Operation.DELETE, Operation.DESCRIBE)
    classic = world.ask(DescribeGroupsRequest(groups=[CLASSIC_GROUP], include_authorized_operations=True), 6)
    consumer = world.ask(
        ConsumerGroupDescribeRequest(group_ids=[CONSUMER_GROUP], include_authorized_operations=True), 1
    )
    assert [group.authorized_operations for group in (*classic.groups, *consumer.groups)] == [on_group, on_group]


def test_a_cluster_that_one_may_not_describe_shows_no_folders(world: World) -> None:
    for version in range(3):
        assert world.ask(DescribeLogDirsRequest(topics=None), version).results == []


def test_the_brokers_are_told_to_everybody(world: World) -> None:
    response = world.ask(DescribeClusterRequest(include_cluster_authorized_operations=True), 2)
    assert (response.error_code, len(response.brokers), response.cluster_authorized_operations) == (0, 1, 0)


def test_whoever_may_not_know_a_group_does_not_have_its_topic_made(tmp_path: Path) -> None:
    with SmallBroker(tmp_path, SETTINGS) as small:
        asked = FindCoordinatorRequest(coordinator_keys=["a"])
        assert codes(small.ask(asked, 6, ALICE)) == {30}
        assert OFFSETS_TOPIC not in small.broker.image.topics


def test_a_write_that_nobody_waits_for_is_refused_by_closing(world: World) -> None:
    asked = produce(world)
    asked.acks = 0
    with pytest.raises(ProtocolError, match="TOPIC_AUTHORIZATION_FAILED"):
        world.ask(asked, 12)


def test_a_fetch_that_waits_hears_of_a_rule_that_is_gone(world: World) -> None:
    world.rule(Operation.READ, Type.TOPIC, TOPIC)
    asked = FetchRequest(
        max_wait_ms=60_000,
        min_bytes=1,
        max_bytes=1000,
        session_epoch=-1,
        topics=[
            FetchTopic(topic_id=world.topic_id, partitions=[FetchPartition(fetch_offset=5, partition_max_bytes=1000)])
        ],
    )
    broker = world.small.broker

    async def story() -> Any:
        caller = User("alice")
        answer: Any = fetch.handle(broker, Request(1, 17, "client", caller, asked))
        waiting = asyncio.ensure_future(answer)
        while caller.interrupt is None:
            await asyncio.sleep(0)
        pattern = next(iter(broker.image.acls))
        broker.image = broker.image.with_acls(pattern, frozenset())
        caller.interrupt()
        return await waiting

    (topic,) = world.small.run(story()).responses
    assert topic.partitions[0].error_code == 29


def _subscribe(world: World, member_epoch: int = 0, group: str = "patterns") -> Any:
    """A heartbeat of a member that is subscribed by a regular expression: the first one, or one that brings no news."""
    asked = ConsumerGroupHeartbeatRequest(group_id=group, member_id="member", member_epoch=member_epoch)
    if not member_epoch:
        asked.rebalance_timeout_ms = 1000
        asked.topic_partitions = []
        asked.subscribed_topic_regex = ".*"
    response = world.ask(asked, 1)
    assert codes(response) == set(), response
    return response


def _assigned(world: World, response: Any) -> set[str]:
    names = {topic.topic_id: topic.name for topic in world.small.broker.image.topics.values()}
    return {names[topic.topic_id] for topic in response.assignment.topic_partitions}


def test_a_pattern_stands_for_topics_that_its_member_may_describe(world: World) -> None:
    world.rule(Operation.READ, Type.GROUP, "patterns")
    world.rule(Operation.DESCRIBE, Type.TOPIC, TOPIC)
    joined = _subscribe(world)
    assert _assigned(world, joined) == {TOPIC}
    _create(world, "another")
    assert _subscribe(world, joined.member_epoch).assignment is None
    world.rule(Operation.DESCRIBE, Type.TOPIC, "a", pattern=ACLResourcePatternType.PREFIXED)
    grown = _subscribe(world, joined.member_epoch)
    assert _assigned(world, grown) == {TOPIC, "another"}
    world.rule(Operation.DESCRIBE, Type.TOPIC, TOPIC, permission=ACLPermissionType.DENY)
    assert _assigned(world, _subscribe(world, grown.member_epoch)) == {"another"}


def test_a_pattern_out_of_the_log_shows_no_more_than_before(world: World) -> None:
    world.rule(Operation.READ, Type.GROUP, "patterns")
    world.rule(Operation.DESCRIBE, Type.TOPIC, TOPIC)
    joined = _subscribe(world)
    groups = world.small.broker.groups
    (index,) = groups._shards

    async def reload() -> None:
        groups._shards.pop(index).stop()
        groups._begin_to_load(index)
        await groups._loading[index]

    world.small.run(reload())
    world.rule(Operation.DESCRIBE, Type.CLUSTER)
    group = groups._shards[index]._groups._groups["patterns"]
    assert isinstance(group, ConsumerGroup)
    regexes = group._core.state.regexes
    assert regexes == {".*": {TOPIC}}
    assert _subscribe(world, joined.member_epoch).assignment is None
    assert regexes == {".*": {TOPIC}}
    world.rule(Operation.DESCRIBE, Type.TOPIC, HIDDEN)
    assert _assigned(world, _subscribe(world, joined.member_epoch)) == {TOPIC, HIDDEN}
