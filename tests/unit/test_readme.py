"""The README's Python works as pasted, and prints what its comments say."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

README = (Path(__file__).parents[2] / "README.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_a_block_of_the_readme_runs_and_prints_what_it_says(block: str) -> None:
    done = subprocess.run([sys.executable, "-c", block], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    promised = re.findall(r"print\(.*\)  # (.*)", block)
    assert [line for line in done.stdout.splitlines() if line in promised] == promised


def test_the_users_of_the_readme_do_what_they_may(tmp_path: Path) -> None:
    before, serve, later = re.findall(
        r"```\n([^`]*?user add admin[^\n]*\n)(ottla serve[^`]*)```\n\n```\n(.*?)```", README, re.DOTALL
    )[0]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("OTTLA_")}

    def paste(block: str) -> "subprocess.Popen[str]":
        # Nobody else's port: that of the broker is free when it starts.
        pasted = block.replace("127.0.0.1:9093", address).replace("ottla serve", "exec ottla serve")
        return subprocess.Popen(
            ["bash", "-ec", pasted], cwd=tmp_path, env={**inherited, "PATH": path}, stdout=subprocess.PIPE, text=True
        )

    address = "127.0.0.1:0"
    with paste(before) as first:
        first.wait()
    assert first.returncode == 0
    with paste(serve) as broker:
        assert broker.stdout is not None
        ready = re.search(r"ready at \S*?(127\.0\.0\.1:\d+)", broker.stdout.readline())
        try:
            assert ready is not None
            address = ready[1]
            with paste(later) as pasted:
                said, _ = pasted.communicate()
            assert pasted.returncode == 0
            assert said == "two apples\n"
        finally:
            broker.terminate()


def test_the_readme_names_only_make_targets_that_exist() -> None:
    makefile = (Path(__file__).parents[2] / "Makefile").read_text()
    named = set(re.findall(r"(?:^|`)make ([a-z-]+)", README, re.MULTILINE))
    assert {"demo", "test"} <= named
    for target in named:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
