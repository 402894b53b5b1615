"""Several members at once, and what must be true of them."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

import pytest

from tests.broker.consumer_design.classic_member import ClassicMember
from tests.broker.consumer_design.consumer_member import ConsumerMember
from tests.broker.consumer_design.ledger import Ledger
from tests.broker.consumer_design.line import Address, Line, Partition
from tests.waiting import until

Member = ClassicMember | ConsumerMember

QUICK = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "100",
    "group.consumer.min.session.timeout.ms": "100",
    "group.consumer.session.timeout.ms": "1500",
    "group.consumer.min.heartbeat.interval.ms": "10",
    "group.consumer.heartbeat.interval.ms": "50",
}
"""Sessions that end while a test waits."""


class Company:
    """Makes members of one broker's group, which all commit into one ledger, and sees them off in the end."""

    def __init__(self, address: Address, parting: ExitStack) -> None:
        self.address = address
        self.ledger = Ledger()
        self._parting = parting

    def line(self) -> Line:
        """A connection of nobody."""
        return self._parting.enter_context(Line(self.address))

    def classic(self, **says: Any) -> ClassicMember:
        """A consumer of the classic protocol."""
        member = ClassicMember(self.address, self.ledger if says.get("group_id", "g") == "g" else None, **says)
        self._parting.callback(member.close)
        return member

    def consumer(self, **says: Any) -> ConsumerMember:
        """A consumer of the consumer protocol."""
        member = ConsumerMember(self.address, self.ledger, **says)
        self._parting.callback(member.close)
        return member

    def member(self, kind: str, **says: Any) -> Member:
        """A consumer of either protocol."""
        return self.classic(**says) if kind == "classic" else self.consumer(**says)

    def settled(self, kind: str, count: int, partitions: int = 4) -> list[Member]:
        """So many members that share the partitions of topic t."""
        members = [self.member(kind) for _ in range(count)]
        settle(members, all_of(partitions))
        return members

    def newcomer_waits(self) -> ClassicMember:
        """One more classic member asks to be let in, which starts a rebalance."""
        newcomer = self.classic()
        newcomer.get_id()
        newcomer.begin_join()
        self.line().wait_for_state("PreparingRebalance")
        return newcomer


both_protocols = pytest.mark.parametrize("kind", ["classic", "consumer"])


def all_of(count: int, topic: str = "t") -> list[Partition]:
    """The partitions of a topic that has so many."""
    return [(topic, index) for index in range(count)]


def settle(members: Sequence[Member], partitions: Sequence[Partition]) -> int:
    """Have members go on until they share these partitions, in one generation: its number."""
    go_on(members, lambda: is_settled(members, partitions))
    return members[0].generation


def go_on(members: Sequence[Member], is_enough: Callable[[], bool]) -> None:
    """Have members go on, one step each in turn, until it is enough. No partition has two owners meanwhile."""

    def all_step() -> bool:
        for member in members:
            member.step()
            check_owners(members)
        return is_enough()

    until(all_step)


def is_settled(members: Sequence[Member], partitions: Sequence[Partition]) -> bool:
    """Whether all are in, have heard of nothing to do, and share the partitions."""
    held = sorted(partition for member in members for partition in member.assigned)
    same = len({member.generation for member in members}) == 1
    calm = all(member.is_in and member.heard and not member.heard[-1] for member in members)
    return calm and same and held == sorted(partitions)


def check_owners(members: Sequence[Member]) -> None:
    """No partition has two owners: in a generation of the classic protocol, in the consumer protocol at any time."""
    owners: dict[tuple[int, Partition], str] = {}
    for member in members:
        epoch = member.generation if isinstance(member, ClassicMember) else 0
        for partition in member.assigned:
            other = owners.setdefault((epoch, partition), member.member_id)
            assert other == member.member_id, f"{partition} belongs to {other} and to {member.member_id}"
