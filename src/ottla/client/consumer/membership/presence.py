"""Whether the user still comes for records."""

from collections.abc import Hashable


class Presence:
    """Notices a user who does not come back for `max_poll_interval_ms`. Times are in seconds.

    >>> presence = Presence(longest_s=300, now=0)
    >>> presence.is_away(200, waits=False, progress=1), presence.is_away(499, waits=False, progress=1)
    (False, False)
    >>> presence.is_away(500, waits=False, progress=1)
    True
    >>> presence.is_away(501, waits=True, progress=1)
    False
    """

    def __init__(self, longest_s: float, now: float) -> None:
        self._longest_s = longest_s
        self._seen_at = now
        self._progress: Hashable = None

    def is_away(self, now: float, *, waits: bool, progress: Hashable) -> bool:
        """Whether he is; `progress` is another value whenever he came, and `waits` says that he is here."""
        if waits or progress != self._progress:
            self._progress, self._seen_at = progress, now
        return now - self._seen_at >= self._longest_s
