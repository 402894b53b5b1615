"""Groups through the admin client, with what a broker of today offers and with what one of years ago did."""

import asyncio
from collections.abc import Iterator

import pytest

from ottla.client.admin import Admin, MemberToRemove, NewTopic
from ottla.client.cluster import Cluster
from ottla.client.errors import (
    GroupIdNotFoundError,
    NonEmptyGroupError,
    SeveralFailedError,
    UnknownMemberIdError,
    UnknownTopicOrPartitionError,
    UnsupportedVersionError,
)
from ottla.client.options import ClientOptions
from ottla.client.types import OffsetAndMetadata, TopicPartition
from ottla.testing import TestBroker
from ottla.wire.api.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ottla.wire.api.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.wire.api.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from ottla.wire.embedded import encode_versioned
from ottla.wire.embedded.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from ottla.wire.embedded.consumer_protocol import TopicPartition as AssignedPartitions
from ottla.wire.errors import ErrorCode

from .tools import ABSENT, ask, make_older

KAFKA_1_1 = {8: 3, 9: 3, 10: 1, 13: 1, 15: 1, 16: 1, 42: 0, 47: ABSENT, 68: ABSENT, 69: ABSENT}
"""The last versions of the requests for groups that Kafka 1.1 had; newer requests it did not know."""

FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)


@pytest.fixture(scope="module")
def broker() -> Iterator[TestBroker]:
    with TestBroker() as running:
        ask(running.bootstrap_servers, lambda admin: admin.create_topics([NewTopic("orders", 2)]))
        yield running


@pytest.fixture(params=["today", "kafka 1.1"])
def age(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "kafka 1.1":
        make_older(monkeypatch, KAFKA_1_1)
    return str(request.param)


def join(broker: TestBroker, group_id: str, instance_id: str | None = None) -> str:
    """Become the only member of a classic group, reading both partitions; its session lasts as long as the tests."""

    async def story() -> str:
        async with Cluster(ClientOptions(bootstrap_servers=broker.bootstrap_servers)) as cluster:
            connection = await cluster.any_broker()
            request = JoinGroupRequest(
                group_id=group_id,
                session_timeout_ms=60_000,
                rebalance_timeout_ms=60_000,
                group_instance_id=instance_id,
                protocol_type="consumer",
                protocols=[
                    JoinGroupRequestProtocol(
                        name="range", metadata=encode_versioned(ConsumerProtocolSubscription(topics=["orders"]), 0)
                    )
                ],
            )
            joined = await connection.request(request)
            if joined.error_code == ErrorCode.MEMBER_ID_REQUIRED:
                request.member_id = joined.member_id
                joined = await connection.request(request)
            assigned = ConsumerProtocolAssignment(
                assigned_partitions=[AssignedPartitions(topic="orders", partitions=[1, 0])]
            )
            synced = await connection.request(
                SyncGroupRequest(
                    group_id=group_id,
                    generation_id=joined.generation_id,
                    member_id=joined.member_id,
                    group_instance_id=instance_id,
                    protocol_type="consumer",
                    protocol_name="range",
                    assignments=[
                        SyncGroupRequestAssignment(member_id=joined.member_id, assignment=encode_versioned(assigned, 0))
                    ],
                )
            )
            assert (joined.error_code, synced.error_code) == (0, 0)
            return str(joined.member_id)

    # The coordinator has loaded when it answers.
    ask(broker.bootstrap_servers, lambda admin: admin.list_consumer_group_offsets(group_id))
    return asyncio.run(story())


def test_a_group_is_made_looked_at_and_deleted(broker: TestBroker, age: str) -> None:
    group_id = f"group of {age}"

    async def story(admin: Admin) -> None:
        await admin.alter_consumer_group_offsets(group_id, {SECOND: OffsetAndMetadata(7, "note", 0), FIRST: 5})
        listed = {one.group_id: one for one in await admin.list_consumer_groups()}[group_id]
        assert (listed.state, listed.group_type) == ("Empty" if age == "today" else None, "classic")
        group = (await admin.describe_consumer_groups([group_id]))[group_id]
        assert (group.group_type, group.state, group.members, group.is_active) == ("classic", "Empty", (), False)
        committed = await admin.list_consumer_group_offsets(group_id)
        assert list(committed) == [FIRST, SECOND]
        assert committed[FIRST] == OffsetAndMetadata(5)
        assert committed[SECOND] == OffsetAndMetadata(7, "note", 0 if age == "today" else -1)
        elsewhere = TopicPartition("nowhere", 0)
        assert list(await admin.list_consumer_group_offsets(group_id, [SECOND, elsewhere])) == [SECOND]
        await admin.delete_consumer_groups([group_id])
        assert await admin.list_consumer_group_offsets(group_id) == {}
        for question in (admin.describe_consumer_groups, admin.delete_consumer_groups):
            with pytest.raises(GroupIdNotFoundError, match=f"there is no group '{group_id}'"):
                await question([group_id])

    ask(broker.bootstrap_servers, story)


def test_many_groups_are_asked_for_together_and_fail_each_for_itself(broker: TestBroker, age: str) -> None:
    there = [f"{age} {number}" for number in range(30)]

    async def story(admin: Admin) -> None:
        for group_id in there:
            await admin.alter_consumer_group_offsets(group_id, {FIRST: 1})
        assert list(await admin.describe_consumer_groups(there)) == there
        with pytest.raises(SeveralFailedError) as caught:
            await admin.delete_consumer_groups([*there, "nobody", "nobody else"])
        assert list(caught.value.failures) == ["nobody", "nobody else"]
        assert not {one.group_id for one in await admin.list_groups()} & set(there)

    ask(broker.bootstrap_servers, story)


def test_offsets_of_partitions_that_do_not_exist_are_refused_and_the_others_set(broker: TestBroker, age: str) -> None:
    group_id = f"partly {age}"

    async def story(admin: Admin) -> None:
        with pytest.raises(UnknownTopicOrPartitionError, match="orders-9"):
            await admin.alter_consumer_group_offsets(group_id, {TopicPartition("orders", 9): 1, FIRST: 1})
        assert list(await admin.list_consumer_group_offsets(group_id)) == [FIRST]

    ask(broker.bootstrap_servers, story)


def test_a_broker_that_cannot_delete_offsets_says_so(broker: TestBroker, age: str) -> None:
    group_id = f"deleting {age}"

    async def story(admin: Admin) -> None:
        await admin.alter_consumer_group_offsets(group_id, {FIRST: 5, SECOND: 7})
        if age == "today":
            await admin.delete_consumer_group_offsets(group_id, [FIRST])
            assert list(await admin.list_consumer_group_offsets(group_id)) == [SECOND]
            return
        with pytest.raises(UnsupportedVersionError, match="does not offer OffsetDelete"):
            await admin.delete_consumer_group_offsets(group_id, [FIRST])

    ask(broker.bootstrap_servers, story)


def test_groups_are_listed_by_state_where_the_broker_can_and_else_refused(broker: TestBroker, age: str) -> None:
    async def story(admin: Admin) -> None:
        await admin.alter_consumer_group_offsets("lonely", {FIRST: 5})
        assert "lonely" in {one.group_id for one in await admin.list_groups(types_filter=["classic"])}
        assert "lonely" not in {one.group_id for one in await admin.list_groups(types_filter=["consumer"])}
        if age == "today":
            assert "lonely" not in {one.group_id for one in await admin.list_groups(states_filter=["Stable"])}
            return
        with pytest.raises(UnsupportedVersionError, match="listing groups by their states"):
            await admin.list_groups(states_filter=["Stable"])

    ask(broker.bootstrap_servers, story)


def test_members_are_described_with_what_they_asked_for_and_got(broker: TestBroker) -> None:
    member_id = join(broker, "described", "reader-1")
    group = ask(broker.bootstrap_servers, lambda admin: admin.describe_consumer_groups(["described"]))["described"]
    assert (group.state, group.protocol_type, group.assignor, group.is_active) == ("Stable", "consumer", "range", True)
    (member,) = group.members
    assert (member.member_id, member.group_instance_id, member.client_id) == (member_id, "reader-1", "ottla")
    assert (member.assignment, member.subscription) == ((FIRST, SECOND), ("orders",))
    assert (member.target_assignment, member.member_epoch) == (None, None)


def test_groups_of_both_protocols_come_in_one_answer(broker: TestBroker) -> None:
    async def join_modern() -> None:
        async with Cluster(ClientOptions(bootstrap_servers=broker.bootstrap_servers)) as cluster:
            request = ConsumerGroupHeartbeatRequest(
                group_id="modern",
                member_id="me",
                rebalance_timeout_ms=60_000,
                subscribed_topic_names=["orders"],
                topic_partitions=[],
            )
            assert (await (await cluster.any_broker()).request(request)).error_code == 0

    join(broker, "old")
    asyncio.run(join_modern())
    groups = ask(broker.bootstrap_servers, lambda admin: admin.describe_consumer_groups(["old", "modern"]))
    assert {name: group.group_type for name, group in groups.items()} == {"old": "classic", "modern": "consumer"}
    (member,) = groups["modern"].members
    assert (member.assignment, member.target_assignment) == ((FIRST, SECOND), (FIRST, SECOND))
    assert (member.subscription, member.member_epoch) == (("orders",), 1)


def test_what_a_group_with_members_has_committed_is_left_to_them(broker: TestBroker) -> None:
    join(broker, "busy")

    async def story(admin: Admin) -> None:
        with pytest.raises(NonEmptyGroupError, match="group 'busy' has members"):
            await admin.alter_consumer_group_offsets("busy", {FIRST: 1})
        with pytest.raises(NonEmptyGroupError):
            await admin.delete_consumer_groups(["busy"])

    ask(broker.bootstrap_servers, story)


def test_members_are_removed_by_id_by_name_or_all(broker: TestBroker, age: str) -> None:
    group_id = f"removing {age}"

    async def count(admin: Admin) -> int:
        return len((await admin.describe_consumer_groups([group_id]))[group_id].members)

    async def remove(admin: Admin, *members: MemberToRemove | str) -> None:
        assert await count(admin) == 1
        await admin.remove_group_members(group_id, members or None)
        assert await count(admin) == 0

    member_id = join(broker, group_id)
    ask(broker.bootstrap_servers, lambda admin: remove(admin, member_id))
    join(broker, group_id)
    ask(broker.bootstrap_servers, remove)
    named = MemberToRemove(group_instance_id="reader-1", reason="gone for good")

    async def by_name(admin: Admin) -> None:
        if age == "today":
            await remove(admin, named)
            with pytest.raises(UnknownMemberIdError, match="reader-1"):
                await admin.remove_group_members(group_id, [named])
        else:
            with pytest.raises(UnsupportedVersionError, match="removing members by their group_instance_id"):
                await admin.remove_group_members(group_id, [named])

    if age == "today":
        join(broker, group_id, "reader-1")
    ask(broker.bootstrap_servers, by_name)
