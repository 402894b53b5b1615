"""The committed offsets of a shard's groups."""

import struct
from collections import defaultdict
from collections.abc import Iterator
from sys import intern
from typing import NamedTuple

from ottla.coordinator.outcome import Record, tombstone, upsert
from ottla.wire.embedded.offsets_topic import LegacyOffsetCommitKey, OffsetCommitKey, OffsetCommitValue

NO_TOPIC_ID = bytes(16)
NO_TIMESTAMP = -1

VERSION_WITH_EXPIRY = 1
"""The only version of the value that has an expire timestamp; it has no room for leader epoch and topic id."""

_PACKED = struct.Struct(">qiqq16s")
_OFFSET = struct.Struct(">q")
_TOPIC_ID = slice(_PACKED.size - 16, _PACKED.size)


class Committed(NamedTuple):
    """A position that a group has committed."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""
    commit_timestamp_ms: int = 0
    expire_timestamp_ms: int = NO_TIMESTAMP
    """When it is forgotten, if whoever committed it asked for that; -1 leaves it to the broker's settings."""
    topic_id: bytes = NO_TOPIC_ID
    """The topic it was committed for, whatever has that name later; zeros where that was not written down."""

    @classmethod
    def of(cls, value: OffsetCommitValue) -> "Committed":
        """What a record says."""
        return cls(
            value.offset,
            value.leader_epoch,
            value.metadata,
            value.commit_timestamp,
            value.expire_timestamp,
            value.topic_id,
        )

    def record(self, group_id: str, topic: str, partition: int) -> Record:
        """The record that commits it."""
        value = OffsetCommitValue(
            offset=self.offset,
            leader_epoch=self.leader_epoch,
            metadata=self.metadata,
            commit_timestamp=self.commit_timestamp_ms,
            expire_timestamp=self.expire_timestamp_ms,
            topic_id=self.topic_id,
        )
        key = OffsetCommitKey(group=group_id, topic=topic, partition=partition)
        return upsert(key, value, None if self.expire_timestamp_ms == NO_TIMESTAMP else VERSION_WITH_EXPIRY)

    def is_of(self, topic_id: bytes) -> bool:
        """Whether it was committed for the topic of that id, as far as one can know."""
        return self.topic_id in (topic_id, NO_TOPIC_ID)


class Offsets:
    """Committed offsets by group, topic and partition.

    >>> offsets = Offsets()
    >>> offsets.replay(OffsetCommitKey(group="g", topic="t", partition=3), OffsetCommitValue(offset=42, metadata="x"))
    >>> offsets.find("g", "t", 3).offset, offsets.find("g", "t", 3).metadata
    (42, 'x')
    >>> "g" in offsets, offsets.find("g", "t", 0)
    (True, None)
    """

    def __init__(self) -> None:
        # Packed, a position takes a third of the memory, and there may be a million that the garbage collector would
        # have to look at.
        self._packed: dict[str, dict[str, dict[int, bytes]]] = {}
        self._groups: defaultdict[str, set[str]] = defaultdict(set)
        self._with_anonymous: set[str] = set()

    def __contains__(self, group_id: object) -> bool:
        return group_id in self._packed

    def find(self, group_id: str, topic: str, partition: int) -> Committed | None:
        """What a group has committed for a partition."""
        packed = self._packed.get(group_id, {}).get(topic, {}).get(partition)
        return None if packed is None else _unpack(packed)

    def topics(self) -> list[str]:
        """The topics that any group has committed for."""
        return list(self._groups)

    def groups_of(self, topic: str) -> list[str]:
        """The groups that have committed for a topic of that name, in order."""
        return sorted(self._groups.get(topic, ()))

    def partitions_of(self, group_id: str, topic: str) -> list[int]:
        """The partitions of a topic that a group has committed for, in order."""
        return sorted(self._packed.get(group_id, {}).get(topic, ()))

    def topic_id(self, group_id: str, topic: str, partition: int) -> bytes | None:
        """The id of the topic that an offset was committed for, zeros where it does not say; None if there is none."""
        packed = self._packed.get(group_id, {}).get(topic, {}).get(partition)
        return None if packed is None else packed[_TOPIC_ID]

    def anonymous(self, topic: str) -> list[tuple[str, int]]:
        """Group and partition of the offsets for a topic of that name that do not say by its id which one it is."""
        # Nobody writes them any more but consumers that ask for a retention time. Mostly there is nothing to look for.
        return [
            (group_id, partition)
            for group_id in (self.groups_of(topic) if topic in self._with_anonymous else ())
            for partition in self.partitions_of(group_id, topic)
            if self.topic_id(group_id, topic, partition) == NO_TOPIC_ID
        ]

    def count(self, group_id: str) -> int:
        """How many offsets a group has committed."""
        return sum(map(len, self._packed.get(group_id, {}).values()))

    def topics_of(self, group_id: str) -> list[str]:
        """The topics that a group has committed for."""
        return sorted(self._packed.get(group_id, ()))

    def of_topic(self, group_id: str, topic: str) -> Iterator[tuple[int, Committed]]:
        """What a group has committed for the partitions of a topic, in order."""
        for partition, packed in sorted(self._packed.get(group_id, {}).get(topic, {}).items()):
            yield partition, _unpack(packed)

    def positions(self, group_id: str) -> Iterator[tuple[str, int, int]]:
        """Topic, partition and offset of all that a group has committed."""
        for topic, partitions in self._packed.get(group_id, {}).items():
            for partition, packed in partitions.items():
                yield topic, partition, _OFFSET.unpack_from(packed)[0]

    def tombstones(self, group_id: str) -> list[Record]:
        """Records that remove all offsets of a group."""
        return [
            removed(group_id, topic, partition)
            for topic, partitions in self._packed.get(group_id, {}).items()
            for partition in partitions
        ]

    def replay(self, key: OffsetCommitKey | LegacyOffsetCommitKey, value: OffsetCommitValue | None) -> None:
        """Do what a record says."""
        if value is None:
            self._remove(key.group, key.topic, key.partition)
            return
        # The same few names come with every record; one copy of each is enough.
        group_id, topic = intern(key.group), intern(key.topic)
        self._packed.setdefault(group_id, {}).setdefault(topic, {})[key.partition] = _pack(Committed.of(value))
        self._groups[topic].add(group_id)
        if value.topic_id == NO_TOPIC_ID:
            self._with_anonymous.add(topic)

    def _remove(self, group_id: str, topic: str, partition: int) -> None:
        topics = self._packed.get(group_id, {})
        partitions = topics.get(topic, {})
        if partitions.pop(partition, None) is None or partitions:
            return
        del topics[topic]
        groups = self._groups[topic]
        groups.remove(group_id)
        if not groups:
            del self._groups[topic]
            self._with_anonymous.discard(topic)
        if not topics:
            del self._packed[group_id]


def removed(group_id: str, topic: str, partition: int) -> Record:
    """The record that removes an offset."""
    return tombstone(OffsetCommitKey(group=group_id, topic=topic, partition=partition))


def _pack(committed: Committed) -> bytes:
    offset, leader_epoch, metadata, commit_timestamp_ms, expire_timestamp_ms, topic_id = committed
    fixed = _PACKED.pack(offset, leader_epoch, commit_timestamp_ms, expire_timestamp_ms, topic_id)
    return fixed + metadata.encode() if metadata else fixed


def _unpack(packed: bytes) -> Committed:
    offset, leader_epoch, commit_timestamp_ms, expire_timestamp_ms, topic_id = _PACKED.unpack_from(packed)
    metadata = packed[_PACKED.size :].decode()
    return Committed(offset, leader_epoch, metadata, commit_timestamp_ms, expire_timestamp_ms, topic_id)
