"""Drivers, their Python and the broker killed under a pipeline: `python -m tests.spark_crash` does it more often."""

from pathlib import Path

import pytest
from tests.spark_crash.run import named_kills, run_at_points, run_at_random, run_with_overtaking

pytestmark = pytest.mark.long


def test_kills_at_every_named_point_lose_nothing_and_double_nothing_in_a_table(tmp_path: Path) -> None:
    outcome = run_at_points(tmp_path / "run")
    assert outcome.points == [f"{point}: {victim}" for point, victim in named_kills(on_cluster=False)]
    assert outcome.sound, outcome
    assert any("Spark's Java process is gone" in said for said in outcome.failures)


@pytest.mark.parametrize("seed", [1, 2])
def test_kills_at_random_lose_nothing_and_double_nothing_in_a_table(tmp_path: Path, seed: int) -> None:
    outcome = run_at_random(tmp_path / "run", kills=6, seed=seed)
    assert outcome.produced > 1000, "the producer hardly wrote"
    assert outcome.sound, outcome


def test_a_driver_that_another_has_overtaken_doubles_nothing_in_a_table(tmp_path: Path) -> None:
    outcome = run_with_overtaking(tmp_path / "run")
    assert len(outcome.points) == 3
    assert outcome.sound, outcome
