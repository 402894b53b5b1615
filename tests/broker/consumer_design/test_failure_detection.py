"""What 002 says under "Failure detection protocol"."""

import time

from ottla.testing import TestBroker
from ottla.wire.errors import ErrorCode
from tests.broker.consumer_design.crowd import Company, all_of, both_protocols, go_on, settle
from tests.broker.consumer_design.line import Line
from tests.waiting import until


def test_a_classic_member_says_how_long_its_session_is(company: Company, line: Line) -> None:
    short, long = company.classic(session_timeout_ms=300), company.classic()
    settle([short, long], all_of(4))
    begun = time.monotonic()
    line.wait_for_state("PreparingRebalance")
    assert 0.15 < time.monotonic() - begun < 8
    settle([long], all_of(4))
    assert short.beat() is ErrorCode.UNKNOWN_MEMBER_ID


def test_in_the_consumer_protocol_the_broker_says_how_long_sessions_are_and_how_often_to_be_heard(
    company: Company, line: Line
) -> None:
    answer = line.consumer_heartbeat(
        "g", member_id="m", rebalance_timeout_ms=60_000, subscribed_topic_names=["t"], topic_partitions=[]
    )
    assert (answer.error_code, answer.heartbeat_interval_ms) == (0, 50)
    begun = time.monotonic()
    until(lambda: line.consumer_described().group_state == "Empty")
    assert 1 < time.monotonic() - begun < 20, "group.consumer.session.timeout.ms is 1.5 s here"


def test_failure_detection_begins_when_a_member_has_joined(company: Company, line: Line) -> None:
    member = company.classic(session_timeout_ms=300)
    settle([member], all_of(4))
    # Not one heartbeat after that.
    line.wait_for_state("Empty")


@both_protocols
def test_heartbeats_keep_a_member_in(company: Company, kind: str) -> None:
    (member,) = company.settled(kind, 1) if kind == "consumer" else [company.classic(session_timeout_ms=1500)]
    generation = settle([member], all_of(4))
    deadline = time.monotonic() + 3.2
    while time.monotonic() < deadline:
        assert member.beat() is ErrorCode.NONE
        time.sleep(0.05)
    assert member.generation == generation


@both_protocols
def test_a_silent_member_is_out_and_the_others_share_what_it_had(company: Company, kind: str) -> None:
    silent = company.member(kind, **({"session_timeout_ms": 500} if kind == "classic" else {}))
    others = [company.member(kind), company.member(kind)]
    generation = settle([silent, *others], all_of(4))
    assert settle(others, all_of(4)) > generation
    assert silent.beat() is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_rebalance_is_told_with_the_next_heartbeat_and_not_before(company: Company, line: Line) -> None:
    old, new = company.classic(), company.classic()
    settle([old], all_of(4))
    new.get_id()
    new.begin_join()
    line.wait_for_state("PreparingRebalance")
    assert not old.line.has_answer()
    assert old.beat() is ErrorCode.REBALANCE_IN_PROGRESS


def test_in_the_consumer_protocol_a_new_epoch_is_told_with_the_next_heartbeat(company: Company, line: Line) -> None:
    member = company.consumer()
    epoch = settle([member], all_of(4))
    assert line.grow("t", 5) is ErrorCode.NONE
    assert not member.line.has_answer()
    assert member.beat() is ErrorCode.NONE
    assert (member.generation, sorted(member.assigned)) == (epoch + 1, all_of(5))


def test_a_heartbeat_is_checked_for_group_member_and_generation(company: Company, line: Line) -> None:
    (member,) = company.settled("classic", 1)
    assert line.heartbeat("g", member.member_id, member.generation - 1) is ErrorCode.ILLEGAL_GENERATION
    assert line.heartbeat("g", member.member_id, member.generation + 1) is ErrorCode.ILLEGAL_GENERATION
    assert line.heartbeat("g", "nobody", member.generation) is ErrorCode.UNKNOWN_MEMBER_ID
    assert line.heartbeat("nowhere", member.member_id, member.generation) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_consumer_protocol_heartbeat_is_checked_for_group_member_and_epoch(company: Company, line: Line) -> None:
    (member,) = company.settled("consumer", 1)

    def code(group_id: str, member_id: str, epoch: int) -> ErrorCode:
        return ErrorCode(line.consumer_heartbeat(group_id, member_id=member_id, member_epoch=epoch).error_code)

    assert code("g", member.member_id, member.generation + 1) is ErrorCode.FENCED_MEMBER_EPOCH
    assert code("g", "nobody", member.generation) is ErrorCode.UNKNOWN_MEMBER_ID
    assert code("nowhere", member.member_id, member.generation) is ErrorCode.GROUP_ID_NOT_FOUND


def test_a_heartbeat_before_joining_is_refused(line: Line) -> None:
    assert line.heartbeat("g", "", -1) is ErrorCode.UNKNOWN_MEMBER_ID


@both_protocols
def test_when_its_connection_breaks_a_consumer_finds_the_coordinator_again_and_goes_on(
    broker: TestBroker, company: Company, kind: str
) -> None:
    (member,) = company.settled(kind, 1)
    generation, assigned = member.generation, member.assigned
    broker.stop()
    broker.start()
    member.heard.clear()
    go_on([member], lambda: member.heard == [ErrorCode.NONE] * 3)
    assert (member.generation, member.assigned) == (generation, assigned)


@both_protocols
def test_a_member_that_comes_back_too_late_is_a_new_one(company: Company, kind: str) -> None:
    late = company.member(kind, **({"session_timeout_ms": 500} if kind == "classic" else {}))
    other = company.member(kind)
    settle([late, other], all_of(4))
    alone = settle([other], all_of(4))
    assert late.beat() is ErrorCode.UNKNOWN_MEMBER_ID
    assert settle([late, other], all_of(4)) > alone
