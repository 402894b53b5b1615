"""Through Spark Connect, where the program has no Java and the server runs the source and the sink."""

import json
from pathlib import Path

import pytest
from tests.spark.programs import run

from ottla.testing import TestBroker

pytestmark = pytest.mark.long


def test_batches_streams_dead_letters_and_errors_are_the_same_through_connect(
    broker: TestBroker, tmp_path: Path
) -> None:
    said = run("tests.spark.connect_client", broker.bootstrap_servers, str(tmp_path))
    found = json.loads(said.splitlines()[-1])
    assert found["session"].startswith("pyspark.sql.connect")
    assert found["orders"] == [["alice", '{"id": 1}'], ["bob", "oops"]]
    assert (found["numbers"], found["rejected"]) == ([["alice", "1"]], [["bob", "oops"]])
    assert found["progress"] == [2]
    assert "there is no topic 'missing'; create the topic first" in found["missing"]
