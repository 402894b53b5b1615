"""What 002 says under "Slow consumers", and where today's protocols do otherwise."""

import time

from ottla.wire.errors import ErrorCode
from tests.broker.consumer_design.crowd import Company, all_of, both_protocols, go_on, settle
from tests.broker.consumer_design.line import Line
from tests.waiting import until


@both_protocols
def test_a_slow_consumer_is_out_and_its_connection_stays(company: Company, line: Line, kind: str) -> None:
    slow = company.member(kind, **({"session_timeout_ms": 500} if kind == "classic" else {}))
    other = company.member(kind)
    generation = settle([slow, other], all_of(4))
    assert settle([other], all_of(4)) > generation
    # On the connection that it had all the time.
    assert slow.line.partitions(["t"]) == all_of(4)
    assert slow.beat() is ErrorCode.UNKNOWN_MEMBER_ID


def test_the_others_are_told_with_their_next_heartbeat(company: Company, line: Line) -> None:
    slow, other = company.classic(session_timeout_ms=300), company.classic()
    settle([slow, other], all_of(4))
    line.wait_for_state("PreparingRebalance")
    assert other.beat() is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_slow_consumers_heartbeat_does_not_cancel_the_rebalance(company: Company, line: Line) -> None:
    slow, other = company.classic(session_timeout_ms=300), company.classic()
    generation = settle([slow, other], all_of(4))
    line.wait_for_state("PreparingRebalance")
    # The first heartbeat that comes is the slow one's.
    assert slow.beat() is ErrorCode.UNKNOWN_MEMBER_ID
    assert line.state() == "PreparingRebalance"
    assert other.beat() is ErrorCode.REBALANCE_IN_PROGRESS
    assert settle([slow, other], all_of(4)) > generation


def test_a_slow_consumer_that_joins_in_time_is_in_the_generation(company: Company, line: Line) -> None:
    slow, other = company.classic(session_timeout_ms=300), company.classic()
    generation = settle([slow, other], all_of(4))
    line.wait_for_state("PreparingRebalance")
    assert slow.beat() is ErrorCode.UNKNOWN_MEMBER_ID
    slow.get_id()
    slow.begin_join()
    assert other.beat() is ErrorCode.REBALANCE_IN_PROGRESS
    other.begin_join()
    assert [other.take_answer(), slow.take_answer()] == [ErrorCode.NONE] * 2
    assert (other.generation, slow.generation) == (generation + 1, generation + 1)


def test_a_slow_consumer_that_joins_too_late_starts_another_round(company: Company, line: Line) -> None:
    slow, other = company.classic(session_timeout_ms=1000), company.classic()
    settle([slow, other], all_of(4))
    line.wait_for_state("PreparingRebalance")
    assert other.beat() is ErrorCode.REBALANCE_IN_PROGRESS
    other.begin_join()
    assert other.take_answer() is ErrorCode.NONE
    without = other.generation
    assert slow.beat() is ErrorCode.UNKNOWN_MEMBER_ID
    slow.get_id()
    slow.begin_join()
    line.wait_for_state("PreparingRebalance")
    # The round that was over, but for its assignment, is of no more use.
    other.begin_sync()
    assert other.take_answer() is ErrorCode.REBALANCE_IN_PROGRESS
    assert settle([slow, other], all_of(4)) == without + 1


def test_a_join_that_is_sent_again_takes_the_place_of_the_first(company: Company, line: Line) -> None:
    member, late = company.classic(), company.classic()
    settle([member, late], all_of(4))
    newcomer = company.newcomer_waits()
    assert member.beat() is ErrorCode.REBALANCE_IN_PROGRESS
    member.begin_join()
    # It does not hear for so long that it looks for the coordinator again, and asks again.
    first = member.line
    member._line = None
    member.begin_join()
    until(first.has_answer)
    assert first.finish().error_code == ErrorCode.REBALANCE_IN_PROGRESS
    first.__exit__(None, None, None)
    assert late.beat() is ErrorCode.REBALANCE_IN_PROGRESS
    late.begin_join()
    assert {one.take_answer() for one in (member, late, newcomer)} == {ErrorCode.NONE}
    assert len({one.member_id for one in (member, late, newcomer)}) == 3
    assert len(line.described().members) == 3, "nobody is counted twice"


def test_a_consumer_that_sends_heartbeats_and_does_not_join_is_out_when_the_rebalance_takes_too_long(
    company: Company, line: Line
) -> None:
    slow, other = (company.classic(rebalance_timeout_ms=800) for _ in range(2))
    generation = settle([slow, other], all_of(4))
    # A third one comes; its patience counts as well, since the most patient member decides.
    newcomer = company.classic(rebalance_timeout_ms=800)
    begun = time.monotonic()

    def beat_and_look() -> bool:
        # It processes what it has, and only its other thread is heard of.
        line.heartbeat("g", slow.member_id, generation)
        return all(member.is_in and member.generation > generation for member in (other, newcomer))

    go_on([other, newcomer], beat_and_look)
    assert 0.6 < time.monotonic() - begun < 8
    assert slow.beat() is ErrorCode.UNKNOWN_MEMBER_ID
    assert sorted(other.assigned | newcomer.assigned) == all_of(4)


def test_a_consumer_that_does_not_give_up_its_partitions_is_out_when_that_takes_too_long(
    company: Company, line: Line
) -> None:
    slow = company.consumer(rebalance_timeout_ms=800)
    epoch = settle([slow], all_of(4))
    other = company.consumer()
    had = slow.assigned
    begun = time.monotonic()

    def beat_without_giving_up() -> bool:
        slow.assigned = had
        line.consumer_heartbeat("g", member_id=slow.member_id, member_epoch=epoch)
        return sorted(other.assigned) == all_of(4)

    until(lambda: other.beat() is not None and beat_without_giving_up())
    assert 0.6 < time.monotonic() - begun < 8
    assert slow.beat() is ErrorCode.UNKNOWN_MEMBER_ID
