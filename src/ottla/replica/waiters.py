"""Those who wait for a partition to grow: long polls of consumers, and later of followers."""

import asyncio


class Waiter:
    """Waits until so many bytes have been appended, over all the partitions that it was put on."""

    __slots__ = ("future", "missing_bytes")

    def __init__(self, missing_bytes: int, loop: asyncio.AbstractEventLoop) -> None:
        self.missing_bytes = missing_bytes
        self.future: asyncio.Future[None] = loop.create_future()

    def grew(self, size: int) -> None:
        """A partition has grown."""
        self.missing_bytes -= size
        if self.missing_bytes <= 0:
            self.wake()

    def wake(self) -> None:
        """Stop waiting: there is enough, or something else happened that the reader should look at."""
        if not self.future.done():
            self.future.set_result(None)


class Waiters:
    """The waiters of one partition. Costs nothing while there are none."""

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: set[Waiter] = set()

    def add(self, waiter: Waiter) -> None:
        """Tell this one when the partition grows."""
        self._waiting.add(waiter)

    def discard(self, waiter: Waiter) -> None:
        """Tell it no more."""
        self._waiting.discard(waiter)

    def grew(self, size: int) -> None:
        """Pass on that the partition grew."""
        if self._waiting:
            for waiter in tuple(self._waiting):
                waiter.grew(size)

    def wake_all(self) -> None:
        """Wake everyone: the partition is gone, or has another leader."""
        for waiter in tuple(self._waiting):
            waiter.wake()
