"""Ranges: of each topic, every member gets a run of neighbouring partitions."""

from collections.abc import Mapping

from ottla.assign.assignor import Member, Topic
from ottla.assign.order import members_in_order, topics_in_order


class RangeAssignor:
    """Cuts each topic into runs, one for each member in order.

    Members that read the same topics get the same partitions of all that have equally many: what was written under one
    key to two topics is read by one member. The order hangs on nothing but names, so static members keep their runs.

    >>> both = Member(frozenset({"orders", "payments"}))
    >>> RangeAssignor().assign({"a": both, "b": both}, {"orders": 3, "payments": 3})["a"]
    {'orders': (0, 1), 'payments': (0, 1)}
    """

    name = "range"

    def assign(
        self, members: Mapping[str, Member[Topic]], partition_counts: Mapping[Topic, int]
    ) -> dict[str, dict[Topic, tuple[int, ...]]]:
        """See `Assignor`."""
        readers: dict[Topic, list[str]] = {}
        for member_id in members_in_order(members):
            for topic in members[member_id].topics:
                readers.setdefault(topic, []).append(member_id)
        assignment: dict[str, dict[Topic, tuple[int, ...]]] = {member_id: {} for member_id in members}
        for topic in topics_in_order(readers):
            first, few = 0, partition_counts.get(topic, 0) // len(readers[topic])
            one_more = partition_counts.get(topic, 0) % len(readers[topic])
            for place, member_id in enumerate(readers[topic]):
                after = first + few + (place < one_more)
                if after > first:
                    assignment[member_id][topic] = tuple(range(first, after))
                first = after
        return assignment
