"""An asyncio event loop with virtual time: it never waits, and does the same again from the same seed.

What asyncio promises holds: callbacks run in the order in which they became ready. Where it promises nothing, chance
decides: work for the executor begins a while later, done in one go on the loop's own thread, and is reported back
another while later, so that other things happen between all three.
"""

import asyncio
import heapq
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from contextvars import Context
from random import Random
from typing import TYPE_CHECKING, Any, Final, TypeVar, TypeVarTuple

LONGEST_HANDOVER_S: Final = 0.005
"""How long work may lie before the executor takes it up, and its result before the loop does."""

T = TypeVar("T")
Arguments = TypeVarTuple("Arguments")

if TYPE_CHECKING:
    # To type checkers the other one is abstract: they want sockets, pipes and signals, which do not exist here.
    _Loop = asyncio.BaseEventLoop
else:
    _Loop = asyncio.AbstractEventLoop


class HaltedError(Exception):
    """The simulated machine has stopped in the middle of what it did."""


class SimLoop(_Loop):
    """Runs callbacks and timers; time leaps to the next timer when nothing is left to do.

    >>> loop = SimLoop(Random(1))
    >>> loop.run_until_complete(asyncio.sleep(3600, "an hour later"))
    'an hour later'
    >>> loop.time()
    3600.0
    """

    def __init__(self, chance: Random, *, now_s: float = 0.0, halts: Callable[[], bool] = lambda: False) -> None:
        self._chance = chance
        self._now_s = now_s
        self._halts = halts
        self._ready: deque[asyncio.Handle] = deque()
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._timer_count = 0
        self._is_running = False
        self._is_closed = False
        self.unhandled: list[dict[str, Any]] = []
        """What the exception handler was told."""

    # Time and callbacks.

    def time(self) -> float:
        """Virtual seconds."""
        return self._now_s

    def call_soon(
        self, callback: Callable[[*Arguments], object], *args: *Arguments, context: Context | None = None
    ) -> asyncio.Handle:
        """Run a callback after those that are ready now."""
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    call_soon_threadsafe = call_soon

    def call_at(
        self, when: float, callback: Callable[[*Arguments], object], *args: *Arguments, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Run a callback at a time."""
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        self._timer_count += 1
        heapq.heappush(self._timers, (when, self._timer_count, handle))
        return handle

    def call_later(
        self, delay: float, callback: Callable[[*Arguments], object], *args: *Arguments, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Run a callback after so many seconds."""
        return self.call_at(self._now_s + max(0.0, delay), callback, *args, context=context)

    def create_future(self) -> asyncio.Future[Any]:
        """A future of this loop."""
        return asyncio.Future(loop=self)

    def create_task(
        self,
        coro: Coroutine[Any, Any, T] | Generator[Any, None, T],
        *,
        name: object = None,
        context: Context | None = None,
        **_options: Any,
    ) -> asyncio.Task[T]:
        """A task of this loop."""
        return asyncio.Task(coro, loop=self, name=None if name is None else str(name), context=context)

    def run_in_executor(self, executor: Any, func: Callable[[*Arguments], T], *args: *Arguments) -> asyncio.Future[T]:
        """Call a function in a later turn, and give its result in one later still."""
        future: asyncio.Future[T] = self.create_future()

        def work() -> None:
            # As in a pool of threads: what was given up before its turn is not begun.
            if future.cancelled():
                return
            try:
                report, outcome = future.set_result, func(*args)
            except Exception as error:  # noqa: BLE001
                report, outcome = future.set_exception, error  # type: ignore[assignment]
            self._hand_over(lambda: None if future.done() else report(outcome))

        self._hand_over(work)
        return future

    def _hand_over(self, callback: Callable[[], None]) -> None:
        self.call_later(self._chance.uniform(0, LONGEST_HANDOVER_S), callback)

    # Running.

    def run_until_complete(self, future: Any) -> Any:
        """Run until a future or coroutine is done; HaltedError if the machine stops before."""
        task = asyncio.ensure_future(future, loop=self)
        self._is_running = True
        asyncio._set_running_loop(self)
        try:
            while not task.done():
                self._turn()
                if self._halts():
                    raise HaltedError(f"at {self._now_s:.3f} s")
        finally:
            asyncio._set_running_loop(None)
            self._is_running = False
        return task.result()

    def _turn(self) -> None:
        while self._timers and (self._timers[0][2].cancelled() or not self._ready):
            when, _, timer = heapq.heappop(self._timers)
            if not timer.cancelled():
                self._now_s = max(self._now_s, when)
                self._ready.append(timer)
        if not self._ready:
            raise RuntimeError("everybody waits, and nothing is going to happen")
        handle = self._ready.popleft()
        if not handle.cancelled():
            handle._run()

    def is_running(self) -> bool:
        """Whether the loop runs."""
        return self._is_running

    def is_closed(self) -> bool:
        """Whether the loop is at its end."""
        return self._is_closed

    def close(self) -> None:
        """Drop whatever was under way, as a machine does that stops. Nobody is told."""
        self._is_closed = True
        for task in asyncio.all_tasks(self):
            found = task.get_coro()
            if found is not None:
                found.close()
        self._ready.clear()
        self._timers.clear()

    # What asyncio's own parts ask of a loop.

    def get_debug(self) -> bool:
        """Never."""
        return False

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Note what nobody handled. Once the machine has stopped, nobody was there to."""
        if not self._is_closed and not self._halts():
            self.unhandled.append(context)

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Nothing to do: a cancelled timer is dropped when its turn comes."""
