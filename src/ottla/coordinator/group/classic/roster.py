"""The members of a classic group, and what they can agree on."""

from collections import Counter
from collections.abc import Iterable, Iterator

from ottla.coordinator.group.classic.member import Member


class Roster:
    """Members by id, in the order in which they came, and static ones by their own name as well.

    How many can do what is counted along, so that a join costs the same in a group of a thousand as in one of two.
    """

    __slots__ = ("_instances", "_known", "_members", "_support")

    def __init__(self) -> None:
        self._members: dict[str, Member] = {}
        self._instances: dict[str, str] = {}
        self._support: Counter[str] = Counter()
        # Members whose protocols are known; what the others can do turns out when they join again.
        self._known = 0

    def __len__(self) -> int:
        return len(self._members)

    def __contains__(self, member_id: str) -> bool:
        return member_id in self._members

    def __iter__(self) -> Iterator[Member]:
        return iter(self._members.values())

    def __getitem__(self, member_id: str) -> Member:
        return self._members[member_id]

    def find(self, member_id: str) -> Member | None:
        """The member of that id, or None."""
        return self._members.get(member_id)

    def id_of(self, instance_id: str | None) -> str | None:
        """The id under which a static member is known now, or None."""
        return None if instance_id is None else self._instances.get(instance_id)

    def put(self, member: Member) -> None:
        """Add a member, in place of the one with the same id if there is one."""
        if (before := self._members.get(member.member_id)) is not None:
            self._forget(before)
        if member.instance_id is not None:
            assert member.instance_id not in self._instances, f"static member {member.instance_id!r} is there already"
            self._instances[member.instance_id] = member.member_id
        self._members[member.member_id] = member
        self._support.update(member.protocols.keys())
        self._known += bool(member.protocols)

    def remove(self, member_id: str) -> None:
        """Take a member out that is there."""
        self._forget(self._members.pop(member_id))

    def _forget(self, member: Member) -> None:
        if member.instance_id is not None:
            del self._instances[member.instance_id]
        self._known -= bool(member.protocols)
        for protocol in member.protocols:
            self._support[protocol] -= 1
            if not self._support[protocol]:
                del self._support[protocol]

    def can_agree(self, protocols: Iterable[str], apart_from: str | None = None) -> bool:
        """Whether all members can do one of these; the one that would be replaced is not asked."""
        leaving = self._members.get(apart_from) if apart_from is not None else None
        gone = leaving.protocols if leaving is not None else {}
        others = self._known - bool(gone)
        return any(self._support[protocol] - (protocol in gone) == others for protocol in protocols)

    def vote(self) -> str:
        """The protocol of this group: of those that all can do, each member votes for the one it likes best."""
        common = {protocol for protocol, count in self._support.items() if count == self._known}
        assert common, "members were let in that have no protocol in common"
        votes = Counter(
            next(protocol for protocol in member.protocols if protocol in common) for member in self if member.protocols
        )
        return max(votes, key=votes.__getitem__)

    @property
    def rebalance_timeout_ms(self) -> int:
        """How long a round may take: as long as the most patient member allows."""
        return max((member.rebalance_timeout_ms for member in self), default=0)
