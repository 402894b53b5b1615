"""What 002 says under "Group management protocol", and the states that it draws."""

from pathlib import Path

import pytest

from ottla.broker.coordinator import shard_index
from ottla.cluster.names import OFFSETS_TOPIC
from ottla.testing import TestBroker
from ottla.wire.api.find_coordinator import FindCoordinatorRequest
from ottla.wire.api.list_groups import ListGroupsRequest
from ottla.wire.errors import ErrorCode
from tests.broker.consumer_design.crowd import Company, all_of, both_protocols, go_on, settle
from tests.broker.consumer_design.line import Line
from tests.waiting import until


@both_protocols
def test_after_a_rebalance_every_partition_has_one_owner(company: Company, kind: str) -> None:
    members = company.settled(kind, 3)
    members.append(company.member(kind))
    settle(members, all_of(4))
    assert all(len(member.assigned) == 1 for member in members)
    members.pop(1).leave()
    settle(members, all_of(4))
    assert sorted(len(member.assigned) for member in members) == [1, 1, 2]


def test_any_broker_tells_where_the_coordinator_is(broker: TestBroker, line: Line) -> None:
    found = line.call(FindCoordinatorRequest(key="g"), 0)
    assert (found.error_code, found.host, found.port) == (0, broker.host, broker.port)


def test_a_group_is_kept_in_one_partition_of_the_offsets_topic(broker: TestBroker, company: Company) -> None:
    company.settled("classic", 1)
    written = {path.parent.name for path in Path(broker.folder).glob(f"{OFFSETS_TOPIC}-*/*.log") if path.stat().st_size}
    assert written == {f"{OFFSETS_TOPIC}-{shard_index('g', 50)}"}


@both_protocols
def test_a_heartbeat_without_news_changes_nothing(company: Company, kind: str) -> None:
    members = company.settled(kind, 2)
    before = [(member.generation, member.assigned) for member in members]
    for member in members * 5:
        assert member.beat() is ErrorCode.NONE
    assert [(member.generation, member.assigned) for member in members] == before


def test_classic_members_hear_of_a_rebalance_commit_join_and_are_told_what_to_read(
    company: Company, line: Line
) -> None:
    old = company.classic()
    generation = settle([old], all_of(4))
    new = company.classic()
    new.get_id()
    new.begin_join()
    line.wait_for_state("PreparingRebalance")
    assert old.beat() is ErrorCode.REBALANCE_IN_PROGRESS
    assert old.assigned == frozenset(), "it reads nothing meanwhile"
    assert set(company.ledger.offsets.values()) == {1}, "what it had read is committed: once at its start and once now"
    old.begin_join()
    for member in (old, new):
        assert member.take_answer() is ErrorCode.NONE
        assert member.generation == generation + 1
        member.begin_sync()
    for member in (old, new):
        assert member.take_answer() is ErrorCode.NONE
    assert sorted(old.assigned | new.assigned) == all_of(4)


def test_in_the_consumer_protocol_the_coordinator_itself_hands_out_partitions(company: Company) -> None:
    member = company.consumer()
    assert member.beat() is ErrorCode.NONE
    assert member.generation > 0
    assert sorted(member.assigned) == all_of(4)


@both_protocols
def test_a_coordinator_that_starts_knows_its_groups(broker: TestBroker, company: Company, kind: str) -> None:
    members = company.settled(kind, 2)
    generation = members[0].generation
    broker.stop()
    broker.start()
    assert settle(members, all_of(4)) == generation
    assert all(ErrorCode.UNKNOWN_MEMBER_ID not in member.heard for member in members)


def test_without_groups_a_coordinator_does_nothing_until_the_first_member_comes(
    broker: TestBroker, company: Company, line: Line
) -> None:
    broker.stop()
    broker.start()
    line = company.line()
    assert line.call(ListGroupsRequest(), 4).groups == []
    assert not list(Path(broker.folder).glob(f"{OFFSETS_TOPIC}-*"))
    company.settled("classic", 1)
    assert [group.group_id for group in line.call(ListGroupsRequest(), 4).groups] == ["g"]


def test_a_classic_round_ends_when_all_who_are_alive_have_joined(company: Company, line: Line) -> None:
    first, second, new = company.classic(), company.classic(), company.classic()
    settle([first, second], all_of(4))
    new.get_id()
    new.begin_join()
    line.wait_for_state("PreparingRebalance")
    assert first.beat() is ErrorCode.REBALANCE_IN_PROGRESS
    first.begin_join()
    assert line.state() == "PreparingRebalance"
    assert not new.line.has_answer()
    assert second.beat() is ErrorCode.REBALANCE_IN_PROGRESS
    second.begin_join()
    assert {member.take_answer() for member in (first, second, new)} == {ErrorCode.NONE}


def test_the_states_of_a_classic_group(company: Company, line: Line) -> None:
    seen = [line.state()]
    member, other = company.classic(), company.classic()
    member.get_id()
    member.begin_join()
    assert member.take_answer() is ErrorCode.NONE
    seen.append(line.state())
    member.begin_sync()
    assert member.take_answer() is ErrorCode.NONE
    seen.append(line.state())
    other.get_id()
    other.begin_join()
    line.wait_for_state("PreparingRebalance")
    seen.append(line.state())
    settle([member, other], all_of(4))
    member.leave()
    other.leave()
    seen.append(line.state())
    assert seen == ["Dead", "CompletingRebalance", "Stable", "PreparingRebalance", "Empty"]


def test_the_states_of_a_consumer_group(company: Company, line: Line) -> None:
    member, other = company.consumer(), company.consumer()
    settle([member], all_of(4))
    seen = [line.consumer_described().group_state]
    assert line.grow("t", 6) is ErrorCode.NONE
    seen.append(line.consumer_described().group_state)
    settle([member], all_of(6))
    other.beat()
    seen.append(line.consumer_described().group_state)
    go_on([member, other], lambda: line.consumer_described().group_state == "Stable")
    member.leave()
    other.leave()
    seen.append(line.consumer_described().group_state)
    assert seen == ["Stable", "Assigning", "Reconciling", "Empty"]


@both_protocols
def test_in_steady_state_commits_and_heartbeats_are_taken_from_all_members(company: Company, kind: str) -> None:
    for member in company.settled(kind, 3):
        assert member.beat() is ErrorCode.NONE
        assert member.commit() is ErrorCode.NONE
    company.ledger.check(company.line())


@both_protocols
def test_what_is_kept_of_a_group_outlives_the_coordinator(broker: TestBroker, company: Company, kind: str) -> None:
    members = {member.member_id: member for member in company.settled(kind, 2)}
    broker.stop()
    broker.start()
    line = company.line()
    described = line.described() if kind == "classic" else line.consumer_described()
    assert described.group_state == "Stable"
    assert {one.member_id for one in described.members} == set(members)
    assert {(one.client_id, one.client_host) for one in described.members} == {("raw", "/127.0.0.1")}
    for one in described.members:
        if kind == "consumer":
            held = frozenset(
                (part.topic_name, index) for part in one.assignment.topic_partitions for index in part.partitions
            )
            assert (held, one.subscribed_topic_names) == (members[one.member_id].assigned, ["t"])
        else:
            assert one.member_metadata[2:11] == b"\x00\x00\x00\x01\x00\x01t\xff\xff", "reads topic t"
            assert one.member_assignment.count(b"\x00\x01t") == len(members[one.member_id].assigned)
    company.ledger.check(line)


@pytest.mark.parametrize("settings", [{"offsets.topic.num.partitions": "1"}])
def test_groups_are_rebalanced_each_for_itself(company: Company, line: Line) -> None:
    mine, other = company.classic(), company.classic(group_id="h")
    settle([mine], all_of(4))
    go_on([other], lambda: other.is_in)
    late = company.classic()
    late.get_id()
    late.begin_join()
    line.wait_for_state("PreparingRebalance")
    assert other.beat() is ErrorCode.NONE
    assert other.commit() is ErrorCode.NONE
    until(lambda: mine.beat() is ErrorCode.REBALANCE_IN_PROGRESS)
