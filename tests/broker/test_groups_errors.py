"""Every error code that the protocol guides list for group requests, and those that came later, provoked on a socket.

NOT_COORDINATOR (16) needs a second broker, GROUP_AUTHORIZATION_FAILED (30) and its kin an authoriser: see docs/gaps.md.
More of COORDINATOR_NOT_AVAILABLE (15) is in `test_groups_not_available`.
"""

import time
from collections.abc import Iterator
from threading import Event
from typing import Any

import pytest

from ottla.broker.coordinator_load import Loader
from ottla.replica.partition import Partition
from ottla.testing import TestBroker
from ottla.wire.api.consumer_group_describe import ConsumerGroupDescribeRequest
from ottla.wire.api.describe_groups import DescribeGroupsRequest
from ottla.wire.api.find_coordinator import FindCoordinatorRequest
from ottla.wire.api.list_groups import ListGroupsRequest
from ottla.wire.api.offset_commit import OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic
from ottla.wire.api.offset_delete import OffsetDeleteRequest, OffsetDeleteRequestPartition, OffsetDeleteRequestTopic
from ottla.wire.api.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopic
from ottla.wire.api.sync_group import SyncGroupRequest
from ottla.wire.embedded import encode_versioned
from ottla.wire.embedded.consumer_protocol import ConsumerProtocolSubscription
from ottla.wire.errors import ErrorCode, KafkaError
from tests.broker.group_client import GroupClient, join, leave, of, sync
from tests.waiting import until

COMMIT_VERSIONS = range(1, 9)


@pytest.fixture
def settings() -> dict[str, str]:
    return {"group.max.size": "2", "group.consumer.max.size": "2"}


@pytest.fixture
def client(broker: TestBroker) -> Iterator[GroupClient]:
    with GroupClient((broker.host, broker.port)) as connected:
        connected.topic("t")
        yield connected


@pytest.fixture
def other(broker: TestBroker) -> Iterator[GroupClient]:
    with GroupClient((broker.host, broker.port)) as connected:
        yield connected


def waits_to_join(client: GroupClient) -> None:
    """Return when the broker has heard of one who wants to join."""

    def is_told() -> bool:
        described = client.call(DescribeGroupsRequest(groups=["g"]), 5).groups[0]
        return bool(described.group_state == "PreparingRebalance")

    until(is_told, "another one waits to join")


def consumer(client: GroupClient, group_id: str, member_id: str, **fields: Any) -> ErrorCode:
    first: dict[str, Any] = {
        "member_epoch": 0,
        "rebalance_timeout_ms": 10_000,
        "subscribed_topic_names": ["t"],
        "topic_partitions": [],
    }
    return ErrorCode(client.consumer_heartbeat(group_id, member_id=member_id, **{**first, **fields}).error_code)


# 3 UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("version", range(10))
def test_a_commit_for_what_does_not_exist(client: GroupClient, version: int) -> None:
    assert client.commit("g", "nowhere", version=version) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert client.commit("g", "t", partition=99, version=version) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert client.commit("g", "t", partition=-1, version=version) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_commit_for_an_unknown_topic_id(client: GroupClient) -> None:
    assert client.commit("g", version=10, topic_id=b"i" * 16) == ErrorCode.UNKNOWN_TOPIC_ID


# 12 OFFSET_METADATA_TOO_LARGE


@pytest.mark.parametrize("version", range(9))
def test_metadata_beyond_the_limit(client: GroupClient, version: int) -> None:
    assert client.commit("g", version=version, metadata="x" * 4096) == ErrorCode.NONE
    assert client.commit("g", version=version, metadata="x" * 4097) == ErrorCode.OFFSET_METADATA_TOO_LARGE


# 14 COORDINATOR_LOAD_IN_PROGRESS


@pytest.fixture
def may_load(monkeypatch: pytest.MonkeyPatch) -> Iterator[Event]:
    """Loading waits for this."""
    allowed = Event()
    replay_piece = Loader._replay_piece

    def when_allowed(loader: Loader) -> None:
        allowed.wait(30)
        replay_piece(loader)

    monkeypatch.setattr(Loader, "_replay_piece", when_allowed)
    yield allowed
    allowed.set()


def test_while_groups_are_loaded(broker: TestBroker, may_load: Event) -> None:
    with GroupClient((broker.host, broker.port)) as client:
        client.topic("t")
        member_id, generation = client.become_only_member("g")
        member = of(member_id, generation)
        assert client.commit("g", offset=7, **member) == 0
    broker.stop()
    broker.start()
    with GroupClient((broker.host, broker.port)) as client:
        code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        assert client.call(FindCoordinatorRequest(key="g"), 0).error_code == 0
        for version in COMMIT_VERSIONS:
            assert client.commit("g", version=version, **member) == code
        assert client.call(join("g"), 0).error_code == code
        assert client.call(leave("g", member_id), 0).error_code == code
        topics = [OffsetFetchRequestTopic(name="t", partition_indexes=[0])]
        fetched = client.call(OffsetFetchRequest(group_id="g", topics=topics), 1)
        assert fetched.topics[0].partitions[0].error_code == code
        assert client.call(OffsetFetchRequest(group_id="g", topics=topics), 2).error_code == code
        assert client.call(ListGroupsRequest(), 0).error_code == code
        assert client.call(DescribeGroupsRequest(groups=["g"]), 0).groups[0].error_code == code
        assert client.consumer_heartbeat("g", member_id="m").error_code == code
        # Where clients do not expect to hear of loading.
        assert client.heartbeat("g", member_id, generation) == ErrorCode.NONE
        syncing = SyncGroupRequest(group_id="g", member_id=member_id, generation_id=generation)
        assert client.call(syncing, 5).error_code == ErrorCode.REBALANCE_IN_PROGRESS
        # A group whose shard has nothing to load is served.
        assert client.commit("another") == 0
        may_load.set()
        until(lambda: client.commit("g", offset=8, **member) == ErrorCode.NONE, "g is loaded")
        assert client.committed("g") == (8, "")
        assert client.heartbeat("g", member_id, generation) == ErrorCode.NONE, "its session goes on"


# 15 COORDINATOR_NOT_AVAILABLE


@pytest.mark.parametrize("version", range(1, 7))
def test_transactions_and_share_groups_have_no_coordinator(client: GroupClient, version: int) -> None:
    def code(key_type: int) -> ErrorCode:
        response = client.call(FindCoordinatorRequest(key="k", key_type=key_type, coordinator_keys=["k"]), version)
        return ErrorCode((response.coordinators[0] if version >= 4 else response).error_code)

    assert code(1) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert code(2) == ErrorCode.INVALID_REQUEST


def test_a_coordinator_that_cannot_write_is_not_available_until_it_can(
    client: GroupClient, other: GroupClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    member_id, generation = client.become_only_member("g")
    member = of(member_id, generation)
    assert client.commit("g", offset=7, **member) == 0
    told = other.call(join("g"), 9)
    other.begin(join("g", member_id=told.member_id), 9)
    waits_to_join(client)

    def fail(*_arguments: object) -> None:
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "no space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(Partition, "append_own", fail)
        assert client.commit("g", offset=8, **member) == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert other.finish().error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE, "who waits is told"
        assert client.commit("g", offset=8, **member) in (
            ErrorCode.COORDINATOR_NOT_AVAILABLE,
            ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        )
    until(lambda: client.commit("g", offset=9, **member) == ErrorCode.NONE, "it can write again")
    assert client.committed("g") == (9, "")


def test_a_stop_answers_who_waits_to_join(broker: TestBroker, client: GroupClient, other: GroupClient) -> None:
    client.become_only_member("g")
    told = other.call(join("g"), 9)
    other.begin(join("g", member_id=told.member_id), 9)
    waits_to_join(client)
    begun = time.monotonic()
    broker.stop()
    assert time.monotonic() - begun < 8, "it waited for the ten seconds that a rebalance may take"
    assert other.finish().error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE


# 22 ILLEGAL_GENERATION, 25 UNKNOWN_MEMBER_ID


def test_a_generation_that_is_over(client: GroupClient) -> None:
    member_id, generation = client.become_only_member("g")
    assert client.heartbeat("g", member_id, generation - 1) == ErrorCode.ILLEGAL_GENERATION
    joined = client.call(join("g", member_id=member_id), 9)
    wrong = sync("g", joined, generation_id=joined.generation_id - 1)
    assert client.call(wrong, 5).error_code == ErrorCode.ILLEGAL_GENERATION
    for version in COMMIT_VERSIONS:
        code = client.commit("g", version=version, member_id=member_id, generation_id_or_member_epoch=99)
        assert code == ErrorCode.ILLEGAL_GENERATION
    assert client.commit("nowhere", member_id="m", generation_id_or_member_epoch=1) == ErrorCode.ILLEGAL_GENERATION


def test_offsets_fetched_in_a_generation_that_is_over(client: GroupClient, other: GroupClient) -> None:
    """Only v9 tells who asks, and only a group with members of the new protocol compares that with what it knows."""
    subscription = encode_versioned(ConsumerProtocolSubscription(topics=["t"]), 0)
    member_id, generation = client.become_only_member("g", b"\0\0" + bytes(8), protocols={"range": subscription})
    assert consumer(other, "g", "new") == ErrorCode.NONE
    for epoch, code in ((generation, ErrorCode.NONE), (generation + 9, ErrorCode.ILLEGAL_GENERATION)):
        asked = OffsetFetchRequestGroup(group_id="g", member_id=member_id, member_epoch=epoch, topics=[])
        (answer,) = client.call(OffsetFetchRequest(groups=[asked]), 9).groups
        assert answer.error_code == code


def test_a_member_that_is_none(client: GroupClient) -> None:
    _, generation = client.become_only_member("g")
    code = ErrorCode.UNKNOWN_MEMBER_ID
    for group in ("g", "nowhere"):
        assert client.heartbeat(group, "nobody", generation) == code
        joined = client.call(join(group, member_id="nobody"), 9)
        assert joined.error_code == code
        joined.generation_id = generation
        joined.protocol_type, joined.protocol_name = "consumer", "range"
        assert client.call(sync(group, joined), 5).error_code == code
        assert client.call(leave(group, "nobody"), 0).error_code == code
        assert [member.error_code for member in client.call(leave(group, "nobody"), 3).members] == [code]
    for version in COMMIT_VERSIONS:
        assert client.commit("g", version=version, member_id="nobody", generation_id_or_member_epoch=generation) == code
        assert client.commit("g", version=version) == code, "a simple consumer has no business in a group with members"
    assert consumer(client, "c", "m") == ErrorCode.NONE
    for member_id, epoch, expected in (("nobody", 1, code), ("m", 99, ErrorCode.STALE_MEMBER_EPOCH)):
        as_member = OffsetFetchRequestGroup(group_id="c", member_id=member_id, member_epoch=epoch, topics=[])
        (answer,) = client.call(OffsetFetchRequest(groups=[as_member]), 9).groups
        assert answer.error_code == expected


# 23 INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.parametrize("version", range(10))
def test_protocols_that_do_not_go_together(client: GroupClient, other: GroupClient, version: int) -> None:
    client.become_only_member("g")
    code = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert other.call(join("g", protocol_type="connect"), version).error_code == code
    assert other.call(join("g", protocols={"sticky": b""}), version).error_code == code
    assert other.call(join("new", protocols={}), version).error_code == code
    assert other.call(join("new", protocol_type=""), version).error_code == code


def test_a_sync_with_another_protocol(client: GroupClient) -> None:
    joined = client.join_as_new("g")
    wrong = sync("g", joined, protocol_name="sticky")
    assert client.call(wrong, 5).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


# 24 INVALID_GROUP_ID


def test_an_empty_group_id(client: GroupClient) -> None:
    code = ErrorCode.INVALID_GROUP_ID
    for version in range(10):
        assert client.call(join(""), version).error_code == code
    joined = client.join_as_new("g")
    for version in range(6):
        assert client.call(sync("", joined), version).error_code == code
        assert client.call(leave("", joined.member_id), version).error_code == code
    for version in range(5):
        assert client.heartbeat("", "m", 1, version) == code
    assert client.call(ConsumerGroupDescribeRequest(group_ids=[""]), 0).groups[0].error_code == code


# 26 INVALID_SESSION_TIMEOUT


@pytest.mark.parametrize("version", range(10))
@pytest.mark.parametrize("session_timeout_ms", [-1, 0, 999, 1_800_001])
def test_session_timeouts_out_of_bounds(client: GroupClient, version: int, session_timeout_ms: int) -> None:
    response = client.call(join("g", session_timeout_ms=session_timeout_ms), version)
    assert response.error_code == ErrorCode.INVALID_SESSION_TIMEOUT


# 27 REBALANCE_IN_PROGRESS


def test_while_a_group_rebalances(client: GroupClient, other: GroupClient) -> None:
    member_id, generation = client.become_only_member("g")
    told = other.call(join("g"), 9)
    other.begin(join("g", member_id=told.member_id), 9)
    until(
        lambda: client.heartbeat("g", member_id, generation) == ErrorCode.REBALANCE_IN_PROGRESS,
        "the member is told of another one",
    )
    syncing = SyncGroupRequest(group_id="g", member_id=member_id, generation_id=generation)
    assert client.call(syncing, 5).error_code == ErrorCode.REBALANCE_IN_PROGRESS
    member = of(member_id, generation)
    assert client.commit("g", offset=3, **member) == ErrorCode.NONE, "before it joins again, a member may commit"
    joined = client.call(join("g", member_id=member_id), 9)
    assert (joined.error_code, joined.generation_id) == (0, generation + 1)
    assert other.finish().generation_id == generation + 1
    member["generation_id_or_member_epoch"] = generation + 1
    for version in COMMIT_VERSIONS:
        assert client.commit("g", version=version, **member) == ErrorCode.REBALANCE_IN_PROGRESS
    assert client.committed("g") == (3, "")


# 28 INVALID_COMMIT_OFFSET_SIZE


@pytest.mark.parametrize("version", [0, 1, 8])
def test_more_offsets_than_can_be_written_at_once(version: int) -> None:
    settings = {"offsets.topic.segment.bytes": "1048576", "num.partitions": "400"}
    with TestBroker(settings) as broker, GroupClient((broker.host, broker.port)) as client:
        client.topic("t")

        def committed(count: int) -> set[ErrorCode]:
            partitions = [
                OffsetCommitRequestPartition(partition_index=index, committed_offset=1, committed_metadata="x" * 4000)
                for index in range(count)
            ]
            topic = OffsetCommitRequestTopic(name="t", partitions=partitions)
            response = client.call(OffsetCommitRequest(group_id="g", topics=[topic]), version)
            assert len(response.topics[0].partitions) == count
            return {ErrorCode(partition.error_code) for partition in response.topics[0].partitions}

        assert committed(300) == {ErrorCode.INVALID_COMMIT_OFFSET_SIZE}
        assert committed(200) == {ErrorCode.NONE}, "and nobody else suffers"


# Codes that came after the guides.


def test_a_full_group(client: GroupClient, other: GroupClient, broker: TestBroker) -> None:
    first = client.call(join("g"), 3)
    assert first.error_code == 0
    other.begin(join("g"), 3)
    waits_to_join(client)
    assert client.call(join("g", member_id=first.member_id), 3).error_code == 0
    assert other.finish().error_code == 0
    with GroupClient((broker.host, broker.port)) as third:
        assert third.call(join("g"), 3).error_code == ErrorCode.GROUP_MAX_SIZE_REACHED


def test_a_static_member_whose_place_was_taken(client: GroupClient) -> None:
    member_id, generation = client.become_only_member("g", group_instance_id="one")
    client.call(join("g", group_instance_id="one"), 9)
    code = ErrorCode.FENCED_INSTANCE_ID
    assert client.heartbeat("g", member_id, generation, group_instance_id="one") == code
    assert client.commit("g", version=7, **of(member_id, generation, group_instance_id="one")) == code
    assert client.call(join("g", member_id=member_id, group_instance_id="one"), 9).error_code == code


def test_deleting_offsets_that_are_in_use(client: GroupClient) -> None:
    subscription = encode_versioned(ConsumerProtocolSubscription(topics=["t"]), 0)
    member_id, generation = client.become_only_member("g", protocols={"range": subscription})
    assert client.commit("g", member_id=member_id, generation_id_or_member_epoch=generation) == 0
    partitions = [OffsetDeleteRequestPartition(partition_index=0)]
    request = OffsetDeleteRequest(group_id="g", topics=[OffsetDeleteRequestTopic(name="t", partitions=partitions)])
    result = client.call(request, 0)
    assert result.topics[0].partitions[0].error_code == ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
    client.become_only_member("c", protocol_type="connect")
    request.group_id = "c"
    assert client.call(request, 0).error_code == ErrorCode.NON_EMPTY_GROUP


def test_errors_of_the_consumer_protocol(client: GroupClient) -> None:
    assert consumer(client, "", "m") == ErrorCode.INVALID_REQUEST
    assert consumer(client, "g", "") == ErrorCode.INVALID_REQUEST
    assert consumer(client, "g", "m", server_assignor="magic") == ErrorCode.UNSUPPORTED_ASSIGNOR
    assert consumer(client, "g", "m", subscribed_topic_regex="(", subscribed_topic_names=None) == (
        ErrorCode.INVALID_REGULAR_EXPRESSION
    )
    assert consumer(client, "g", "m", instance_id="one") == ErrorCode.NONE
    assert consumer(client, "g", "n", instance_id="one") == ErrorCode.UNRELEASED_INSTANCE_ID
    assert consumer(client, "g", "x", member_epoch=5) == ErrorCode.UNKNOWN_MEMBER_ID
    assert consumer(client, "g", "m", member_epoch=99) == ErrorCode.FENCED_MEMBER_EPOCH
    assert consumer(client, "g", "n") == ErrorCode.NONE
    assert consumer(client, "g", "o") == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert consumer(client, "nowhere", "m", member_epoch=-1) == ErrorCode.GROUP_ID_NOT_FOUND
    assert client.commit("g", version=9, **of("m", 99)) == ErrorCode.STALE_MEMBER_EPOCH
    assert client.commit("g", version=9, **of("x", 1)) == ErrorCode.UNKNOWN_MEMBER_ID
