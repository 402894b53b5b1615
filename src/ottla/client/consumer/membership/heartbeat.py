"""When heartbeats are due, and when a session has ended: times only, so that no clock is needed to try it."""

from dataclasses import dataclass


@dataclass(slots=True)
class Pulse:
    """The rhythm of one member's heartbeats. All times are in seconds, of any clock that does not go back.

    >>> pulse = Pulse(interval_s=3, session_s=45, now=100)
    >>> pulse.wait_s(101)
    2
    >>> pulse.failed(103, again_s=0.1)
    >>> pulse.wait_s(103), pulse.has_ended(144), pulse.has_ended(145)
    (0.1, False, True)
    >>> pulse.answered(144)
    >>> pulse.wait_s(144), pulse.has_ended(145)
    (3, False)
    """

    interval_s: float
    session_s: float
    now: float
    failures: int = 0
    """How many in a row were not answered."""
    heard_at: float = 0.0
    """When the coordinator last answered."""
    due_at: float = 0.0

    def __post_init__(self) -> None:
        self.answered(self.now)

    def answered(self, now: float) -> None:
        """The coordinator has answered, so the session begins anew."""
        self.failures = 0
        self.heard_at = now
        self.due_at = now + self.interval_s

    def failed(self, now: float, again_s: float) -> None:
        """No answer came; try again soon, while the session lasts."""
        self.failures += 1
        self.due_at = now + again_s

    def hurry(self, now: float) -> None:
        """There is something to tell the coordinator now. One that does not answer is not pressed."""
        if not self.failures:
            self.due_at = now

    def wait_s(self, now: float) -> float:
        """How long until the next heartbeat is due."""
        return max(0, round(self.due_at - now, 6))

    def left_s(self, now: float) -> float:
        """How long the session lasts if nothing more is heard."""
        return max(0, self.heard_at + self.session_s - now)

    def has_ended(self, now: float) -> bool:
        """Whether the group must have given up on this member."""
        return now - self.heard_at >= self.session_s
