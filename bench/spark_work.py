"""What `bench.spark` has connectors do, in one Spark: queries that read topics, and queries that write them."""

import itertools
import os
import shutil
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pyarrow import dataset

from ottla import TopicPartition
from ottla.sync import Consumer

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

OURS = "ottla"
OFFICIAL = "kafka"
FLOOR = "floor"
"""Formats. With its jar on the class path, `kafka` is the official connector; `floor` is in `bench.spark_floor`."""

CORES = 2
MICRO_BATCHES = 4
"""Micro-batches of a query in the lines with streams."""
TINY_ROWS = 100
"""Rows of a micro-batch whose cost is what any costs."""


def new_session(folder: Path, jars: Sequence[str]) -> "SparkSession":
    """A Spark with the jars of the official connector and the source that reads nothing; Ottla's is found by itself."""
    from pyspark.sql import SparkSession

    from .spark_floor import FloorDataSource

    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master(f"local[{CORES}]")
        .appName("ottla-bench")
        .config("spark.jars", ",".join(jars))
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", str(CORES))
        .config("spark.sql.streaming.numRecentProgressUpdates", "1000")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .config("spark.local.dir", str(folder / "local"))
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    session.dataSource.register(FloorDataSource)
    return session


@dataclass(frozen=True)
class Topic:
    """A topic, and the rows that are in it or are written into it."""

    name: str
    partitions: int
    rows: int
    size: int
    """Bytes of a value."""


@dataclass(frozen=True)
class Run:
    """What came of a streaming query: rows and milliseconds of each micro-batch, and seconds besides them."""

    batches: list[tuple[int, float]]
    besides: float
    """What a query takes to start and to end."""


class Queries:
    """The queries of all lines. Each gives the seconds that count, and fails if rows are missing; only `columns` cannot
    tell, since its sink throws all away."""

    def __init__(self, spark: "SparkSession", address: str, folder: Path) -> None:
        self._spark = spark
        self._servers = {"kafka.bootstrap.servers": address}
        self._folder = folder
        self._numbers = itertools.count()

    # From a topic.

    def count(self, connector: str, topic: Topic) -> float:
        """`count()`. Both fetch all records; the official connector then makes no columns, and ours makes all."""
        frame = self._read(connector, topic)

        def work() -> None:
            _check(frame.count(), topic.rows)

        return timed(work)

    def values(self, connector: str, topic: Topic) -> float:
        """`sum(length(value))`: the values are looked at, and no other column."""
        frame = self._read(connector, topic).selectExpr("sum(length(value))")

        def work() -> None:
            _check(frame.collect()[0][0], topic.rows * topic.size)

        return timed(work)

    def columns(self, connector: str, topic: Topic) -> float:
        """All columns of all rows, to Spark's sink that throws them away."""
        return timed(self._read(connector, topic).write.format("noop").mode("overwrite").save)

    def parquet(self, connector: str, topic: Topic) -> float:
        """All columns to Parquet files, as Spark writes them."""
        folder = self._folder / f"parquet-{next(self._numbers)}"
        frame = self._read(connector, topic)
        try:
            took = timed(lambda: frame.write.parquet(str(folder)))
            _check(dataset.dataset(folder, format="parquet").count_rows(), topic.rows)
            return took
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def stream(self, connector: str, topic: Topic) -> float:
        """A streaming query over what there is, all columns to the sink that throws them away: its micro-batches."""
        run = self._stream(connector, topic, -(-topic.rows // MICRO_BATCHES), "noop")
        _check(sum(rows for rows, _ in run.batches), topic.rows)
        return sum(took_ms for _, took_ms in run.batches) / 1000

    # Into a topic.

    def write(self, connector: str, topic: Topic) -> float:
        """A DataFrame with a key and a value, which Spark makes while it is written."""
        frame = self._spark.range(topic.rows).selectExpr(
            "CAST(id AS STRING) AS key", f"CAST(rpad(CAST(id AS STRING), {topic.size}, 'value ') AS BINARY) AS value"
        )
        before = self._records_in(topic)
        took = timed(frame.write.format(connector).options(**self._servers, topic=topic.name).mode("append").save)
        _check(self._records_in(topic) - before, topic.rows)
        return took

    # Micro-batches.

    def tiny_batches(self, connector: str, topic: Topic, target: Topic | None) -> Run:
        """A streaming query with a few rows in each micro-batch, to nowhere or into a topic."""
        if target is None:
            return self._stream(connector, topic, TINY_ROWS, "noop")
        return self._stream(connector, topic, TINY_ROWS, connector, {**self._servers, "topic": target.name})

    def _records_in(self, topic: Topic) -> int:
        with Consumer(bootstrap_servers=self._servers["kafka.bootstrap.servers"]) as consumer:
            places = [TopicPartition(topic.name, number) for number in range(topic.partitions)]
            return sum(consumer.end_offsets(places).values())

    def _options(self, connector: str, topic: Topic) -> dict[str, str]:
        if connector == FLOOR:
            return {"partitions": str(topic.partitions), "rows": str(topic.rows), "valueBytes": str(topic.size)}
        return {**self._servers, "subscribe": topic.name}

    def _read(self, connector: str, topic: Topic) -> "DataFrame":
        return self._spark.read.format(connector).options(**self._options(connector, topic)).load()

    def _stream(
        self, connector: str, topic: Topic, batch_rows: int, sink: str, sink_options: Mapping[str, str] | None = None
    ) -> Run:
        limits = {"startingOffsets": "earliest", "maxOffsetsPerTrigger": str(batch_rows)}
        checkpoint = self._folder / f"checkpoint-{next(self._numbers)}"
        rows = self._spark.readStream.format(connector).options(**self._options(connector, topic), **limits).load()
        writer = rows.writeStream.format(sink).options(**(sink_options or {}), checkpointLocation=str(checkpoint))
        writer = writer.trigger(availableNow=True)
        started = time.perf_counter()
        query = writer.start()
        query.awaitTermination()
        took = time.perf_counter() - started
        shutil.rmtree(checkpoint, ignore_errors=True)
        batches = [
            (progress.numInputRows, float(progress.durationMs["triggerExecution"]))
            for progress in query.recentProgress
            if progress.numInputRows
        ]
        return Run(batches, took - sum(took_ms for _, took_ms in batches) / 1000)


def timed(work: Callable[[], object]) -> float:
    """The seconds that something takes."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _check(found: int, wanted: int) -> None:
    if found != wanted:
        raise RuntimeError(f"the query saw {found}, and there are {wanted}")
