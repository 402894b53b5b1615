"""How many bytes of records a producer holds, and who waits for room."""

import asyncio
from collections import deque
from contextlib import suppress

from ottla.client.errors import BufferFullError
from ottla.wire.errors import KafkaError


class Memory:
    """So many bytes, taken and given back. Those who wait are served in order.

    >>> memory = Memory(100)
    >>> memory.take(80), memory.take(80)
    (True, False)
    """

    def __init__(self, total: int) -> None:
        self.total = total
        self.free = total
        self._waiters: deque[tuple[int, asyncio.Future[None]]] = deque()

    @property
    def short(self) -> bool:
        """Whether somebody waits."""
        return bool(self._waiters)

    def take(self, size: int) -> bool:
        """Take so many bytes if they are free and nobody waits for them."""
        if self._waiters or size > self.free:
            return False
        self.free -= size
        return True

    def give(self, size: int) -> None:
        """Give bytes back."""
        self.free += size
        while self._waiters and self._waiters[0][0] <= self.free:
            wanted, future = self._waiters.popleft()
            if not future.done():
                self.free -= wanted
                future.set_result(None)

    def refuse(self, error: KafkaError) -> None:
        """Let nobody wait any longer."""
        waiters, self._waiters = self._waiters, deque()
        for _, future in waiters:
            if not future.done():
                future.set_exception(error)

    async def wait(self, size: int, timeout_ms: int) -> None:
        """Take so many bytes, once they are free; BufferFullError after the timeout."""
        if self.take(size):
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append((size, future))
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await future
        except BaseException as error:
            if future.done() and not future.cancelled() and future.exception() is None:
                self.give(size)
            else:
                with suppress(ValueError):
                    self._waiters.remove((size, future))
                # One behind may want less.
                self.give(0)
            if isinstance(error, TimeoutError):
                raise BufferFullError(
                    f"no room for {size} bytes within max_block_ms = {timeout_ms}: records of {self.total} bytes, "
                    f"buffer_memory, wait to be acknowledged; send more slowly, or set it higher"
                ) from None
            raise
