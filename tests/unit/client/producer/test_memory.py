"""Memory: taken, given back, waited for in order."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from ottla.client.errors import BufferFullError
from ottla.client.producer.memory import Memory


def run(story: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(story, 10))


async def turn() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


def test_those_who_wait_are_served_in_order_and_nobody_overtakes_them() -> None:
    async def story() -> None:
        memory = Memory(100)
        assert memory.take(90)
        order: list[str] = []

        async def wait(name: str, size: int) -> None:
            await memory.wait(size, 5_000)
            order.append(name)

        waiting = [asyncio.ensure_future(wait("large", 80)), asyncio.ensure_future(wait("small", 5))]
        await turn()
        assert memory.short
        assert not memory.take(1), "there are ten bytes, but others came first"
        memory.give(20)
        await turn()
        assert order == []
        memory.give(70)
        await asyncio.gather(*waiting)
        assert order == ["large", "small"]
        assert memory.free == 100 - 85

    run(story())


def test_one_who_gives_up_leaves_the_others_their_turn_and_no_byte_is_lost() -> None:
    async def story() -> None:
        memory = Memory(100)
        memory.take(90)
        large = asyncio.ensure_future(memory.wait(80, 5_000))
        small = asyncio.ensure_future(memory.wait(5, 5_000))
        await turn()
        large.cancel()
        await small
        assert memory.free == 5
        with pytest.raises(asyncio.CancelledError):
            await large
        # Cancelled in the same moment in which it was served.
        late = asyncio.ensure_future(memory.wait(50, 5_000))
        await turn()
        memory.give(95)
        late.cancel()
        with pytest.raises(asyncio.CancelledError):
            await late
        assert memory.free == 100

    run(story())


def test_waiting_ends_with_an_error_that_names_the_limit() -> None:
    async def story() -> None:
        memory = Memory(100)
        memory.take(100)
        with pytest.raises(
            BufferFullError, match="no room for 10 bytes within max_block_ms = 20: records of 100 bytes"
        ):
            await memory.wait(10, 20)
        memory.give(100)
        assert memory.take(100)

    run(story())
