"""How generations of a classic group follow each other: heartbeats, sessions, syncs, timeouts, leaving."""

import pytest

from ottla.coordinator.group.classic import ClassicState
from ottla.coordinator.group.classic.state import may_follow
from ottla.wire.api.leave_group import LeaveGroupRequest
from ottla.wire.errors import ErrorCode

from .classic_world import DELAY_MS, RANGE, REBALANCE_MS, SESSION_MS, ClassicWorld


def test_assignments_are_handed_out_when_the_leader_has_shared_out() -> None:
    world = ClassicWorld()
    leader, follower = world.settled(2)
    world.join(leader)
    world.join(follower)
    early = world.sync(follower, 3)
    assert early.is_waiting
    mine = world.sync(leader, 3, {leader: b"left", follower: b"right", "stranger": b"nothing"})
    assert (mine.reply.assignment, early.reply.assignment) == (b"left", b"right")
    assert (early.reply.protocol_type, early.reply.protocol_name) == ("consumer", "range")
    assert world.sync(follower, 3).reply.assignment == b"right"
    assert world.state == "Stable"


def test_a_member_that_the_leader_forgot_gets_an_empty_share() -> None:
    world = ClassicWorld()
    member_id = world.join().reply.member_id
    assert world.sync(member_id, 1, {}).reply.assignment == b""
    assert world.state == "Stable"


@pytest.mark.parametrize("version", range(6))
def test_every_version_of_sync_is_answered(version: int) -> None:
    world = ClassicWorld()
    member_id = world.join().reply.member_id
    assert world.sync(member_id, 1, {member_id: b"all"}, version=version).reply.assignment == b"all"


def test_a_sync_must_fit_the_group() -> None:
    world = ClassicWorld()
    [member_id] = world.settled(1)
    assert world.sync("stranger", 1).error is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.sync(member_id, 0).error is ErrorCode.ILLEGAL_GENERATION
    assert world.sync(member_id, 2).error is ErrorCode.ILLEGAL_GENERATION
    assert world.sync(member_id, 1, protocol_type="connect").error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert world.sync(member_id, 1, protocol_name="sticky").error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert world.sync(member_id, 1, protocol_type="consumer", protocol_name="range").error is ErrorCode.NONE


def test_a_sync_while_others_are_waited_for_is_told_to_join() -> None:
    world = ClassicWorld()
    [member_id] = world.settled(1)
    world.join()
    assert world.sync(member_id, 1).error is ErrorCode.REBALANCE_IN_PROGRESS


def test_of_two_syncs_of_the_same_member_the_newer_one_counts() -> None:
    world = ClassicWorld()
    leader, follower = world.settled(2)
    world.join(leader)
    world.join(follower)
    older, newer = world.sync(follower, 3), world.sync(follower, 3)
    assert older.error is ErrorCode.REBALANCE_IN_PROGRESS
    world.sync(leader, 3, {follower: b"right"})
    assert newer.reply.assignment == b"right"


def test_heartbeats_tell_who_must_join_again() -> None:
    world = ClassicWorld()
    leader, follower = world.settled(2)
    assert world.heartbeat(follower, 2) is ErrorCode.NONE
    assert world.heartbeat(follower, 1) is ErrorCode.ILLEGAL_GENERATION
    assert world.heartbeat("stranger", 2) is ErrorCode.UNKNOWN_MEMBER_ID
    world.join(leader)
    assert world.heartbeat(follower, 2) is ErrorCode.REBALANCE_IN_PROGRESS
    world.join(follower)
    assert world.state == "CompletingRebalance"
    assert world.heartbeat(follower, 3) is ErrorCode.NONE


def test_an_empty_group_has_no_members_for_heartbeats() -> None:
    world = ClassicWorld()
    [member_id] = world.settled(1)
    world.leave(member_id)
    assert world.heartbeat(member_id, 1) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_that_is_silent_for_its_session_timeout_is_out() -> None:
    world = ClassicWorld()
    leader, follower = world.settled(2)
    world.pass_time(SESSION_MS - 1)
    assert world.heartbeat(leader, 2) is ErrorCode.NONE
    world.pass_time(1)
    assert world.heartbeat(follower, 2) is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.heartbeat(leader, 2) is ErrorCode.REBALANCE_IN_PROGRESS
    assert world.join(leader).reply.generation_id == 3


def test_a_commit_is_a_sign_of_life_too() -> None:
    world = ClassicWorld()
    [member_id] = world.settled(1)
    for _ in range(5):
        world.pass_time(SESSION_MS - 1)
        assert world.commit(member_id, 1) is ErrorCode.NONE


def test_a_join_with_nothing_new_and_a_repeated_sync_are_signs_of_life_too() -> None:
    world = ClassicWorld()
    leader, follower = world.settled(2)
    world.pass_time(SESSION_MS - 1)
    assert world.join(follower).error is world.heartbeat(leader, 2) is ErrorCode.NONE
    world.pass_time(SESSION_MS - 1)
    assert world.sync(follower, 2).error is world.heartbeat(leader, 2) is ErrorCode.NONE
    world.pass_time(SESSION_MS - 1)
    assert world.heartbeat(follower, 2) is ErrorCode.NONE


def test_a_member_that_does_not_join_within_the_rebalance_timeout_is_out_though_it_sends_heartbeats() -> None:
    world = ClassicWorld()
    leader, slow = world.settled(2)
    answer = world.join(leader)
    for _ in range(REBALANCE_MS // 5_000):
        assert world.heartbeat(slow, 2) is ErrorCode.REBALANCE_IN_PROGRESS
        world.pass_time(5_000)
    assert answer.reply.generation_id == 3
    assert world.heartbeat(slow, 2) is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.join(slow).error is ErrorCode.UNKNOWN_MEMBER_ID


def test_the_most_patient_member_says_how_long_a_round_may_take() -> None:
    world = ClassicWorld()
    [leader] = world.settled(1, rebalance_ms=20_000, session_ms=100_000)
    newcomer = world.join(rebalance_ms=50_000)
    world.pass_time(49_999)
    assert newcomer.is_waiting
    world.pass_time(1)
    assert newcomer.reply.leader == newcomer.reply.member_id
    assert leader not in world.group.members


def test_a_leader_that_does_not_join_again_is_replaced_by_one_that_did() -> None:
    world = ClassicWorld()
    _, follower = world.settled(2, session_ms=120_000)
    newcomer = world.join()
    answer = world.join(follower)
    world.pass_time(REBALANCE_MS)
    assert answer.reply.leader == newcomer.reply.leader == follower
    assert len(answer.reply.members) == 2
    assert newcomer.reply.members == []


def test_if_the_leader_dies_before_it_has_shared_out_the_others_join_again() -> None:
    world = ClassicWorld()
    leader, follower = world.settled(2)
    world.join(leader)
    world.join(follower)
    waiting = world.sync(follower, 3)
    world.pass_time(SESSION_MS)
    assert waiting.error is ErrorCode.REBALANCE_IN_PROGRESS
    reply = world.join(follower).reply
    assert (reply.generation_id, reply.leader) == (4, follower)


def test_a_leader_that_sends_heartbeats_but_does_not_share_out_is_out_after_the_rebalance_timeout() -> None:
    world = ClassicWorld()
    leader, follower = world.settled(2)
    world.join(leader)
    world.join(follower)
    waiting = world.sync(follower, 3)
    for _ in range(REBALANCE_MS // 5_000):
        assert waiting.is_waiting
        assert world.heartbeat(leader, 3) is ErrorCode.NONE
        world.pass_time(5_000)
    assert waiting.error is ErrorCode.REBALANCE_IN_PROGRESS
    assert world.heartbeat(leader, 3) is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.join(follower).reply.leader == follower


def test_a_follower_that_never_asks_for_its_share_is_out_after_the_rebalance_timeout() -> None:
    world = ClassicWorld()
    leader, lazy = world.settled(2)
    world.join(leader)
    world.join(lazy)
    assert world.sync(leader, 3).error is ErrorCode.NONE
    assert world.state == "Stable"
    for _ in range(REBALANCE_MS // 5_000):
        assert world.heartbeat(leader, 3) is world.heartbeat(lazy, 3) is ErrorCode.NONE
        world.pass_time(5_000)
    assert world.heartbeat(lazy, 3) is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.heartbeat(leader, 3) is ErrorCode.REBALANCE_IN_PROGRESS


def test_who_has_not_asked_for_its_share_when_the_next_round_begins_is_not_late_any_more() -> None:
    world = ClassicWorld()
    leader, follower = world.settled(2, rebalance_ms=20_000)
    world.join(leader, rebalance_ms=20_000)
    world.join(follower, rebalance_ms=20_000)
    world.pass_time(4_000)
    waiting = world.join(follower, {"range": b"news"}, rebalance_ms=20_000)
    for _ in range(4):
        assert world.heartbeat(leader, 3) is ErrorCode.REBALANCE_IN_PROGRESS
        world.pass_time(4_000)
    assert waiting.is_waiting
    world.join(leader)
    assert waiting.reply.generation_id == 4


def test_a_leader_goes_on_leading_while_it_joins_again() -> None:
    world = ClassicWorld()
    first = world.settled(1, instance_id="a", version=5, session_ms=200_000)[0]
    leader = world.join()
    world.pass_time(REBALANCE_MS)
    leader_id = leader.reply.leader
    assert leader_id == leader.reply.member_id != first
    again = world.join(leader_id, {"range": b"news"})
    back = world.join(first, instance_id="a", version=5)
    assert again.reply.leader == back.reply.leader == leader_id
    assert [member.member_id for member in again.reply.members] == [first, leader_id]


def test_once_all_have_asked_for_their_shares_nobody_is_late() -> None:
    world = ClassicWorld()
    ids = world.settled(2)
    for _ in range(3 * REBALANCE_MS // 5_000):
        assert {world.heartbeat(member_id, 2) for member_id in ids} == {ErrorCode.NONE}
        world.pass_time(5_000)


def test_a_member_that_leaves_is_not_waited_for() -> None:
    world = ClassicWorld()
    leader, follower = world.settled(2)
    answer = world.join(leader)
    assert world.leave(follower) == [ErrorCode.NONE]
    assert answer.reply.generation_id == 3


def test_when_the_last_member_leaves_the_group_is_empty_and_its_generation_counts_on() -> None:
    world = ClassicWorld()
    [member_id] = world.settled(1)
    world.pass_time(5)
    assert world.leave(member_id) == [ErrorCode.NONE]
    assert (world.state, world.group.generation, world.group.empty_since_ms) == ("Empty", 2, world.now_ms)
    assert world.group.is_empty
    world.pass_time(1_000_000)
    assert world.join().reply.generation_id == 3
    assert world.group.empty_since_ms is None


def test_a_group_that_was_empty_is_so_no_more_while_it_waits_for_its_first_round_to_end() -> None:
    world = ClassicWorld(group_initial_rebalance_delay_ms=DELAY_MS)
    world.join()
    world.leave(next(iter(world.group.members)).member_id)
    assert world.group.empty_since_ms == world.now_ms
    world.join()
    assert not world.group.is_empty
    assert world.group.empty_since_ms is None


def test_whoever_leaves_while_it_waits_is_answered() -> None:
    world = ClassicWorld()
    leader, follower = world.settled(2)
    joining = world.join(follower, {"range": b"news"})
    world.leave(follower)
    assert joining.error is ErrorCode.UNKNOWN_MEMBER_ID
    newcomer = world.join()
    world.join(leader)
    syncing = world.sync(newcomer.reply.member_id, 3)
    world.leave(newcomer.reply.member_id)
    assert syncing.error is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.heartbeat(leader, 3) is ErrorCode.REBALANCE_IN_PROGRESS


def test_several_members_leave_at_once_each_with_its_own_answer() -> None:
    world = ClassicWorld()
    first, second, third = world.settled(3)
    pending = world.join(version=4).reply.member_id
    assert world.leave(first, "stranger", second, pending, first) == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.NONE,
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
    ]
    assert world.join(third).reply.generation_id == 4


def test_when_one_who_never_came_leaves_the_round_can_end() -> None:
    world = ClassicWorld()
    [leader] = world.settled(1)
    pending = world.join(version=4).reply.member_id
    answer = world.join(leader)
    assert world.leave(pending) == [ErrorCode.NONE]
    assert answer.reply.generation_id == 2


def test_one_who_never_came_and_leaves_disturbs_nobody() -> None:
    world = ClassicWorld()
    [leader] = world.settled(1)
    timers = len(world.subject.context.timers)
    world.leave(world.join(version=4).reply.member_id)
    assert world.heartbeat(leader, 1) is ErrorCode.NONE
    assert len(world.subject.context.timers) == timers


@pytest.mark.parametrize("version", range(3))
def test_before_version_3_one_member_leaves_and_the_error_is_the_answers(version: int) -> None:
    world = ClassicWorld()
    [member_id] = world.settled(1)
    errors = [
        world.ask(world.group.leave, LeaveGroupRequest(group_id="group", member_id=who), version).error
        for who in (member_id, member_id)
    ]
    assert errors == [ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID]
    assert world.state == "Empty"


def test_commits_go_on_during_a_rebalance_until_the_next_generation_begins() -> None:
    world = ClassicWorld()
    leader, follower = world.settled(2)
    world.join(leader)
    assert world.commit(follower, 2) is world.commit(leader, 2) is ErrorCode.NONE
    world.join(follower)
    assert world.commit(follower, 2) is ErrorCode.ILLEGAL_GENERATION
    assert world.commit(follower, 3) is ErrorCode.REBALANCE_IN_PROGRESS
    world.share_out(leader, 3, [leader, follower])
    assert world.commit(follower, 3) is ErrorCode.NONE


def test_only_members_commit_while_there_are_any() -> None:
    world = ClassicWorld()
    assert world.commit("", -1) is ErrorCode.NONE
    assert world.commit("stranger", 0) is ErrorCode.UNKNOWN_MEMBER_ID
    [member_id] = world.settled(1)
    assert world.commit("", -1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.commit("stranger", 1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.commit(member_id, -1) is ErrorCode.ILLEGAL_GENERATION
    assert world.commit(member_id, 2) is ErrorCode.ILLEGAL_GENERATION
    world.leave(member_id)
    assert world.commit("", -1) is ErrorCode.NONE


def test_nobody_is_refused_the_offsets_of_a_classic_group() -> None:
    world = ClassicWorld()
    world.settled(1)
    world.group.check_fetch(None, -1)
    world.group.check_fetch("stranger", 7)


def test_a_group_is_described_with_what_its_members_say_and_were_given() -> None:
    world = ClassicWorld()
    leader, follower = world.settled(2)
    described = world.group.describe()
    assert (described.group_id, described.group_state) == ("group", "Stable")
    assert (described.protocol_type, described.protocol_data) == ("consumer", "range")
    member = described.members[1]
    assert (member.member_id, member.client_id, member.client_host) == (follower, "client", "/127.0.0.1")
    assert (member.member_metadata, member.member_assignment) == (RANGE["range"], follower.encode())
    world.join(leader)
    described = world.group.describe()
    assert (described.group_state, described.protocol_data) == ("PreparingRebalance", "")
    assert [member.member_metadata for member in described.members] == [b"", b""]


def test_a_group_is_listed_with_its_state() -> None:
    world = ClassicWorld()
    assert world.group.listed().group_state == "Empty"
    world.settled(1)
    listed = world.group.listed()
    assert (listed.group_state, listed.protocol_type, listed.group_type) == ("Stable", "consumer", "classic")


def test_all_who_wait_are_sent_away_when_the_group_goes() -> None:
    world = ClassicWorld()
    leader, _ = world.settled(2)
    world.join(version=4)
    waiting = [world.join(), world.join(leader)]
    released = world.group.release_waiting(ErrorCode.REBALANCE_IN_PROGRESS).released
    assert [reply.error_code for _, reply in released] == [27, 27]
    assert {ticket for ticket, _ in released} == set(world.waiting)
    assert len(waiting) == 2
    assert world.group.state is ClassicState.DEAD
    assert len(world.subject.context.timers) == 0


def test_a_dead_group_stays_dead_and_a_stable_one_cannot_become_empty_at_once() -> None:
    assert not any(may_follow(ClassicState.DEAD, state) for state in ClassicState)
    assert not may_follow(ClassicState.STABLE, ClassicState.EMPTY)
    assert may_follow(ClassicState.COMPLETING_REBALANCE, ClassicState.PREPARING_REBALANCE)
