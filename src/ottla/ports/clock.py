"""Time of day, and time passed."""

import time
from collections.abc import Callable
from typing import Protocol

from ottla.native import load_compiled


class Clock(Protocol):
    """Where times come from."""

    def now_ms(self) -> int:
        """Milliseconds since 1970, as records carry them."""
        ...

    def monotonic(self) -> float:
        """Seconds that never go back, for measuring how long something took."""
        ...


_compiled = load_compiled("ottla.ports._native")
system_now_ms: Callable[[], int] = _compiled.now_ms if _compiled is not None else lambda: time.time_ns() // 1_000_000
"""What `SystemClock.now_ms` says, for those who ask for every record."""


class SystemClock:
    """This machine's clock.

    >>> SystemClock().now_ms() > 1_700_000_000_000
    True
    """

    def now_ms(self) -> int:
        """Milliseconds since 1970."""
        return system_now_ms()

    # Not a method of its own, which would take longer than the call: it is asked twice for every request.
    monotonic = staticmethod(time.monotonic)
