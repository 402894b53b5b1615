"""How long a coroutine works, without the time that it waits."""

from collections.abc import Callable, Coroutine, Generator
from types import coroutine
from typing import Any


class Stopwatch:
    """Runs only while a coroutine does.

    >>> import asyncio
    >>> async def wait_and_answer() -> int:
    ...     await asyncio.sleep(0.01)
    ...     return 42
    >>> async def main() -> tuple[int, float]:
    ...     watch = Stopwatch(iter(range(10)).__next__)
    ...     return await watch.run(wait_and_answer()), watch.seconds
    >>> asyncio.run(main())
    (42, 2.0)
    """

    __slots__ = ("_monotonic", "seconds")

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self.seconds = 0.0

    @coroutine
    def run(self, work: Coroutine[Any, Any, Any]) -> Generator[Any, Any, Any]:
        """Await a coroutine."""
        sent: Any = None
        thrown: BaseException | None = None
        while True:
            begun = self._monotonic()
            try:
                awaited = work.send(sent) if thrown is None else work.throw(thrown)
            except StopIteration as stop:
                return stop.value
            finally:
                self.seconds += self._monotonic() - begun
            sent = thrown = None
            try:
                sent = yield awaited
            except BaseException as error:  # noqa: BLE001 - it is the coroutine's to deal with
                thrown = error
