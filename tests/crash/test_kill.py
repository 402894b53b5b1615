from pathlib import Path

import pytest

from .run import run


@pytest.mark.slow
def test_nothing_acknowledged_is_lost_when_the_broker_is_killed(tmp_path: Path) -> None:
    outcome = run(tmp_path, kills=6, seed=7, on_kill=lambda _: None)
    assert outcome.acknowledged > 300, "the producers hardly wrote"
    assert outcome.sound, outcome
