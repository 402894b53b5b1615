"""One event loop on a thread of its own, which all synchronous clients of a process share."""

import asyncio
import atexit
import logging
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, wait
from functools import partial
from typing import Generic, ParamSpec, TypeVar

from ottla.client.errors import ClientClosedError, IllegalStateError

P = ParamSpec("P")
T = TypeVar("T")

EXIT_SECONDS = 10.0
"""How long clients that were left open may take to send what they have and say goodbye, at the end of the program."""

LOOK_UP_SECONDS = 0.5
"""How often one who waits looks up. A signal that comes just before a wait does not end it, nor does any on Windows."""

CANCEL_SECONDS = 5.0
"""How long a call that was interrupted may take to end."""

log = logging.getLogger(__name__)


class Background:
    """An event loop on a daemon thread.

    >>> async def add(one: int, other: int) -> int:
    ...     return one + other
    >>> background().call(add, 1, other=2)
    3
    """

    def __init__(self) -> None:
        self.loop = _new_event_loop()
        self._thread = threading.Thread(target=self._run, name="ottla-sync", daemon=True)
        self._open: dict[object, Callable[[], Awaitable[None]]] = {}
        self._thread.start()
        atexit.register(self.close)

    @property
    def is_alive(self) -> bool:
        """Whether the thread runs. After a fork it does not in the child."""
        return self._thread.is_alive()

    @property
    def is_here(self) -> bool:
        """Whether this is the thread of the loop."""
        return threading.get_ident() == self._thread.ident

    def wake(self, function: Callable[[], object]) -> None:
        """Have the loop call something soon."""
        if not self.is_alive:
            raise ClientClosedError(
                "the client was started before this process was forked, and belongs to the parent; start another one"
            )
        self.loop.call_soon_threadsafe(function)

    def call(self, function: Callable[P, Awaitable[T]], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """What a coroutine function gives when the loop runs it. Interrupting the wait cancels it."""
        if self.is_here:
            raise IllegalStateError(
                "a callback on the thread of the event loop called a client, and would wait for itself; have another "
                "thread call it"
            )
        return Call(self, partial(function, *args, **kwargs)).result()

    def begin(self, function: Callable[P, Awaitable[T]], /, *args: P.args, **kwargs: P.kwargs) -> "Call[T]":
        """Have the loop run a coroutine function, while the caller does something else."""
        call = Call(self, partial(function, *args, **kwargs))
        call.begin()
        return call

    def ask(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """What a plain function gives on the loop's thread, for state that only the loop may touch."""

        async def work() -> T:
            return function(*args, **kwargs)

        return self.call(work)

    def remember(self, client: object, stop: Callable[[], Awaitable[None]]) -> None:
        """Stop a client at the end of the program, unless it is forgotten before."""
        self._open[client] = stop

    def forget(self, client: object) -> None:
        """A client was stopped."""
        self._open.pop(client, None)

    def close(self) -> None:
        """Stop all clients, and end the thread."""
        if not self.is_alive:
            return
        self.call(self._stop_clients)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(CANCEL_SECONDS)

    async def _stop_clients(self) -> None:
        stopping = [asyncio.ensure_future(stop()) for stop in list(self._open.values())]
        if not stopping:
            return
        done, late = await asyncio.wait(stopping, timeout=EXIT_SECONDS)
        for one in done:
            if (error := one.exception()) is not None:
                log.error("a client that was left open did not end well: %s", error)
        if late:
            log.error("%d clients that were left open did not end within %g s; stop() them", len(late), EXIT_SECONDS)

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_forever()
            tasks = asyncio.all_tasks(self.loop)
            for task in tasks:
                task.cancel()
            self.loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
            self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        finally:
            self.loop.close()


class Call(Generic[T]):
    """Something that an event loop on another thread is asked to do, and what comes of it."""

    def __init__(self, background: Background, function: Callable[[], Awaitable[T]]) -> None:
        self._background = background
        self._function = function
        self._answer: Future[T] = Future()
        self._task: asyncio.Task[T] | None = None
        self._has_begun = False

    def begin(self) -> None:
        """Have the loop do it soon, if it was not told yet."""
        if not self._has_begun:
            self._has_begun = True
            self._background.wake(self._make_task)

    def result(self) -> T:
        """What it gives, once it does. Interrupting the wait cancels it."""
        answer = self._answer
        try:
            self.begin()
            while not answer.done():
                wait([answer], LOOK_UP_SECONDS)
            return answer.result()
        except BaseException:
            if not answer.done() and self._background.is_alive:
                self._background.loop.call_soon_threadsafe(self._give_up)
                wait([answer], CANCEL_SECONDS)
            raise

    # On the loop. The coroutine is made there, so that an interrupt before that leaves none that nobody has awaited.

    async def _work(self) -> T:
        return await self._function()

    def _make_task(self) -> None:
        self._task = self._background.loop.create_task(self._work())
        self._task.add_done_callback(partial(_pass_on, self._answer))

    def _give_up(self) -> None:
        if self._task is not None:
            self._task.cancel()
        else:
            self._answer.cancel()


_lock = threading.Lock()
_backgrounds: list[Background] = []
"""The last one is of this process. Those of its ancestors are kept: destroying them would disturb their owners, who
share what lies below in the kernel."""


def background() -> Background:
    """The event loop of this process, which starts with the first call."""
    with _lock:
        if not _backgrounds or not _backgrounds[-1].is_alive:
            _backgrounds.append(Background())
        return _backgrounds[-1]


def _new_event_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    else:
        return uvloop.new_event_loop()


def _pass_on(answer: Future[T], task: asyncio.Task[T]) -> None:
    if task.cancelled():
        answer.set_exception(ClientClosedError("the call was cancelled"))
    elif (error := task.exception()) is not None:
        answer.set_exception(error)
    else:
        answer.set_result(task.result())
