"""Topics that come, grow and go, and subscriptions by regular expression."""

import sys
import time

import pytest

from ottla.coordinator.group.consumer.regex import TopicPattern
from ottla.wire.errors import ErrorCode, KafkaError

from .consumer_world import Consumer, ConsumerWorld


def test_new_partitions_of_a_topic_are_given_out() -> None:
    world = ConsumerWorld()
    a = Consumer(world, "a").join()
    world.grow("orders", 6)
    assert world.state == "Assigning"
    a.beat()
    assert len(a.held) == 6


def test_a_topic_that_is_made_after_somebody_subscribed_to_it_is_given_out() -> None:
    world = ConsumerWorld({})
    a = Consumer(world, "a").join()
    assert a.held == set()
    world.create("orders", 3)
    a.beat()
    assert len(a.held) == 3


def test_a_deleted_topic_is_taken_away_and_one_of_the_same_name_is_another() -> None:
    world = ConsumerWorld({"orders": 2, "payments": 1})
    a = Consumer(world, "a", "orders", "payments").join()
    world.delete("orders")
    a.beat()
    world.settle(a)
    assert a.held == {("payments", 0)}
    world.create("orders", 1)
    a.beat()
    assert a.held == {("payments", 0), ("orders", 0)}


def test_topics_that_nobody_reads_change_nothing() -> None:
    world = ConsumerWorld()
    Consumer(world, "a").join()
    epoch, written = world.group.epoch, len(world.log)
    world.create("other", 3)
    world.delete("other")
    assert (world.group.epoch, len(world.log)) == (epoch, written)


def test_topics_that_changed_while_the_coordinator_was_away_are_noticed_when_it_is_loaded() -> None:
    world = ConsumerWorld()
    a = Consumer(world, "a").join()
    world.image = ConsumerWorld({"orders": 5}).image
    world.restart()
    a.beat()
    assert len(a.held) == 5


def test_an_expression_stands_for_all_topics_that_match_it_as_a_whole_now_and_later() -> None:
    world = ConsumerWorld({"orders-eu": 1, "orders-us": 1, "old-orders-eu": 1, "__consumer_offsets": 1})
    a = Consumer(world, "a", subscribed_topic_names=None, subscribed_topic_regex="orders-.*").join()
    assert {name for name, _ in a.held} == {"orders-eu", "orders-us"}
    world.create("orders-asia", 1)
    a.beat()
    assert {name for name, _ in a.held} == {"orders-eu", "orders-us", "orders-asia"}
    world.delete("orders-us")
    a.beat()
    world.settle(a)
    assert {name for name, _ in a.held} == {"orders-eu", "orders-asia"}
    assert world.group.is_subscribed("orders-eu")
    assert not world.group.is_subscribed("orders-us")


def test_not_even_an_expression_for_everything_stands_for_the_brokers_own_topics() -> None:
    world = ConsumerWorld({"orders": 1, "__consumer_offsets": 50})
    a = Consumer(world, "a", subscribed_topic_names=None, subscribed_topic_regex=".*").join()
    assert a.held == {("orders", 0)}


def test_an_empty_expression_is_none() -> None:
    world = ConsumerWorld({"orders": 1, "payments": 1})
    a = Consumer(world, "a", "orders", subscribed_topic_regex="").join()
    assert a.held == {("orders", 0)}
    assert world.described().members[0].subscribed_topic_regex is None


def test_names_and_an_expression_add_up() -> None:
    world = ConsumerWorld({"orders": 1, "payments-1": 1, "payments-2": 1})
    a = Consumer(world, "a", "orders", subscribed_topic_regex="payments-[12]").join()
    assert len(a.held) == 3
    a.beat(subscribed_topic_regex="")
    world.settle(a)
    assert a.held == {("orders", 0)}


def test_what_an_expression_stood_for_is_forgotten_with_its_last_member() -> None:
    world = ConsumerWorld({"orders": 1})
    a = Consumer(world, "a", subscribed_topic_names=None, subscribed_topic_regex="o.*").join()
    b = Consumer(world, "b", subscribed_topic_names=None, subscribed_topic_regex="o.*").join()
    a.leave()
    assert world.group.is_subscribed("orders")
    b.leave()
    assert not world.group.is_subscribed("orders")


def test_what_is_no_expression_is_refused_and_leaves_no_trace() -> None:
    world = ConsumerWorld()
    answer = world.beat(member_id="a", rebalance_timeout_ms=1, subscribed_topic_regex="orders(", topic_partitions=[])
    assert answer.error is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert "orders(" in answer.reply.error_message
    assert world.log == []


def test_a_broker_without_the_library_says_so_and_serves_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "re2", None)
    world = ConsumerWorld()
    answer = world.beat(member_id="a", rebalance_timeout_ms=1, subscribed_topic_regex="o.*", topic_partitions=[])
    assert answer.error is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert "google-re2 is not installed" in answer.reply.error_message
    assert len(Consumer(world, "b").join().held) == 4


@pytest.mark.parametrize(
    "expression",
    ["(a+)+$", "(a|a)*b", "(a{0,20}){0,20}", "(.{0,30}a){9}", "(.*)*(.*)*(.*)*x"],
    ids=lambda expression: expression,
)
def test_no_expression_takes_long(expression: str) -> None:
    names = {"a" * 249: None, **{f"{'a' * 240}{number}": None for number in range(1000)}}
    begin = time.thread_time()
    TopicPattern(expression).topics(names)
    assert time.thread_time() - begin < 2


@pytest.mark.parametrize("expression", ["((a{100}){100}){100}", "(.{0,99}a){20}", "a" * 20_000, r"(a)\1", "(?=a)b"])
def test_expressions_that_are_too_large_or_cannot_be_bounded_are_refused(expression: str) -> None:
    with pytest.raises(KafkaError) as error:
        TopicPattern(expression)
    assert error.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert len(error.value.message) < 500
