"""Through Spark Connect, where the program has no Java and the server runs the source and the sink."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.spark_crash.cluster import PROJECT, environment

from ottla.testing import TestBroker

pytestmark = pytest.mark.long

PATIENCE_SECONDS = 600


def test_batches_streams_dead_letters_and_errors_are_the_same_through_connect(
    broker: TestBroker, tmp_path: Path
) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.spark.connect_client", broker.bootstrap_servers, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
        cwd=PROJECT,
        env=environment(),
    )
    assert done.returncode == 0, done.stderr[-4000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["session"].startswith("pyspark.sql.connect")
    assert found["orders"] == [["alice", '{"id": 1}'], ["bob", "oops"]]
    assert (found["numbers"], found["rejected"]) == ([["alice", "1"]], [["bob", "oops"]])
    assert found["progress"] == [2]
    assert "there is no topic 'missing'; create the topic first" in found["missing"]
