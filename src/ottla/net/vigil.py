"""Staying awake for an answer that is about to come.

A processor with nothing to do goes to sleep, and takes longer to wake up than a broker on the same machine takes to
write a record. So whoever waits for nothing but such an answer looks for it again and again, as systems do for what is
about to arrive; for a moment only, only where answers usually come within that, and letting others have the processor
first who want it.
"""

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import perf_counter
from typing import Final

LONGEST_S: Final = 200e-6
"""So long it is looked for, and answers that take longer are slept for."""

_SHARE_OF_LAST: Final = 1 / 8
"""How much the last answer counts in what is usual."""
_MOST_S: Final = 2 * LONGEST_S
"""More than this no answer counts, so that one that was late is forgotten soon."""

_QUOTA: Final = Path("/sys/fs/cgroup/cpu.max")
"""Where a container finds how much of the processors it may use, and in what time."""


def cores(quota: Path = _QUOTA) -> float:
    """How many processors this process may use, be it some time of each.

    >>> cores() > 0
    True
    """
    count = float(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
    with suppress(OSError, ValueError):
        most, period = quota.read_text().split()
        return min(count, int(most) / int(period))
    return count


class Vigil:
    """Keeps an event loop awake from `begin` to `end`, if that is not long, and another processor has time meanwhile.

    >>> async def story() -> bool:
    ...     vigil = Vigil(asyncio.get_running_loop())
    ...     vigil.begin()
    ...     vigil.end()
    ...     return vigil.usual_s < LONGEST_S
    >>> asyncio.run(story())
    True
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        clock: Callable[[], float] = perf_counter,
        possible: bool | None = None,
    ) -> None:
        self._loop = loop
        # Event loops may count in milliseconds.
        self._clock = clock
        self._possible = cores() >= 2 if possible is None else possible
        self._give_way: Callable[[], None] | None = getattr(os, "sched_yield", None)
        self._began = 0.0
        self._waits = False
        self._awake = False
        self.usual_s = 0.0
        """How long answers have taken lately."""

    def begin(self) -> None:
        """An answer is waited for."""
        if not self._possible:
            return
        self._began = self._clock()
        self._waits = True
        if self.usual_s < LONGEST_S and not self._awake:
            self._awake = True
            self._loop.call_soon(self._look)

    def end(self) -> None:
        """It has come."""
        if self._waits:
            self._waits = False
            took_s = min(self._clock() - self._began, _MOST_S)
            self.usual_s += (took_s - self.usual_s) * _SHARE_OF_LAST

    def _look(self) -> None:
        # A turn of the loop looks at its sockets, and one that has something to call does not wait there.
        self._awake = self._waits and self._clock() - self._began < LONGEST_S
        if self._awake:
            if self._give_way is not None:
                # The broker may be waiting for this very core.
                self._give_way()
            self._loop.call_soon(self._look)
