"""What the parts of a group work on: its written state, its timers, and the way members go."""

from collections.abc import Callable, Collection
from contextlib import suppress

from ottla.coordinator.group.consumer.draft import Draft
from ottla.coordinator.group.consumer.member import Member
from ottla.coordinator.group.consumer.migrate import downgrade_records, may_downgrade
from ottla.coordinator.group.consumer.partitions import Partitions
from ottla.coordinator.group.consumer.regex import TopicPattern
from ottla.coordinator.group.consumer.state import GroupState
from ottla.coordinator.group.consumer.watch import Watch
from ottla.coordinator.group.context import Context
from ottla.coordinator.outcome import Record
from ottla.wire.errors import KafkaError

LARGE_GROUP = 100
ASSIGNMENT_PAUSE_MS = 1000
"""In a group with that many members, assignments are not made more often than this. A thousand members that start at
once make a few assignments then and not a thousand; each learns of its own with its next heartbeat."""


class Core:
    """A group from the inside."""

    def __init__(self, context: Context, group_id: str) -> None:
        self.context = context
        self.state = GroupState(group_id)
        self.watch = Watch(context, group_id)
        self._patterns: dict[str, TopicPattern] = {}
        self._is_watched = False

    def draft(self, now_ms: int) -> Draft:
        """Begin to work out a change."""
        return Draft(self.context, self.state, self._patterns, now_ms)

    def take_regex(self, expression: str, may_see: Callable[[str], bool] | None) -> None:
        """INVALID_REGULAR_EXPRESSION if it is none. It stands for what whoever brought it last may see."""
        if expression not in self._patterns:
            self._patterns[expression] = TopicPattern(expression)
        self._patterns[expression].may_see = may_see

    def hear_regex(self, expression: str | None, may_see: Callable[[str], bool] | None) -> bool:
        """A member is subscribed by that. Whether nobody was heard since it came out of the log who is."""
        if expression is None or expression in self._patterns:
            return False
        with suppress(KafkaError):
            self.take_regex(expression, may_see)
        return expression in self._patterns

    def start_watching(self, now_ms: int) -> None:
        """Start the timers of all members, once: they came out of the log, or from a group of the other protocol."""
        if not self._is_watched:
            self._is_watched = True
            for member in self.state.members.values():
                self.watch.start(now_ms, member)

    def step(self, now_ms: int, draft: Draft, member: Member, owned: Partitions | None) -> Member:
        """Decide who is meant to have what, if need be, and take a member a step towards it."""
        next_ms = self.state.assignment_time_ms + ASSIGNMENT_PAUSE_MS
        if len(self.state.members) >= LARGE_GROUP and next_ms - ASSIGNMENT_PAUSE_MS <= now_ms < next_ms:
            if draft.epoch > self.state.assignment_epoch:
                self.watch.decide_at(next_ms)
        else:
            draft.assign()
        moved = draft.reconcile(member, owned)
        if moved is not member:
            self.watch.reconciled(now_ms, moved)
        return moved

    def decide(self, now_ms: int) -> list[Record]:
        """Decide who is meant to have what: it was put off."""
        draft = self.draft(now_ms)
        if self.state.members:
            draft.assign()
        return draft.records

    def part(self, now_ms: int, leaving: Collection[str]) -> list[Record]:
        """Members go. Who gets what they had is decided when the next member is heard of.

        Where only classic members are left, the group becomes a classic one.
        """
        rest = [member for member_id, member in self.state.members.items() if member_id not in leaving]
        if may_downgrade(self.context, self.state, rest):
            return self.downgrade(now_ms, rest)
        draft = self.draft(now_ms)
        for member_id in leaving:
            self.watch.forget(member_id)
            draft.remove(member_id)
        draft.refresh(rise=True)
        if not rest:
            # Nothing is left to decide, and it is the one record that says when: offsets expire from then on.
            draft.mark_assigned()
        return draft.records

    def downgrade(self, now_ms: int, rest: Collection[Member]) -> list[Record]:
        """Become a classic group of these members."""
        for member_id in self.state.members:
            self.watch.forget(member_id)
        return downgrade_records(self.context, self.state, rest, now_ms)
