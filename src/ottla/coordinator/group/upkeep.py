"""What concerns all groups and offsets of a shard, of which there may be very many.

It is done in slices, between which requests are served. What a slice decides is written and replayed before the next
one begins, so each looks at things as they are by then.
"""

from collections import deque
from collections.abc import Iterator

from ottla.cluster.image import ClusterImage, TopicImage
from ottla.coordinator.group.consumer import ConsumerGroup
from ottla.coordinator.group.context import Context
from ottla.coordinator.group.offsets import NO_TOPIC_ID, removed
from ottla.coordinator.group.register import Register
from ottla.coordinator.group.retention import expired
from ottla.coordinator.outcome import Outcome, Record

WORK_AT_ONCE = 2_000
"""How much a slice does: so many offsets are looked at in a few milliseconds."""
WORK_OF_A_RECORD = 4
"""What it costs to have a record written and replayed, in offsets looked at."""
WORK_OF_A_REFRESH = 20
PIECE = 500
"""The most partitions of a topic that are looked at in one go."""

RETENTION = ("", "retention")
TOPICS = ("", "topics")
ORPHANS = ("", "orphans")
TIMERS = frozenset({RETENTION, TOPICS, ORPHANS})


class Upkeep:
    """Removes offsets that have had their time or whose topic is gone, and has groups look at changed topics."""

    def __init__(self, context: Context, register: Register) -> None:
        self._context = context
        self._groups = register.groups
        self._offsets = register.offsets
        self._unchecked = self._all_places()
        self._orphaned: dict[str, None] = {}
        """Topics that may have offsets left of another topic that had the name."""
        self._unremoved = self._orphaned_places()
        self._changed: set[str] = set()
        self._untold: deque[str] = deque()

    def loaded(self, now_ms: int) -> Outcome:
        """Everything is replayed: topics may have gone meanwhile."""
        self._orphaned.update(dict.fromkeys(self._offsets.topics()))
        self._context.timers.set(RETENTION, now_ms + self._context.config.offsets_retention_check_interval_ms)
        return self._remove_orphans(now_ms)

    def expire(self, now_ms: int, timer: tuple[str, str]) -> Outcome:
        """One of `TIMERS` is due: do the next slice."""
        if timer == RETENTION:
            return self._check_retention(now_ms)
        return self._tell(now_ms) if timer == TOPICS else self._remove_orphans(now_ms)

    def image_changed(self, now_ms: int, before: ClusterImage) -> Outcome:
        """Offsets go with their topics, and groups share out anew."""
        outcome = Outcome()
        changed = _changed(before, self._context.image) if self._groups else set()
        # Other rules of access may show other topics to members that are subscribed by a regular expression.
        if not changed and (before.acls is self._context.image.acls or not self._groups):
            return outcome
        for topic in sorted(changed):
            outcome.records += self._orphan(topic, before.topics.get(topic))
        outcome.records += self._remove_orphans(now_ms).records
        self._changed = changed | self._changed if self._untold else changed
        self._untold = deque(group_id for group_id, group in self._groups.items() if isinstance(group, ConsumerGroup))
        return outcome.then(self._tell(now_ms))

    # Offsets whose topic is gone.

    def _orphan(self, name: str, former: TopicImage | None) -> list[Record]:
        """Have offsets removed if they are of another topic that had the name. Nobody gets to see them until then.

        That is, if they say which topic they are for. The others have to go before a new topic takes them for its own.
        """
        found = self._context.image.topics.get(name)
        if found is not None and former is not None and found.topic_id == former.topic_id:
            return []
        self._orphaned[name] = None
        return [] if found is None else [removed(group_id, name, at) for group_id, at in self._offsets.anonymous(name)]

    def _remove_orphans(self, now_ms: int) -> Outcome:
        outcome = Outcome()
        work = 0
        for group_id, topic, indexes in self._unremoved:
            found = self._context.image.topics.get(topic)
            # Where one does not say which topic it is for, it may well be for the one there is.
            staying = {None} if found is None else {None, found.topic_id, NO_TOPIC_ID}
            gone = [index for index in indexes if self._offsets.topic_id(group_id, topic, index) not in staying]
            outcome.records += [removed(group_id, topic, index) for index in gone]
            work += 1 + len(indexes) + WORK_OF_A_RECORD * len(gone)
            if work >= WORK_AT_ONCE:
                self._context.timers.set(ORPHANS, self._context.turns.next_ms(now_ms))
                return outcome
        self._unremoved = self._orphaned_places()
        return outcome

    def _orphaned_places(self) -> Iterator[tuple[str, str, list[int]]]:
        while self._orphaned:
            topic, _ = self._orphaned.popitem()
            for group_id in self._offsets.groups_of(topic):
                for indexes in self._pieces(group_id, topic):
                    yield group_id, topic, indexes

    def _pieces(self, group_id: str, topic: str) -> Iterator[list[int]]:
        indexes = self._offsets.partitions_of(group_id, topic)
        return (indexes[first : first + PIECE] for first in range(0, len(indexes), PIECE))

    # Retention.

    def _check_retention(self, now_ms: int) -> Outcome:
        config = self._context.config
        outcome = Outcome()
        work = gone = 0
        for group_id, topic, indexes in self._unchecked:
            before = len(outcome.records)
            group = self._groups.get(group_id)
            if group is not None and topic is not None:
                minutes = config.offsets_retention_minutes
                outcome.records += expired(group, self._offsets, topic, indexes, now_ms, minutes)
                gone += len(outcome.records) - before
            else:
                # What earlier slices removed of this group is gone by now, and what came since is there.
                if group is not None and group.is_empty and self._offsets.count(group_id) == gone:
                    outcome.records += group.removal()
                gone = 0
            members = 0 if group is None else len(group.members)
            work += 1 + len(indexes) + members // 10 + WORK_OF_A_RECORD * (len(outcome.records) - before)
            if work >= WORK_AT_ONCE:
                self._context.timers.set(RETENTION, self._context.turns.next_ms(now_ms))
                return outcome
        self._unchecked = self._all_places()
        self._context.timers.set(RETENTION, now_ms + config.offsets_retention_check_interval_ms)
        return outcome

    def _all_places(self) -> Iterator[tuple[str, str | None, list[int]]]:
        """All offsets in pieces; a piece without a topic ends each group."""
        for group_id in list(self._groups):
            for topic in self._offsets.topics_of(group_id):
                for indexes in self._pieces(group_id, topic):
                    yield group_id, topic, indexes
            yield group_id, None, []

    # Topics that have changed.

    def _tell(self, now_ms: int) -> Outcome:
        """Have some groups look at their topics again, and the others a little later."""
        outcome = Outcome()
        work = 0
        while self._untold and work < WORK_AT_ONCE:
            group = self._groups.get(self._untold.popleft())
            if isinstance(group, ConsumerGroup):
                work += 1 + len(group.members) // 5
                if group.may_read_any(self._changed):
                    outcome.records += group.topics_changed(now_ms).records
                    work += self._work_of_refresh(group)
        if self._untold:
            self._context.timers.set(TOPICS, self._context.turns.next_ms(now_ms))
        return outcome

    def _work_of_refresh(self, group: ConsumerGroup) -> int:
        profiles = [member.profile for member in group.members.values()]
        expressions = {profile.regex for profile in profiles} - {None}
        names = sum(len(profile.topics) for profile in profiles) + len(expressions) * len(self._context.image.topics)
        return WORK_OF_A_REFRESH + names // 10


def _changed(before: ClusterImage, after: ClusterImage) -> set[str]:
    """The topics that came, grew or went."""
    # Pictures share what stayed the same.
    new = {name for name, topic in after.topics.items() if before.topics.get(name) is not topic}
    return {
        name for name in new if _look(before, name) != _look(after, name)
    } | before.topics.keys() - after.topics.keys()


def _look(image: ClusterImage, name: str) -> tuple[bytes, int] | None:
    topic = image.topics.get(name)
    return None if topic is None else (topic.topic_id, len(topic.partitions))
