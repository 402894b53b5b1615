"""Time of day, and time passed."""

import time
from typing import Protocol


class Clock(Protocol):
    """Where times come from."""

    def now_ms(self) -> int:
        """Milliseconds since 1970, as records carry them."""
        ...

    def monotonic(self) -> float:
        """Seconds that never go back, for measuring how long something took."""
        ...


class SystemClock:
    """This machine's clock.

    >>> SystemClock().now_ms() > 1_700_000_000_000
    True
    """

    def now_ms(self) -> int:
        """Milliseconds since 1970."""
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        """Seconds that never go back."""
        return time.monotonic()
