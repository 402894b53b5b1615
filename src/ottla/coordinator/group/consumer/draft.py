"""A change to a group while it is being worked out: the records so far, and the group as it will be with them."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from hashlib import blake2b

from ottla.assign import assignors
from ottla.assign.assignor import Assignor
from ottla.assign.assignor import Member as Reader
from ottla.coordinator.group.consumer import partitions
from ottla.coordinator.group.consumer.member import JOINS, Member, member_tombstones, target_record
from ottla.coordinator.group.consumer.partitions import Partitions
from ottla.coordinator.group.consumer.reconcile import reconcile
from ottla.coordinator.group.consumer.regex import TopicPattern
from ottla.coordinator.group.consumer.state import GroupState
from ottla.coordinator.group.context import Context
from ottla.coordinator.outcome import Record, tombstone, upsert
from ottla.wire.embedded.offsets_topic import (
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
)
from ottla.wire.errors import KafkaError


class Draft:
    """What a method wants to write. Nothing is changed but this; `records` is what comes of it."""

    def __init__(self, context: Context, state: GroupState, patterns: dict[str, TopicPattern], now_ms: int) -> None:
        self.records: list[Record] = []
        self.epoch = state.epoch
        self.assignment_epoch = state.assignment_epoch
        self._context = context
        self._state = state
        self._patterns = patterns
        self._now_ms = now_ms
        self._changed: dict[str, Member | None] = {}
        self._targets: dict[str, Partitions] = {}
        self._regexes = state.regexes
        self._unions: dict[tuple[frozenset[str], frozenset[str]], frozenset[str]] = {}

    @property
    def members(self) -> dict[str, Member]:
        """All members as they will be."""
        if not self._changed:
            return self._state.members
        merged = {**self._state.members, **self._changed}
        return {member_id: member for member_id, member in merged.items() if member is not None}

    def has(self, member_id: str) -> bool:
        """Whether this is a member."""
        return self._changed.get(member_id, self._state.members.get(member_id)) is not None

    def describe(self, member: Member) -> None:
        """Write down what a member says of itself, if that is new."""
        former = self._changed.get(member.member_id) or self._state.members.get(member.member_id)
        if former is None or former.profile != member.profile:
            self.records.append(member.profile.record(self._state.group_id, member.member_id))
        self._changed[member.member_id] = member

    def remove(self, member_id: str) -> None:
        """Take a member out."""
        self.records += member_tombstones(self._state.group_id, member_id)
        self._changed[member_id] = None

    def take_over(self, former: Member, member_id: str) -> Member:
        """Put a static member in the place of its former self, with all that that one had."""
        current = replace(former.current, epoch=JOINS, previous_epoch=JOINS)
        member = Member(member_id, former.profile, current)
        target = self._state.targets.get(former.member_id, partitions.NONE)
        self.remove(former.member_id)
        self._changed[member_id] = member
        self._targets[member_id] = target
        self.records.append(member.profile.record(self._state.group_id, member_id))
        self.records.append(target_record(self._state.group_id, member_id, target))
        self.records.append(current.record(self._state.group_id, member_id))
        return member

    def refresh(self, rise: bool = False) -> None:
        """Look at the topics again. The epoch rises if they are not what they were, or if it is to rise anyway."""
        self._look_up_regexes()
        metadata_hash = self._metadata_hash()
        if rise or metadata_hash != self._state.metadata_hash:
            self.epoch += 1
            key = ConsumerGroupMetadataKey(group_id=self._state.group_id)
            self.records.append(upsert(key, ConsumerGroupMetadataValue(epoch=self.epoch, metadata_hash=metadata_hash)))

    def assign(self) -> None:
        """Decide who is meant to have what, if that is not decided for this epoch."""
        if self.epoch == self.assignment_epoch:
            return
        group_id, members = self._state.group_id, self.members
        topic_ids = self._topic_ids({self._topics(member) for member in members.values()})
        counts: dict[bytes, int] = {}
        for topic_id in frozenset[bytes]().union(*topic_ids.values()):
            topic = self._context.image.topic_by_id(topic_id)
            assert topic is not None
            counts[topic_id] = len(topic.partitions)
        readers = {
            member_id: Reader(
                topic_ids[self._topics(member)],
                self.target(member_id),
                member.profile.instance_id,
                member.profile.rack_id,
            )
            for member_id, member in members.items()
        }
        assignor = self._offered()[self.assignor_name()]
        for member_id, target in assignors.assign(assignor, readers, counts).items():
            if target != self.target(member_id) or member_id not in self._state.targets:
                self.records.append(target_record(group_id, member_id, target))
            self._targets[member_id] = target
        self.mark_assigned()

    def mark_assigned(self) -> None:
        """Write down that this is decided for this epoch, and when."""
        self.assignment_epoch = self.epoch
        key = ConsumerGroupTargetAssignmentMetadataKey(group_id=self._state.group_id)
        value = ConsumerGroupTargetAssignmentMetadataValue(
            assignment_epoch=self.epoch, assignment_timestamp=self._now_ms
        )
        self.records.append(upsert(key, value))

    def target(self, member_id: str) -> Partitions:
        """What a member is meant to have."""
        found = self._targets.get(member_id)
        return found if found is not None else self._state.targets.get(member_id, partitions.NONE)

    def reconcile(self, member: Member, owned: Partitions | None) -> Member:
        """Take a member a step towards what was decided last."""
        also_itself = {member.member_id} | {gone for gone, still in self._changed.items() if still is None}

        def is_free(topic_id: bytes, index: int) -> bool:
            owner = self._state.owner(topic_id, index)
            return owner is None or owner in also_itself

        current = reconcile(member.current, self.assignment_epoch, self.target(member.member_id), owned, is_free)
        if current is member.current:
            return member
        self.records.append(current.record(self._state.group_id, member.member_id))
        self._changed[member.member_id] = moved = replace(member, current=current)
        return moved

    def assignor_name(self) -> str:
        """What most members that have a wish want, among what is on offer; else the usual one."""
        offered = self._offered()
        votes = Counter(member.profile.assignor for member in self.members.values() if member.profile.assignor)
        for name, _ in sorted(votes.items(), key=lambda vote: (-vote[1], vote[0])):
            if name in offered:
                return name
        return next(iter(offered))

    def _offered(self) -> dict[str, Assignor]:
        return assignors.offered(self._context.config.group_consumer_assignors)

    def _topics(self, member: Member) -> frozenset[str]:
        if member.profile.regex is None:
            return member.profile.topics
        both = member.profile.topics, self._regexes.get(member.profile.regex, frozenset())
        # Members that want the same share one set: sets that are equal but not the same take long to compare.
        return self._unions.setdefault(both, both[0] | both[1])

    def _topic_ids(self, subscriptions: Iterable[frozenset[str]]) -> dict[frozenset[str], frozenset[bytes]]:
        topics = self._context.image.topics
        return {names: frozenset(topics[name].topic_id for name in names if name in topics) for names in subscriptions}

    def _metadata_hash(self) -> int:
        """Tells apart any two states of the subscribed topics; 0 if there are none."""
        topics = self._context.image.topics
        names = frozenset[str]().union(*{self._topics(member) for member in self.members.values()})
        digest = blake2b(digest_size=8)
        for name in sorted(name for name in names if name in topics):
            # Names have no line breaks in them, so no two lists of topics give the same text.
            topic = topics[name]
            digest.update(f"{name} {topic.topic_id.hex()} {len(topic.partitions)}\n".encode())
        found = any(name in topics for name in names)
        return int.from_bytes(digest.digest(), "big", signed=True) if found else 0

    def _look_up_regexes(self) -> None:
        wanted = {member.profile.regex for member in self.members.values() if member.profile.regex is not None}
        found: dict[str, frozenset[str]] = {}
        for expression in sorted(wanted):
            found[expression] = self._matching(expression)
            if found[expression] != self._state.regexes.get(expression):
                self.records.append(self._regex_record(expression, found[expression]))
        for expression in sorted(self._state.regexes.keys() - wanted):
            key = ConsumerGroupRegularExpressionKey(group_id=self._state.group_id, regular_expression=expression)
            self.records.append(tombstone(key))
        for expression in self._patterns.keys() - wanted:
            del self._patterns[expression]
        self._regexes = found

    def _matching(self, expression: str) -> frozenset[str]:
        pattern = self._patterns.get(expression)
        if pattern is None:
            if self._context.config.authorizer_class_name:
                # What may be seen is known once a member is heard that is subscribed by it.
                return self._state.regexes.get(expression, frozenset())
            try:
                pattern = self._patterns[expression] = TopicPattern(expression)
            except KafkaError:
                # Another broker took it, with another idea of the syntax: whatever it found stays.
                return self._state.regexes.get(expression, frozenset())
        return pattern.topics(self._context.image.topics)

    def _regex_record(self, expression: str, topics: frozenset[str]) -> Record:
        key = ConsumerGroupRegularExpressionKey(group_id=self._state.group_id, regular_expression=expression)
        value = ConsumerGroupRegularExpressionValue(topics=sorted(topics), timestamp=self._now_ms)
        return upsert(key, value)
