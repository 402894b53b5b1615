"""What is written down of a group. Replaying records is the only way to change it."""

from collections.abc import Iterator
from dataclasses import replace
from enum import Enum
from typing import Any

from ottla.coordinator.group.consumer import partitions
from ottla.coordinator.group.consumer.member import Current, Member, Profile, member_tombstones
from ottla.coordinator.group.consumer.partitions import Partitions
from ottla.coordinator.outcome import Record, tombstone
from ottla.wire.embedded.offsets_topic import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMetadataKey,
)


class ConsumerState(Enum):
    """The states of a group, by the names that tools know."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    """Something has changed, and it is not yet decided who is meant to have what."""
    RECONCILING = "Reconciling"
    """It is decided, and members are on their way there."""
    STABLE = "Stable"
    DEAD = "Dead"


class GroupState:
    """Epochs, members, what they are meant to have, and who has which partition.

    The group's epoch rises with whatever calls for another assignment; the assignment epoch says for which of them
    the target was made; a member's epoch says how far it has followed.
    """

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.epoch = 0
        self.metadata_hash = 0
        """Of the subscribed topics, their ids and partition counts when the epoch rose last."""
        self.assignment_epoch = 0
        self.assignment_time_ms = 0
        self.members: dict[str, Member] = {}
        self.targets: dict[str, Partitions] = {}
        self.regexes: dict[str, frozenset[str]] = {}
        """The topics that each regular expression stood for when that was looked up last."""
        self.gone = False
        self._owners: dict[bytes, dict[int, str]] = {}
        self._static: dict[str, str] = {}

    @property
    def state(self) -> ConsumerState:
        """What tools are told."""
        if self.gone:
            return ConsumerState.DEAD
        if not self.members:
            return ConsumerState.EMPTY
        if self.epoch > self.assignment_epoch:
            return ConsumerState.ASSIGNING
        if all(member.current.is_at(self.assignment_epoch) for member in self.members.values()):
            return ConsumerState.STABLE
        return ConsumerState.RECONCILING

    def static_member(self, instance_id: str | None) -> Member | None:
        """The member of that name, or None."""
        member_id = self._static.get(instance_id) if instance_id is not None else None
        return self.members.get(member_id) if member_id is not None else None

    def owner(self, topic_id: bytes, index: int) -> str | None:
        """The member that has a partition or is giving it up, or None."""
        return self._owners.get(topic_id, {}).get(index)

    def replay(self, key: Any, value: Any | None) -> None:
        """Do what a record says. Other kinds, such as the partition metadata that older brokers wrote, say nothing."""
        match key:
            case ConsumerGroupMetadataKey():
                self._replay_metadata(value)
            case ConsumerGroupTargetAssignmentMetadataKey():
                self.assignment_epoch = 0 if value is None else value.assignment_epoch
                self.assignment_time_ms = 0 if value is None else value.assignment_timestamp
            case ConsumerGroupMemberMetadataKey():
                self._replay_profile(key.member_id, value)
            case ConsumerGroupTargetAssignmentMemberKey():
                self.targets.pop(key.member_id, None)
                if value is not None:
                    self.targets[key.member_id] = partitions.from_wire(value.topic_partitions)
            case ConsumerGroupCurrentMemberAssignmentKey():
                self._replay_current(key.member_id, value)
            case ConsumerGroupRegularExpressionKey():
                self.regexes.pop(key.regular_expression, None)
                if value is not None:
                    self.regexes[key.regular_expression] = frozenset(value.topics)

    def _replay_metadata(self, value: Any | None) -> None:
        self.gone = value is None
        self.epoch = 0 if value is None else value.epoch
        self.metadata_hash = 0 if value is None else value.metadata_hash

    def _replay_profile(self, member_id: str, value: Any | None) -> None:
        # Compaction may leave a member's assignment in front of its profile: whichever comes first makes the member.
        former = self.members.get(member_id, Member(member_id))
        if former.profile.instance_id is not None and self._static.get(former.profile.instance_id) == member_id:
            del self._static[former.profile.instance_id]
        if value is None:
            self._disown(former)
            self.members.pop(member_id, None)
            return
        profile = Profile.of(value)
        self.members[member_id] = replace(former, profile=profile)
        if profile.instance_id is not None:
            self._static[profile.instance_id] = member_id

    def _replay_current(self, member_id: str, value: Any | None) -> None:
        if value is None and member_id not in self.members:
            return
        former = self.members.get(member_id, Member(member_id))
        self._disown(former)
        self.members[member_id] = member = replace(former, current=Current() if value is None else Current.of(value))
        for topic_id, index in _each(member):
            self._owners.setdefault(topic_id, {})[index] = member_id

    def _disown(self, member: Member) -> None:
        for topic_id, index in _each(member):
            owners = self._owners.get(topic_id, {})
            if owners.get(index) == member.member_id:
                del owners[index]
                if not owners:
                    del self._owners[topic_id]

    def removal(self) -> list[Record]:
        """Records that remove all of it; the group's own comes last."""
        records = [record for member_id in self.members for record in member_tombstones(self.group_id, member_id)]
        records += [
            tombstone(ConsumerGroupRegularExpressionKey(group_id=self.group_id, regular_expression=expression))
            for expression in self.regexes
        ]
        records.append(tombstone(ConsumerGroupTargetAssignmentMetadataKey(group_id=self.group_id)))
        records.append(tombstone(ConsumerGroupMetadataKey(group_id=self.group_id)))
        return records


def _each(member: Member) -> Iterator[tuple[bytes, int]]:
    for some in (member.current.assigned, member.current.revoking):
        for topic_id, indexes in some.items():
            for index in indexes:
                yield topic_id, index
