"""Members of groups in a Java process, which poll there all the time."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

Partition = tuple[str, int]
"""A topic's name and the number."""


class Event(NamedTuple):
    """What a rebalance listener was told: partitions are assigned, revoked or lost."""

    what: str
    partitions: frozenset[Partition]


class Deed(NamedTuple):
    """What a member did: it read a record, committed up to an offset, or had a partition assigned, revoked or lost."""

    what: str
    member: int
    topic: str
    partition: int
    offset: int


class JavaMember:
    """The other end of a member in `Members.java`; a `GroupMember` of the story that all clients tell."""

    def __init__(self, ask: Callable[[Any], Any], number: int, *, commits_later: bool) -> None:
        self._ask = ask
        self._number = number
        self._commits_later = commits_later
        self._values: list[bytes] = []
        self._assigned: set[Partition] = set()
        self.events: list[Event] = []
        """All that its listener was told since this list was last cleared."""

    def poll(self) -> list[bytes]:
        """Values that have arrived; waits a little for them."""
        self._look()
        values, self._values = self._values, []
        return values

    def assigned(self) -> set[Partition]:
        """The partitions that it has now, of all its topics."""
        self._look()
        return self._assigned

    def partitions(self) -> set[int]:
        """Their numbers."""
        return {number for _, number in self.assigned()}

    def commit(self) -> None:
        """Commit all that was polled."""
        self._ask({"do": "commit", "member": self._number, "how": "async" if self._commits_later else "sync"})

    def halt(self) -> None:
        """Stop to poll, and say nothing."""
        self._ask({"do": "halt", "member": self._number})

    def close(self) -> None:
        """Leave the group."""
        self._ask({"do": "leave", "member": self._number})
        self._look()

    def _look(self) -> None:
        seen = self._ask({"do": "look", "member": self._number})
        assert seen["failure"] is None, seen["failure"]
        self._values += [bytes.fromhex(value) for _, _, _, value in seen["records"]]
        self.events += [Event(what, frozenset(_pairs(partitions))) for what, partitions in seen["events"]]
        self._assigned = set(_pairs(seen["partitions"]))


def _pairs(found: Iterable[list[Any]]) -> list[Partition]:
    return [(topic, number) for topic, number in found]
