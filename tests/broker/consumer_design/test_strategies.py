"""What 002 says of partition assignment strategies and of the broker's settings."""

from collections.abc import Mapping
from typing import Any

import pytest

from ottla.assign.assignor import Member, Topic
from ottla.wire.errors import ErrorCode
from tests.broker.consumer_design.crowd import QUICK, Company, all_of, settle
from tests.broker.consumer_design.line import Line
from tests.broker.group_client import join


class FirstTakesAll:
    """A strategy of somebody's own."""

    name = "first-takes-all"

    def assign(
        self, members: Mapping[str, Member[Topic]], partition_counts: Mapping[Topic, int]
    ) -> dict[str, dict[Topic, tuple[int, ...]]]:
        """Give everything to the first in the alphabet; all are subscribed to the same."""
        first = min(members)
        everything = {topic: tuple(range(count)) for topic, count in partition_counts.items()}
        return {member_id: everything if member_id == first else {} for member_id in members}


class AllTakeAll(FirstTakesAll):
    """One that must not be followed."""

    name = "all-take-all"

    def assign(
        self, members: Mapping[str, Member[Topic]], partition_counts: Mapping[Topic, int]
    ) -> dict[str, dict[Topic, tuple[int, ...]]]:
        """Give everything to everybody."""
        return {
            member_id: {topic: tuple(range(count)) for topic, count in partition_counts.items()}
            for member_id in members
        }


ASSIGNORS = f"uniform,range,{__name__}:FirstTakesAll,{__name__}:AllTakeAll"


def test_classic_members_without_a_strategy_in_common_are_not_let_in(company: Company, line: Line) -> None:
    company.settled("classic", 1)
    answer = line.call(join("g", protocols={"sticky": b""}), 9)
    assert answer.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert line.state() == "Stable"


def test_classic_strategies_are_the_members_own_business(line: Line) -> None:
    answer = line.join_as_new("g", protocols={"a-strategy-that-no-broker-knows": b""})
    assert (answer.error_code, answer.protocol_name) == (0, "a-strategy-that-no-broker-knows")


def test_members_of_the_consumer_protocol_may_want_different_strategies(company: Company, line: Line) -> None:
    members = [company.consumer(server_assignor=name) for name in ("range", "uniform", "range")]
    settle(members, all_of(4))
    assert line.consumer_described().assignor_name == "range", "most want it"


def test_a_strategy_that_the_broker_does_not_know_is_refused(line: Line) -> None:
    first: dict[str, Any] = {"rebalance_timeout_ms": 1000, "subscribed_topic_names": ["t"], "topic_partitions": []}
    answer = line.consumer_heartbeat("g", member_id="m", server_assignor="magic", **first)
    assert answer.error_code == ErrorCode.UNSUPPORTED_ASSIGNOR
    assert "uniform" in answer.error_message


@pytest.mark.parametrize("settings", [{**QUICK, "group.consumer.assignors": ASSIGNORS}])
def test_a_strategy_of_ones_own_is_named_in_the_brokers_settings(company: Company, line: Line) -> None:
    members = [company.consumer(server_assignor="first-takes-all") for _ in range(3)]
    settle(members, all_of(4))
    assert line.consumer_described().assignor_name == "first-takes-all"
    first = min(members, key=lambda member: member.member_id)
    assert sorted(first.assigned) == all_of(4)


@pytest.mark.parametrize("settings", [{**QUICK, "group.max.session.timeout.ms": "20000"}])
def test_a_session_timeout_above_the_limit_is_refused(line: Line) -> None:
    assert line.join_as_new("g", session_timeout_ms=20_001).error_code == ErrorCode.INVALID_SESSION_TIMEOUT
    assert line.join_as_new("g", session_timeout_ms=20_000).error_code == ErrorCode.NONE


@pytest.mark.parametrize("settings", [{**QUICK, "group.consumer.assignors": ASSIGNORS}])
def test_a_strategy_that_gives_a_partition_twice_is_not_followed(company: Company, line: Line) -> None:
    (member,) = company.settled("consumer", 1)
    first: dict[str, Any] = {"rebalance_timeout_ms": 1000, "subscribed_topic_names": ["t"], "topic_partitions": []}
    for name in ("one", "two"):
        answer = line.consumer_heartbeat("g", member_id=name, server_assignor="all-take-all", **first)
        assert answer.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
        assert "all-take-all" in answer.error_message
    assert member.beat() is ErrorCode.NONE
    assert sorted(member.assigned) == all_of(4)
