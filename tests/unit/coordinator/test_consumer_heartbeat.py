"""How members of the consumer protocol join, share and leave."""

from typing import Any

import pytest

from ottla.wire.errors import ErrorCode

from .consumer_world import INTERVAL_MS, REBALANCE_MS, SESSION_MS, Consumer, ConsumerWorld, Held


def all_of(**topics: int) -> Held:
    return {(name, index) for name, count in topics.items() for index in range(count)}


def test_the_first_member_gets_everything_with_its_first_answer() -> None:
    world = ConsumerWorld()
    answer = world.beat(member_id="a", rebalance_timeout_ms=1, subscribed_topic_names=["orders"], topic_partitions=[])
    assert (answer.reply.member_id, answer.reply.member_epoch) == ("a", 1)
    assert answer.reply.heartbeat_interval_ms == INTERVAL_MS
    assert world.named(answer.reply.assignment.topic_partitions) == all_of(orders=4)
    assert world.state == "Stable"


def test_a_partition_goes_to_a_new_member_only_when_the_old_one_has_given_it_up() -> None:
    world = ConsumerWorld()
    a = Consumer(world, "a").join()
    b = Consumer(world, "b").join()
    assert (b.held, b.epoch) == (set(), 2)
    assert world.state == "Reconciling"
    answer = a.beat()
    assert len(world.named(answer.reply.assignment.topic_partitions)) == 2
    assert a.epoch == 1, "the epoch does not rise while something is to be given up"
    b.beat()
    assert b.held == set(), "a has not said yet that it gave anything up"
    a.beat()
    assert a.epoch == 2
    b.beat()
    assert len(b.held) == len(a.held) == 2
    assert a.held | b.held == all_of(orders=4)
    assert world.state == "Stable"


def test_a_heartbeat_in_a_settled_group_writes_nothing_and_says_nothing_new() -> None:
    world = ConsumerWorld()
    a = Consumer(world, "a").join()
    written = len(world.log)
    assert a.beat().reply.assignment is None
    assert len(world.log) == written


def test_a_full_request_is_answered_in_full() -> None:
    world = ConsumerWorld()
    a = Consumer(world, "a").join()
    reply = a.beat(rebalance_timeout_ms=5, subscribed_topic_names=["orders"], topic_partitions=a._owned).reply
    assert world.named(reply.assignment.topic_partitions) == all_of(orders=4)


def test_what_a_leaving_member_had_goes_to_the_others() -> None:
    world = ConsumerWorld()
    a, b = Consumer(world, "a").join(), Consumer(world, "b").join()
    world.settle(a, b)
    reply = b.leave().reply
    assert (reply.member_id, reply.member_epoch, reply.assignment) == ("b", -1, None)
    assert world.state == "Assigning"
    a.beat()
    assert a.held == all_of(orders=4)
    assert world.state == "Stable"


def test_a_group_that_all_have_left_is_empty_and_remembers_since_when() -> None:
    world = ConsumerWorld()
    a = Consumer(world, "a").join()
    world.pass_time(1000)
    a.leave()
    assert world.state == "Empty"
    assert world.group.empty_since_ms == world.now_ms
    emptied_ms = world.now_ms
    world.pass_time(1000)
    world.restart()
    assert world.group.empty_since_ms == emptied_ms


def test_a_silent_member_is_out_after_its_session() -> None:
    world = ConsumerWorld()
    a, b = Consumer(world, "a").join(), Consumer(world, "b").join()
    world.settle(a, b)
    world.pass_time(SESSION_MS - 1)
    a.beat()
    world.pass_time(1)
    assert list(world.group.members) == ["a"]
    a.beat()
    assert a.held == all_of(orders=4)
    assert b.send().error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_that_does_not_give_up_in_time_is_out_though_it_is_heard_of() -> None:
    world = ConsumerWorld()
    a = Consumer(world, "a").join()
    b = Consumer(world, "b").join()
    a.beat()
    for _ in range(REBALANCE_MS // INTERVAL_MS):
        world.pass_time(INTERVAL_MS - 1)
        b.beat()
        assert a.send().error is ErrorCode.NONE
    assert "a" in world.group.members
    world.pass_time(REBALANCE_MS // INTERVAL_MS)
    assert a.send().error is ErrorCode.UNKNOWN_MEMBER_ID
    b.beat()
    assert b.held == all_of(orders=4)


def test_a_member_that_gave_up_in_time_stays() -> None:
    world = ConsumerWorld()
    a = Consumer(world, "a").join()
    b = Consumer(world, "b").join()
    a.beat()
    a.beat()
    for _ in range(2 * REBALANCE_MS // INTERVAL_MS):
        world.pass_time(INTERVAL_MS)
        a.beat()
        b.beat()
    assert world.state == "Stable"


def test_an_answer_that_was_lost_is_given_again() -> None:
    world = ConsumerWorld()
    a = Consumer(world, "a").join()
    b = Consumer(world, "b").join()
    a.beat()
    a.send(topic_partitions=a._owned)
    assert world.group.members["a"].current.epoch == 2
    a.beat(topic_partitions=a._owned, rebalance_timeout_ms=REBALANCE_MS, subscribed_topic_names=["orders"])
    assert a.epoch == 2
    world.settle(a, b)


def test_one_that_is_an_epoch_behind_and_claims_what_it_has_not_is_fenced() -> None:
    world = ConsumerWorld()
    a = Consumer(world, "a").join()
    everything = a._owned
    Consumer(world, "b").join()
    a.beat()
    a.send(topic_partitions=a._owned)
    assert a.send(topic_partitions=everything).error is ErrorCode.FENCED_MEMBER_EPOCH
    assert a.send().error is ErrorCode.FENCED_MEMBER_EPOCH
    assert a.send(member_epoch=7).error is ErrorCode.FENCED_MEMBER_EPOCH
    assert "a" in world.group.members
    a.join()
    assert a.epoch == 2


def test_a_member_joins_with_its_old_id_though_its_epoch_is_forgotten() -> None:
    world = ConsumerWorld()
    a, b = Consumer(world, "a").join(), Consumer(world, "b").join()
    world.settle(a, b)
    epoch = world.group.epoch
    a.join()
    assert len(a.held) == 2
    assert world.group.epoch == epoch, "nothing has changed for the others"


def test_a_changed_subscription_moves_partitions() -> None:
    world = ConsumerWorld({"orders": 2, "payments": 2})
    a, b = Consumer(world, "a", "orders").join(), Consumer(world, "b", "orders").join()
    world.settle(a, b)
    a.beat(subscribed_topic_names=["payments"])
    world.settle(a, b)
    assert a.held == all_of(payments=2)
    assert b.held == all_of(orders=2)


def test_a_member_that_reads_nothing_is_a_member_with_nothing() -> None:
    world = ConsumerWorld()
    answer = world.beat(member_id="a", rebalance_timeout_ms=1, subscribed_topic_names=[], topic_partitions=[])
    assert answer.reply.member_epoch == 1
    assert answer.reply.assignment.topic_partitions == []
    assert world.state == "Stable"


def test_members_of_version_0_are_given_an_id() -> None:
    world = ConsumerWorld()
    join: dict[str, Any] = {"rebalance_timeout_ms": 1, "subscribed_topic_names": ["orders"], "topic_partitions": []}
    first = world.beat(version=0, **join).reply.member_id
    second = world.beat(version=0, **join).reply.member_id
    assert first
    assert first != second
    assert world.group.members.keys() == {first, second}


JOIN: dict[str, Any] = {
    "member_id": "a",
    "member_epoch": 0,
    "rebalance_timeout_ms": 1000,
    "subscribed_topic_names": ["orders"],
    "topic_partitions": [],
}


@pytest.mark.parametrize(
    "wrong",
    [
        {"member_id": ""},
        {"member_epoch": -3},
        {"member_epoch": -2},
        {"instance_id": ""},
        {"rack_id": ""},
        {"rebalance_timeout_ms": -1},
        {"topic_partitions": None},
        {"subscribed_topic_names": None},
    ],
    ids=str,
)
def test_a_request_that_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    world = ConsumerWorld()
    answer = world.beat(**{**JOIN, **wrong})
    assert answer.error is ErrorCode.INVALID_REQUEST
    assert answer.reply.error_message
    assert world.log == []


def test_an_assignor_that_is_not_on_offer_is_refused_with_those_that_are() -> None:
    answer = ConsumerWorld(group_consumer_assignors="range").beat(**JOIN, server_assignor="uniform")
    assert answer.error is ErrorCode.UNSUPPORTED_ASSIGNOR
    assert "range" in answer.reply.error_message


def test_most_votes_decide_on_the_assignor() -> None:
    world = ConsumerWorld({"orders": 3, "payments": 3})
    a = Consumer(world, "a", "orders", "payments", server_assignor="range").join()
    b = Consumer(world, "b", "orders", "payments").join()
    world.settle(a, b)
    assert world.described().assignor_name == "range"
    assert {index for name, index in a.held if name == "orders"} == {0, 1}
    assert {index for name, index in a.held if name == "payments"} == {0, 1}


def test_a_full_group_takes_nobody_in() -> None:
    world = ConsumerWorld(group_consumer_max_size=1)
    Consumer(world, "a").join()
    assert world.beat(**{**JOIN, "member_id": "b"}).error is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert world.beat(**JOIN).error is ErrorCode.NONE


@pytest.mark.parametrize("epoch", [1, -1])
def test_nobody_stays_in_or_leaves_a_group_that_is_not_there(epoch: int) -> None:
    world = ConsumerWorld()
    assert world.beat(member_id="a", member_epoch=epoch).error is ErrorCode.GROUP_ID_NOT_FOUND


@pytest.mark.parametrize("epoch", [1, -1])
def test_nobody_stays_or_leaves_who_is_no_member(epoch: int) -> None:
    world = ConsumerWorld()
    Consumer(world, "a").join()
    assert world.beat(member_id="b", member_epoch=epoch).error is ErrorCode.UNKNOWN_MEMBER_ID


def test_tools_see_what_members_have_and_are_meant_to_have() -> None:
    world = ConsumerWorld()
    Consumer(world, "a", rack_id="east").join()
    Consumer(world, "b").join()
    described = world.described()
    assert (described.group_epoch, described.assignment_epoch, described.assignor_name) == (2, 2, "uniform")
    a = next(member for member in described.members if member.member_id == "a")
    assert (a.member_epoch, a.rack_id, a.client_id, a.client_host) == (1, "east", "client", "/127.0.0.1")
    assert (a.subscribed_topic_names, a.member_type) == (["orders"], 1)
    assert [(one.topic_name, one.partitions) for one in a.assignment.topic_partitions] == [("orders", [0, 1, 2, 3])]
    assert [(one.topic_name, one.partitions) for one in a.target_assignment.topic_partitions] == [("orders", [0, 1])]


class TestLargeGroups:
    """Where an assignment takes its time, they are not made one for each member that comes."""

    @staticmethod
    def grown() -> tuple[ConsumerWorld, list[Consumer]]:
        world = ConsumerWorld({"orders": 300})
        return world, [Consumer(world, f"member-{number}").join() for number in range(150)]

    def test_members_that_come_together_are_given_partitions_together(self) -> None:
        world, consumers = self.grown()
        assert world.state == "Assigning"
        assert world.described().assignment_epoch == 100
        assert (consumers[-1].held, consumers[-1].epoch) == (set(), 100)
        world.pass_time(1000)
        assert world.described().assignment_epoch == 150
        world.settle(*consumers)
        assert all(len(consumer.held) == 2 for consumer in consumers)

    def test_an_assignment_that_was_put_off_is_made_after_a_restart(self) -> None:
        world, consumers = self.grown()
        world.restart()
        world.pass_time(1000)
        world.settle(*consumers)
        assert all(len(consumer.held) == 2 for consumer in consumers)
