"""What 002 says under "Partition changes for subscribed topics"."""

from ottla.wire.errors import ErrorCode
from tests.broker.consumer_design.crowd import Company, all_of, both_protocols, go_on, settle
from tests.broker.consumer_design.line import Line
from tests.broker.group_client import of


@both_protocols
def test_when_a_topic_has_grown_the_group_shares_it_out_anew(company: Company, line: Line, kind: str) -> None:
    members = company.settled(kind, 2)
    generation = members[0].generation
    assert line.grow("t", 7) is ErrorCode.NONE
    assert settle(members, all_of(7)) > generation, "a new generation, though the members are the same"
    company.ledger.check(line)


def test_the_coordinator_of_a_classic_group_leaves_it_to_the_leader_to_notice(company: Company, line: Line) -> None:
    leader, follower = company.classic(), company.classic()
    generation = settle([leader, follower], all_of(4))
    assert line.grow("t", 6) is ErrorCode.NONE
    # Heartbeats alone change nothing, neither the leader's nor the follower's.
    assert [leader.beat(), follower.beat(), line.state()] == [ErrorCode.NONE, ErrorCode.NONE, "Stable"]
    leader.begin_join()
    line.wait_for_state("PreparingRebalance")
    assert follower.beat() is ErrorCode.REBALANCE_IN_PROGRESS
    follower.begin_join()
    assert leader.take_answer() is ErrorCode.NONE
    assert leader.generation == generation + 1


def test_the_coordinator_of_a_consumer_group_notices_by_itself(company: Company, line: Line) -> None:
    (member,) = company.settled("consumer", 1)
    before = line.consumer_described().group_epoch
    assert line.grow("t", 6) is ErrorCode.NONE
    assert line.consumer_described().group_epoch == before + 1, "before any member was heard of"
    assert member.beat() is ErrorCode.NONE
    assert sorted(member.assigned) == all_of(6)


@both_protocols
def test_a_topic_can_be_subscribed_to_before_it_is_created(company: Company, line: Line, kind: str) -> None:
    says = {"topics": ("t", "later")} if kind == "classic" else {"subscribed_topic_names": ["t", "later"]}
    members = [company.member(kind, **says), company.member(kind, **says)]
    generation = settle(members, all_of(4))
    line.create_topic("later", 3)
    assert settle(members, all_of(4) + all_of(3, "later")) > generation


def test_a_topic_never_gets_fewer_partitions(company: Company, line: Line) -> None:
    assert line.grow("t", 3) is ErrorCode.INVALID_PARTITIONS
    assert line.partitions(["t"]) == all_of(4)


@both_protocols
def test_after_that_only_the_new_generation_counts(company: Company, line: Line, kind: str) -> None:
    (member,) = company.settled(kind, 1)
    before = member.generation
    assert line.grow("t", 5) is ErrorCode.NONE
    assert settle([member], all_of(5)) == before + 1
    refused = ErrorCode.ILLEGAL_GENERATION if kind == "classic" else ErrorCode.STALE_MEMBER_EPOCH
    assert line.commit("g", offset=99, version=9, **of(member.member_id, before)) is refused
    assert member.commit() is ErrorCode.NONE
    assert member.beat() is ErrorCode.NONE
    company.ledger.check(line)


def test_nobody_reads_a_partition_before_its_former_owner_has_given_it_up(company: Company, line: Line) -> None:
    old, new = company.consumer(), company.consumer()
    settle([old], all_of(4))
    had = old.assigned
    # `go_on` looks after every step whether a partition has two owners.
    new.beat()
    assert new.assigned == frozenset()
    go_on([old, new], lambda: len(new.assigned) == 2)
    assert old.assigned == had - new.assigned
