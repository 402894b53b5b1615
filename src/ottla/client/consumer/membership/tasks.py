"""Tasks whose exceptions are not lost."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable


def spawn(coroutine: Coroutine[None, None, None], report: Callable[[BaseException], None]) -> "asyncio.Task[None]":
    """Run something beside; what it raises is reported.

    >>> async def main() -> None:
    ...     async def fail() -> None:
    ...         raise ValueError("too bad")
    ...     await asyncio.wait([spawn(fail(), print)])
    >>> asyncio.run(main())
    too bad
    """
    task = asyncio.create_task(coroutine)

    def done(task: "asyncio.Task[None]") -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            report(error)

    task.add_done_callback(done)
    return task


async def stop(tasks: Iterable["asyncio.Task[None] | None"]) -> None:
    """Cancel tasks and wait for their end."""
    running = [task for task in tasks if task is not None]
    for task in running:
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)
