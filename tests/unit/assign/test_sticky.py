"""What stays where it is, whose word counts, and that no partition has two readers on its way."""

from hypothesis import given
from hypothesis import strategies as st

from ottla.assign.assignor import AnyMember, Member
from ottla.assign.assignors import check_assignment
from ottla.assign.sticky import CooperativeStickyAssignor, StickyAssignor

from .groups import Assignment, alike, counts, groups, holding, loads, moved, owners

Members = dict[str, AnyMember]
APPLES = frozenset({"apples"})

MOST_ROUNDS = 6
"""Rebalances until nothing moves any more: two where all read the same, three at times where they do not."""


def claims(members: Members) -> Assignment:
    return {member_id: dict(member.owned) for member_id, member in members.items()}


def settle(members: Members, partition_counts: dict[str, int], most_rounds: int) -> Assignment:
    """Rebalance as clients do that lost something, until nobody has."""
    for generation in range(most_rounds):
        assignment = CooperativeStickyAssignor().assign(members, partition_counts)
        lost = moved(claims(members), assignment)
        members = holding(members, assignment, generation + 10)
        if not lost:
            break
    else:
        raise AssertionError(f"partitions still move after {most_rounds} rebalances")
    assert check_assignment(members, partition_counts, assignment) is None
    assert CooperativeStickyAssignor().assign(members, partition_counts) == assignment
    return assignment


class TestSticky:
    @given(members=alike, partition_counts=counts)
    def test_loads_differ_by_one_at_most_where_all_read_the_same(
        self, members: Members, partition_counts: dict[str, int]
    ) -> None:
        held = loads(StickyAssignor().assign(members, partition_counts)).values()
        assert max(held) - min(held) <= 1

    @given(members=alike, partition_counts=counts, data=st.data())
    def test_moves_only_what_a_member_had_that_leaves(
        self, members: Members, partition_counts: dict[str, int], data: st.DataObject
    ) -> None:
        before = StickyAssignor().assign(members, partition_counts)
        leaver = data.draw(st.sampled_from(sorted(members)))
        rest = holding(members, before, generation=5)
        del rest[leaver]
        if rest:
            assert moved(before, StickyAssignor().assign(rest, partition_counts)) == 0

    def test_of_two_claims_the_later_counts_whatever_the_order_of_members(self) -> None:
        late = Member(APPLES, {"apples": (0, 1)}, generation=8)
        early = Member(APPLES, {"apples": (0, 1)}, generation=7)
        for members in ({"a": late, "b": early}, {"b": early, "a": late}):
            assert StickyAssignor().assign(members, {"apples": 4}) == {"a": {"apples": (0, 1)}, "b": {"apples": (2, 3)}}
        assert StickyAssignor().assign({"a": early, "b": late}, {"apples": 4})["b"] == {"apples": (0, 1)}

    def test_a_claim_without_generation_counts_where_nobody_else_has_one(self) -> None:
        silent = Member(APPLES, {"apples": (2, 3)})
        other = Member(APPLES, {"apples": (1, 2)}, generation=3)
        assignment = StickyAssignor().assign({"a": silent, "b": other}, {"apples": 4})
        assert assignment == {"a": {"apples": (0, 3)}, "b": {"apples": (1, 2)}}


class TestCooperativeSticky:
    @given(members=groups, partition_counts=counts)
    def test_gives_nobody_what_another_member_still_has(
        self, members: Members, partition_counts: dict[str, int]
    ) -> None:
        claimed = owners(claims(members))
        assignment = CooperativeStickyAssignor().assign(members, partition_counts)
        assert assignment.keys() == members.keys()
        for partition, given_to in owners(assignment).items():
            assert len(given_to) == 1
            topic, index = partition
            assert topic in members[given_to[0]].topics
            assert 0 <= index < partition_counts[topic]
            if partition in claimed:
                assert given_to[0] in claimed[partition], "it had another reader and has a new one"
                mine = members[given_to[0]].generation
                rivals = [members[other].generation for other in claimed[partition] if other != given_to[0]]
                assert all(mine > rival for rival in rivals)

    @given(members=groups, partition_counts=counts)
    def test_gives_out_all_that_nobody_has(self, members: Members, partition_counts: dict[str, int]) -> None:
        assignment = CooperativeStickyAssignor().assign(members, partition_counts)
        read = frozenset[str]().union(*(member.topics for member in members.values()))
        every = {(topic, index) for topic in read for index in range(partition_counts.get(topic, 0))}
        assert every - owners(claims(members)).keys() <= owners(assignment).keys()

    @given(members=groups, partition_counts=counts)
    def test_comes_to_rest_with_everything_given_out(self, members: Members, partition_counts: dict[str, int]) -> None:
        settle(members, partition_counts, MOST_ROUNDS)

    @given(members=alike, partition_counts=counts, newcomers=st.integers(1, 3))
    def test_takes_two_rebalances_for_newcomers_and_moves_no_more_than_they_get(
        self, members: Members, partition_counts: dict[str, int], newcomers: int
    ) -> None:
        before = StickyAssignor().assign(members, partition_counts)
        topics = next(iter(members.values())).topics
        grown = holding(members, before) | {f"newcomer-{number}": Member(topics) for number in range(newcomers)}
        after = settle(grown, partition_counts, 2)
        assert moved(before, after) == sum(loads(after)[f"newcomer-{number}"] for number in range(newcomers))
        assert max(loads(after).values()) - min(loads(after).values()) <= 1

    @given(members=alike, partition_counts=counts, data=st.data())
    def test_gives_what_a_leaver_had_at_once(
        self, members: Members, partition_counts: dict[str, int], data: st.DataObject
    ) -> None:
        before = StickyAssignor().assign(members, partition_counts)
        rest = holding(members, before, generation=5)
        del rest[data.draw(st.sampled_from(sorted(members)))]
        if rest:
            assert moved(before, settle(rest, partition_counts, 1)) == 0

    def test_what_two_claim_in_one_generation_is_taken_from_both(self) -> None:
        members: Members = {
            "a": Member(APPLES, {"apples": (0, 1)}, generation=4),
            "b": Member(APPLES, {"apples": (1, 2)}, generation=4),
        }
        assignment = CooperativeStickyAssignor().assign(members, {"apples": 3})
        assert assignment == {"a": {"apples": (0,)}, "b": {"apples": (2,)}}
        assert settle(members, {"apples": 3}, 2) == {"a": {"apples": (0, 1)}, "b": {"apples": (2,)}}

    def test_what_a_member_has_of_a_topic_it_reads_no_more_waits_until_it_lets_go(self) -> None:
        members: Members = {"a": Member(frozenset(), {"apples": (0,)}, generation=4), "b": Member(APPLES)}
        assert CooperativeStickyAssignor().assign(members, {"apples": 2}) == {"a": {}, "b": {"apples": (1,)}}

    def test_what_moves_to_a_member_that_claims_it_from_long_ago_waits_too(self) -> None:
        # "b" claims 3 from long ago and has room; "a", which really reads it, has to give something away.
        members: Members = {
            "a": Member(APPLES, {"apples": (0, 1, 2, 3)}, generation=9),
            "b": Member(APPLES, {"apples": (3,)}, generation=2),
        }
        assert CooperativeStickyAssignor().assign(members, {"apples": 4}) == {"a": {"apples": (0, 1)}, "b": {}}
