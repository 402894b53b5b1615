"""Random histories of groups against docs/invariants.md."""

import pytest

from .run import KINDS, History, run

SEEDS = 40
"""`make group-histories` has many more."""


@pytest.mark.parametrize("kind", KINDS)
def test_random_histories_keep_the_invariants(kind: str) -> None:
    report = run(kind, range(SEEDS))
    assert not report.broken, f"{report.broken[0]}: repeat with python -m tests.sim.groups --kind {kind} --seed N"
    assert report.seen["commit 0"] > 10 * SEEDS, "the members hardly committed"
    assert report.seen["offsets read"] > 5 * SEEDS
    assert report.seen["coordinator killed"] > SEEDS


def test_a_history_is_repeatable_from_its_seed() -> None:
    def trace() -> object:
        world = History("mixed", 3).run()
        return world.now_ms, world.log, world.witness.seen

    assert trace() == trace()
