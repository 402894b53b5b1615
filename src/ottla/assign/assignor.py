"""What an assignor is given and gives back. Topics are whatever stands for one: names in a client, ids in a broker."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

Topic = TypeVar("Topic", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Member(Generic[Topic]):
    """A member of a group as an assignor sees it."""

    topics: frozenset[Topic]
    """What it is subscribed to."""
    owned: Mapping[Topic, tuple[int, ...]] = field(default_factory=dict)
    """What it was given the last time; assignors that are sticky leave as much of it as they can."""
    instance_id: str | None = None
    """A static member's name, which outlives its member id."""
    rack_id: str | None = None
    generation: int = -1
    """When it was given what it owns, -1 if it does not say: of two that claim a partition the later is right."""


class Assignor(Protocol):
    """A strategy, known by its name."""

    name: str

    def assign(
        self, members: Mapping[str, Member[Topic]], partition_counts: Mapping[Topic, int]
    ) -> dict[str, dict[Topic, tuple[int, ...]]]:
        """Give each partition of each subscribed topic to one member that is subscribed to it.

        Every member is in the answer; partition indexes are in order; topics of which a member has none are left out.
        Topics that `partition_counts` does not know do not exist (yet). The same input gives the same answer.
        """
        ...


AnyMember = Member[Any]
