import asyncio

import pytest

from ottla.sim import HaltedError, SimChance, SimLoop


def test_an_hour_passes_at_once_and_in_order() -> None:
    seen: list[tuple[str, float]] = []
    loop = SimLoop(SimChance(1))

    async def sleep(name: str, seconds: float) -> None:
        await asyncio.sleep(seconds)
        seen.append((name, loop.time()))

    async def main() -> None:
        await asyncio.gather(sleep("long", 3600), sleep("short", 1))

    loop.run_until_complete(main())
    assert seen == [("short", 1.0), ("long", 3600.0)]


def test_executor_work_is_done_later_and_reported_later_still() -> None:
    loop = SimLoop(SimChance(1))
    seen: list[str] = []

    async def main() -> None:
        future = loop.run_in_executor(None, seen.append, "worked")
        seen.append("asked")
        await asyncio.sleep(0)
        seen.append("went on")
        await future
        seen.append("was told")

    loop.run_until_complete(main())
    assert seen == ["asked", "went on", "worked", "was told"]


def test_an_error_in_the_executor_reaches_who_waits() -> None:
    loop = SimLoop(SimChance(1))
    with pytest.raises(ZeroDivisionError):
        loop.run_until_complete(loop.run_in_executor(None, lambda: 1 // 0))


def test_timeouts_work() -> None:
    async def main() -> None:
        async with asyncio.timeout(5):
            await asyncio.Event().wait()

    loop = SimLoop(SimChance(1))
    with pytest.raises(TimeoutError):
        loop.run_until_complete(main())
    assert loop.time() == 5.0


def test_a_halted_machine_stops_in_the_middle() -> None:
    steps = 0

    async def main() -> None:
        nonlocal steps
        while True:
            steps += 1
            await asyncio.sleep(1)

    loop = SimLoop(SimChance(1), halts=lambda: steps == 3)
    with pytest.raises(HaltedError):
        loop.run_until_complete(main())
    loop.close()
    assert steps == 3


def test_a_standstill_is_told() -> None:
    async def main() -> None:
        await asyncio.Event().wait()

    loop = SimLoop(SimChance(1))
    with pytest.raises(RuntimeError, match="everybody waits"):
        loop.run_until_complete(main())
    loop.close()
