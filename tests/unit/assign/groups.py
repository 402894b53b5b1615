"""Random groups to share partitions out to, and what can be said of an answer."""

from hypothesis import strategies as st

from ottla.assign.assignor import AnyMember, Member

TOPICS = ["apples", "berries", "cherries", "dates"]
Assignment = dict[str, dict[str, tuple[int, ...]]]

counts = st.dictionaries(st.sampled_from(TOPICS), st.integers(0, 9))
subscriptions = st.frozensets(st.sampled_from(TOPICS))
old_assignments = st.dictionaries(
    st.sampled_from(TOPICS),
    st.lists(st.integers(-1, 12), max_size=8, unique=True).map(lambda some: tuple(sorted(some))),
)
some_members = st.builds(
    Member,
    topics=subscriptions,
    owned=old_assignments,
    instance_id=st.none() | st.uuids().map(str),
    generation=st.integers(-1, 2),
)
member_ids = st.integers(0, 99).map("member-{}".format)
groups = st.dictionaries(member_ids, some_members, min_size=1, max_size=8)
alike = st.tuples(subscriptions, st.integers(1, 9)).map(
    lambda some: {f"member-{number}": Member(some[0]) for number in range(some[1])}
)


def loads(assignment: Assignment) -> dict[str, int]:
    """How many partitions each member has."""
    return {member_id: sum(map(len, given.values())) for member_id, given in assignment.items()}


def moved(before: Assignment, after: Assignment) -> int:
    """How many partitions a member that is still there has to give away."""
    return sum(
        len(set(indexes) - set(after[member_id].get(topic, ())))
        for member_id, partitions in before.items()
        if member_id in after
        for topic, indexes in partitions.items()
    )


def owners(assignment: Assignment) -> dict[tuple[str, int], list[str]]:
    """Who has each partition."""
    found: dict[tuple[str, int], list[str]] = {}
    for member_id, partitions in assignment.items():
        for topic, indexes in partitions.items():
            for index in indexes:
                found.setdefault((topic, index), []).append(member_id)
    return found


def holding(members: dict[str, AnyMember], assignment: Assignment, generation: int = -1) -> dict[str, AnyMember]:
    """The same members after they have got this."""
    return {
        member_id: Member(member.topics, assignment[member_id], member.instance_id, generation=generation)
        for member_id, member in members.items()
    }
