"""Groups of real clients keep their promises while members come, leave, die and are paused."""

import shutil

import pytest

from .group_storm_process import ALL_CLIENTS, KCAT
from .group_storm_run import SCRIPT, SCRIPT_S, storm


@pytest.mark.slow
@pytest.mark.parametrize("client", ALL_CLIENTS)
def test_nothing_is_skipped_and_nothing_committed_comes_again_in_a_storm(client: str) -> None:
    if client == KCAT and shutil.which("kcat") is None:
        pytest.skip("kcat is not installed")
    report = storm(client, SCRIPT, SCRIPT_S)
    assert report.trouble == []
    assert report.produced > 1000
    assert report.moves["kill"] == 2
