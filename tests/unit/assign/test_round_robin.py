"""Cards on a table, and two libraries that deal the same."""

from typing import Any

from hypothesis import given

from ottla.assign.assignor import AnyMember, Member
from ottla.assign.round_robin import RoundRobinAssignor

from .groups import alike, counts, groups, loads
from .peers import aiokafka_assigns, kafka_python_assigns

Members = dict[str, AnyMember]


@given(members=alike, partition_counts=counts)
def test_loads_differ_by_one_at_most_where_all_read_the_same(
    members: Members, partition_counts: dict[str, int]
) -> None:
    held = loads(RoundRobinAssignor().assign(members, partition_counts)).values()
    assert max(held) - min(held) <= 1


@given(members=groups, partition_counts=counts)
def test_deals_as_aiokafka_does_whoever_reads_what(members: Members, partition_counts: dict[str, int]) -> None:
    # aiokafka knows no static members.
    members = {member_id: Member(member.topics) for member_id, member in members.items()}
    mine = RoundRobinAssignor().assign(members, partition_counts)
    assert mine == aiokafka_assigns("roundrobin", members, partition_counts)


@given(members=groups, partition_counts=counts)
def test_deals_as_kafka_python_does_with_static_members(members: Members, partition_counts: dict[str, int]) -> None:
    # kafka-python fails where it has to skip a member, and where static members do not stand together.
    static_first = sorted(members, key=lambda member_id: members[member_id].instance_id is None)
    members = {
        member_id: Member(frozenset(partition_counts), {}, members[member_id].instance_id) for member_id in static_first
    }
    mine = RoundRobinAssignor().assign(members, partition_counts)
    assert mine == kafka_python_assigns("roundrobin", members, partition_counts)


def test_a_static_member_gets_the_same_when_it_comes_back_under_another_id() -> None:
    topics = frozenset({"apples"})
    before: dict[str, Any] = {
        "x": Member(topics, instance_id="one"),
        "b": Member(topics, instance_id="two"),
        "c": Member(topics),
    }
    after = {"zz": before["x"], "b": before["b"], "c": before["c"]}
    first = RoundRobinAssignor().assign(before, {"apples": 7})
    again = RoundRobinAssignor().assign(after, {"apples": 7})
    assert (again["zz"], again["b"], again["c"]) == (first["x"], first["b"], first["c"])
    assert first["x"] == {"apples": (0, 3, 6)}


def test_goes_on_in_the_circle_after_it_skipped_somebody() -> None:
    members = {
        "a": Member(frozenset({"apples"})),
        "b": Member(frozenset({"apples", "berries"})),
        "c": Member(frozenset({"apples", "berries", "cherries"})),
    }
    assert RoundRobinAssignor().assign(members, {"apples": 1, "berries": 2, "cherries": 3}) == {
        "a": {"apples": (0,)},
        "b": {"berries": (0,)},
        "c": {"berries": (1,), "cherries": (0, 1, 2)},
    }
