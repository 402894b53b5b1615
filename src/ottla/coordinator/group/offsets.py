"""The committed offsets of a shard's groups."""

import struct
from collections import defaultdict
from collections.abc import Container, Iterator
from sys import intern
from typing import NamedTuple

from ottla.coordinator.outcome import Record, tombstone, upsert
from ottla.wire.embedded.offsets_topic import LegacyOffsetCommitKey, OffsetCommitKey, OffsetCommitValue

NO_TOPIC_ID = bytes(16)
NO_TIMESTAMP = -1

VERSION_WITH_EXPIRY = 1
"""The only version of the value that has an expire timestamp; it has no room for leader epoch and topic id."""

_PACKED = struct.Struct(">qiqq16s")
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

    def __contains__(self, group_id: object) -> bool:
        return group_id in self._packed

    def find(self, group_id: str, topic: str, partition: int) -> Committed | None:
        """What a group has committed for a partition."""
        packed = self._packed.get(group_id, {}).get(topic, {}).get(partition)
        return None if packed is None else _unpack(packed)

    def topics(self) -> list[str]:
        """The topics that any group has committed for."""
        return list(self._groups)

    def not_of(self, topic: str, topic_ids: Container[bytes]) -> Iterator[tuple[str, str, int]]:
        """Group, topic and partition of what was committed for a topic of that name, but none of these ids."""
        for group_id in self._groups.get(topic, ()):
            for partition, packed in self._packed[group_id][topic].items():
                if packed[_TOPIC_ID] not in topic_ids:
                    yield group_id, topic, partition

    def topics_of(self, group_id: str) -> list[str]:
        """The topics that a group has committed for."""
        return sorted(self._packed.get(group_id, ()))

    def of_topic(self, group_id: str, topic: str) -> Iterator[tuple[int, Committed]]:
        """What a group has committed for the partitions of a topic, in order."""
        for partition, packed in sorted(self._packed.get(group_id, {}).get(topic, {}).items()):
            yield partition, _unpack(packed)

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
