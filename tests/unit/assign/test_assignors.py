"""What every assignor promises, over random groups, and what each adds to it."""

from collections.abc import Mapping
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.assign import assignors
from ottla.assign.assignor import AnyMember, Assignor, Member, Topic
from ottla.assign.assignors import check_assignment
from ottla.assign.range import RangeAssignor
from ottla.assign.round_robin import RoundRobinAssignor
from ottla.assign.sticky import StickyAssignor
from ottla.assign.uniform import UniformAssignor
from ottla.wire.errors import ErrorCode, KafkaError

from .groups import alike, counts, groups, loads, moved


@pytest.mark.parametrize(
    "assignor",
    [UniformAssignor(), RangeAssignor(), RoundRobinAssignor(), StickyAssignor()],
    ids=lambda assignor: assignor.name,
)
class TestEveryAssignor:
    @given(members=groups, partition_counts=counts)
    def test_gives_each_partition_to_one_reader(
        self, assignor: Assignor, members: dict[str, AnyMember], partition_counts: dict[str, int]
    ) -> None:
        assignment = assignor.assign(members, partition_counts)
        assert check_assignment(members, partition_counts, assignment) is None

    @given(members=groups, partition_counts=counts)
    def test_gives_the_same_answer_whatever_the_order_of_the_question(
        self, assignor: Assignor, members: dict[str, AnyMember], partition_counts: dict[str, int]
    ) -> None:
        backwards = dict(reversed(members.items())), dict(reversed(partition_counts.items()))
        assert assignor.assign(members, partition_counts) == assignor.assign(*backwards)

    @given(members=groups, partition_counts=counts)
    def test_moves_nothing_when_nothing_has_changed(
        self, assignor: Assignor, members: dict[str, AnyMember], partition_counts: dict[str, int]
    ) -> None:
        first = assignor.assign(members, partition_counts)
        again = {
            member_id: Member(member.topics, first[member_id], member.instance_id)
            for member_id, member in members.items()
        }
        assert assignor.assign(again, partition_counts) == first

    def test_takes_ids_for_topics_as_well_as_names(self, assignor: Assignor) -> None:
        topic_id = bytes(range(16))
        assignment = assignor.assign({"a": Member(frozenset({topic_id}))}, {topic_id: 2})
        assert assignment == {"a": {topic_id: (0, 1)}}


@given(members=alike, partition_counts=counts)
def test_uniform_loads_differ_by_one_at_most_where_all_read_the_same(
    members: dict[str, AnyMember], partition_counts: dict[str, int]
) -> None:
    held = loads(UniformAssignor().assign(members, partition_counts)).values()
    assert max(held) - min(held) <= 1


@given(members=groups, partition_counts=counts)
def test_uniform_leaves_no_move_that_would_help(
    members: dict[str, AnyMember], partition_counts: dict[str, int]
) -> None:
    assignment = UniformAssignor().assign(members, partition_counts)
    load = loads(assignment)
    for giver, partitions in assignment.items():
        for topic in partitions:
            assert all(load[giver] <= load[taker] + 1 for taker in members if topic in members[taker].topics)


@given(members=alike, partition_counts=counts)
def test_uniform_moves_only_what_a_new_member_gets(
    members: dict[str, AnyMember], partition_counts: dict[str, int]
) -> None:
    before = UniformAssignor().assign(members, partition_counts)
    topics = next(iter(members.values())).topics
    grown = {member_id: Member(topics, before[member_id]) for member_id in members} | {"newcomer": Member(topics)}
    after = UniformAssignor().assign(grown, partition_counts)
    assert moved(before, after) == loads(after)["newcomer"]


@given(members=alike, partition_counts=counts, data=st.data())
def test_uniform_moves_nothing_of_those_who_stay_when_one_leaves(
    members: dict[str, AnyMember], partition_counts: dict[str, int], data: st.DataObject
) -> None:
    before = UniformAssignor().assign(members, partition_counts)
    leaver = data.draw(st.sampled_from(sorted(members)))
    rest = {member_id: Member(members[member_id].topics, before[member_id]) for member_id in members}
    del rest[leaver]
    if rest:
        assert moved(before, UniformAssignor().assign(rest, partition_counts)) == 0


def test_uniform_leaves_what_only_one_can_read_to_that_one_and_the_rest_to_others() -> None:
    members = {
        "both": Member(frozenset({"apples", "berries"})),
        "apples-1": Member(frozenset({"apples"})),
        "apples-2": Member(frozenset({"apples"})),
    }
    assignment = UniformAssignor().assign(members, {"apples": 6, "berries": 3})
    assert loads(assignment) == {"both": 3, "apples-1": 3, "apples-2": 3}
    assert assignment["both"] == {"berries": (0, 1, 2)}


def test_uniform_takes_no_partition_from_a_member_for_one_that_claims_it_too() -> None:
    reader = frozenset({"apples"})
    members = {"a": Member(reader, {"apples": (0, 1)}), "b": Member(reader, {"apples": (1, 2)})}
    assert UniformAssignor().assign(members, {"apples": 3}) == {"a": {"apples": (0, 1)}, "b": {"apples": (2,)}}


def test_range_gives_the_same_index_of_topics_with_equal_counts_to_one_member() -> None:
    reader = Member(frozenset({"apples", "berries"}))
    assignment = RangeAssignor().assign({"a": reader, "b": reader, "c": reader}, {"apples": 7, "berries": 7})
    assert all(given["apples"] == given["berries"] for given in assignment.values())
    assert [given["apples"] for given in assignment.values()] == [(0, 1, 2), (3, 4), (5, 6)]


def test_range_leaves_a_static_member_its_run_when_it_comes_back_under_another_id() -> None:
    topics = frozenset({"apples"})
    before = {"x": Member(topics, instance_id="one"), "b": Member(topics, instance_id="two"), "c": Member(topics)}
    after = {"zz": before["x"], "b": before["b"], "c": before["c"]}
    counts = {"apples": 4}
    assert RangeAssignor().assign(after, counts)["zz"] == RangeAssignor().assign(before, counts)["x"]


class Hoarder:
    """Gives everything to everybody."""

    name = "hoarder"

    def assign(
        self, members: Mapping[str, Member[Topic]], partition_counts: Mapping[Topic, int]
    ) -> dict[str, dict[Topic, tuple[int, ...]]]:
        return {
            member_id: {topic: tuple(range(partition_counts[topic])) for topic in member.topics}
            for member_id, member in members.items()
        }


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assignors, "_known", dict(assignors._known))


@pytest.mark.usefixtures("known")
class TestRegistry:
    def test_an_assignor_of_ones_own_is_loaded_by_its_place_and_found_by_its_name(self) -> None:
        place = f"{__name__}:Hoarder"
        assert [assignor.name for assignor in assignors.load(["range", place])] == ["range", "hoarder"]
        assert isinstance(assignors.find("hoarder", ("range", place)), Hoarder)

    def test_one_that_is_not_on_offer_is_refused_with_those_that_are(self) -> None:
        with pytest.raises(KafkaError, match=r"'uniform' is not known here; choose from range$") as error:
            assignors.find("uniform", ("range",))
        assert error.value.code is ErrorCode.UNSUPPORTED_ASSIGNOR

    def test_a_registered_one_is_found(self) -> None:
        assignors.register("greedy", Hoarder())
        assert isinstance(assignors.find("greedy"), Hoarder)

    @pytest.mark.parametrize(
        ("entry", "complaint"),
        [
            ("no.such.module:Thing", "cannot be loaded: ModuleNotFoundError"),
            ("collections:Thing", "cannot be loaded: AttributeError"),
            ("collections:OrderedDict", "is a OrderedDict; an assignor has a name and a method assign"),
            ("../evil", "is not among uniform, range"),
        ],
    )
    def test_what_cannot_be_loaded_is_said_at_the_start(self, entry: str, complaint: str) -> None:
        with pytest.raises(ValueError, match=f"group.consumer.assignors: .*{complaint}"):
            assignors.load([entry])

    def test_an_answer_with_two_owners_is_not_believed(self) -> None:
        reader = Member(frozenset({"apples"}))
        with pytest.raises(KafkaError, match="partition 0 of topic 'apples' went to a and to b"):
            assignors.assign(Hoarder(), {"a": reader, "b": reader}, {"apples": 1})

    def test_an_assignor_that_raises_is_an_error_of_the_server(self) -> None:
        with pytest.raises(KafkaError, match="assignor 'hoarder' failed: KeyError") as error:
            assignors.assign(Hoarder(), {"a": Member(frozenset({"apples"}))}, {})
        assert error.value.code is ErrorCode.UNKNOWN_SERVER_ERROR


@settings(max_examples=5, deadline=None)
@given(seed=st.randoms(use_true_random=False))
def test_uniform_copes_with_many_members_of_many_minds(seed: Random) -> None:
    topics = {f"topic-{number}": 20 for number in range(50)}
    members = {f"member-{number}": Member(frozenset(seed.sample(sorted(topics), 10))) for number in range(100)}
    assignment = UniformAssignor().assign(members, topics)
    assert check_assignment(members, topics, assignment) is None
