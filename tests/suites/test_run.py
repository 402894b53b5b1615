import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from . import run as running
from .run import SuiteError, run
from .suite import SUITES, Suite

TESTS = """
import os, socket
import pytest

def test_reaches_the_broker():
    host, port = os.environ["KAFKA_URI"].removeprefix("kafka://").split(":")
    with socket.create_connection((host, int(port)), timeout=5):
        pass

def test_breaks():
    assert False, "as it must"

def test_skips():
    pytest.skip("not today")

@pytest.fixture
def breaks_afterwards():
    yield
    raise RuntimeError("too late")

def test_breaks_afterwards(breaks_afterwards):
    pass

def test_hangs():
    import time
    time.sleep(60)

def test_left_out():
    assert False, "was run"
"""


def in_file(*names: str) -> list[str]:
    return [f"test/integration/test_small.py::{name}" for name in names]


@pytest.fixture(scope="module", autouse=True)
def _plugins_at_hand() -> None:
    try:
        running.fetch_plugins()
    except (subprocess.CalledProcessError, OSError) as error:
        pytest.skip(f"NOT RUN: the plugins that other suites use could not be fetched: {error}")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "checkout" / "test" / "integration"
    folder.mkdir(parents=True)
    (folder / "test_small.py").write_text(TESTS)
    (tmp_path / "checkout" / "pyproject.toml").write_text("[tool.pytest.ini_options]\n")
    return tmp_path / "checkout"


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    """kafka-python's suite with lists of this test."""
    suite = replace(SUITES["kafka-python"], lists=tmp_path)
    for path in (suite.allowed, suite.left_out):
        path.parent.mkdir()
    suite.allowed.write_text("\n".join(in_file("test_reaches_the_broker", "test_breaks_afterwards", "test_gone")))
    suite.left_out.write_text(f"groups: {in_file('test_left_out')[0]}\n")
    return suite


def test_a_run_tells_how_every_test_ended(suite: Suite, checkout: Path) -> None:
    verdict = run(suite, checkout, timeout_seconds=1)
    outcomes = {test.rpartition("::")[2]: ending.outcome for test, ending in verdict.endings.items()}
    assert outcomes == {
        "test_reaches_the_broker": "passed",
        "test_breaks": "failed",
        "test_skips": "skipped",
        "test_breaks_afterwards": "failed",
        "test_hangs": "failed",
    }
    assert list(verdict.left_out) == in_file("test_left_out")
    assert list(verdict.regressions) == in_file("test_breaks_afterwards", "test_gone")
    assert "as it must" in verdict.unlisted[in_file("test_breaks")[0]].summary


def test_everything_means_what_is_left_out_too(suite: Suite, checkout: Path) -> None:
    verdict = run(suite, checkout, timeout_seconds=1, everything=True)
    assert verdict.endings[in_file("test_left_out")[0]].outcome == "failed"
    assert verdict.left_out == {}


def test_nothing_is_written_into_the_checkout(suite: Suite, checkout: Path) -> None:
    before = sorted(checkout.rglob("*"))
    run(suite, checkout, timeout_seconds=1)
    assert sorted(checkout.rglob("*")) == before


def test_a_suite_that_cannot_be_collected_is_an_error_and_not_a_pass(suite: Suite, checkout: Path) -> None:
    (checkout / "test" / "integration" / "test_small.py").write_text("import there_is_no_such_module")
    with pytest.raises(SuiteError, match="there_is_no_such_module"):
        run(suite, checkout)


def test_a_suite_that_dies_half_way_is_an_error_and_not_a_pass(suite: Suite, checkout: Path) -> None:
    dying = "def test_one(): pass\n\ndef test_two():\n    import os\n    os._exit(0)\n"
    (checkout / "test" / "integration" / "test_small.py").write_text(dying)
    with pytest.raises(SuiteError, match="before all its tests had run"):
        run(suite, checkout)


def test_a_folder_that_is_no_checkout_is_refused(suite: Suite, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no checkout of kafka-python"):
        run(suite, tmp_path / "nothing")
