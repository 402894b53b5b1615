"""Even loads among members that do not read the same topics."""

from collections import defaultdict
from collections.abc import Mapping
from heapq import heapify, heappop, heappush, heapreplace
from typing import Generic

from ottla.assign.assignor import Topic

MOST_ROUNDS = 64
"""Each round makes loads more equal, and few are ever needed; a group made to need many stays a little uneven."""


def level(
    subscriptions: Mapping[str, frozenset[Topic]],
    topics: list[Topic],
    held: dict[str, list[tuple[Topic, int]]],
    free: list[tuple[Topic, int]],
) -> None:
    """Hand out what is free, then move partitions from full to less full hands until no single move helps.

    Topics with the same readers are alike here, so the work grows with the kinds of subscription and not with topics.
    Topics that few can read are handed out first, while those few still have room.

    >>> held = {"a": [], "b": []}
    >>> free = [("x", 0), ("y", 0), ("x", 1)]
    >>> level({"a": frozenset("x"), "b": frozenset("xy")}, ["x", "y"], held, free)
    >>> held
    {'a': [('x', 0), ('x', 1)], 'b': [('y', 0)]}
    """
    kinds = _kinds(subscriptions, topics)
    kind_of = {topic: kind for kind in kinds for topic in kind.topics}
    for member_id, mine in held.items():
        for partition in mine:
            kind_of[partition[0]].held[member_id].append(partition)
    loads = {member_id: len(mine) for member_id, mine in held.items()}
    for partition in free:
        kind_of[partition[0]].free.append(partition)
    for kind in kinds:
        kind.hand_out(loads)
    for _ in range(MOST_ROUNDS):
        if sum(kind.move(loads) for kind in kinds) == 0:
            break
    for member_id, mine in held.items():
        mine[:] = [partition for kind in kinds for partition in kind.held.get(member_id, ())]


class _Kind(Generic[Topic]):
    """Topics that have the same readers."""

    def __init__(self, readers: list[str]) -> None:
        self.readers = readers
        self.topics: list[Topic] = []
        self.held: defaultdict[str, list[tuple[Topic, int]]] = defaultdict(list)
        self.free: list[tuple[Topic, int]] = []

    def hand_out(self, loads: dict[str, int]) -> None:
        """Give what is free to whoever has least."""
        heap = [(loads[reader], reader) for reader in self.readers]
        heapify(heap)
        for partition in self.free:
            load, reader = heap[0]
            self.held[reader].append(partition)
            loads[reader] = load + 1
            heapreplace(heap, (load + 1, reader))

    def move(self, loads: dict[str, int]) -> int:
        """Move from the fullest to the emptiest readers; how much was moved."""
        least = [(loads[reader], reader) for reader in self.readers]
        most = [(-loads[reader], reader) for reader, mine in self.held.items() if mine]
        heapify(least)
        heapify(most)
        moved = 0
        while most:
            giver_load, giver = -most[0][0], most[0][1]
            if loads[giver] != giver_load:
                heapreplace(most, (-loads[giver], giver))
                continue
            load, taker = least[0]
            if loads[taker] != load:
                heapreplace(least, (loads[taker], taker))
                continue
            if giver_load < load + 2:
                break
            self.held[taker].append(self.held[giver].pop())
            loads[giver] -= 1
            loads[taker] += 1
            moved += 1
            heapreplace(least, (load + 1, taker))
            heappop(most)
            if self.held[giver]:
                heappush(most, (-loads[giver], giver))
        return moved


def _kinds(subscriptions: Mapping[str, frozenset[Topic]], topics: list[Topic]) -> list[_Kind[Topic]]:
    """Topics by who reads them; those with the fewest readers first."""
    readers_of: defaultdict[frozenset[Topic], list[str]] = defaultdict(list)
    for member_id, subscription in subscriptions.items():
        readers_of[subscription].append(member_id)
    classes = list(readers_of.values())
    classes_of: defaultdict[Topic, list[int]] = defaultdict(list)
    for place, subscription in enumerate(readers_of):
        for topic in subscription:
            classes_of[topic].append(place)
    kinds: dict[tuple[int, ...], _Kind[Topic]] = {}
    for topic in topics:
        signature = tuple(classes_of[topic])
        if signature not in kinds:
            kinds[signature] = _Kind(sorted(reader for place in signature for reader in classes[place]))
        kinds[signature].topics.append(topic)
    return sorted(kinds.values(), key=lambda kind: (len(kind.readers), kind.readers))
