"""On a Spark cluster of several processes: a master and two workers, each with an executor of its own."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from tests.spark.programs import run
from tests.spark_crash import points
from tests.spark_crash.cluster import SETTINGS, SparkCluster
from tests.spark_crash.jobs import ROWS
from tests.spark_crash.run import CrashRun

from ottla.testing import TestBroker

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    with SparkCluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


def test_batches_and_streams_on_all_executors(
    cluster: SparkCluster, broker: TestBroker, new_topic: Callable[..., str], tmp_path: Path
) -> None:
    topic = new_topic(partitions=4)
    wanted = {"rows": ROWS, "numbers": ROWS, "sum": sum(range(ROWS)), "executors": 2}

    def job(name: str) -> dict[str, Any]:
        words = ("tests.spark_crash.jobs", cluster.master, broker.bootstrap_servers, name, topic, str(tmp_path))
        found: dict[str, Any] = json.loads(run(*words))
        return found

    assert job("batch") == wanted
    streamed = job("stream")
    batches = streamed.pop("batches")
    assert (sum(batches), max(batches) <= ROWS // 4) == (ROWS, True)
    assert streamed == wanted


def test_a_pipeline_runs_unchanged(
    cluster: SparkCluster,
    broker: TestBroker,
    new_topic: Callable[..., str],
    fill: Callable[..., None],
    tmp_path: Path,
) -> None:
    topic = new_topic(partitions=2)
    for partition in range(2):
        fill(topic, [b"%d" % number for number in range(500)], partition=partition)
    # Executors have neither the file nor the folder that it is in on their path.
    (tmp_path / "steps_on_the_cluster.py").write_text(
        "from pyspark.sql.functions import udf\n"
        "@udf('bigint')\n"
        "def double(text): return 2 * int(text)\n"
        "def doubled(rows): return rows.withColumn('number', double('text'))\n"
    )
    file = tmp_path / "numbers.toml"
    settings = "\n".join(f'"{name}" = "{value}"' for name, value in SETTINGS.items())
    file.write_text(
        f"""
        [spark]
        {settings}
        [source]
        bootstrap_servers = "{broker.bootstrap_servers}"
        topics = "{topic}"
        max_records_per_batch = 400
        [[step]]
        sql = "SELECT partition, cast(value AS STRING) AS text FROM input"
        [[step]]
        python = "steps_on_the_cluster:doubled"
        [[sink]]
        delta = "table"
        [[sink]]
        topic = "{topic}-doubled"
        """
    )
    output = run("ottla", "pipeline", "run", str(file), "--master", cluster.master, "--available-now", "--json")
    summaries = [event for line in output.splitlines() if (event := json.loads(line))["event"] == "summary"]
    assert [summary["rows_out"] for summary in summaries] == [1000, 1000]
    rows = DeltaTable(str(tmp_path / "table")).to_pyarrow_table().to_pylist()
    assert sorted((row["partition"], row["number"]) for row in rows) == [
        (partition, 2 * number) for partition in range(2) for number in range(500)
    ]


def test_executors_that_are_killed_lose_nothing(cluster: SparkCluster, tmp_path: Path) -> None:
    crash = CrashRun(tmp_path / "run", cluster)
    with crash.running():
        crash.kill_at(points.TASK_FLUSHED, "executor")
        crash.kill_at(points.FILES_WRITTEN, "executor")
        crash.kill_at(points.AFTER_TABLE_COMMIT, "whole driver")
    outcome = crash.outcome
    assert outcome.kills == {"executor": 2, "whole driver": 1}
    assert not outcome.failures, "a killed executor ended the pipeline"
    assert outcome.produced > 1000, "the producer hardly wrote"
    assert outcome.topic_doubled > 0, (
        "the rows of a task that was killed after it had written them were not written again"
    )
    assert outcome.sound, outcome
