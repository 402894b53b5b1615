"""Waiting with a deadline: one timer and one future per wait, and nothing at all while it lasts."""

import asyncio
from collections.abc import Iterable

from ottla.broker.request import Caller
from ottla.replica.partition import Partition
from ottla.replica.waiters import Waiter


async def wait_for_growth(partitions: Iterable[Partition], missing_bytes: int, timeout_ms: int, caller: Caller) -> None:
    """Return when the partitions together have grown by so many bytes, the time is up, or the caller has gone."""
    loop = asyncio.get_running_loop()
    waiter = Waiter(missing_bytes, loop)
    waited_on = list(partitions)
    for partition in waited_on:
        partition.waiters.add(waiter)
    caller.interrupt = waiter.wake
    timer = loop.call_later(timeout_ms / 1000, waiter.wake)
    try:
        await waiter.future
    finally:
        timer.cancel()
        for partition in waited_on:
            partition.waiters.discard(waiter)
