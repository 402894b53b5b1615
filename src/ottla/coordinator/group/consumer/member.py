"""A member: what it said of itself, and how far it has come. Both are records, and both are replaced, never changed."""

from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Any

from ottla.coordinator.group.consumer import partitions
from ottla.coordinator.group.consumer.partitions import Partitions
from ottla.coordinator.outcome import Record, tombstone, upsert
from ottla.wire.embedded.offsets_topic import (
    ClassicMemberMetadata,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    TopicPartition,
    TopicPartitions,
)

JOINS = 0
LEAVES = -1
LEAVES_FOR_NOW = -2
"""Epochs that are none: a new member's, and those with which members say goodbye."""


class Progress(IntEnum):
    """Where a member is on its way to what it is meant to have; the numbers are those of Kafka's records."""

    STABLE = 1
    UNREVOKED_PARTITIONS = 2
    """It has to give something up, and has not said yet that it did."""
    UNRELEASED_PARTITIONS = 3
    """It lacks something that another member has not given up yet."""
    UNKNOWN = 127
    """A newer version wrote a state that is not known here."""


@dataclass(frozen=True, slots=True)
class Profile:
    """What a member said of itself."""

    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topics: frozenset[str] = frozenset()
    regex: str | None = None
    rebalance_timeout_ms: int = -1
    assignor: str | None = None
    classic: ClassicMemberMetadata | None = None
    """Set while it speaks the classic protocol: its session timeout and protocols."""

    def record(self, group_id: str, member_id: str) -> Record:
        """This, to be written down."""
        value = ConsumerGroupMemberMetadataValue(
            instance_id=self.instance_id,
            rack_id=self.rack_id,
            client_id=self.client_id,
            client_host=self.client_host,
            subscribed_topic_names=sorted(self.topics),
            subscribed_topic_regex=self.regex,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            server_assignor=self.assignor,
            classic_member_metadata=self.classic,
        )
        return upsert(ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id), value)

    @classmethod
    def of(cls, value: ConsumerGroupMemberMetadataValue) -> "Profile":
        """What was written down."""
        return cls(
            value.instance_id,
            value.rack_id,
            value.client_id,
            value.client_host,
            frozenset(value.subscribed_topic_names),
            value.subscribed_topic_regex or None,
            value.rebalance_timeout_ms,
            value.server_assignor,
            value.classic_member_metadata,
        )


@dataclass(frozen=True, slots=True)
class Current:
    """What a member has, in which epoch, and what it is giving up."""

    epoch: int = JOINS
    previous_epoch: int = JOINS
    progress: Progress = Progress.STABLE
    assigned: Partitions = field(default_factory=dict)
    revoking: Partitions = field(default_factory=dict)

    def record(self, group_id: str, member_id: str) -> Record:
        """This, to be written down."""
        value = ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=self.epoch,
            previous_member_epoch=self.previous_epoch,
            state=self.progress,
            assigned_partitions=partitions.to_wire(TopicPartitions, self.assigned),
            partitions_pending_revocation=partitions.to_wire(TopicPartitions, self.revoking),
        )
        return upsert(ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id), value)

    @classmethod
    def of(cls, value: ConsumerGroupCurrentMemberAssignmentValue) -> "Current":
        """What was written down."""
        return cls(
            value.member_epoch,
            value.previous_member_epoch,
            Progress(value.state) if value.state in _PROGRESSES else Progress.UNKNOWN,
            partitions.from_wire(value.assigned_partitions),
            partitions.from_wire(value.partitions_pending_revocation),
        )

    def is_at(self, target_epoch: int) -> bool:
        """Whether nothing is left to do for that target."""
        return self.progress is Progress.STABLE and self.epoch == target_epoch


_PROGRESSES = frozenset(Progress)


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a group."""

    member_id: str
    profile: Profile = Profile()
    current: Current = Current()

    @property
    def is_classic(self) -> bool:
        """Whether it speaks the classic protocol."""
        return self.profile.classic is not None

    def with_profile(self, **changes: Any) -> "Member":
        """The same with other things said of itself."""
        return replace(self, profile=replace(self.profile, **changes))


def target_record(group_id: str, member_id: str, target: Partitions) -> Record:
    """What a member is meant to have, to be written down."""
    value = ConsumerGroupTargetAssignmentMemberValue(topic_partitions=partitions.to_wire(TopicPartition, target))
    return upsert(ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), value)


def member_tombstones(group_id: str, member_id: str) -> list[Record]:
    """Records that remove a member."""
    return [
        tombstone(kind(group_id=group_id, member_id=member_id))
        for kind in (
            ConsumerGroupCurrentMemberAssignmentKey,
            ConsumerGroupTargetAssignmentMemberKey,
            ConsumerGroupMemberMetadataKey,
        )
    ]
