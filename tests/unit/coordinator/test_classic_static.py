"""Static members of a classic group: known by a name of their own, which outlives the member id."""

import pytest

from ottla.wire.errors import ErrorCode

from .classic_world import RANGE, REBALANCE_MS, SESSION_MS, ClassicWorld, subscription

LONG_MS = 200_000


def pair(world: ClassicWorld) -> tuple[str, str]:
    """A Stable group of two static members, "a" leading and "b"."""
    [leader] = world.settled(1, instance_id="a", version=5, session_ms=LONG_MS)
    second = world.join(instance_id="b", version=5, session_ms=LONG_MS)
    world.join(leader, instance_id="a", version=5, session_ms=LONG_MS)
    ids = [leader, second.reply.member_id]
    world.share_out(leader, 2, ids)
    return leader, second.reply.member_id


def test_a_static_member_is_let_in_at_once() -> None:
    assert ClassicWorld().join(instance_id="a", version=9).error is ErrorCode.NONE


def test_a_static_member_that_is_started_again_gets_its_share_without_a_rebalance() -> None:
    world = ClassicWorld()
    leader, old = pair(world)
    reply = world.join(instance_id="b", version=5).reply
    assert (reply.error_code, reply.generation_id, reply.leader) == (0, 2, leader)
    assert reply.member_id != old
    assert world.state == "Stable"
    assert world.sync(reply.member_id, 2, instance_id="b").reply.assignment == old.encode()
    assert world.heartbeat(leader, 2, "a") is ErrorCode.NONE


def test_the_former_self_of_a_static_member_is_fenced() -> None:
    world = ClassicWorld()
    _, old = pair(world)
    new = world.join(instance_id="b", version=5).reply.member_id
    assert world.heartbeat(old, 2, "b") is ErrorCode.FENCED_INSTANCE_ID
    assert world.heartbeat(old, 2) is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.sync(old, 2, instance_id="b").error is ErrorCode.FENCED_INSTANCE_ID
    assert world.join(old, instance_id="b", version=5).error is ErrorCode.FENCED_INSTANCE_ID
    assert world.commit(old, 2, "b") is ErrorCode.FENCED_INSTANCE_ID
    assert world.leave((old, "b")) == [ErrorCode.FENCED_INSTANCE_ID]
    assert world.commit(new, 2, "b") is world.heartbeat(new, 2, "b") is ErrorCode.NONE


def test_a_former_self_that_waits_for_a_join_is_fenced_at_once() -> None:
    world = ClassicWorld()
    _, old = pair(world)
    waiting = world.join(old, {"range": subscription("other")}, instance_id="b", version=5)
    assert waiting.is_waiting
    assert world.join(instance_id="b", version=5).is_waiting
    assert waiting.error is ErrorCode.FENCED_INSTANCE_ID
    assert len(world.group.members) == 2


def test_a_former_self_that_waits_for_its_share_is_fenced_and_the_others_join_again() -> None:
    world = ClassicWorld()
    leader, old = pair(world)
    world.join(old, {"range": b"news"}, instance_id="b", version=5)
    world.join(leader, instance_id="a", version=5)
    waiting = world.sync(old, 3, instance_id="b")
    new = world.join(instance_id="b", version=5)
    assert waiting.error is ErrorCode.FENCED_INSTANCE_ID
    # The leader may have shared out to the old id already: it has to do so again.
    assert world.sync(leader, 3, {old: b"x"}, instance_id="a").error is ErrorCode.REBALANCE_IN_PROGRESS
    assert world.join(leader, instance_id="a", version=5).reply.generation_id == new.reply.generation_id == 4


def test_a_leader_that_is_started_again_is_told_that_it_need_not_share_out() -> None:
    world = ClassicWorld()
    old, follower = pair(world)
    reply = world.join(instance_id="a", version=9).reply
    assert (reply.leader, reply.skip_assignment, reply.generation_id) == (reply.member_id, True, 2)
    assert [member.group_instance_id for member in reply.members] == ["b", "a"]
    assert world.sync(reply.member_id, 2, instance_id="a").reply.assignment == old.encode()
    assert world.group.leader == reply.member_id
    assert world.sync(follower, 2, instance_id="b").reply.assignment == follower.encode()


@pytest.mark.parametrize("version", range(5, 9))
def test_a_leader_of_an_older_version_that_is_started_again_does_not_hear_that_it_leads(version: int) -> None:
    world = ClassicWorld()
    old, _ = pair(world)
    reply = world.join(instance_id="a", version=version).reply
    assert (reply.leader, reply.members) == (old, [])
    # It does lead: when it joins again by itself, the others must too.
    assert world.join(reply.member_id, instance_id="a", version=version).is_waiting


def test_a_static_member_that_comes_back_with_another_subscription_starts_a_rebalance() -> None:
    world = ClassicWorld()
    leader, _ = pair(world)
    answer = world.join(instance_id="b", version=5, protocols={"range": subscription("returns")})
    assert answer.is_waiting
    assert world.heartbeat(leader, 2, "a") is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_static_member_that_comes_back_with_another_protocol_starts_a_rebalance() -> None:
    world = ClassicWorld()
    world.settled(1, instance_id="a", version=5)
    answer = world.join(instance_id="a", version=5, protocols={"sticky": RANGE["range"]})
    assert answer.reply.generation_id == 2
    assert answer.reply.protocol_name == "sticky"


def test_what_a_restarted_consumer_has_forgotten_to_own_is_no_other_subscription() -> None:
    world = ClassicWorld()
    world.settled(1, instance_id="a", version=5, protocols={"range": subscription("orders", version=2)})
    answer = world.join(instance_id="a", version=5, protocols={"range": subscription("orders", version=0)})
    assert answer.reply.generation_id == 1


def test_a_static_member_that_does_not_join_again_stays_until_its_session_ends() -> None:
    world = ClassicWorld()
    leader, absent = pair(world)
    answer = world.join(leader, instance_id="a", version=5)
    world.pass_time(REBALANCE_MS)
    assert answer.reply.generation_id == 3
    assert [member.member_id for member in answer.reply.members] == [leader, absent]
    world.sync(leader, 3, {leader: b"left", absent: b"right"}, instance_id="a")
    assert world.heartbeat(absent, 2, "b") is ErrorCode.ILLEGAL_GENERATION
    # It comes back in time, and its share was kept for it.
    back = world.join(instance_id="b", version=5, session_ms=LONG_MS).reply
    assert world.sync(back.member_id, 3, instance_id="b").reply.assignment == b"right"
    for _ in range(LONG_MS // 5_000):
        assert world.heartbeat(leader, 3, "a") is ErrorCode.NONE
        world.pass_time(5_000)
    assert world.heartbeat(leader, 3, "a") is ErrorCode.REBALANCE_IN_PROGRESS
    assert world.heartbeat(back.member_id, 3, "b") is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_static_member_that_came_back_is_watched_under_its_new_id() -> None:
    world = ClassicWorld()
    leader, _ = pair(world)
    new = world.join(instance_id="b", version=5).reply.member_id
    world.pass_time(SESSION_MS)
    assert world.heartbeat(new, 2, "b") is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.heartbeat(leader, 2, "a") is ErrorCode.REBALANCE_IN_PROGRESS


def test_if_no_static_member_joins_again_the_round_waits_for_their_sessions() -> None:
    world = ClassicWorld()
    pair(world)
    newcomer = world.join(rebalance_ms=1_000)
    [joining] = world.group.joining
    world.leave(joining)
    assert newcomer.error is ErrorCode.UNKNOWN_MEMBER_ID
    world.pass_time(LONG_MS - 1)
    assert world.state == "PreparingRebalance"
    world.pass_time(1)
    assert (world.state, world.group.generation) == ("Empty", 3)


def test_an_administrator_removes_a_static_member_by_its_name() -> None:
    world = ClassicWorld()
    leader, _ = pair(world)
    assert world.leave(("", "b"), ("", "c"), ("", None)) == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.UNKNOWN_MEMBER_ID,
    ]
    assert world.join(leader, instance_id="a", version=5).reply.generation_id == 3


def test_the_new_id_of_a_static_member_is_written_down_before_it_hears_of_it() -> None:
    world = ClassicWorld()
    leader, _ = pair(world)
    new = world.join(instance_id="b", version=5).reply.member_id
    world.restart()
    assert world.state == "Stable"
    assert world.heartbeat(new, 2, "b") is world.heartbeat(leader, 2, "a") is ErrorCode.NONE


def test_a_restarted_member_that_had_not_asked_for_its_share_is_still_expected_to() -> None:
    world = ClassicWorld()
    leader, lazy = pair(world)
    world.join(leader, instance_id="a", version=5, session_ms=LONG_MS)
    world.join(lazy, instance_id="b", version=5, session_ms=LONG_MS)
    world.sync(leader, 3, instance_id="a")
    new = world.join(instance_id="b", version=5, session_ms=LONG_MS).reply.member_id
    world.pass_time(REBALANCE_MS)
    assert world.heartbeat(new, 3, "b") is ErrorCode.UNKNOWN_MEMBER_ID
