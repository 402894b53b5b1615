"""The timers of a group's members. What is due says who failed to do what in time."""

from ottla.coordinator.group.consumer.member import Member, Progress
from ottla.coordinator.group.context import Context

SESSION = "session"
"""It was not heard of."""
REBALANCE = "rebalance"
"""It did not give up what it was to give up."""
JOIN = "join"
"""A classic member did not join again when it was told to."""
SYNC = "sync"
"""A classic member joined and did not fetch its assignment."""
ASSIGN = "assign"
"""An assignment that was put off is to be made."""
FAILURES = frozenset({SESSION, REBALANCE, JOIN, SYNC})


class Watch:
    """Starts and stops them. Keys are `(group_id, what, member_id)`."""

    def __init__(self, context: Context, group_id: str) -> None:
        self._context = context
        self._group_id = group_id

    def heard(self, now_ms: int, member: Member) -> None:
        """The member gave a sign of life: its session begins anew."""
        classic = member.profile.classic
        config = self._context.config
        timeout_ms = config.group_consumer_session_timeout_ms if classic is None else classic.session_timeout_ms
        self._context.timers.set((self._group_id, SESSION, member.member_id), now_ms + timeout_ms)

    def begin(self, now_ms: int, what: str, member: Member) -> None:
        """Give the member its rebalance timeout for that."""
        key = (self._group_id, what, member.member_id)
        self._context.timers.set(key, now_ms + max(member.profile.rebalance_timeout_ms, 0))

    def begin_once(self, now_ms: int, what: str, member: Member) -> None:
        """The same, unless that runs already."""
        if self._context.timers.deadline_ms((self._group_id, what, member.member_id)) is None:
            self.begin(now_ms, what, member)

    def end(self, what: str, member_id: str) -> None:
        """It is done."""
        self._context.timers.cancel((self._group_id, what, member_id))

    def reconciled(self, now_ms: int, member: Member) -> None:
        """The member took a step: it has its rebalance timeout to give up what it must, classic members to rejoin."""
        if member.is_classic:
            return
        if member.current.progress is Progress.UNREVOKED_PARTITIONS:
            self.begin(now_ms, REBALANCE, member)
        else:
            self.end(REBALANCE, member.member_id)

    def decide_at(self, deadline_ms: int) -> None:
        """An assignment is put off until then."""
        self._context.timers.set((self._group_id, ASSIGN), deadline_ms)

    def forget(self, member_id: str) -> None:
        """The member is gone."""
        for what in FAILURES:
            self.end(what, member_id)

    def start(self, now_ms: int, member: Member) -> None:
        """The member comes out of the log: whatever ran before runs from now."""
        if self._context.timers.deadline_ms((self._group_id, SESSION, member.member_id)) is None:
            self.heard(now_ms, member)
        self.reconciled(now_ms, member)
