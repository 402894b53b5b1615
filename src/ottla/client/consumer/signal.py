"""Waking those who wait for something to change."""

import asyncio


class Signal:
    """Wakes all who wait. Look first and wait then, without awaiting anything between the two.

    >>> async def example() -> str:
    ...     signal = Signal()
    ...     asyncio.get_running_loop().call_soon(signal.notify)
    ...     await signal.wait()
    ...     return "woken"
    >>> asyncio.run(example())
    'woken'
    """

    def __init__(self) -> None:
        self._waiting: set[asyncio.Future[None]] = set()

    def notify(self) -> None:
        """Wake all who wait now."""
        if self._waiting:
            for waiting in self._waiting:
                if not waiting.done():
                    waiting.set_result(None)
            self._waiting.clear()

    async def wait(self, timeout_s: float | None = None) -> None:
        """Wait to be woken, or until the time has passed."""
        loop = asyncio.get_running_loop()
        waiting = loop.create_future()
        self._waiting.add(waiting)
        timer = None if timeout_s is None else loop.call_later(max(timeout_s, 0), _settle, waiting)
        try:
            await waiting
        finally:
            self._waiting.discard(waiting)
            if timer is not None:
                timer.cancel()


def _settle(waiting: "asyncio.Future[None]") -> None:
    if not waiting.done():
        waiting.set_result(None)
