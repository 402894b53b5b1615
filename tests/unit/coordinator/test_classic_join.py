"""Becoming a member of a classic group."""

import re

import pytest

from ottla.coordinator.group.classic.join import MOST_PENDING, NEWCOMER_TIMEOUT_MS
from ottla.wire.errors import ErrorCode

from .classic_world import DELAY_MS, RANGE, REBALANCE_MS, SESSION_MS, ClassicWorld, subscription

UUID = r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"


def test_the_first_member_leads_generation_one_and_hears_about_all_members() -> None:
    world = ClassicWorld()
    reply = world.join().reply
    assert (reply.error_code, reply.generation_id, reply.protocol_name) == (0, 1, "range")
    assert reply.leader == reply.member_id
    assert [(member.member_id, member.metadata) for member in reply.members] == [(reply.member_id, RANGE["range"])]
    assert world.state == "CompletingRebalance"


def test_a_member_id_is_the_client_id_and_a_uuid() -> None:
    assert re.fullmatch(f"tool-{UUID}", ClassicWorld().join(client_id="tool").reply.member_id)


def test_a_static_member_id_begins_with_its_own_name() -> None:
    reply = ClassicWorld().join(client_id="tool", instance_id="shelf-1", version=5).reply
    assert re.fullmatch(f"shelf-1-{UUID}", reply.member_id)


@pytest.mark.parametrize("version", range(4))
def test_before_version_4_a_new_member_is_let_in_at_once(version: int) -> None:
    assert ClassicWorld().join(version=version).error is ErrorCode.NONE


@pytest.mark.parametrize("version", range(4, 10))
def test_from_version_4_on_a_new_member_is_given_its_id_first(version: int) -> None:
    world = ClassicWorld()
    first = world.join(version=version)
    assert first.error is ErrorCode.MEMBER_ID_REQUIRED
    assert world.state == "Empty"
    second = world.join(first.reply.member_id, version=version).reply
    assert (second.error_code, second.member_id, second.generation_id) == (0, first.reply.member_id, 1)
    if version >= 7:
        assert second.protocol_type == "consumer"


def test_a_given_id_that_is_not_used_within_the_session_timeout_is_forgotten() -> None:
    world = ClassicWorld()
    member_id = world.join(version=4).reply.member_id
    world.pass_time(SESSION_MS)
    assert world.join(member_id, version=4).error is ErrorCode.UNKNOWN_MEMBER_ID
    assert not world.group.pending


def test_ids_that_are_given_out_take_bounded_room() -> None:
    world = ClassicWorld()
    oldest = world.join(version=4).reply.member_id
    for _ in range(MOST_PENDING):
        newest = world.join(version=4).reply.member_id
    assert len(world.group.pending) == MOST_PENDING == len(world.subject.context.timers)
    assert world.join(oldest, version=4).error is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.join(newest, version=4).error is ErrorCode.NONE


def test_an_id_that_nobody_gave_out_is_unknown() -> None:
    world = ClassicWorld()
    assert world.join("made-up", version=5).error is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.join("made-up", version=5, instance_id="i").error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_given_id_cannot_become_a_static_member() -> None:
    world = ClassicWorld()
    member_id = world.join(version=5).reply.member_id
    assert world.join(member_id, version=5, instance_id="i").error is ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("session_ms", [-1, 0, 5_999, 1_800_001])
def test_a_session_timeout_out_of_bounds_is_refused(session_ms: int) -> None:
    assert ClassicWorld().join(session_ms=session_ms).error is ErrorCode.INVALID_SESSION_TIMEOUT


@pytest.mark.parametrize("session_ms", [6_000, 1_800_000])
def test_a_session_timeout_at_the_bounds_is_taken(session_ms: int) -> None:
    assert ClassicWorld().join(session_ms=session_ms).error is ErrorCode.NONE


def test_a_member_needs_a_protocol_type_and_a_protocol() -> None:
    world = ClassicWorld()
    assert world.join(protocol_type="").error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert world.join(protocols={}).error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_a_member_must_have_a_protocol_in_common_with_all_others() -> None:
    world = ClassicWorld()
    world.settled(1, protocols={"range": b"", "sticky": b""})
    assert world.join(protocols={"roundrobin": b""}).error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert world.join(protocols={"range": b""}, protocol_type="connect").error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert world.join(protocols={"sticky": b""}).is_waiting
    # Since that one can do nothing else, it is all that is left.
    assert world.join(protocols={"range": b""}).error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_the_only_member_may_change_to_a_protocol_that_it_did_not_know_before() -> None:
    world = ClassicWorld()
    [member_id] = world.settled(1)
    assert world.join(member_id, {"sticky": b""}).reply.protocol_name == "sticky"


def test_any_protocol_type_will_do_and_an_empty_group_may_change_it() -> None:
    world = ClassicWorld()
    member_id = world.join(protocols={"sessioned": b"worker"}, protocol_type="connect").reply.member_id
    assert world.group.listed().protocol_type == "connect"
    assert world.leave(member_id) == [ErrorCode.NONE]
    assert world.join().error is ErrorCode.NONE
    assert world.group.listed().protocol_type == "consumer"


def test_each_member_votes_for_what_it_likes_best_of_what_all_can_do() -> None:
    world = ClassicWorld(group_initial_rebalance_delay_ms=DELAY_MS)
    answers = [
        world.join(protocols=[("own", b"1"), ("sticky", b"1"), ("range", b"1")]),
        world.join(protocols=[("range", b"2"), ("sticky", b"2")]),
        world.join(protocols=[("sticky", b"3"), ("range", b"3")]),
    ]
    world.pass_time(2 * DELAY_MS)
    assert {answer.reply.protocol_name for answer in answers} == {"sticky"}
    assert [member.metadata for member in answers[0].reply.members] == [b"1", b"2", b"3"]
    assert [answer.reply.members for answer in answers[1:]] == [[], []]


def test_of_a_protocol_that_is_named_twice_the_first_counts() -> None:
    world = ClassicWorld()
    reply = world.join(protocols=[("range", b"first"), ("range", b"second")]).reply
    assert reply.members[0].metadata == b"first"


def test_a_full_group_refuses_a_new_member_and_keeps_those_it_has() -> None:
    world = ClassicWorld(group_max_size=2)
    first, second = world.settled(2)
    assert world.join().error is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert world.state == "Stable"
    assert world.heartbeat(first, 2) is world.heartbeat(second, 2) is ErrorCode.NONE


def test_a_static_member_of_a_full_group_can_come_back() -> None:
    world = ClassicWorld(group_max_size=1)
    world.settled(1, instance_id="i", version=5)
    assert world.join(instance_id="i", version=5).error is ErrorCode.NONE


def test_when_the_size_is_lowered_the_last_ones_to_join_are_left_out() -> None:
    world = ClassicWorld()
    first, second, third = world.settled(3)
    world.config = type(world.config)({"group.max.size": "2"})
    world.subject.context.config = world.config
    waiting = [world.join(first), world.join(third)]
    assert world.join(second).error is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert [answer.reply.generation_id for answer in waiting] == [4, 4]
    assert [member.member_id for member in world.group.members] == [first, third]


def test_an_empty_group_waits_for_more_members_as_long_as_they_keep_coming() -> None:
    world = ClassicWorld(group_initial_rebalance_delay_ms=DELAY_MS)
    first = world.join()
    world.pass_time(DELAY_MS - 1)
    second = world.join()
    world.pass_time(DELAY_MS)
    assert first.is_waiting
    assert second.is_waiting
    world.pass_time(1)
    assert first.reply.generation_id == second.reply.generation_id == 1


def test_a_lone_first_member_waits_once() -> None:
    world = ClassicWorld(group_initial_rebalance_delay_ms=DELAY_MS)
    first = world.join()
    world.pass_time(DELAY_MS - 1)
    assert first.is_waiting
    world.pass_time(1)
    assert first.reply.generation_id == 1


def test_an_empty_group_does_not_wait_longer_than_the_rebalance_timeout() -> None:
    world = ClassicWorld(group_initial_rebalance_delay_ms=DELAY_MS)
    first = world.join(rebalance_ms=7_000)
    for _ in range(6):
        world.pass_time(1_000)
        world.join(rebalance_ms=7_000)
    world.pass_time(999)
    assert first.is_waiting
    world.pass_time(1)
    assert len(first.reply.members) == 7


def test_if_all_leave_while_an_empty_group_waits_for_more_it_is_empty_again() -> None:
    world = ClassicWorld(group_initial_rebalance_delay_ms=DELAY_MS)
    answer = world.join()
    [member] = world.group.members
    assert world.leave(member.member_id) == [ErrorCode.NONE]
    assert answer.error is ErrorCode.UNKNOWN_MEMBER_ID
    assert (world.state, world.group.generation) == ("Empty", 1)


def test_a_new_member_that_is_never_answered_is_not_waited_for_without_end() -> None:
    world = ClassicWorld()
    leader = world.settled(1, rebalance_ms=2 * NEWCOMER_TIMEOUT_MS, session_ms=1_800_000)[0]
    newcomer = world.join(rebalance_ms=2 * NEWCOMER_TIMEOUT_MS)
    world.pass_time(NEWCOMER_TIMEOUT_MS)
    assert newcomer.error is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.join(leader).reply.generation_id == 2
    assert len(world.group.members) == 1


def test_a_follower_that_joins_again_with_nothing_new_hears_of_the_present_generation() -> None:
    world = ClassicWorld()
    leader, follower = world.settled(2)
    reply = world.join(follower).reply
    assert (reply.generation_id, reply.leader, reply.members) == (2, leader, [])
    assert world.state == "Stable"
    assert world.sync(follower, 2).reply.assignment == follower.encode()


def test_a_leader_that_joins_again_starts_a_rebalance() -> None:
    world = ClassicWorld()
    leader, follower = world.settled(2)
    answer = world.join(leader)
    assert answer.is_waiting
    assert world.heartbeat(follower, 2) is ErrorCode.REBALANCE_IN_PROGRESS
    assert world.join(follower).reply.generation_id == answer.reply.generation_id == 3


def test_a_follower_with_a_new_subscription_starts_a_rebalance() -> None:
    world = ClassicWorld()
    leader, follower = world.settled(2)
    answer = world.join(follower, {"range": subscription("orders", "returns")})
    assert answer.is_waiting
    told = world.join(leader).reply
    assert told.members[1].metadata == subscription("orders", "returns")


def test_a_member_that_missed_its_answer_is_told_again_before_the_leader_has_shared_out() -> None:
    world = ClassicWorld()
    leader, follower = world.settled(2)
    world.join(leader)
    missed = world.join(follower).reply
    assert world.state == "CompletingRebalance"
    again = world.join(follower).reply
    assert (again.generation_id, again.leader, again.members) == (missed.generation_id, leader, [])
    assert len(world.join(leader).reply.members) == 2
    assert world.group.generation == 3


def test_a_member_with_news_before_the_leader_has_shared_out_starts_another_rebalance() -> None:
    world = ClassicWorld()
    leader, follower = world.settled(2)
    world.join(leader)
    world.join(follower)
    waiting = world.sync(follower, 3)
    assert world.join(leader, {"range": subscription("returns")}).is_waiting
    assert waiting.error is ErrorCode.REBALANCE_IN_PROGRESS
    assert world.join(follower).reply.generation_id == 4


def test_of_two_joins_of_the_same_member_the_newer_one_counts() -> None:
    world = ClassicWorld()
    leader, follower = world.settled(2)
    older = world.join(leader)
    newer = world.join(leader)
    assert older.error is ErrorCode.REBALANCE_IN_PROGRESS
    assert newer.is_waiting
    world.join(follower)
    assert newer.reply.generation_id == 3


def test_two_members_that_join_at_once_are_in_the_same_generation() -> None:
    world = ClassicWorld()
    [leader] = world.settled(1)
    first, second = world.join(), world.join()
    assert first.is_waiting
    assert second.is_waiting
    world.join(leader)
    assert first.reply.generation_id == second.reply.generation_id == 2
    assert first.reply.member_id != second.reply.member_id


def test_a_round_waits_for_members_that_were_given_their_ids() -> None:
    world = ClassicWorld()
    [leader] = world.settled(1)
    given = world.join(version=4).reply.member_id
    answer = world.join(leader)
    assert answer.is_waiting
    assert world.join(given, version=4).reply.generation_id == answer.reply.generation_id == 2


def test_version_0_knows_no_rebalance_timeout_and_its_session_timeout_counts() -> None:
    world = ClassicWorld()
    world.settled(1, version=0)
    newcomer = world.join(version=0, rebalance_ms=REBALANCE_MS)
    world.pass_time(SESSION_MS - 1)
    assert newcomer.is_waiting
    world.pass_time(1)
    assert newcomer.reply.generation_id == 2


def test_who_waits_for_a_join_needs_no_heartbeats() -> None:
    world = ClassicWorld()
    leader, follower = world.settled(2, session_ms=6_000)
    answer = world.join(leader, session_ms=6_000)
    # Nor do those that it sends all the same make it promise any.
    assert world.heartbeat(leader, 2) is ErrorCode.REBALANCE_IN_PROGRESS
    for _ in range(10):
        world.pass_time(5_000)
        assert world.heartbeat(follower, 2) is ErrorCode.REBALANCE_IN_PROGRESS
    assert answer.is_waiting
    world.join(follower)
    assert answer.reply.generation_id == 3
    # The session begins when the answer is sent.
    world.pass_time(5_999)
    assert leader in world.group.members
    world.pass_time(1)
    assert leader not in world.group.members
