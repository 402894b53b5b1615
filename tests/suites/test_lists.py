from pathlib import Path

import pytest

from .lists import grow, read_allowed, read_left_out
from .run import Ending, Verdict
from .suite import HERE, SUITES, Suite


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_the_allow_list_only_grows(tmp_path: Path) -> None:
    allowed = written(tmp_path / "allowed.txt", "a.py::one\nb.py::two\n")
    left_out = written(tmp_path / "left_out.txt", "groups: c.py::three\nsasl: c.py::four\n")
    assert grow(allowed, left_out, ["c.py::three", "a.py::zero"]) == ["a.py::zero", "c.py::three"]
    assert allowed.read_text() == "a.py::one\na.py::zero\nb.py::two\nc.py::three\n"
    assert left_out.read_text() == "sasl: c.py::four\n"


def test_growing_by_what_is_there_already_changes_nothing(tmp_path: Path) -> None:
    allowed = written(tmp_path / "allowed.txt", "a.py::one\nb.py::two\n")
    left_out = written(tmp_path / "left_out.txt", "sasl: c.py::four\n")
    assert grow(allowed, left_out, ["b.py::two"]) == []
    assert read_allowed(allowed) == {"a.py::one", "b.py::two"}


def test_a_test_is_left_out_only_with_a_reason(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"'c\.py::four' gives no reason"):
        read_left_out(written(tmp_path / "left_out.txt", "c.py::four\n"))


def test_an_allowed_test_that_fails_is_skipped_or_did_not_run_is_a_regression() -> None:
    endings = {
        "passes": Ending("passed", ""),
        "fails": Ending("failed", "call: boom"),
        "skips": Ending("skipped", "no"),
        "new": Ending("passed", ""),
        "unknown": Ending("failed", "call: boom"),
    }
    verdict = Verdict("client", endings, frozenset({"passes", "fails", "skips", "gone"}), {}, 1.0)
    assert {test: ending.outcome for test, ending in verdict.regressions.items()} == {
        "fails": "failed",
        "gone": "missing",
        "skips": "skipped",
    }
    assert verdict.newly_passing == ["new"]
    assert list(verdict.unlisted) == ["unknown"]


@pytest.mark.parametrize("suite", SUITES.values(), ids=lambda suite: suite.client)
def test_no_test_is_both_allowed_and_left_out(suite: Suite) -> None:
    assert read_allowed(suite.allowed)
    assert not read_allowed(suite.allowed) & read_left_out(suite.left_out).keys()


@pytest.mark.parametrize("suite", SUITES.values(), ids=lambda suite: suite.client)
def test_every_reason_to_leave_a_test_out_is_explained(suite: Suite) -> None:
    findings = (HERE / "findings.md").read_text().splitlines()
    explained = {line.removeprefix("## ") for line in findings if line.startswith("## ")}
    assert set(read_left_out(suite.left_out).values()) <= explained
