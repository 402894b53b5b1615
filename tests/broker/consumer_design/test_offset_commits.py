"""What 002 says under "Offset commits during rebalance"."""

import time

from ottla.wire.errors import ErrorCode
from tests.broker.consumer_design.crowd import Company, all_of, both_protocols, settle
from tests.broker.consumer_design.line import Line
from tests.broker.group_client import of


def test_a_classic_member_commits_after_it_has_heard_of_a_rebalance(company: Company, line: Line) -> None:
    (member,) = company.settled("classic", 1)
    company.newcomer_waits()
    assert line.heartbeat("g", member.member_id, member.generation) is ErrorCode.REBALANCE_IN_PROGRESS
    assert member.commit() is ErrorCode.NONE
    company.ledger.check(line)


def test_until_all_have_joined_the_generation_stays_and_its_commits_are_taken(company: Company, line: Line) -> None:
    joined, other = company.classic(), company.classic()
    generation = settle([joined, other], all_of(4))
    company.newcomer_waits()
    assert joined.beat() is ErrorCode.REBALANCE_IN_PROGRESS
    joined.begin_join()
    assert other.commit() is ErrorCode.NONE
    # Also of one that has joined, be it on another connection: a commit that was on its way must not be lost.
    assert line.commit("g", offset=9, **of(joined.member_id, generation)) is ErrorCode.NONE


def test_between_the_answer_to_the_join_and_the_assignment_nothing_is_committed(company: Company, line: Line) -> None:
    member = company.classic()
    settle([member], all_of(4))
    company.newcomer_waits()
    assert member.beat() is ErrorCode.REBALANCE_IN_PROGRESS
    before = member.generation
    member.begin_join()
    assert member.take_answer() is ErrorCode.NONE
    assert line.commit("g", offset=99, **of(member.member_id, before)) is ErrorCode.ILLEGAL_GENERATION
    code = line.commit("g", offset=99, **of(member.member_id, member.generation))
    assert code is ErrorCode.REBALANCE_IN_PROGRESS
    company.ledger.check(line)


@both_protocols
def test_a_commit_of_a_generation_that_is_not_there_yet_is_refused(company: Company, line: Line, kind: str) -> None:
    (member,) = company.settled(kind, 1)
    refused = ErrorCode.ILLEGAL_GENERATION if kind == "classic" else ErrorCode.STALE_MEMBER_EPOCH
    assert line.commit("g", offset=99, version=9, **of(member.member_id, member.generation + 1)) is refused
    company.ledger.check(line)


@both_protocols
def test_a_commit_of_a_generation_that_is_over_is_refused(company: Company, line: Line, kind: str) -> None:
    members = company.settled(kind, 2)
    before = members[0].generation
    assert settle([*members, company.member(kind)], all_of(4)) > before
    refused = ErrorCode.ILLEGAL_GENERATION if kind == "classic" else ErrorCode.STALE_MEMBER_EPOCH
    assert line.commit("g", offset=99, version=9, **of(members[0].member_id, before)) is refused
    company.ledger.check(line)


def test_a_member_of_the_consumer_protocol_commits_for_what_it_is_to_give_up(company: Company, line: Line) -> None:
    old, new = company.consumer(), company.consumer()
    epoch = settle([old], all_of(4))
    before = dict(company.ledger.offsets)
    assert new.beat() is ErrorCode.NONE
    assert old.beat() is ErrorCode.NONE
    assert (old.generation, len(old.assigned)) == (epoch, 2), "it was told to give up two, and says so only next time"
    given_up = {partition for partition in before if company.ledger.offsets[partition] > before[partition]}
    assert given_up == set(all_of(4)) - old.assigned, "it could commit for them"
    settle([old, new], all_of(4))
    company.ledger.check(line)


def test_a_classic_member_that_pauses_in_a_rebalance_is_left_out_and_the_round_ends(
    company: Company, line: Line
) -> None:
    paused, other = company.classic(session_timeout_ms=1500), company.classic()
    generation = settle([paused, other], all_of(4))
    newcomer = company.newcomer_waits()
    begun = time.monotonic()
    assert settle([other, newcomer], all_of(4)) == generation + 1
    assert time.monotonic() - begun < 8, "nobody waits for the ten seconds that a rebalance may take"
    assert line.commit("g", offset=99, **of(paused.member_id, generation)) is ErrorCode.UNKNOWN_MEMBER_ID
    company.ledger.check(line)


def test_a_member_of_the_consumer_protocol_that_pauses_is_left_out_and_the_others_get_what_it_had(
    company: Company, line: Line
) -> None:
    paused, other, new = company.consumer(), company.consumer(), company.consumer()
    epoch = settle([paused, other], all_of(4))
    assert new.beat() is ErrorCode.NONE
    settle([other, new], all_of(4))
    code = line.commit("g", offset=99, version=9, **of(paused.member_id, epoch))
    assert code is ErrorCode.UNKNOWN_MEMBER_ID
    company.ledger.check(line)
