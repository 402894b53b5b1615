"""The groups and offsets of a shard as the log has them. Only what is replayed changes them for good."""

from collections import Counter
from typing import Any, TypeVar

from ottla.coordinator.group.classic import ClassicGroup
from ottla.coordinator.group.consumer import ConsumerGroup
from ottla.coordinator.group.context import Context
from ottla.coordinator.group.offsets import Offsets
from ottla.coordinator.group.records import UnknownRecord, decode_record
from ottla.wire.embedded.offsets_topic import GroupMetadataKey, LegacyOffsetCommitKey, OffsetCommitKey
from ottla.wire.errors import ErrorCode
from ottla.wire.schema import Bytes

AnyGroup = ClassicGroup | ConsumerGroup
G = TypeVar("G", ClassicGroup, ConsumerGroup)

WATCH = "watch"
"""A timer that is due at once: the group's sessions have yet to start."""


class Register:
    """Groups by id, of either kind, and their offsets. Offsets always belong to a group."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self.groups: dict[str, AnyGroup] = {}
        self.offsets = Offsets()
        self.skipped: Counter[int] = Counter()
        """How many records were passed over, by their type: a newer version wrote them."""

    def replay(self, key: Bytes, value: Bytes | None) -> None:
        """Do what a record says; bytes that make no sense raise ProtocolError and change nothing."""
        what, content = decode_record(key, value)
        if isinstance(what, UnknownRecord):
            self.skipped[what.record_type] += 1
        elif isinstance(what, OffsetCommitKey | LegacyOffsetCommitKey):
            self.offsets.replay(what, content)
            self._keep_simple(what.group)
        elif isinstance(what, GroupMetadataKey):
            self._replay_classic(what.group, content)
        else:
            self._replay_consumer(what, content)

    def _replay_classic(self, group_id: str, value: Any | None) -> None:
        group = self.groups.get(group_id)
        if value is not None:
            if not isinstance(group, ClassicGroup):
                group = self.take_in(ClassicGroup(self._context, group_id))
            group.replay(value)
        elif isinstance(group, ClassicGroup):
            self._drop(group_id)

    def _replay_consumer(self, key: Any, value: Any | None) -> None:
        group_id: str = key.group_id
        group = self.groups.get(group_id)
        if not isinstance(group, ConsumerGroup):
            if value is None:
                return
            group = self.take_in(ConsumerGroup(self._context, group_id))
        group.replay(key, value)
        if group.gone:
            self._drop(group_id)

    def take_in(self, group: G) -> G:
        """Take in a group that comes out of the log, or has just changed its kind: its sessions have yet to start."""
        self.groups[group.group_id] = group
        self._context.timers.set((group.group_id, WATCH), 0)
        return group

    def _drop(self, group_id: str) -> None:
        group = self.groups.pop(group_id)
        self._context.timers.cancel((group_id, WATCH))
        if isinstance(group, ClassicGroup):
            # It has no members; those who were only told their ids come back as somebody new.
            group.release_waiting(ErrorCode.UNKNOWN_MEMBER_ID)
        if group_id in self.offsets:
            # The next record may well say that it goes on as a classic group, with members.
            self.take_in(ClassicGroup(self._context, group_id))

    def _keep_simple(self, group_id: str) -> None:
        # Offsets always belong to a group, be it one that nobody ever joined: tools see it, and can delete it.
        if group_id not in self.groups and group_id in self.offsets:
            self.groups[group_id] = ClassicGroup(self._context, group_id)
