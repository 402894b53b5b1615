"""A coordinator that starts again: what a classic group has written down, and what it makes of it."""

import pytest

from ottla.coordinator.group.classic import Member
from ottla.wire.embedded import decode_versioned, encode_key, encode_versioned
from ottla.wire.embedded.offsets_topic import GroupMetadataKey, GroupMetadataValue, MemberMetadata
from ottla.wire.errors import ErrorCode

from .classic_world import DELAY_MS, RANGE, REBALANCE_MS, SESSION_MS, ClassicWorld, subscription


def written(world: ClassicWorld) -> list[GroupMetadataValue]:
    return [decode_versioned(GroupMetadataValue, value) for _, value in world.log if value is not None]


def test_a_generation_is_written_when_all_have_joined_and_again_when_the_leader_has_shared_out() -> None:
    world = ClassicWorld()
    [member_id] = world.settled(1)
    joined, shared = written(world)
    assert (joined.generation, joined.protocol, joined.leader) == (1, None, member_id)
    assert [(member.subscription, member.assignment) for member in joined.members] == [(RANGE["range"], b"")]
    assert (shared.generation, shared.protocol, shared.leader) == (1, "range", member_id)
    assert [(member.subscription, member.assignment) for member in shared.members] == [
        (RANGE["range"], member_id.encode())
    ]
    assert shared.current_state_timestamp == world.now_ms
    assert world.log[0][1] is not None
    assert world.log[0][1][:2] == b"\0\3"


def test_a_stable_group_goes_on_as_if_nothing_had_been() -> None:
    world = ClassicWorld()
    leader, follower = world.settled(2)
    world.restart()
    assert world.state == "Stable"
    assert world.heartbeat(leader, 2) is world.commit(follower, 2) is ErrorCode.NONE
    assert world.sync(follower, 2).reply.assignment == follower.encode()


def test_sessions_begin_anew_when_a_group_is_loaded() -> None:
    world = ClassicWorld()
    world.settled(1)
    world.pass_time(SESSION_MS - 1)
    world.restart()
    world.pass_time(SESSION_MS - 1)
    assert world.state == "Stable"
    world.pass_time(1)
    assert (world.state, world.group.generation) == ("Empty", 2)


def test_phase_1_and_2_who_was_not_told_of_a_rebalance_goes_on_and_a_new_member_starts_it_again() -> None:
    world = ClassicWorld()
    leader, follower = world.settled(2)
    lost = world.join()
    assert world.heartbeat(follower, 2) is ErrorCode.REBALANCE_IN_PROGRESS
    world.restart()
    assert lost.is_lost
    assert world.heartbeat(leader, 2) is ErrorCode.NONE
    again = world.join()
    assert world.heartbeat(leader, 2) is ErrorCode.REBALANCE_IN_PROGRESS
    world.join(leader)
    world.join(follower)
    assert again.reply.generation_id == 3


def test_phase_3_joins_that_were_waiting_are_sent_again() -> None:
    world = ClassicWorld()
    leader, follower = world.settled(2)
    lost = world.join(leader)
    world.restart()
    assert lost.is_lost
    answer = world.join(leader)
    assert world.heartbeat(follower, 2) is ErrorCode.REBALANCE_IN_PROGRESS
    assert world.join(follower).reply.generation_id == answer.reply.generation_id == 3


def test_phase_4_a_generation_that_was_written_is_used_up_though_nobody_heard_of_it() -> None:
    world = ClassicWorld()
    leader, follower = world.settled(2)
    world.join(leader)
    world.join(follower)
    assert world.group.generation == 3
    world.restart()
    assert world.state == "PreparingRebalance"
    assert world.heartbeat(leader, 2) is ErrorCode.ILLEGAL_GENERATION
    assert world.commit(leader, 2) is ErrorCode.ILLEGAL_GENERATION
    answer = world.join(leader)
    assert world.join(follower).reply.generation_id == answer.reply.generation_id == 4


def test_phase_5_who_heard_of_the_generation_and_who_did_not_meet_in_the_next_one() -> None:
    world = ClassicWorld()
    leader, follower = world.settled(2)
    world.join(leader)
    world.join(follower)
    world.restart()
    assert world.heartbeat(leader, 3) is ErrorCode.REBALANCE_IN_PROGRESS
    assert world.sync(leader, 3, {}).error is ErrorCode.REBALANCE_IN_PROGRESS
    first = world.join(follower)
    second = world.join(leader)
    assert first.reply.generation_id == second.reply.generation_id == 4
    world.share_out(first.reply.leader, 4, [leader, follower])


def test_members_that_do_not_come_back_after_a_start_in_the_middle_of_a_round_are_not_waited_for_without_end() -> None:
    world = ClassicWorld()
    leader, follower = world.settled(2, session_ms=120_000)
    world.join(leader)
    world.join(follower)
    world.restart()
    answer = world.join(leader)
    world.pass_time(REBALANCE_MS)
    assert answer.reply.generation_id == 4
    assert len(answer.reply.members) == 1


def test_in_the_middle_of_a_round_it_is_not_known_what_members_can_do_so_any_newcomer_is_let_in() -> None:
    world = ClassicWorld()
    leader = world.join().reply.member_id
    world.restart()
    newcomer = world.join(protocols={"sticky": b"s", "range": b"r"})
    assert newcomer.is_waiting
    assert world.join(leader).reply.protocol_name == newcomer.reply.protocol_name == "range"


def test_a_static_member_that_is_loaded_from_the_middle_of_a_round_and_stays_away_is_shown_to_the_leader() -> None:
    world = ClassicWorld()
    world.join(instance_id="a", version=5, session_ms=200_000)
    world.restart()
    newcomer = world.join(protocols={"sticky": b"s"})
    world.pass_time(REBALANCE_MS)
    assert newcomer.reply.protocol_name == "sticky"
    assert [member.metadata for member in newcomer.reply.members] == [RANGE["range"], b"s"]


def test_an_emptied_group_is_written_down_with_its_generation_and_the_time() -> None:
    world = ClassicWorld()
    [member_id] = world.settled(1)
    world.leave(member_id)
    gone_ms = world.now_ms
    world.pass_time(1_000)
    world.restart()
    assert (world.state, world.group.generation, world.group.empty_since_ms) == ("Empty", 2, gone_ms)
    assert world.group.listed().protocol_type == "consumer"
    assert world.join().reply.generation_id == 3


def test_a_group_that_is_larger_than_allowed_when_it_is_loaded_has_its_members_join_again() -> None:
    world = ClassicWorld()
    first, second, third = world.settled(3)
    world.config = type(world.config)({"group.max.size": "2"})
    world.restart()
    assert world.state == "PreparingRebalance"
    assert world.commit(third, 3) is ErrorCode.NONE
    answers = [world.join(first), world.join(second), world.join(third)]
    assert [answer.error.name for answer in answers] == ["NONE", "NONE", "GROUP_MAX_SIZE_REACHED"]


def test_a_group_that_runs_already_is_not_disturbed_by_hearing_that_it_is_loaded() -> None:
    world = ClassicWorld()
    leader, follower = world.settled(2)
    joining = world.join(leader)
    assert world.group.loaded(world.now_ms).released == []
    assert (world.state, joining.is_waiting) == ("PreparingRebalance", True)
    world.join(follower)
    syncing = world.sync(follower, 3)
    assert world.group.loaded(world.now_ms).released == []
    assert (world.state, syncing.is_waiting) == ("CompletingRebalance", True)


def test_ids_that_were_given_out_are_forgotten() -> None:
    world = ClassicWorld()
    member_id = world.join(version=4).reply.member_id
    world.restart()
    assert world.join(member_id, version=4).error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_group_that_nobody_was_let_into_yet_has_written_nothing() -> None:
    world = ClassicWorld(group_initial_rebalance_delay_ms=DELAY_MS)
    world.join()
    assert world.log == []


def test_a_newer_record_leaves_nothing_of_an_older_one() -> None:
    world = ClassicWorld()
    [member_id] = world.settled(1, protocols={"range": b"old"})
    world.join(member_id, {"sticky": b"new"})
    world.restart()
    member = world.group.members[member_id]
    assert (dict(member.protocols), member.subscription, member.assignment) == ({}, b"new", b"")


@pytest.mark.parametrize("version", range(5))
def test_what_every_version_of_kafka_has_written_is_read(version: int) -> None:
    world = ClassicWorld()
    member = MemberMetadata(
        member_id="m", client_id="c", client_host="/h", session_timeout=9_000, subscription=b"s", assignment=b"a"
    )
    member.rebalance_timeout = 20_000
    value = GroupMetadataValue(
        protocol_type="consumer",
        generation=7,
        protocol="range",
        leader="m",
        current_state_timestamp=5,
        members=[member],
    )
    world.log = [(encode_key(GroupMetadataKey(group="group")), encode_versioned(value, version))]
    world.restart()
    assert (world.state, world.group.generation, world.group.leader) == ("Stable", 7, "m")
    assert world.group.members["m"] == Member(
        member_id="m",
        instance_id=None,
        client_id="c",
        client_host="/h",
        session_timeout_ms=9_000,
        rebalance_timeout_ms=20_000 if version >= 1 else 9_000,
        protocols={"range": b"s"},
        subscription=b"s",
        assignment=b"a",
    )


def test_a_topic_is_subscribed_to_if_any_member_reads_it() -> None:
    world = ClassicWorld()
    assert not world.group.is_subscribed("orders")
    [leader] = world.settled(1)
    world.join(protocols={"range": subscription("returns", version=3)})
    world.join(leader)
    for _ in range(2):
        assert world.group.is_subscribed("orders")
        assert world.group.is_subscribed("returns")
        assert not world.group.is_subscribed("others")
        world.restart()


def test_a_consumer_whose_subscription_cannot_be_read_may_be_subscribed_to_anything() -> None:
    world = ClassicWorld()
    world.settled(1, protocols={"range": b"\0\0\0\0"})
    assert world.group.is_subscribed("orders")


def test_a_subscription_of_a_version_that_is_not_known_yet_is_read_as_the_newest_that_is() -> None:
    world = ClassicWorld()
    world.settled(1, protocols={"range": b"\0\x09" + subscription("orders", version=3)[2:] + b"more"})
    assert world.group.is_subscribed("orders")
    assert not world.group.is_subscribed("returns")


def test_groups_of_other_kinds_subscribe_to_nothing_that_the_broker_knows_of() -> None:
    world = ClassicWorld()
    world.settled(1, protocol_type="connect")
    assert not world.group.is_subscribed("orders")
