"""Work that nobody waits for: syncing what is due, and letting old segments go. All of it off the event loop."""

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

log = logging.getLogger("ottla.upkeep")

FLUSH_CHECK_MS = 1000
CHECKPOINT_MS = 60_000


class Upkeep:
    """Repeats the broker's background work at its intervals."""

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Begin."""
        config = self._broker.config
        logs = self._broker.logs
        for name, interval_ms, work in (
            ("flush", FLUSH_CHECK_MS, logs.flush_due),
            ("removal", FLUSH_CHECK_MS, logs.remove_retired),
            ("checkpoint", CHECKPOINT_MS, logs.write_checkpoints),
        ):
            self._tasks.append(asyncio.create_task(self._repeat(name, interval_ms / 1000, work)))
        interval_s = config.log_retention_check_interval_ms / 1000
        self._tasks.append(
            asyncio.create_task(self._repeat("retention", interval_s, logs.enforce_retention, here=True))
        )

    async def stop(self) -> None:
        """Finish what is being done, and do no more."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()

    async def _repeat(self, name: str, interval_s: float, work: Callable[[], object], *, here: bool = False) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(interval_s)
            try:
                if here:
                    work()
                else:
                    await loop.run_in_executor(None, work)
            except Exception:
                # It is tried again at the next turn; a disk may have room by then.
                log.exception("%s failed", name)
