import asyncio
import threading
import time

import pytest

from ottla.replica.group_sync import GroupSync


def test_those_who_wait_together_share_a_sync() -> None:
    syncs = []

    def sync() -> None:
        time.sleep(0.02)
        syncs.append(1)

    async def run() -> None:
        group = GroupSync(sync)
        await asyncio.gather(*(group.synced() for _ in range(50)))

    asyncio.run(run())
    assert len(syncs) == 1


def test_who_comes_during_a_sync_waits_for_the_next() -> None:
    written: list[int] = []
    on_disk: list[int] = []
    begun = threading.Event()

    def sync() -> None:
        seen = list(written)
        begun.set()
        time.sleep(0.05)
        on_disk[:] = seen

    async def run() -> None:
        group = GroupSync(sync)
        written.append(1)
        first = asyncio.ensure_future(group.synced())
        await asyncio.get_running_loop().run_in_executor(None, begun.wait)
        written.append(2)
        await group.synced()
        assert on_disk == [1, 2]
        await first

    asyncio.run(run())


def test_a_failed_sync_fails_those_it_was_for_and_no_others() -> None:
    outcomes = [OSError("disk gone"), None]

    def sync() -> None:
        outcome = outcomes.pop(0)
        if outcome is not None:
            raise outcome

    async def run() -> None:
        group = GroupSync(sync)
        with pytest.raises(OSError, match="disk gone"):
            await group.synced()
        await group.synced()

    asyncio.run(run())


def test_one_who_gives_up_does_not_stop_the_sync_of_the_others() -> None:
    async def run() -> None:
        group = GroupSync(lambda: time.sleep(0.05))
        impatient = asyncio.ensure_future(group.synced())
        patient = asyncio.ensure_future(group.synced())
        await asyncio.sleep(0.01)
        impatient.cancel()
        await patient

    asyncio.run(run())
