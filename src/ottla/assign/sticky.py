"""The sticky assignors of the classic protocol: members say what they had, and keep as much of it as balance allows.

How partitions are shared out is `uniform`'s part. Here is what its coordinator does not need: members' word for what
they own can be old, and a partition must not have two readers while it changes hands.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Generic

from ottla.assign.assignor import Member, Topic
from ottla.assign.uniform import UniformAssignor

_uniform = UniformAssignor()


class StickyAssignor:
    """Even loads, and as few moves as that allows; before each rebalance members stop reading what they have.

    Where several claim a partition, the claim of the latest generation counts; of two of the same generation, none.

    >>> topics = frozenset({"orders"})
    >>> late, early = Member(topics, {"orders": (0, 1)}, generation=2), Member(topics, {"orders": (1, 2)}, generation=1)
    >>> StickyAssignor().assign({"a": early, "b": late}, {"orders": 4})
    {'a': {'orders': (2, 3)}, 'b': {'orders': (0, 1)}}
    """

    name = "sticky"

    def assign(
        self, members: Mapping[str, Member[Topic]], partition_counts: Mapping[Topic, int]
    ) -> dict[str, dict[Topic, tuple[int, ...]]]:
        """See `Assignor`."""
        return _uniform.assign(_Claims(members).settled(), partition_counts)


class CooperativeStickyAssignor:
    """As `StickyAssignor`, for members that go on reading what they have until it is taken from them.

    A partition that is to move goes to nobody at first: its old owner learns that it has lost it, and joins again when
    it has let go. The rebalance that follows finds the partition free and gives it out.

    >>> topics = frozenset({"orders"})
    >>> old, new = Member(topics, {"orders": (0, 1, 2)}), Member(topics)
    >>> CooperativeStickyAssignor().assign({"old": old, "new": new}, {"orders": 3})
    {'new': {}, 'old': {'orders': (0, 1)}}
    >>> old = Member(topics, {"orders": (0, 1)})
    >>> CooperativeStickyAssignor().assign({"old": old, "new": new}, {"orders": 3})
    {'new': {'orders': (2,)}, 'old': {'orders': (0, 1)}}
    """

    name = "cooperative-sticky"

    def assign(
        self, members: Mapping[str, Member[Topic]], partition_counts: Mapping[Topic, int]
    ) -> dict[str, dict[Topic, tuple[int, ...]]]:
        """As `Assignor` says, but for the partitions that are to move, which are left out."""
        claims = _Claims(members)
        goal = _uniform.assign(claims.settled(), partition_counts)
        return {member_id: claims.without_others(member_id, partitions) for member_id, partitions in goal.items()}


class _Claims(Generic[Topic]):
    """Which partitions members say they own, and who is believed."""

    def __init__(self, members: Mapping[str, Member[Topic]]) -> None:
        self._members = members
        self._latest: dict[tuple[Topic, int], tuple[int, str | None]] = {}
        for member_id, member in members.items():
            generation, unclaimed = member.generation, (member.generation - 1, None)
            for topic, indexes in member.owned.items():
                for index in indexes:
                    other_generation = self._latest.get((topic, index), unclaimed)[0]
                    if generation > other_generation:
                        self._latest[topic, index] = generation, member_id
                    elif generation == other_generation:
                        self._latest[topic, index] = generation, None

    def settled(self) -> dict[str, Member[Topic]]:
        """The members, each with those of its claims that are believed."""
        return {
            member_id: replace(member, owned=self._keep(member_id, member.owned, (0, None)))
            for member_id, member in self._members.items()
        }

    def without_others(
        self, member_id: str, partitions: Mapping[Topic, tuple[int, ...]]
    ) -> dict[Topic, tuple[int, ...]]:
        """Of these partitions, those that are this member's and those that nobody claims."""
        return self._keep(member_id, partitions, (0, member_id))

    def _keep(
        self, member_id: str, partitions: Mapping[Topic, tuple[int, ...]], unclaimed: tuple[int, str | None]
    ) -> dict[Topic, tuple[int, ...]]:
        latest = self._latest
        kept = {
            topic: tuple(index for index in indexes if latest.get((topic, index), unclaimed)[1] == member_id)
            for topic, indexes in partitions.items()
        }
        return {topic: indexes for topic, indexes in kept.items() if indexes}
