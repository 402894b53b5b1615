"""Waiting for something to be so: a machine that is busy takes its time, and only one that hangs fails."""

import asyncio
import inspect
import time
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")

PATIENCE_S = 30.0
PAUSE_S = 0.01

What = str | Callable[[], object]
"""What is waited for, or what tells of it when it has not come."""

HERE = "what is asked for in the line that calls"


def until(find: Callable[[], T], what: What = HERE, seconds: float = PATIENCE_S, pause_s: float = PAUSE_S) -> T:
    """The first answer that is true.

    >>> until(iter([0, 0, 7]).__next__, "a number")
    7
    >>> until(lambda: None, "the end of all things", seconds=0)
    Traceback (most recent call last):
    AssertionError: not within 0 s: the end of all things
    """
    # A failure is shown where somebody waits.
    __tracebackhide__ = True
    deadline = time.monotonic() + seconds
    while not (found := find()):
        if time.monotonic() > deadline:
            raise AssertionError(_in_vain(what, seconds))
        time.sleep(pause_s)
    return found


async def eventually(
    find: Callable[[], Any], what: What = HERE, seconds: float = PATIENCE_S, pause_s: float = PAUSE_S
) -> Any:
    """The same where tasks are at work meanwhile; the question may be an async one.

    >>> async def say() -> str:
    ...     return "yes"
    >>> asyncio.run(eventually(say, "a yes"))
    'yes'
    """
    # A failure is shown where somebody waits.
    __tracebackhide__ = True
    deadline = time.monotonic() + seconds
    while True:
        found = find()
        if inspect.isawaitable(found):
            found = await found
        if found:
            return found
        if time.monotonic() > deadline:
            raise AssertionError(_in_vain(what, seconds))
        await asyncio.sleep(pause_s)


def _in_vain(what: What, seconds: float) -> str:
    return f"not within {seconds:g} s: {what() if callable(what) else what}"
