"""A pytest plugin for somebody else's suite: leaves out what is listed, and writes down how each test ended.

It runs in the environment of that suite, where neither Ottla nor this tree's `tests` package can be imported.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

RESULTS = "OTTLA_SUITE_RESULTS"
LEFT_OUT = "OTTLA_SUITE_LEFT_OUT"
SUMMARY_LENGTH = 300


class Recorder:
    """Appends a line of JSON per event, so that a run which dies half-way still tells what it had seen."""

    def __init__(self, results: Path, left_out: frozenset[str]) -> None:
        self._results = results
        self._left_out = left_out
        self._phases: dict[str, tuple[str, str]] = {}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        dropped = [item for item in items if item.nodeid in self._left_out]
        items[:] = [item for item in items if item.nodeid not in self._left_out]
        config.hook.pytest_deselected(items=dropped)
        self._write({"collected": len(items), "left_out": [item.nodeid for item in dropped]})

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        outcome, _ = self._phases.get(report.nodeid, ("passed", ""))
        if outcome == "passed" and report.outcome != "passed":
            self._phases[report.nodeid] = (report.outcome, _summary(report))

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        outcome, summary = self._phases.pop(nodeid, ("passed", ""))
        self._write({"test": nodeid, "outcome": outcome, "summary": summary})

    def _write(self, event: Mapping[str, object]) -> None:
        with self._results.open("a") as file:
            file.write(json.dumps(event) + "\n")


def _summary(report: pytest.TestReport) -> str:
    if isinstance(report.longrepr, tuple):
        return str(report.longrepr[2])[:SUMMARY_LENGTH]
    crash: Any = getattr(report.longrepr, "reprcrash", None)
    text = crash.message if crash is not None else report.longreprtext
    return f"{report.when}: {text}"[:SUMMARY_LENGTH]


def pytest_configure(config: pytest.Config) -> None:
    left_out = frozenset(json.loads(os.environ.get(LEFT_OUT, "[]")))
    config.pluginmanager.register(Recorder(Path(os.environ[RESULTS]), left_out), "ottla-recorder")
