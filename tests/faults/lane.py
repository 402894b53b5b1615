"""One direction of a connection."""

import asyncio
from collections.abc import Callable

from .actions import Ending, Passage

MOST_HELD_BYTES = 1 << 20
# What a frame weighs besides its bytes.
FRAME_BYTES = 500
# A throttled lane is a trickle, not a flush now and then.
PIECES_A_SECOND = 50


class Traffic:
    """What holds for all lanes of a proxy."""

    def __init__(self) -> None:
        self.moving = asyncio.Event()
        self.moving.set()
        self.bytes_per_second: int | None = None


class Lane:
    """What is put in comes out in order, each frame when it is due. A frame's delay does not add to the next one's.

    It holds about a megabyte or one frame, and lets those who put more in wait.
    """

    def __init__(self, writer: asyncio.StreamWriter, traffic: Traffic, end: Callable[[Ending], None]) -> None:
        self._writer = writer
        # All is on the socket when `drain` returns, so that a reset cannot take back what was to come through.
        writer.transport.set_write_buffer_limits(high=0)
        self._traffic = traffic
        self._end = end
        self._queue: asyncio.Queue[tuple[float, Passage, Callable[[], None] | None]] = asyncio.Queue()
        self._held_bytes = 0
        self._room = asyncio.Event()
        self._silent = False

    async def put(self, passage: Passage, done: Callable[[], None] | None = None) -> None:
        """Send a frame on its way; `done` is called when it is through, before the connection ends if it is to."""
        due = asyncio.get_running_loop().time() + passage.delay_ms / 1000
        while self._held_bytes > MOST_HELD_BYTES:
            self._room.clear()
            await self._room.wait()
        self._held_bytes += len(passage.data) + FRAME_BYTES
        self._queue.put_nowait((due, passage, done))

    async def run(self) -> None:
        """Let frames through until one ends the connection."""
        while True:
            due, passage, done = await self._queue.get()
            if not self._silent:
                await asyncio.sleep(due - asyncio.get_running_loop().time())
                await self._write(passage.data)
            self._held_bytes -= len(passage.data) + FRAME_BYTES
            self._room.set()
            if done is not None and not self._silent:
                done()
            if passage.ending is not None:
                self._end(passage.ending)
                if passage.ending is not Ending.SILENCE:
                    return
                self._silent = True

    async def _write(self, data: bytes) -> None:
        position = 0
        while True:
            await self._traffic.moving.wait()
            rate = self._traffic.bytes_per_second
            piece = data[position:] if rate is None else data[position : position + max(1, rate // PIECES_A_SECOND)]
            if not piece:
                return
            self._writer.write(piece)
            await self._writer.drain()
            position += len(piece)
            if rate is not None:
                await asyncio.sleep(len(piece) / rate)
