"""`ottla pipeline` as people start it: in a process of its own."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from ottla.testing import TestBroker

NewTopicName = Callable[..., str]
Fill = Callable[..., None]
COMMAND = [sys.executable, "-m", "ottla", "pipeline"]
PATIENCE_SECONDS = 240


def ottla(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *words], capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)


def events(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


@pytest.fixture
def file(tmp_path: Path, broker: TestBroker, new_topic: NewTopicName, fill: Fill) -> Path:
    """A pipeline over a topic with 3000 records, in small micro-batches."""
    topic = new_topic(partitions=2)
    for partition in range(2):
        fill(topic, [b"%d" % number for number in range(1500)], partition=partition)
    file = tmp_path / "numbers.toml"
    file.write_text(
        f"""
        [source]
        bootstrap_servers = "{broker.bootstrap_servers}"
        topics = "{topic}"
        max_records_per_batch = 300
        [[step]]
        sql = "SELECT partition, offset, cast(cast(value AS STRING) AS INT) AS number FROM input"
        [[sink]]
        delta = "table"
        """
    )
    return file


def test_check_says_what_a_file_does(file: Path) -> None:
    done = ottla("check", str(file))
    assert done.returncode == 0
    assert f"delta {file.parent / 'table'}" in done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--set", "sink.0.delta=3"], "sink[0].delta is 3; it must be a text"),
        (["--set", "source.bootstrap_servers=127.0.0.1:1"], "127.0.0.1:1"),
        (["--set", "source.topics=no-such-topic"], "there is no topic 'no-such-topic'; create the topic first"),
    ],
)
def test_what_is_wrong_is_said_in_seconds(file: Path, words: list[str], message: str) -> None:
    started = time.monotonic()
    done = ottla("run", str(file), *words)
    assert time.monotonic() - started < 30
    assert done.returncode == 1
    assert message in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.long
def test_a_pipeline_that_was_killed_goes_on_where_it_was(file: Path) -> None:
    running = subprocess.Popen(
        [*COMMAND, "run", str(file), "--json"], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert running.stdout is not None
    for line in running.stdout:
        if line.startswith("{") and json.loads(line)["batches"] >= 2:
            break
    # Python and Java at once, in the midst of a micro-batch.
    os.killpg(running.pid, signal.SIGKILL)
    running.communicate()
    done = ottla("run", str(file), "--available-now", "--json")
    assert done.returncode == 0, done.stderr
    [summary] = [event for event in events(done.stdout) if event["event"] == "summary"]
    assert summary["lag"] == 0
    assert summary["rows_in"] < 3000
    rows = DeltaTable(str(file.parent / "table")).to_pyarrow_table().to_pylist()
    assert sorted((row["partition"], row["number"]) for row in rows) == [
        (partition, number) for partition in range(2) for number in range(1500)
    ]


@pytest.mark.long
def test_sigterm_ends_a_pipeline_cleanly(file: Path) -> None:
    running = subprocess.Popen([*COMMAND, "run", str(file), "--json"], stdout=subprocess.PIPE, text=True)
    assert running.stdout is not None
    for line in running.stdout:
        if line.startswith("{") and json.loads(line)["lag"] == 0:
            break
    running.send_signal(signal.SIGTERM)
    output, _ = running.communicate(timeout=PATIENCE_SECONDS)
    assert running.returncode == 0
    assert [event["rows_out"] for event in events(output) if event["event"] == "summary"] == [3000]
