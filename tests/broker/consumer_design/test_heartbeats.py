"""What 002 says under "Heartbeats during rebalance"."""

import time

from ottla.wire.api.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.wire.errors import ErrorCode
from ottla.wire.schema import schema_of
from tests.broker.consumer_design.crowd import Company, all_of, go_on, settle
from tests.broker.consumer_design.line import Line


def test_who_waits_to_join_needs_no_heartbeats(company: Company, line: Line) -> None:
    waiting, other = company.classic(session_timeout_ms=1500), company.classic()
    settle([waiting, other], all_of(4))
    newcomer = company.newcomer_waits()
    assert waiting.beat() is ErrorCode.REBALANCE_IN_PROGRESS
    waiting.begin_join()
    time.sleep(2)
    assert line.state() == "PreparingRebalance"
    member_id = waiting.member_id
    assert other.beat() is ErrorCode.REBALANCE_IN_PROGRESS
    other.begin_join()
    assert {member.take_answer() for member in (waiting, other, newcomer)} == {ErrorCode.NONE}
    assert waiting.member_id == member_id


def test_the_session_begins_anew_with_the_answer_to_the_join(company: Company, line: Line) -> None:
    member = company.classic(session_timeout_ms=2600)
    settle([member], all_of(4))
    newcomer = company.newcomer_waits()
    assert member.beat() is ErrorCode.REBALANCE_IN_PROGRESS
    time.sleep(1.5)
    member.begin_join()
    assert newcomer.take_answer() is ErrorCode.NONE
    time.sleep(1.5)
    # Three seconds after its last heartbeat, and half of that after the answer, which it reads only now.
    assert member.take_answer() is ErrorCode.NONE
    member.begin_sync()
    newcomer.begin_sync()
    assert member.take_answer() is ErrorCode.NONE
    assert newcomer.take_answer() is ErrorCode.NONE


def test_a_member_that_pauses_after_it_has_joined_is_out_a_session_later(company: Company, line: Line) -> None:
    paused = company.classic(session_timeout_ms=800)
    settle([paused], all_of(4))
    newcomer = company.newcomer_waits()
    assert paused.beat() is ErrorCode.REBALANCE_IN_PROGRESS
    paused.begin_join()
    # The rebalance counts it as one that is there; it never reads so.
    assert newcomer.take_answer() is ErrorCode.NONE
    generation = newcomer.generation
    assert settle([newcomer], all_of(4)) > generation


def test_a_member_that_pauses_before_it_joins_is_out_and_the_round_ends_without_it(
    company: Company, line: Line
) -> None:
    paused, other = company.classic(session_timeout_ms=1500), company.classic()
    generation = settle([paused, other], all_of(4))
    newcomer = company.newcomer_waits()
    assert paused.beat() is ErrorCode.REBALANCE_IN_PROGRESS
    assert settle([other, newcomer], all_of(4)) == generation + 1
    assert line.heartbeat("g", paused.member_id, generation) is ErrorCode.UNKNOWN_MEMBER_ID


def test_requests_of_a_connection_are_answered_one_after_the_other(company: Company, line: Line) -> None:
    member, other = company.classic(), company.classic()
    generation = settle([member, other], all_of(4))
    company.newcomer_waits()
    assert member.beat() is ErrorCode.REBALANCE_IN_PROGRESS
    member.begin_join()
    member.line.begin(HeartbeatRequest(group_id="g", member_id=member.member_id, generation_id=generation), 4)
    time.sleep(0.2)
    assert not member.line.has_answer(), "the heartbeat waits behind the join"


def test_a_heartbeat_on_another_connection_is_taken_while_the_join_waits(company: Company, line: Line) -> None:
    member, other = company.classic(session_timeout_ms=1500), company.classic()
    generation = settle([member, other], all_of(4))
    company.newcomer_waits()
    assert member.beat() is ErrorCode.REBALANCE_IN_PROGRESS
    member.begin_join()
    time.sleep(0.1)
    assert line.heartbeat("g", member.member_id, generation) is ErrorCode.REBALANCE_IN_PROGRESS
    # It does not start the clock for one that waits.
    time.sleep(1.8)
    assert line.heartbeat("g", member.member_id, generation) is ErrorCode.REBALANCE_IN_PROGRESS


def test_the_new_generation_is_told_with_the_answer_to_the_join_alone(company: Company, line: Line) -> None:
    assert [field.name for field in schema_of(HeartbeatResponse).fields] == ["throttle_time_ms", "error_code"]
    member = company.classic()
    before = settle([member], all_of(4))
    company.newcomer_waits()
    assert member.beat() is ErrorCode.REBALANCE_IN_PROGRESS
    member.begin_join()
    assert member.take_answer() is ErrorCode.NONE
    assert line.heartbeat("g", member.member_id, before) is ErrorCode.ILLEGAL_GENERATION
    assert line.heartbeat("g", member.member_id, member.generation) is ErrorCode.NONE


def test_in_the_consumer_protocol_heartbeats_go_on_and_carry_the_rebalance(company: Company) -> None:
    old, new = company.consumer(), company.consumer()
    epoch = settle([old], all_of(4))
    go_on([old, new], lambda: len(new.assigned) == 2)
    go_on([old, new], lambda: old.generation == new.generation)
    assert old.generation > epoch
    assert set(old.heard + new.heard) == {ErrorCode.NONE}
