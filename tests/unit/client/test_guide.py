"""The Python of docs/client.md works as pasted, and prints what its comments say."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.testing import TestBroker

GUIDE = (Path(__file__).parents[3] / "docs" / "client.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with TestBroker() as broker:
        yield broker.bootstrap_servers


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_a_block_of_the_guide_runs_and_prints_what_it_says(block: str, servers: str) -> None:
    assert "localhost:9092" in block
    script = block.replace("localhost:9092", servers)
    done = subprocess.run([sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == re.findall(r"print\(.*\)  # (.*)", block)


def test_the_blocks_of_the_guide_pass_strict_type_checks(tmp_path: Path) -> None:
    for number, block in enumerate(BLOCKS):
        (tmp_path / f"block_{number}.py").write_text(block)
    command = [sys.executable, "-m", "mypy", "--strict", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
