"""Static members: their names outlive them."""

import pytest

from ottla.wire.errors import ErrorCode

from .consumer_world import SESSION_MS, Consumer, ConsumerWorld


def left_for_now() -> tuple[ConsumerWorld, Consumer, Consumer]:
    """A settled group of two, of whom the static one has left for a while."""
    world = ConsumerWorld()
    a, b = Consumer(world, "a1", instance_id="a").join(), Consumer(world, "b").join()
    world.settle(a, b)
    reply = a.send(member_epoch=-2).reply
    assert (reply.member_id, reply.member_epoch, reply.error_code) == ("a1", -2, 0)
    return world, a, b


def test_one_that_left_for_a_while_finds_its_partitions_when_it_is_back_under_another_id() -> None:
    world, a, b = left_for_now()
    epoch, held = world.group.epoch, a.held
    b.beat()
    assert len(b.held) == 2, "what the other had is not given away"
    again = Consumer(world, "a2", instance_id="a").join()
    assert (again.held, again.epoch) == (held, epoch)
    assert world.group.epoch == epoch, "nobody else has to do anything"
    assert world.group.members.keys() == {"a2", "b"}
    assert world.state == "Stable"


def test_one_that_left_for_a_while_and_reads_other_topics_when_it_is_back_moves_partitions() -> None:
    world, _, b = left_for_now()
    world.create("payments", 2)
    again = Consumer(world, "a2", "payments", instance_id="a").join()
    world.settle(again, b)
    assert again.held == {("payments", 0), ("payments", 1)}
    assert len(b.held) == 4


def test_one_that_does_not_come_back_is_out_after_its_session() -> None:
    world, _, b = left_for_now()
    world.pass_time(SESSION_MS - 1)
    b.beat()
    assert len(b.held) == 2
    world.pass_time(1)
    b.beat()
    assert len(b.held) == 4


def test_one_that_left_for_a_while_is_still_waited_for_after_a_restart() -> None:
    world, a, b = left_for_now()
    world.restart()
    b.beat()
    assert len(b.held) == 2
    again = Consumer(world, "a2", instance_id="a").join()
    assert again.held == a.held


def test_two_cannot_have_one_name() -> None:
    world = ConsumerWorld()
    Consumer(world, "a1", instance_id="a").join()
    second = Consumer(world, "a2", instance_id="a")
    fields = {"rebalance_timeout_ms": 1, "topic_partitions": [], **second.fields}
    assert second.send(**fields).error is ErrorCode.UNRELEASED_INSTANCE_ID


def test_one_whose_name_another_has_by_now_is_fenced() -> None:
    world, a, _ = left_for_now()
    Consumer(world, "a2", instance_id="a").join()
    assert a.send().error is ErrorCode.FENCED_INSTANCE_ID
    assert a.leave().error is ErrorCode.FENCED_INSTANCE_ID
    assert a.send(member_epoch=-2).error is ErrorCode.FENCED_INSTANCE_ID


def test_a_static_member_that_lost_its_answer_joins_again_with_the_same_id() -> None:
    world = ConsumerWorld()
    a = Consumer(world, "a1", instance_id="a").join()
    a.join()
    assert len(a.held) == 4


def test_a_static_member_that_leaves_for_good_leaves_at_once() -> None:
    world = ConsumerWorld()
    a, b = Consumer(world, "a1", instance_id="a").join(), Consumer(world, "b").join()
    world.settle(a, b)
    a.leave()
    b.beat()
    assert len(b.held) == 4


@pytest.mark.parametrize("epoch", [1, -1, -2])
def test_a_name_that_nobody_has_is_unknown(epoch: int) -> None:
    world = ConsumerWorld()
    Consumer(world, "b").join()
    answer = world.beat(member_id="b", instance_id="nobody", member_epoch=epoch)
    assert answer.error is ErrorCode.UNKNOWN_MEMBER_ID


def test_one_that_was_giving_something_up_when_it_left_for_a_while_comes_back_without_it() -> None:
    world = ConsumerWorld()
    a = Consumer(world, "a1", instance_id="a").join()
    b = Consumer(world, "b").join()
    a.beat()
    a.send(member_epoch=-2)
    b.beat()
    assert len(b.held) == 2, "one that has left cannot hold on to what it was giving up"
    again = Consumer(world, "a2", instance_id="a").join()
    world.settle(again, b)
    assert len(again.held) == 2
