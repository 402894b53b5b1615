"""Every version of every group request, over a socket."""

from collections.abc import Iterator

import pytest

from ottla.testing import TestBroker
from ottla.wire.api.api_versions import ApiVersionsRequest
from ottla.wire.api.consumer_group_describe import ConsumerGroupDescribeRequest
from ottla.wire.api.delete_groups import DeleteGroupsRequest
from ottla.wire.api.describe_groups import DescribeGroupsRequest
from ottla.wire.api.find_coordinator import FindCoordinatorRequest
from ottla.wire.api.heartbeat import HeartbeatRequest
from ottla.wire.api.list_groups import ListGroupsRequest
from ottla.wire.api.offset_delete import OffsetDeleteRequest, OffsetDeleteRequestPartition, OffsetDeleteRequestTopic
from ottla.wire.api.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from ottla.wire.errors import ErrorCode
from tests.broker.group_client import GroupClient, commit, join, leave, sync

GROUP_KEYS = {8: 10, 9: 10, 10: 6, 11: 9, 12: 4, 13: 5, 14: 5, 15: 6, 16: 5, 42: 3, 47: 0, 68: 1, 69: 1}


@pytest.fixture
def client(broker: TestBroker) -> Iterator[GroupClient]:
    with GroupClient((broker.host, broker.port)) as connected:
        yield connected


def test_all_versions_are_advertised(client: GroupClient) -> None:
    offered = client.versions()
    assert {key: offered[key] for key in GROUP_KEYS} == {key: range(last + 1) for key, last in GROUP_KEYS.items()}


@pytest.mark.parametrize("version", range(3, 6))
def test_the_consumer_protocol_is_a_feature(client: GroupClient, version: int) -> None:
    offered = client.call(ApiVersionsRequest(client_software_name="raw", client_software_version="1"), version)
    assert [(one.name, one.min_version, one.max_version) for one in offered.supported_features] == [
        ("group.version", 0 if version >= 4 else 1, 1)
    ]
    assert [(one.name, one.max_version_level) for one in offered.finalized_features] == [("group.version", 1)]
    assert offered.finalized_features_epoch >= 0


@pytest.mark.parametrize("settings", [{"group.coordinator.rebalance.protocols": "classic"}])
def test_the_consumer_protocol_can_be_switched_off(client: GroupClient) -> None:
    offered = client.call(ApiVersionsRequest(client_software_name="raw", client_software_version="1"), 4)
    assert (offered.supported_features, offered.finalized_features) == ([], [])
    refused = client.consumer_heartbeat("g", member_id="m", member_epoch=0, subscribed_topic_names=["t"])
    assert refused.error_code == ErrorCode.UNSUPPORTED_VERSION


@pytest.mark.parametrize("version", range(7))
def test_find_coordinator(client: GroupClient, broker: TestBroker, version: int) -> None:
    if version < 4:
        found = client.call(FindCoordinatorRequest(key="g"), version)
        assert (found.error_code, found.node_id, found.host, found.port) == (0, 1, broker.host, broker.port)
        return
    found = client.call(FindCoordinatorRequest(coordinator_keys=["g", "", "h"]), version).coordinators
    assert [(one.key, one.error_code, one.node_id, one.host, one.port) for one in found] == [
        (key, 0, 1, broker.host, broker.port) for key in ("g", "", "h")
    ]


@pytest.mark.parametrize("version", range(10))
def test_a_members_life(client: GroupClient, version: int) -> None:
    client.topic("t")
    joined = client.join_as_new("g", version)
    assert joined.error_code == 0
    assert (joined.generation_id, joined.leader, joined.protocol_name) == (1, joined.member_id, "range")
    assert [(member.member_id, member.metadata) for member in joined.members] == [(joined.member_id, b"metadata")]
    if version >= 7:
        assert joined.protocol_type == "consumer"

    synced = client.latest(sync("g", joined, {joined.member_id: b"mine"}), version)
    assert (synced.error_code, synced.assignment) == (0, b"mine")
    if version >= 5:
        assert (synced.protocol_type, synced.protocol_name) == ("consumer", "range")

    beat = HeartbeatRequest(group_id="g", member_id=joined.member_id, generation_id=joined.generation_id)
    assert client.latest(beat, version).error_code == 0

    member = {"member_id": joined.member_id, "generation_id_or_member_epoch": 1}
    assert client.commit("g", offset=7, version=max(1, version), metadata="note", **member) == 0
    assert client.committed("g", version=max(1, version)) == (7, "note")

    left = client.latest(leave("g", joined.member_id), version)
    assert left.error_code == 0
    if version >= 3:
        assert [(member.member_id, member.error_code) for member in left.members] == [(joined.member_id, 0)]
    assert client.heartbeat("g", joined.member_id, 1) == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("version", range(4, 10))
def test_a_new_member_is_told_its_id_from_version_4_on(client: GroupClient, version: int) -> None:
    told = client.call(join("g"), version)
    assert told.error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert told.member_id.startswith("raw-")
    assert client.call(join("g", member_id=told.member_id), version).error_code == 0


@pytest.mark.parametrize("version", range(5, 10))
def test_a_static_member_comes_back_without_a_rebalance(client: GroupClient, version: int) -> None:
    member_id, generation = client.become_only_member("g", group_instance_id="one")
    again = client.call(join("g", group_instance_id="one"), version)
    assert (again.error_code, again.generation_id) == (0, generation)
    assert again.member_id != member_id
    assert client.heartbeat("g", member_id, generation, group_instance_id="one") == ErrorCode.FENCED_INSTANCE_ID


@pytest.mark.parametrize("version", range(11))
def test_commits_of_a_simple_consumer(client: GroupClient, version: int) -> None:
    topic_id = client.topic("t").topic_id
    assert client.commit("g", offset=41, version=version, metadata="one", topic_id=topic_id) == 0
    assert client.commit("g", offset=42, version=version, metadata="two", topic_id=topic_id) == 0
    assert client.committed("g", version=min(version, 1)) == (42, "two")


@pytest.mark.parametrize("version", range(11))
def test_fetching_offsets(client: GroupClient, version: int) -> None:
    topic_id = client.topic("t").topic_id
    client.commit("g", offset=7, version=0 if version == 0 else 8)
    if version < 8:
        asked = OffsetFetchRequestTopic(name="t", partition_indexes=[0, 5])
        response = client.call(OffsetFetchRequest(group_id="g", topics=[asked]), version)
        (topic,) = response.topics
        assert topic.name == "t"
    else:
        wanted = OffsetFetchRequestTopics(name="t", topic_id=topic_id, partition_indexes=[0, 5])
        groups = [OffsetFetchRequestGroup(group_id=group_id, topics=[wanted]) for group_id in ("g", "other")]
        response = client.call(OffsetFetchRequest(groups=groups), version)
        assert [(group.group_id, group.error_code) for group in response.groups] == [("g", 0), ("other", 0)]
        ((topic,), (nothing,)) = (group.topics for group in response.groups)
        assert [partition.committed_offset for partition in nothing.partitions] == [-1, -1]
        assert topic.topic_id == topic_id if version >= 10 else topic.name == "t"
    found, missing = topic.partitions
    assert (found.partition_index, found.committed_offset, found.error_code) == (0, 7, 0)
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if version == 0 else ErrorCode.NONE
    assert (missing.partition_index, missing.committed_offset, missing.metadata) == (5, -1, "")
    assert missing.error_code == unknown


@pytest.mark.parametrize("version", range(2, 11))
def test_fetching_all_offsets(client: GroupClient, version: int) -> None:
    topic_ids = [client.topic(name).topic_id for name in ("a", "b")]
    for name in ("a", "b"):
        assert client.commit("g", name, 7) == 0
    if version < 8:
        topics = client.call(OffsetFetchRequest(group_id="g", topics=None), version).topics
    else:
        request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=None)])
        (group,) = client.call(request, version).groups
        topics = group.topics
    if version < 10:
        assert sorted(topic.name for topic in topics) == ["a", "b"]
    else:
        assert sorted(topic.topic_id for topic in topics) == sorted(topic_ids)
    assert [topic.partitions[0].committed_offset for topic in topics] == [7, 7]


@pytest.mark.parametrize("version", range(7))
def test_describe_groups(client: GroupClient, version: int) -> None:
    member_id, _ = client.become_only_member("g")
    request = DescribeGroupsRequest(groups=["g", "nowhere"], include_authorized_operations=version >= 3)
    found, missing = client.call(request, version).groups
    assert (found.error_code, found.group_id, found.group_state) == (0, "g", "Stable")
    assert (found.protocol_type, found.protocol_data) == ("consumer", "range")
    (member,) = found.members
    assert (member.member_id, member.client_id, member.client_host) == (member_id, "raw", "/127.0.0.1")
    assert (member.member_metadata, member.member_assignment) == (b"metadata", b"mine")
    if version >= 3:
        assert found.authorized_operations == 0b1_0100_1000
    assert missing.group_state == "Dead"
    assert missing.error_code == (ErrorCode.GROUP_ID_NOT_FOUND if version >= 6 else ErrorCode.NONE)


@pytest.mark.parametrize("version", range(6))
def test_list_groups(client: GroupClient, version: int) -> None:
    assert client.call(ListGroupsRequest(), version).groups == []
    client.become_only_member("with-members")
    client.topic("t")
    # Many of them, so that they are in many shards.
    for number in range(20):
        client.commit(f"simple-{number}")
    listed = {group.group_id: group for group in client.call(ListGroupsRequest(), version).groups}
    assert listed.keys() == {"with-members", *(f"simple-{number}" for number in range(20))}
    found = listed["with-members"]
    assert found.protocol_type == "consumer"
    if version >= 4:
        assert (found.group_state, listed["simple-3"].group_state) == ("Stable", "Empty")
        stable = client.call(ListGroupsRequest(states_filter=["Stable"]), version).groups
        assert [group.group_id for group in stable] == ["with-members"]
    if version >= 5:
        assert found.group_type == "classic"
        assert client.call(ListGroupsRequest(types_filter=["consumer"]), version).groups == []


@pytest.mark.parametrize("version", range(4))
def test_delete_groups(client: GroupClient, version: int) -> None:
    client.topic("t")
    client.commit("a", offset=7)
    client.commit("b", offset=7)
    client.become_only_member("busy")
    results = client.call(DeleteGroupsRequest(groups_names=["a", "busy", "nowhere", "b"]), version).results
    assert [(result.group_id, ErrorCode(result.error_code).name) for result in results] == [
        ("a", "NONE"),
        ("busy", "NON_EMPTY_GROUP"),
        ("nowhere", "GROUP_ID_NOT_FOUND"),
        ("b", "NONE"),
    ]
    assert client.committed("a") == (-1, "")
    assert [group.group_id for group in client.call(ListGroupsRequest(), 4).groups] == ["busy"]


def test_offset_delete(client: GroupClient) -> None:
    client.topic("t")
    client.commit("g", offset=7)
    partitions = [OffsetDeleteRequestPartition(partition_index=0)]
    request = OffsetDeleteRequest(group_id="g", topics=[OffsetDeleteRequestTopic(name="t", partitions=partitions)])
    deleted = client.call(request, 0)
    assert (deleted.error_code, deleted.topics[0].partitions[0].error_code) == (0, 0)
    assert client.committed("g") == (-1, "")
    nowhere = OffsetDeleteRequest(group_id="nowhere", topics=[])
    assert client.call(nowhere, 0).error_code == ErrorCode.GROUP_ID_NOT_FOUND


@pytest.mark.parametrize("version", range(2))
def test_a_members_life_in_the_consumer_protocol(client: GroupClient, version: int) -> None:
    topic_id = client.topic("t").topic_id
    member_id = "A" * 22 if version >= 1 else ""
    joined = client.consumer_heartbeat(
        "g",
        version,
        member_id=member_id,
        member_epoch=0,
        rebalance_timeout_ms=10_000,
        subscribed_topic_names=["t"],
        topic_partitions=[],
    )
    assert joined.error_code == 0, joined.error_message
    assert joined.heartbeat_interval_ms == 5000
    assert [(one.topic_id, one.partitions) for one in joined.assignment.topic_partitions] == [(topic_id, [0])]
    member = {"member_id": joined.member_id, "member_epoch": joined.member_epoch}
    steady = client.consumer_heartbeat("g", version, **member)
    assert (steady.error_code, steady.assignment) == (0, None)

    epoch = {"member_id": joined.member_id, "generation_id_or_member_epoch": joined.member_epoch}
    assert client.commit("g", offset=5, version=9, **epoch) == 0
    assert client.commit("g", offset=6, version=10, topic_id=topic_id, **epoch) == 0
    assert client.committed("g") == (6, "")

    request = ConsumerGroupDescribeRequest(group_ids=["g", "nowhere"], include_authorized_operations=True)
    found, missing = client.call(request, version).groups
    assert (found.error_code, found.group_state, found.assignor_name) == (0, "Stable", "uniform")
    assert found.authorized_operations == 0b1_0100_1000
    assert [one.member_id for one in found.members] == [joined.member_id]
    assert found.members[0].assignment.topic_partitions[0].topic_name == "t"
    assert (missing.group_id, missing.error_code) == ("nowhere", ErrorCode.GROUP_ID_NOT_FOUND)

    left = client.consumer_heartbeat("g", version, member_id=joined.member_id, member_epoch=-1)
    assert (left.error_code, left.member_epoch) == (0, -1)
    (empty,) = client.call(ConsumerGroupDescribeRequest(group_ids=["g"]), version).groups
    assert (empty.group_state, empty.members) == ("Empty", [])


def test_commits_with_their_own_time_and_retention(client: GroupClient) -> None:
    client.topic("t")
    assert client.commit("g", offset=1, version=1, timestamp=1_000) == 0
    assert client.commit("h", offset=2, version=4, retention_time_ms=60_000) == 0
    assert client.committed("g") == (1, "")
    assert client.committed("h") == (2, "")


def test_offsets_of_version_0_and_of_later_ones_do_not_see_each_other(client: GroupClient) -> None:
    client.topic("t")
    assert client.call(commit("g", "t", 10), 0).topics[0].partitions[0].error_code == 0
    assert client.call(commit("g", "t", 20), 1).topics[0].partitions[0].error_code == 0
    assert client.committed("g", version=0) == (10, "")
    assert client.committed("g", version=1) == (20, "")
