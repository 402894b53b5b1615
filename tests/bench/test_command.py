"""`python -m bench.brokers` as a command, on a broker that is really there."""

import json
import subprocess
import sys
from pathlib import Path

from bench.brokers.results import Report

from tests.conformance.oracle import PROJECT


def run(*arguments: str | Path) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "bench.brokers", *map(str, arguments)]
    return subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=300, check=False)


def test_a_run_writes_what_it_was_asked_for_keeps_earlier_lines_and_leaves_no_data(tmp_path: Path) -> None:
    data, values, tables, picture = (tmp_path / name for name in ("data", "bench.json", "bench.md", "bench.svg"))
    data.mkdir()
    common = ("--peers", "mock", "--rounds", "1", "--scale", "0.001", "--folder", data, "--json", values, "--update")
    done = run("--only", "requests/produce/64", *common)
    assert done.returncode == 0, done.stderr
    done = run("--only", "requests/metadata/1", *common, "--markdown", tables, "--picture", picture)
    assert done.returncode == 0, done.stderr
    lines = [result.line for result in Report.load(values).results]
    assert list(dict.fromkeys(lines)) == ["requests/metadata/1", "requests/produce/64"]
    assert "one-record Produce requests over 64 connections" in tables.read_text()
    assert "bench.svg" in tables.read_text()
    assert picture.read_text().startswith("<svg")
    assert list(data.iterdir()) == []


def test_what_cannot_be_done_is_said_before_anything_is_measured(tmp_path: Path) -> None:
    document = tmp_path / "document.md"
    document.write_text("nothing to be replaced")
    for arguments, complaint in (
        (("--only", "no/such/line"), "no line is called no/such/line"),
        (("--peers", "nobody"), "nobody cannot take part here"),
        (("--markdown", document), "has no lines"),
    ):
        done = run(*arguments)
        assert done.returncode == 2
        assert complaint in done.stderr


def test_values_of_a_file_are_shown_without_measuring(tmp_path: Path) -> None:
    values = tmp_path / "bench.json"
    figure = {"name": "rate", "unit": "records/s", "more_is_better": True, "aim": 1.2, "limit_aim": None}
    result = {"line": "a", "title": "a line", "figure": figure, "values": {"Ottla": [3.0], "K": [1.0]}, "limits": {}}
    values.write_text(json.dumps({"machine": {}, "rounds": 1, "scale": 1.0, "peer": "K", "results": [result]}))
    done = run("--show", values)
    assert done.returncode == 0, done.stderr
    assert "3.00 (3.00-3.00)" in done.stdout
    assert "≥ 1.2 met" in done.stdout
