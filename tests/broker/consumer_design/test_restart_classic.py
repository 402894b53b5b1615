"""A coordinator killed in each of the phases of a rebalance: groups of the classic protocol go on.

Members do what clients do with the answers they get. In the end each partition has one owner, the generation has risen
where there was a rebalance, and every commit that was acknowledged is there.
"""

import time

import pytest

from ottla.wire.errors import ErrorCode
from tests.broker.consumer_design.classic_member import ClassicMember
from tests.broker.consumer_design.crowd import Company, all_of, settle
from tests.crash.run import Process

pytestmark = pytest.mark.slow

ON_ITS_WAY_S = 0.2
"""Long enough for a request to have arrived."""


def three(company: Company, **last_says: int) -> list[ClassicMember]:
    """Three members that share four partitions, the leader first, each with something committed."""
    members = [company.classic(), company.classic(), company.classic(**last_says)]
    settle(members, all_of(4))
    assert len(company.ledger.offsets) == 4
    assert members[0].leads
    return members


def restart(process: Process, *unanswered: ClassicMember) -> None:
    """Kill the broker and start it on the same data. Whoever waited for an answer never gets it."""
    process.kill()
    for member in unanswered:
        member.lose_connection()
    process.start()


def all_join(company: Company, members: list[ClassicMember]) -> ClassicMember:
    """A fourth member comes, all are told and join: the next generation is written, and nobody has read of it."""
    newcomer = company.newcomer_waits()
    for member in members:
        assert member.beat() is ErrorCode.REBALANCE_IN_PROGRESS
    for member in members:
        member.begin_join()
    company.line().wait_for_state("CompletingRebalance")
    return newcomer


def test_phase_1_a_topic_has_grown_and_nobody_was_told(process: Process, survivors: Company) -> None:
    members = three(survivors)
    generation = members[0].generation
    assert survivors.line().grow("t", 6) is ErrorCode.NONE
    restart(process)
    assert settle(members, all_of(6)) > generation
    survivors.ledger.check(survivors.line())


def test_phase_1_a_member_has_died_and_nobody_was_told(process: Process, survivors: Company) -> None:
    *alive, dead = three(survivors, session_timeout_ms=2000)
    generation = dead.generation
    dead.close()
    restart(process)
    assert settle(alive, all_of(4)) > generation
    assert ErrorCode.UNKNOWN_MEMBER_ID not in alive[0].heard + alive[1].heard
    survivors.ledger.check(survivors.line())


def test_phase_1_a_member_has_come_and_nobody_was_told(process: Process, survivors: Company) -> None:
    members = three(survivors)
    generation = members[0].generation
    newcomer = survivors.newcomer_waits()
    restart(process, newcomer)
    assert settle([*members, newcomer], all_of(4)) > generation
    survivors.ledger.check(survivors.line())


@pytest.mark.parametrize("told", [(0,), (1, 2)], ids=["the leader", "the followers"])
def test_phase_2_some_were_told_to_join_again(process: Process, survivors: Company, told: tuple[int, ...]) -> None:
    members = three(survivors)
    generation = members[0].generation
    newcomer = survivors.newcomer_waits()
    for index in told:
        assert members[index].beat() is ErrorCode.REBALANCE_IN_PROGRESS
    restart(process, newcomer)
    assert settle([*members, newcomer], all_of(4)) > generation
    survivors.ledger.check(survivors.line())


def test_phase_2_a_member_that_is_back_before_the_coordinator_is_spares_the_group_a_rebalance(
    process: Process, survivors: Company
) -> None:
    members = leader, follower, slow = three(survivors, session_timeout_ms=2000)
    generation = leader.generation
    survivors.line().wait_for_state("PreparingRebalance")
    assert follower.beat() is ErrorCode.REBALANCE_IN_PROGRESS
    restart(process)
    line = survivors.line()
    line.wait_for_state("Stable")
    slow.step()
    assert slow.beat() is ErrorCode.NONE
    assert settle(members, all_of(4)) == generation
    survivors.ledger.check(line)


@pytest.mark.parametrize("joined", [(0,), (1,), (1, 2)], ids=["the leader", "a follower", "the followers"])
def test_phase_3_some_have_joined(process: Process, survivors: Company, joined: tuple[int, ...]) -> None:
    members = three(survivors)
    generation = members[0].generation
    newcomer = survivors.newcomer_waits()
    for index in joined:
        assert members[index].beat() is ErrorCode.REBALANCE_IN_PROGRESS
        members[index].begin_join()
    time.sleep(ON_ITS_WAY_S)
    restart(process, newcomer, *(members[index] for index in joined))
    assert settle([*members, newcomer], all_of(4)) > generation
    survivors.ledger.check(survivors.line())


def test_phase_4_the_generation_is_written_and_nobody_has_heard_of_it(process: Process, survivors: Company) -> None:
    members = three(survivors)
    generation = members[0].generation
    newcomer = all_join(survivors, members)
    restart(process, newcomer, *members)
    line = survivors.line()
    line.wait_for_state("PreparingRebalance")
    assert line.heartbeat("g", members[1].member_id, generation) is ErrorCode.ILLEGAL_GENERATION
    assert settle([*members, newcomer], all_of(4)) > generation + 1, "a number that was written is used up"
    survivors.ledger.check(line)


@pytest.mark.parametrize("told", [0, 1], ids=["the leader", "a follower"])
def test_phase_5_one_has_heard_of_the_generation_and_the_leader_has_not_shared_out(
    process: Process, survivors: Company, told: int
) -> None:
    members = three(survivors)
    newcomer = all_join(survivors, members)
    assert members[told].take_answer() is ErrorCode.NONE
    generation = members[told].generation
    restart(process, newcomer, *members)
    line = survivors.line()
    line.wait_for_state("PreparingRebalance")
    assert line.heartbeat("g", members[told].member_id, generation) is ErrorCode.REBALANCE_IN_PROGRESS
    assert settle([*members, newcomer], all_of(4)) > generation
    survivors.ledger.check(line)


def test_phase_5_the_leader_has_shared_out_and_not_all_have_heard(process: Process, survivors: Company) -> None:
    members = leader, told, untold = three(survivors)
    newcomer = all_join(survivors, members)
    everyone = [*members, newcomer]
    for member in everyone:
        assert member.take_answer() is ErrorCode.NONE
    generation = leader.generation
    for member in everyone:
        member.begin_sync()
    for member in (leader, told, newcomer):
        assert member.take_answer() is ErrorCode.NONE
    restart(process, untold)
    settle(everyone, all_of(4))
    assert leader.generation == generation, "it is the same generation, also for the one that asked again"
    assert all(set(member.heard[-3:]) == {ErrorCode.NONE} for member in (leader, told, newcomer))
    survivors.ledger.check(survivors.line())


def test_phase_5_the_leader_has_shared_out_and_nobody_has_heard(process: Process, survivors: Company) -> None:
    members = three(survivors)
    everyone = [*members, all_join(survivors, members)]
    for member in everyone:
        assert member.take_answer() is ErrorCode.NONE
    generation = members[0].generation
    for member in everyone:
        member.begin_sync()
    survivors.line().wait_for_state("Stable")
    restart(process, *everyone)
    # The leader asks to join again like the others, and that one means a new round.
    assert settle(everyone, all_of(4)) > generation
    survivors.ledger.check(survivors.line())
