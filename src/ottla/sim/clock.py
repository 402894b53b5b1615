"""The clock of a simulated loop."""

from asyncio import AbstractEventLoop


class SimClock:
    """Time of day as a loop with virtual time has it, whose seconds count from 1970.

    >>> from ottla.sim.chance import SimChance
    >>> from ottla.sim.loop import SimLoop
    >>> SimClock(SimLoop(SimChance(1), now_s=1_700_000_000)).now_ms()
    1700000000000
    """

    def __init__(self, loop: AbstractEventLoop) -> None:
        self._loop = loop

    def now_ms(self) -> int:
        """Milliseconds since 1970."""
        return int(self._loop.time() * 1000)

    def monotonic(self) -> float:
        """Seconds that never go back."""
        return self._loop.time()
