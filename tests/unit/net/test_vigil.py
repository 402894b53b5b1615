"""An event loop stays awake for an answer that is about to come, and for no other."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ottla.net.vigil import LONGEST_S, Vigil, cores
from tests.unit.net.loops import LoopFactory, each_loop, run


class Turns:
    """An event loop of which only `call_soon` is there, and a clock that each of its turns takes some of."""

    TURN_US = 10

    def __init__(self) -> None:
        self.now_us = 0
        self.called: list[Callable[[], None]] = []

    def call_soon(self, callback: Callable[[], None]) -> None:
        self.called.append(callback)

    def vigil(self, possible: bool = True) -> Vigil:
        loop: Any = self
        return Vigil(loop, lambda: self.now_us / 1e6, possible)

    def pass_time(self, microseconds: int) -> int:
        """Let time pass, in turns while there is something to call; say how many those were."""
        end, turns = self.now_us + microseconds, 0
        while self.called and self.now_us + self.TURN_US <= end:
            self.now_us += self.TURN_US
            turns += 1
            due, self.called = self.called, []
            for one in due:
                one()
        self.now_us = end
        return turns


def answered(turns: Turns, vigil: Vigil, after_us: int) -> int:
    """One answer that takes so long, and in how many turns it was looked for."""
    vigil.begin()
    looked = turns.pass_time(after_us)
    vigil.end()
    turns.pass_time(turns.TURN_US)
    assert not turns.called, "nobody looks for what is there"
    return looked


def test_an_answer_that_comes_soon_is_looked_for_until_it_is_there() -> None:
    turns = Turns()
    vigil = turns.vigil()
    assert [answered(turns, vigil, 50) for _ in range(100)] == [5] * 100
    assert vigil.usual_s == pytest.approx(50e-6, rel=0.01)


def test_one_that_is_late_is_slept_for_in_the_end() -> None:
    turns = Turns()
    vigil = turns.vigil()
    vigil.begin()
    assert turns.pass_time(1_000_000) == pytest.approx(LONGEST_S * 1e6 / turns.TURN_US, abs=1)
    assert not turns.called


def test_answers_that_are_always_late_are_soon_slept_for_from_the_start_and_looked_for_again_once_they_are_not() -> (
    None
):
    turns = Turns()
    vigil = turns.vigil()
    for _ in range(20):
        answered(turns, vigil, 1000)
    assert answered(turns, vigil, 1000) == 0
    looked = [answered(turns, vigil, 50) for _ in range(20)]
    assert looked[0] == 0
    assert looked[-1] == 5


def test_an_outlier_changes_little() -> None:
    turns = Turns()
    vigil = turns.vigil()
    for _ in range(20):
        answered(turns, vigil, 50)
    answered(turns, vigil, 5_000_000)
    assert answered(turns, vigil, 50) == 5


def test_several_at_once_are_looked_for_once_a_turn() -> None:
    turns = Turns()
    vigil = turns.vigil()
    for _ in range(10):
        vigil.begin()
    assert len(turns.called) == 1
    vigil.end()
    vigil.end()
    assert vigil.usual_s == 0.0


def test_with_one_core_whoever_is_to_answer_is_left_alone() -> None:
    turns = Turns()
    vigil = turns.vigil(possible=False)
    vigil.begin()
    assert not turns.called
    vigil.end()


def test_cores_are_those_that_a_process_may_use(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    quota = tmp_path / "cpu.max"
    for affinity, told, found in (
        ({3}, None, 1.0),
        ({0, 3}, None, 2.0),
        ({0, 3}, "max 100000", 2.0),
        ({0, 3}, "150000 100000", 1.5),
        ({0, 3}, "800000 100000", 2.0),
        ({0, 3}, "what?", 2.0),
    ):
        quota.unlink(missing_ok=True)
        if told is not None:
            quota.write_text(f"{told}\n")
        monkeypatch.setattr(os, "sched_getaffinity", lambda pid, found=affinity: found, raising=False)
        assert cores(quota) == found
    quota.unlink()
    monkeypatch.delattr(os, "sched_getaffinity")
    for count, found in ((1, 1.0), (2, 2.0), (None, 1.0)):
        monkeypatch.setattr(os, "cpu_count", lambda count=count: count)
        assert cores(quota) == found


@each_loop
def test_others_have_their_turns_meanwhile(loop_factory: LoopFactory) -> None:
    async def story() -> None:
        loop = asyncio.get_running_loop()
        turns = 0

        def take_turns() -> None:
            nonlocal turns
            turns += 1
            loop.call_later(0, take_turns)

        # By this clock the answer is never late.
        vigil = Vigil(loop, lambda: 0.0, possible=True)
        vigil.begin()
        take_turns()
        await asyncio.sleep(0.05)
        vigil.end()
        assert turns > 5

    run(loop_factory, story())
