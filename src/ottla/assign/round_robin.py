"""Round robin: partitions are dealt like cards."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping

from ottla.assign.assignor import Member, Topic
from ottla.assign.order import members_in_order, topics_in_order


class RoundRobinAssignor:
    """Deals all partitions, topic after topic, to the members in a circle, past those that do not read the topic.

    Where all members read the same topics, their loads differ by one at most. Where they do not, they may differ a lot.

    >>> both = Member(frozenset({"orders", "payments"}))
    >>> RoundRobinAssignor().assign({"a": both, "b": both}, {"orders": 3, "payments": 3})
    {'a': {'orders': (0, 2), 'payments': (1,)}, 'b': {'orders': (1,), 'payments': (0, 2)}}
    """

    name = "roundrobin"

    def assign(
        self, members: Mapping[str, Member[Topic]], partition_counts: Mapping[Topic, int]
    ) -> dict[str, dict[Topic, tuple[int, ...]]]:
        """See `Assignor`."""
        circle = members_in_order(members)
        places: defaultdict[Topic, list[int]] = defaultdict(list)
        for place, member_id in enumerate(circle):
            for topic in members[member_id].topics:
                places[topic].append(place)
        dealt: dict[str, dict[Topic, list[int]]] = {member_id: {} for member_id in members}
        turn = 0
        for topic in topics_in_order(places):
            readers = places[topic]
            for index in range(partition_counts.get(topic, 0)):
                place = readers[bisect_left(readers, turn) % len(readers)]
                dealt[circle[place]].setdefault(topic, []).append(index)
                turn = place + 1
        return {
            member_id: {topic: tuple(indexes) for topic, indexes in mine.items()} for member_id, mine in dealt.items()
        }
