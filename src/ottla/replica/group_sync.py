"""Group commit: many who wait for the disk share one sync."""

import asyncio
from collections.abc import Callable


class GroupSync:
    """Runs a sync in the executor, one at a time; each run serves everyone who asked before it began.

    Who asks while one runs waits for the next: the running one may have begun before their bytes were written.
    """

    __slots__ = ("_asked", "_running", "_served", "_sync")

    def __init__(self, sync: Callable[[], object]) -> None:
        self._sync = sync
        self._asked = 0
        self._served = 0
        self._running: asyncio.Future[None] | None = None

    async def synced(self) -> None:
        """Return when everything written before this call is on the disk; raise what the sync raised."""
        self._asked += 1
        ticket = self._asked
        while self._served < ticket:
            if self._running is None:
                self._running = asyncio.ensure_future(self._run())
            # Whoever gives up waiting must not take the sync of the others down with it.
            await asyncio.shield(self._running)

    async def _run(self) -> None:
        serves = self._asked
        try:
            await asyncio.get_running_loop().run_in_executor(None, self._sync)
            self._served = serves
        finally:
            self._running = None
