"""How long the last things may take that are done for a consumer that stops."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Limit:
    """No limit as long as the consumer runs. What is under way when it is set is bound by it too.

    >>> async def main() -> None:
    ...     limit = Limit()
    ...     async with limit.within():
    ...         limit.set(0.01)
    ...         await asyncio.sleep(10)
    >>> asyncio.run(main())
    Traceback (most recent call last):
    TimeoutError
    """

    def __init__(self) -> None:
        self._end: float | None = None
        self._under_way: set[asyncio.Timeout] = set()

    def set(self, seconds: float) -> None:
        """All must be done so many seconds from now."""
        self._end = asyncio.get_running_loop().time() + seconds
        for timeout in self._under_way:
            when = timeout.when()
            timeout.reschedule(self._end if when is None else min(when, self._end))

    @asynccontextmanager
    async def within(self, seconds: float | None = None, *, share: float = 1.0) -> AsyncIterator[asyncio.Timeout]:
        """Raise `TimeoutError` after so many seconds, or before: when a share of the time is over that is left."""
        now = asyncio.get_running_loop().time()
        ends = [] if seconds is None else [now + seconds]
        if self._end is not None:
            ends.append(now + (self._end - now) * share)
        async with asyncio.timeout_at(min(ends, default=None)) as timeout:
            self._under_way.add(timeout)
            try:
                yield timeout
            finally:
                self._under_way.discard(timeout)
