"""Columns of what was fetched, made by a thread while more is on its way.

The event loop need not stand still for them, and where there is a second core both go on at once. Whatever does not fit
the simple case is left to whoever takes the rows: nothing depends on what is made here.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import NamedTuple

from ottla.client.consumer.chunk import Chunk
from ottla.client.consumer.gathering import MAX_BYTES
from ottla.record._kernel_types import LARGEST_INT32, LARGEST_INT64
from ottla.record.checksum import crc32c
from ottla.record.kernels import ColumnBuffers, Columns

LEAST_BYTES = 2**17
"""Chunks below this take less time to read than to hand over."""


class Wish(NamedTuple):
    """Which columns somebody reads."""

    keys: bool
    values: bool
    headers: bool
    with_types: bool
    """Whether batches of one type of timestamps are to be kept apart from those of the other."""
    check_crcs: bool
    views: bool = False
    """Whether values are to stay in the fetched bytes."""

    def columns(self) -> Columns:
        """New ones, without rows."""
        return Columns(self.keys, self.values, self.headers, self.views)


class Made(NamedTuple):
    """Rows of the first batches of a chunk, all of them as a rule. Their timestamps are of one type."""

    columns: ColumnBuffers
    size: int
    """How many bytes these batches are."""
    next_offset: int
    leader_epoch: int


class Ahead:
    """What becomes of one chunk: its rows from one offset up to another."""

    __slots__ = ("_future", "start_offset", "stop_offset", "wish")

    def __init__(self, wish: Wish, start_offset: int, stop_offset: int, future: "Future[Made | None]") -> None:
        self.wish = wish
        self.start_offset = start_offset
        self.stop_offset = stop_offset
        self._future = future

    @property
    def is_over(self) -> bool:
        """Whether the thread is done with it."""
        return self._future.done()

    def cancel(self) -> None:
        """Nobody wants it any more."""
        self._future.cancel()

    def result(self) -> Made | None:
        """The rows, which are waited for; None if there are none that are simple to read."""
        if self._future.cancelled() or self._future.exception() is not None:
            return None
        return self._future.result()


class Maker:
    """Makes columns of chunks, one after another, in a thread of its own."""

    def __init__(self, wish: Wish, notify: Callable[[], None]) -> None:
        self.wish = wish
        self._notify = notify
        self._loop = asyncio.get_running_loop()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="ottla-columns")

    def begin(self, chunk: Chunk, start_offset: int, stop_offset: int = LARGEST_INT64) -> None:
        """Have the columns of a chunk made, if that is worth it. Somebody is notified when they are there."""
        if chunk.size < LEAST_BYTES:
            return
        try:
            future = self._thread.submit(_make, self.wish, chunk.fork(), start_offset, stop_offset)
        except RuntimeError:
            # There are too many threads, or Python is about to end.
            return
        future.add_done_callback(self._made)
        chunk.ahead = Ahead(self.wish, start_offset, stop_offset, future)

    def close(self) -> None:
        """Make no more."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _made(self, future: "Future[Made | None]") -> None:
        # If the loop is closed by now there is nobody to notify.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._notify)


def _make(wish: Wish, chunk: Chunk, start_offset: int, stop_offset: int) -> Made | None:
    columns = wish.columns()
    passed = chunk.gather(
        columns,
        append_time=False if wish.with_types else None,
        max_bytes=MAX_BYTES,
        max_rows=LARGEST_INT32,
        start_offset=start_offset,
        stop_offset=stop_offset,
        checksum=crc32c if wish.check_crcs else None,
    )
    if passed is None:
        return None
    size, next_offset, leader_epoch = passed
    return Made(columns.finish(), size, min(next_offset, stop_offset), leader_epoch)
