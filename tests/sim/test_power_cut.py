import pytest

from .compacted import CompactedWorld
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


@pytest.mark.parametrize("number", range(len(POLICIES)), ids=list(POLICIES))
def test_a_power_cut_takes_no_last_value_of_a_compacted_topic_and_brings_back_none_that_was_deleted(
    number: int,
) -> None:
    policy = list(POLICIES)[number]
    report = run(policy, range(number, SEEDS, len(POLICIES)), kind=CompactedWorld)
    assert not report.broken, f"python -m tests.sim --compacted --policy {policy} --seed {report.broken[0].seed}"
    assert report.seen.power_cuts >= 25
    assert report.seen.compacted > 1_000, "there was hardly any compaction"


def test_without_syncs_a_power_cut_does_take_records() -> None:
    assert run("none", range(20)).seen.lost > 0, "the simulated disk loses nothing, so the other tests prove nothing"


def test_a_run_is_repeatable_from_its_seed() -> None:
    def trace() -> tuple[object, ...]:
        world = World("interval", 5)
        outcome = world.run(3)
        return outcome, world.now_s, [(history.start, history.end) for history in world.histories], world.disk.list()

    assert trace() == trace()
