"""Even loads, and as few moves as that allows."""

from collections import defaultdict
from collections.abc import Mapping

from ottla.assign.assignor import Member, Topic
from ottla.assign.level import level
from ottla.assign.order import topics_in_order

Partition = tuple[Topic, int]
Held = dict[str, list[Partition[Topic]]]
"""What each member has, every member in it, in order of their ids."""


class UniformAssignor:
    """Gives each member as many partitions as any other, and leaves each what it has as far as that goes.

    Where all members read the same topics, their loads differ by one at most. Where they do not, no partition could be
    moved to another of its readers that has at least two fewer.

    >>> reader = Member(frozenset({"orders"}))
    >>> UniformAssignor().assign({"a": reader, "b": reader}, {"orders": 3})
    {'a': {'orders': (0, 1)}, 'b': {'orders': (2,)}}
    >>> has_two = Member(frozenset({"orders"}), owned={"orders": (1, 2)})
    >>> UniformAssignor().assign({"a": reader, "b": has_two}, {"orders": 3})
    {'a': {'orders': (0,)}, 'b': {'orders': (1, 2)}}
    """

    name = "uniform"

    def assign(
        self, members: Mapping[str, Member[Topic]], partition_counts: Mapping[Topic, int]
    ) -> dict[str, dict[Topic, tuple[int, ...]]]:
        """See `Assignor`."""
        subscriptions = {member.topics for member in members.values()}
        topics = [topic for topic in topics_in_order(frozenset().union(*subscriptions)) if topic in partition_counts]
        places = {topic: place for place, topic in enumerate(topics)}
        held, free = _kept(members, partition_counts, topics)
        kept = {member_id: len(mine) for member_id, mine in held.items()}
        is_same_for_all = len(subscriptions) == 1
        if is_same_for_all:
            _even_out(held, free, places)
        else:
            level({member_id: members[member_id].topics for member_id in held}, topics, held, free)
        answer: dict[str, dict[Topic, tuple[int, ...]]] = {}
        for member_id, mine in held.items():
            owned = members[member_id].owned
            # In a large group hardly anything changes for most: what they have is not taken apart and put together.
            is_as_before = len(mine) == kept[member_id] == sum(map(len, owned.values())) and all(owned.values())
            answer[member_id] = dict(owned) if is_as_before and is_same_for_all else _by_topic(mine, places)
        return answer


def _kept(
    members: Mapping[str, Member[Topic]], partition_counts: Mapping[Topic, int], topics: list[Topic]
) -> tuple[Held[Topic], list[Partition[Topic]]]:
    """What members may keep of what they have, and what nobody has.

    That is in order of indexes first: whoever takes a run of it gets the same index of several topics, and the
    partitions of a topic that has more to read than others are spread.
    """
    taken: dict[Topic, bytearray] = {topic: bytearray(partition_counts[topic]) for topic in topics}
    held: Held[Topic] = {}
    for member_id in sorted(members):
        member = members[member_id]
        held[member_id] = mine = []
        for topic, indexes in member.owned.items():
            flags = taken.get(topic)
            if flags is None or topic not in member.topics:
                continue
            count = len(flags)
            for index in indexes:
                if 0 <= index < count and not flags[index]:
                    flags[index] = 1
                    mine.append((topic, index))
    free = [(topic, index) for topic, flags in taken.items() for index, is_taken in enumerate(flags) if not is_taken]
    free.sort(key=lambda partition: partition[1])
    return held, free


def _even_out(held: Held[Topic], free: list[Partition[Topic]], places: Mapping[Topic, int]) -> None:
    """Everybody reads everything: all get the same number, and some one more, by preference those that have it."""
    total = len(free) + sum(map(len, held.values()))
    few, one_more = divmod(total, len(held))
    for mine in held.values():
        if len(mine) > few:
            keep = few + (one_more > 0)
            one_more -= keep > few
            if len(mine) > keep:
                mine.sort(key=lambda partition: (places[partition[0]], partition[1]))
                free.extend(mine[keep:])
                del mine[keep:]
    taken = 0
    for mine in held.values():
        if len(mine) <= few:
            wanted = few - len(mine) + (one_more > 0)
            one_more -= one_more > 0
            mine.extend(free[taken : taken + wanted])
            taken += wanted
    assert taken == len(free)


def _by_topic(partitions: list[Partition[Topic]], places: Mapping[Topic, int]) -> dict[Topic, tuple[int, ...]]:
    indexes: defaultdict[Topic, list[int]] = defaultdict(list)
    for topic, index in partitions:
        indexes[topic].append(index)
    return {topic: tuple(sorted(indexes[topic])) for topic in sorted(indexes, key=places.__getitem__)}
