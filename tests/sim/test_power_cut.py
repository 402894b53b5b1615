import pytest

from .run import run
from .world import POLICIES, World

SEEDS = 100
PARTS = 4


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("policy", POLICIES)
def test_a_power_cut_takes_nothing_that_the_flush_policy_promised_to_keep(policy: str, part: int) -> None:
    report = run(policy, range(part, SEEDS, PARTS))
    assert not report.broken, f"repeat with: python -m tests.sim --policy {policy} --seed {report.broken[0].seed}"
    assert report.seen.power_cuts >= 25
    assert report.seen.acknowledged > 2_000, "the clients hardly wrote"


def test_without_syncs_a_power_cut_does_take_records() -> None:
    assert run("none", range(20)).seen.lost > 0, "the simulated disk loses nothing, so the other tests prove nothing"


def test_a_run_is_repeatable_from_its_seed() -> None:
    def trace() -> tuple[object, ...]:
        world = World("interval", 5)
        outcome = world.run(3)
        return outcome, world.now_s, [(history.start, history.end) for history in world.histories], world.disk.list()

    assert trace() == trace()
