"""Turns: who is served next, and what becomes of those who leave or are too many."""

import asyncio
from collections.abc import Awaitable

import pytest

from ottla.broker.turns import FullLineError, Turns


class Hall:
    """Those who wait, and who was served."""

    def __init__(self, most_lines: int = 100, most_waiting: int = 100) -> None:
        self.turns = Turns(most_lines, most_waiting)
        self.served: list[str] = []
        self.at_once = 0

    def send(self, *hosts: str) -> list["asyncio.Task[None]"]:
        return [asyncio.create_task(self._visit(host)) for host in hosts]

    async def _visit(self, host: str) -> None:
        async with self.turns.turn(host):
            self.at_once += 1
            try:
                assert self.at_once == 1
                await asyncio.sleep(0)
                self.served.append(host)
            finally:
                self.at_once -= 1


def test_addresses_take_turns_however_many_wait_from_one() -> None:
    async def story() -> None:
        hall = Hall()
        await asyncio.gather(*hall.send(*["crowd"] * 5, "alice", "bob", "alice"))
        assert hall.served == ["crowd", "crowd", "alice", "bob", "crowd", "alice", "crowd", "crowd"]

    asyncio.run(story())


def test_addresses_of_one_network_of_ipv6_share_a_line() -> None:
    async def story() -> None:
        hall = Hall()
        crowd = [f"2001:db8::{number}" for number in range(1, 5)]
        await asyncio.gather(*hall.send(*crowd, "2001:db8:0:1::1"))
        assert hall.served.index("2001:db8:0:1::1") == 2

    asyncio.run(story())


def test_whoever_finds_a_full_line_is_refused_and_others_are_not() -> None:
    async def story() -> None:
        hall = Hall(most_waiting=2)
        ends = await asyncio.gather(*hall.send(*["crowd"] * 5, "alice"), return_exceptions=True)
        assert [type(end) for end in ends] == [type(None)] * 3 + [FullLineError] * 2 + [type(None)]
        assert "alice" in hall.served

    asyncio.run(story())


def test_addresses_beyond_the_most_share_one_line() -> None:
    async def story() -> None:
        hall = Hall(most_lines=2, most_waiting=2)
        ends = await asyncio.gather(*hall.send("busy", "a", "b", "c", "d", "e", "a"), return_exceptions=True)
        assert [type(end) for end in ends] == [type(None)] * 5 + [FullLineError, type(None)]
        assert hall.served == ["busy", "a", "b", "c", "a", "d"]

    asyncio.run(story())


@pytest.mark.parametrize("steps", range(6))
def test_those_who_leave_give_up_their_place_at_any_moment_and_nothing_stands_still(steps: int) -> None:
    async def story() -> None:
        hall = Hall()
        first, second, third, other = hall.send("crowd", "crowd", "crowd", "alice")
        for _ in range(steps):
            await asyncio.sleep(0)
        for leaving in (first, third):
            leaving.cancel()
        await asyncio.gather(second, other, *_ignored(first, third))
        assert {"crowd", "alice"} <= set(hall.served)
        async with asyncio.timeout(5):
            await asyncio.gather(*hall.send("bob", "alice"))

    asyncio.run(story())


def _ignored(*tasks: "asyncio.Task[None]") -> list[Awaitable[object]]:
    return [asyncio.wait([task]) for task in tasks]
