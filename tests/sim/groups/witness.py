"""Sees everything that the coordinator answers and writes down, and complains when that breaks an invariant.

The names of the checks are those of docs/invariants.md.
"""

from collections import Counter
from typing import Any

from ottla.coordinator.outcome import Call
from ottla.wire.embedded import decode_key, decode_versioned, read_prefix
from ottla.wire.embedded.consumer_protocol import ConsumerProtocolAssignment
from ottla.wire.embedded.offsets_topic import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
)

_CURRENT_ASSIGNMENT = 8


class BrokenError(AssertionError):
    """An invariant does not hold."""


def require(holds: bool, invariant: str, details: object) -> None:
    """Complain unless it holds."""
    if not holds:
        raise BrokenError(f"{invariant}: {details}")


class Witness:
    """The history so far, as far as it matters to the invariants."""

    def __init__(self) -> None:
        self.seen: Counter[str] = Counter()
        self._generations: dict[str, int] = {}
        self._leaders: dict[tuple[str, int], str] = {}
        self._owners: dict[tuple[str, int, str, int], str] = {}
        self._names: dict[str, str] = {}
        self._epochs: dict[tuple[str, str], int] = {}
        self._assigned: dict[tuple[str, str], set[tuple[bytes, int]]] = {}
        self._written_epochs: dict[tuple[str, str], int] = {}
        self.committed: dict[tuple[str, str, int], int] = {}
        self.mixed: set[str] = set()
        """Groups that had members of the consumer protocol: there a classic member's generation is its own epoch."""

    def answered(self, method: str, call: Call, reply: Any) -> None:
        """The coordinator let a reply out."""
        check = getattr(self, f"_{method}", None)
        if check is not None:
            check(call, reply)

    def written(self, key: bytes, value: bytes | None) -> None:
        """The coordinator wrote a record."""
        if read_prefix(key) != _CURRENT_ASSIGNMENT:
            return
        who = decode_key(ConsumerGroupCurrentMemberAssignmentKey, key)
        member = who.group_id, who.member_id
        if value is None:
            self._assigned.pop(member, None)
            self._epochs.pop(member, None)
            self._written_epochs.pop(member, None)
            return
        current = decode_versioned(ConsumerGroupCurrentMemberAssignmentValue, value)
        self._written_epochs[member] = current.member_epoch
        held = current.assigned_partitions + current.partitions_pending_revocation
        self._assigned[member] = {(part.topic_id, index) for part in held for index in part.partitions}

    def check_owners(self) -> None:
        """No partition is held by two members of a group, by what is written down."""
        owners: dict[tuple[str, bytes, int], str] = {}
        for (group, member), partitions in self._assigned.items():
            for topic_id, index in partitions:
                other = owners.setdefault((group, topic_id, index), member)
                require(other == member, "one owner", f"{group} {topic_id.hex()}-{index}: {other} and {member}")

    def _join_group(self, call: Call, reply: Any) -> None:
        self.seen[f"join {reply.error_code}"] += 1
        if reply.error_code or call.body.group_id in self.mixed:
            return
        group, generation = call.body.group_id, reply.generation_id
        latest = self._generations.get(group, -1)
        require(generation >= latest, "generations only rise", f"{group}: {generation} after {latest}")
        self._generations[group] = generation
        self._names[reply.member_id] = call.body.group_instance_id or reply.member_id
        if reply.leader:
            leader = self._names.get(reply.leader, reply.leader)
            first = self._leaders.setdefault((group, generation), leader)
            require(first == leader, "one leader per generation", f"{group} {generation}: {first} and {leader}")

    def _sync_group(self, call: Call, reply: Any) -> None:
        self.seen[f"sync {reply.error_code}"] += 1
        if reply.error_code or not reply.assignment or call.body.group_id in self.mixed:
            return
        group, generation = call.body.group_id, call.body.generation_id
        owner = self._names.get(call.body.member_id, call.body.member_id)
        assignment = decode_versioned(ConsumerProtocolAssignment, reply.assignment)
        for part in assignment.assigned_partitions:
            for index in part.partitions:
                first = self._owners.setdefault((group, generation, part.topic, index), owner)
                require(first == owner, "one owner", f"{group} {generation} {part.topic}-{index}: {first} and {owner}")

    def _consumer_group_heartbeat(self, call: Call, reply: Any) -> None:
        self.seen[f"consumer heartbeat {reply.error_code}"] += 1
        self.mixed.add(call.body.group_id)
        if reply.error_code or call.body.member_epoch < 0:
            return
        member = call.body.group_id, reply.member_id
        before = self._epochs.get(member, 0)
        require(reply.member_epoch >= before, "member epochs only rise", f"{member}: {reply.member_epoch} < {before}")
        self._epochs[member] = reply.member_epoch

    def _offset_commit(self, call: Call, reply: Any) -> None:
        body = call.body
        for topic, answered in zip(body.topics, reply.topics, strict=True):
            for part, result in zip(topic.partitions, answered.partitions, strict=True):
                self.seen[f"commit {result.error_code}"] += 1
                if result.error_code:
                    continue
                self.committed[body.group_id, topic.name, part.partition_index] = part.committed_offset
                self._check_commit(body.group_id, body.member_id, body.generation_id_or_member_epoch)

    def _check_commit(self, group: str, member_id: str, epoch: int) -> None:
        """In a group of the consumer protocol every member has an epoch of its own, classic ones too."""
        is_consumer = any(member_group == group for member_group, _ in self._written_epochs)
        if not is_consumer and group in self.mixed:
            # It has become a classic group, and was handed its generation by the groups of another kind before.
            return
        latest = self._written_epochs.get((group, member_id), -1) if is_consumer else self._generations.get(group, -1)
        require(epoch == latest, "commits are of the current generation", f"{group}: {epoch}, not {latest}")

    def _offset_fetch(self, call: Call, reply: Any) -> None:
        if reply.error_code:
            return
        found = {
            (call.body.group_id, topic.name, part.partition_index): part.committed_offset
            for topic in reply.topics
            for part in topic.partitions
        }
        expected = {place: self.committed.get(place, -1) for place in found}
        require(found == expected, "a committed offset never goes back by itself", f"{found}, committed {expected}")
        self.seen["offsets read"] += 1
