"""Waiting for something to be so."""

import asyncio
from collections.abc import Callable

PATIENCE_S = 10.0


async def until(condition: Callable[[], object], what: object = "") -> None:
    """Wait until something is so; what it is about is told if that takes too long."""
    try:
        async with asyncio.timeout(PATIENCE_S):
            while not condition():
                await asyncio.sleep(0.005)
    except TimeoutError:
        raise AssertionError(f"not in {PATIENCE_S} s: {what}") from None
