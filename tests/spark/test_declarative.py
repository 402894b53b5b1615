"""Spark's own Declarative Pipelines, with topics as source and sink: the example, run twice."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ottla import sync
from ottla.testing import TestBroker

pytest.importorskip("grpc", reason="Spark's Declarative Pipelines need pyspark[pipelines]")
pytest.importorskip("yaml", reason="Spark's Declarative Pipelines need pyspark[pipelines]")

EXAMPLE = Path(__file__).parents[2] / "examples" / "declarative"
PATIENCE_SECONDS = 300


def run(spec: Path) -> None:
    """`spark-pipelines run`, as people start it."""
    folder = spec.parent
    words = ["--spec", str(spec), "--conf", "spark.sql.catalogImplementation=hive", "--conf", "spark.ui.enabled=false"]
    words += ["--conf", f"spark.sql.warehouse.dir={folder / 'warehouse'}"]
    done = subprocess.run(
        [str(Path(sys.executable).parent / "spark-pipelines"), "run", *words],
        cwd=folder,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert "Run is COMPLETED" in done.stdout + done.stderr, done.stderr[-4000:]


@pytest.mark.long
def test_a_topic_through_spark_declarative_pipelines_into_another_each_record_once(
    broker: TestBroker, new_topic: Callable[..., str], fill: Callable[..., None], tmp_path: Path
) -> None:
    source, target = new_topic(partitions=2), new_topic(prefix="large")
    shutil.copytree(EXAMPLE, tmp_path, dirs_exist_ok=True)
    spec = tmp_path / "spark-pipeline.yml"
    text = (
        spec.read_text()
        .replace("localhost:9092", broker.bootstrap_servers)
        .replace("/tmp/ottla-declarative", str(tmp_path))
    )
    spec.write_text(text.replace("example.input: orders", f"example.input: {source}").replace("large-orders", target))
    wanted: list[int] = []
    for turn in range(2):
        numbers = range(turn * 100, turn * 100 + 100)
        orders = [{"id": number, "country": "DE", "amount": number % 100} for number in numbers]
        fill(source, [json.dumps(order).encode() for order in orders], partition=turn)
        run(spec)
        wanted += [number for number in numbers if number % 100 >= 50]
        table = sync.read_table(target, bootstrap_servers=broker.bootstrap_servers)
        assert sorted(json.loads(value)["id"] for value in table["value"].to_pylist()) == wanted
        assert set(table["key"].to_pylist()) == {b"DE"}
