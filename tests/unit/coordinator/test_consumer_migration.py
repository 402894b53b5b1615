"""Groups that change their protocol while they run."""

import pytest

from ottla.coordinator.group.classic import ClassicGroup
from ottla.coordinator.group.consumer import ConsumerGroup
from ottla.wire.api.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.wire.api.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.wire.api.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.wire.errors import ErrorCode

from .consumer_world import SESSION_MS, Consumer, ConsumerWorld, Held
from .harness import Answer
from .mixed_world import CLASSIC_REBALANCE_MS, CLASSIC_SESSION_MS, ClassicConsumer, classic_group, finish_round

ORDERS: Held = {("orders", index) for index in range(4)}


def kind(world: ConsumerWorld) -> type:
    return type(world.subject._groups["group"])


def join(world: ConsumerWorld, member_id: str) -> Answer:
    return world.beat(
        member_id=member_id, rebalance_timeout_ms=1, subscribed_topic_names=["orders"], topic_partitions=[]
    )


def mixed() -> tuple[ConsumerWorld, ClassicConsumer, Consumer]:
    """One classic member that had everything, and one of the consumer protocol, that have shared."""
    world = ConsumerWorld()
    old = ClassicConsumer(world)
    classic_group(world, old)
    new = Consumer(world, "new").join()
    old.follow()
    new.beat()
    old.follow()
    assert len(old.held) == len(new.held) == 2
    assert old.held | new.held == ORDERS
    assert world.state == "Stable"
    return world, old, new


class TestUpgrade:
    def test_a_classic_group_changes_its_kind_when_a_member_of_the_consumer_protocol_joins(self) -> None:
        world = ConsumerWorld()
        old = ClassicConsumer(world)
        classic_group(world, old)
        assert old.held == ORDERS
        generation = old.generation
        new = Consumer(world, "new").join()
        assert kind(world) is ConsumerGroup
        assert (new.held, new.epoch) == (set(), generation + 1)
        assert world.group.members[old.member_id].current.epoch == generation

    def test_its_classic_members_are_told_to_join_and_keep_what_they_are_meant_to_have(self) -> None:
        world, old, new = mixed()
        types = {member.member_id: member.member_type for member in world.described().members}
        assert types == {old.member_id: 0, "new": 1}
        assert old.generation == new.epoch

    def test_what_a_classic_member_gives_up_is_given_away_only_when_it_has_joined_without_it(self) -> None:
        world = ConsumerWorld()
        old = ClassicConsumer(world)
        classic_group(world, old)
        new = Consumer(world, "new").join()
        assert old.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
        old.joined(old.join())
        assert old.synced(old.sync())
        new.beat()
        assert new.held == set(), "the classic member has been told, and has not joined again yet"
        old.joined(old.join())
        new.beat()
        assert len(new.held) == 2

    def test_members_that_wait_for_a_round_are_told_to_join_again(self) -> None:
        world = ConsumerWorld()
        first, second = ClassicConsumer(world), ClassicConsumer(world)
        classic_group(world, first)
        waiting = second.join()
        assert waiting.is_waiting
        new = Consumer(world, "new").join()
        assert waiting.error is ErrorCode.REBALANCE_IN_PROGRESS
        second.rejoin()
        for _ in range(3):
            first.follow()
            second.follow()
            new.beat()
        assert first.held | second.held | new.held == ORDERS
        assert world.state == "Stable"

    @pytest.mark.parametrize("is_restarted", [False, True])
    def test_between_two_assignments_members_have_what_they_said_when_they_joined(self, is_restarted: bool) -> None:
        world = ConsumerWorld()
        first, second = ClassicConsumer(world), ClassicConsumer(world)
        classic_group(world, first, second)
        waiting = [(one, one.join()) for one in (first, second)]
        for one, answer in waiting:
            one.joined(answer)
        if is_restarted:
            world.restart()
        new = Consumer(world, "new").join()
        assert new.held == set(), "nothing is given to it that the others still have"
        for one in (first, second):
            one.generation = -1
            one.rejoin()
        new.beat()
        assert first.held | second.held | new.held == ORDERS

    def test_a_member_that_joined_under_another_protocol_than_its_first_is_told_to_join_again(self) -> None:
        world = ConsumerWorld()
        both = ClassicConsumer(world, protocols=("range", "cooperative-sticky"))
        classic_group(world, both)
        one = ClassicConsumer(world)
        answer = one.join()
        both.joined(both.join())
        one.joined(answer)
        assert both.protocol == one.protocol == "cooperative-sticky"
        Consumer(world, "new").join()
        assert both.sync().error is ErrorCode.REBALANCE_IN_PROGRESS
        both.protocol = "never-heard-of"
        assert both.sync().error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL

    def test_it_survives_a_restart(self) -> None:
        world, old, new = mixed()
        world.restart()
        assert old.heartbeat() is ErrorCode.NONE
        new.beat()
        assert world.state == "Stable"

    def test_a_silent_classic_member_is_out_after_its_own_session(self) -> None:
        world, _, new = mixed()
        world.pass_time(CLASSIC_SESSION_MS)
        assert list(world.group.members) == ["new"]
        new.beat()
        assert new.held == ORDERS

    def test_a_classic_member_that_never_comes_back_after_the_upgrade_is_out(self) -> None:
        world = ConsumerWorld()
        old = ClassicConsumer(world)
        classic_group(world, old)
        new = Consumer(world, "new").join()
        world.pass_time(CLASSIC_SESSION_MS)
        new.beat()
        assert new.held == ORDERS
        assert old.heartbeat() is ErrorCode.UNKNOWN_MEMBER_ID

    def test_a_classic_member_that_is_heard_of_and_does_not_join_is_out(self) -> None:
        world = ConsumerWorld()
        old = ClassicConsumer(world)
        classic_group(world, old)
        new = Consumer(world, "new").join()
        for _ in range(CLASSIC_REBALANCE_MS // 5000):
            assert old.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
            world.pass_time(5000)
            new.beat()
        assert old.heartbeat() is ErrorCode.UNKNOWN_MEMBER_ID
        new.beat()
        assert new.held == ORDERS

    def test_a_classic_member_that_joins_and_does_not_sync_is_out(self) -> None:
        world, old, new = mixed()
        world.grow("orders", 6)
        assert old.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
        old.joined(old.join())
        for _ in range(CLASSIC_REBALANCE_MS // 5000):
            assert old.member_id in world.group.members
            old.heartbeat()
            world.pass_time(5000)
            new.beat()
        assert old.member_id not in world.group.members

    def test_a_static_member_comes_back_in_the_other_protocol_with_what_it_had(self) -> None:
        world = ConsumerWorld()
        one, two = ClassicConsumer(world, instance_id="one"), ClassicConsumer(world, instance_id="two")
        classic_group(world, one, two)
        held = one.held
        again = Consumer(world, "again", instance_id="one").join()
        assert again.held == held
        assert one.heartbeat() is ErrorCode.FENCED_INSTANCE_ID
        two.follow()
        assert two.held | again.held == ORDERS

    @pytest.mark.parametrize("policy", ["disabled", "downgrade"])
    def test_it_does_not_happen_where_the_policy_forbids_it(self, policy: str) -> None:
        world = ConsumerWorld(group_consumer_migration_policy=policy)
        old = ClassicConsumer(world)
        classic_group(world, old)
        assert join(world, "new").error is ErrorCode.GROUP_ID_NOT_FOUND
        assert kind(world) is ClassicGroup
        assert old.heartbeat() is ErrorCode.NONE

    def test_it_does_not_happen_to_groups_of_other_protocol_types(self) -> None:
        world = ConsumerWorld()
        request = JoinGroupRequest(
            group_id="group",
            session_timeout_ms=CLASSIC_SESSION_MS,
            rebalance_timeout_ms=1000,
            protocol_type="connect",
            protocols=[JoinGroupRequestProtocol(name="default", metadata=b"?")],
        )
        world.ask(world.subject.join_group, request, 3)
        world.pass_time(100)
        assert join(world, "new").error is ErrorCode.GROUP_ID_NOT_FOUND

    def test_it_does_not_happen_where_members_cannot_be_understood(self) -> None:
        world = ConsumerWorld()
        request = JoinGroupRequest(
            group_id="group",
            session_timeout_ms=CLASSIC_SESSION_MS,
            rebalance_timeout_ms=1000,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=b"\x00")],
        )
        world.ask(world.subject.join_group, request, 3)
        world.pass_time(100)
        answer = join(world, "new")
        assert answer.error is ErrorCode.GROUP_ID_NOT_FOUND
        assert "cannot be read" in answer.reply.error_message

    def test_it_does_not_happen_for_a_request_that_fails(self) -> None:
        world = ConsumerWorld()
        old = ClassicConsumer(world)
        classic_group(world, old)
        answer = world.beat(
            member_id="new",
            rebalance_timeout_ms=1,
            subscribed_topic_names=["orders"],
            topic_partitions=[],
            server_assignor="unheard-of",
        )
        assert answer.error is ErrorCode.UNSUPPORTED_ASSIGNOR
        assert kind(world) is ClassicGroup
        assert old.heartbeat() is ErrorCode.NONE

    def test_an_empty_classic_group_is_replaced_and_its_offsets_stay(self) -> None:
        world = ConsumerWorld()
        old = ClassicConsumer(world)
        classic_group(world, old)
        assert commit(world, old.member_id, old.generation, 7) is ErrorCode.NONE
        old.leave()
        new = Consumer(world, "new").join()
        assert new.held == ORDERS
        assert world.subject._offsets.topics_of("group")


class TestClassicMembers:
    def test_they_join_a_group_of_the_consumer_protocol(self) -> None:
        world = ConsumerWorld()
        new = Consumer(world, "new").join()
        old = ClassicConsumer(world)
        old.rejoin()
        assert old.held == set()
        new.beat()
        new.beat()
        old.follow()
        assert len(old.held) == len(new.held) == 2
        assert world.state == "Stable"

    def test_they_commit_in_their_generation(self) -> None:
        world, old, _ = mixed()
        assert commit(world, old.member_id, old.generation, 3) is ErrorCode.NONE
        assert commit(world, old.member_id, old.generation - 1, 3) is ErrorCode.ILLEGAL_GENERATION

    def test_a_wrong_generation_is_refused(self) -> None:
        _, old, _ = mixed()
        old.generation += 1
        assert old.heartbeat() is ErrorCode.ILLEGAL_GENERATION
        assert old.sync().error is ErrorCode.ILLEGAL_GENERATION

    def test_members_of_the_consumer_protocol_cannot_speak_the_classic_one(self) -> None:
        world, old, new = mixed()
        old.member_id, old.generation = "new", new.epoch
        assert old.heartbeat() is ErrorCode.UNKNOWN_MEMBER_ID
        assert old.sync().error is ErrorCode.UNKNOWN_MEMBER_ID
        assert "new" in world.group.members

    def test_an_administrator_removes_members_of_the_consumer_protocol_by_the_classic_request(self) -> None:
        world, old, new = mixed()
        Consumer(world, "at the desk", instance_id="desk").join()
        identities = [MemberIdentity(group_instance_id="desk"), MemberIdentity(member_id="new")]
        identities += [MemberIdentity(member_id="stranger")]
        request = LeaveGroupRequest(group_id="group", members=identities)
        reply = world.ask(world.subject.leave_group, request, 5).reply
        assert [ErrorCode(one.error_code) for one in reply.members] == [
            ErrorCode.NONE,
            ErrorCode.NONE,
            ErrorCode.UNKNOWN_MEMBER_ID,
        ]
        assert new.send(member_epoch=new.epoch).error is ErrorCode.UNKNOWN_MEMBER_ID
        assert kind(world) is ClassicGroup
        finish_round(world, [(old, old.join())])
        assert old.held == ORDERS

    def test_one_that_was_out_and_does_not_know_it_is_told_when_it_joins_with_what_it_had(self) -> None:
        world, old, new = mixed()
        world.pass_time(CLASSIC_SESSION_MS)
        new.beat()
        assert new.held == ORDERS
        assert old.join().error is ErrorCode.UNKNOWN_MEMBER_ID

    def test_one_that_leaves_gives_back_what_it_had(self) -> None:
        _, old, new = mixed()
        assert old.leave().reply.members[0].error_code == 0
        new.beat()
        assert new.held == ORDERS

    @pytest.mark.parametrize(
        ("field", "value", "error"),
        [
            ("protocol_type", "connect", ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
            ("protocols", [], ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
            (
                "protocols",
                [JoinGroupRequestProtocol(name="cooperative-sticky", metadata=b"")],
                ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            ),
            (
                "protocols",
                [JoinGroupRequestProtocol(name="other", metadata=b"\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff")],
                ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            ),
            ("session_timeout_ms", 1, ErrorCode.INVALID_SESSION_TIMEOUT),
        ],
        ids=str,
    )
    def test_a_join_that_does_not_suit_the_group_is_refused(self, field: str, value: object, error: ErrorCode) -> None:
        world, _, _ = mixed()
        good = JoinGroupRequestProtocol(name="cooperative-sticky", metadata=b"\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff")
        request = JoinGroupRequest(
            group_id="group",
            session_timeout_ms=CLASSIC_SESSION_MS,
            rebalance_timeout_ms=1000,
            protocol_type="consumer",
            protocols=[good],
        )
        setattr(request, field, value)
        assert world.ask(world.subject.join_group, request, 3).error is error


class TestDowngrade:
    def test_the_rest_becomes_a_classic_group_when_the_last_member_of_the_consumer_protocol_leaves(self) -> None:
        world, old, new = mixed()
        epoch = world.group.epoch
        new.leave()
        assert kind(world) is ClassicGroup
        world.pass_time(0)
        assert old.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
        answer = old.join()
        assert not answer.is_waiting
        finish_round(world, [(old, answer)])
        assert old.held == ORDERS
        assert old.generation > epoch
        assert old.heartbeat() is ErrorCode.NONE

    def test_a_member_that_has_joined_and_not_synced_is_told_to_join_again(self) -> None:
        world, old, new = mixed()
        old.joined(old.join())
        new.leave()
        assert kind(world) is ClassicGroup
        assert old.sync().error is ErrorCode.REBALANCE_IN_PROGRESS
        world.pass_time(1)
        assert old.sync().error is ErrorCode.REBALANCE_IN_PROGRESS

    def test_it_happens_when_its_session_ends_too(self) -> None:
        world, old, _ = mixed()
        for _ in range(SESSION_MS // 5000):
            world.pass_time(5000)
            old.heartbeat()
        assert kind(world) is ClassicGroup
        answer = old.join()
        finish_round(world, [(old, answer)])
        assert old.held == ORDERS

    def test_it_survives_a_restart(self) -> None:
        world, old, new = mixed()
        new.leave()
        world.restart()
        assert kind(world) is ClassicGroup
        assert old.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
        finish_round(world, [(old, old.join())])
        assert old.held == ORDERS

    def test_a_member_that_does_not_come_back_is_out_after_its_session(self) -> None:
        world, _, new = mixed()
        new.leave()
        world.pass_time(CLASSIC_SESSION_MS + CLASSIC_REBALANCE_MS)
        group = world.subject._groups["group"]
        assert isinstance(group, ClassicGroup)
        assert group.is_empty

    def test_it_happens_when_the_last_static_member_comes_back_as_a_classic_one(self) -> None:
        world = ConsumerWorld()
        new = Consumer(world, "new", instance_id="one").join()
        old = ClassicConsumer(world)
        old.rejoin()
        new.beat()
        new.beat()
        old.follow()
        back = ClassicConsumer(world, instance_id="one")
        assert back.join().error is ErrorCode.REBALANCE_IN_PROGRESS
        assert kind(world) is ClassicGroup
        world.pass_time(0)
        assert old.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
        waiting = [(one, one.join()) for one in (back, old)]
        finish_round(world, waiting)
        assert old.held | back.held == ORDERS

    @pytest.mark.parametrize("policy", ["disabled", "upgrade"])
    def test_it_does_not_happen_where_the_policy_forbids_it(self, policy: str) -> None:
        world, old, new = mixed()
        world.config = ConsumerWorld(group_consumer_migration_policy=policy).config
        world.subject.config_changed(world.config)
        new.leave()
        assert kind(world) is ConsumerGroup
        old.follow()
        assert old.held == ORDERS

    def test_it_does_not_happen_to_an_empty_group(self) -> None:
        world, old, new = mixed()
        old.leave()
        new.leave()
        assert kind(world) is ConsumerGroup
        assert world.group.is_empty

    def test_there_and_back_again(self) -> None:
        world, old, new = mixed()
        new.leave()
        world.pass_time(0)
        finish_round(world, [(old, old.join())])
        new = Consumer(world, "newer").join()
        old.follow()
        new.beat()
        old.follow()
        assert old.held | new.held == ORDERS
        assert world.state == "Stable"


def commit(world: ConsumerWorld, member_id: str, generation: int, offset: int) -> ErrorCode:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    request = OffsetCommitRequest(
        group_id="group",
        generation_id_or_member_epoch=generation,
        member_id=member_id,
        topics=[OffsetCommitRequestTopic(name="orders", partitions=[partition])],
    )
    reply = world.ask(world.subject.offset_commit, request, 8).reply
    return ErrorCode(reply.topics[0].partitions[0].error_code)
