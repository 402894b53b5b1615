"""Work that nobody waits for: syncing what is due, letting old segments go, compacting. What takes long is done in
other threads.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from ottla.broker.cleaner import Cleaner
from ottla.broker.idle import open_idle
from ottla.log.retention import retention_is_due

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
        for name, interval_ms, here in (
            ("retention", config.log_retention_check_interval_ms, self._enforce_retention),
            ("compaction", config.log_cleaner_backoff_ms, Cleaner(self._broker).run),
        ):
            self._tasks.append(asyncio.create_task(self._repeat(name, interval_ms / 1000, here, here=True)))

    async def _enforce_retention(self) -> None:
        await open_idle(self._broker, retention_is_due)
        await self._broker.logs.enforce_retention()

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
                    outcome = work()
                    if asyncio.iscoroutine(outcome):
                        await outcome
                else:
                    await loop.run_in_executor(None, work)
            except Exception:
                # It is tried again at the next turn; a disk may have room by then.
                log.exception("%s failed", name)
