"""Named points in the work of a pipeline, where a run can have it stop and kill what it likes.

A run asks for a point with a file of its name. Whoever comes there first takes the file away, says who he is, and waits
until he is killed or let go. None of this is in the package: the driver of a run puts classes of this module in the
place of those of `ottla.spark` (see `tests.spark_crash.driver`).
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, DataSourceStreamWriter, InputPartition, WriterCommitMessage
from pyspark.sql.streaming.datasource import ReadLimit
from pyspark.sql.types import StructType

from ottla.spark.options import SourceOptions
from ottla.spark.sink import SinkStreamWriter, columns_of
from ottla.spark.sink_options import SinkOptions
from ottla.spark.source import OttlaDataSource
from ottla.spark.stream_reader import StreamReader
from ottla.spark.writing import RowsWritten

if TYPE_CHECKING:
    import pyarrow as pa

VARIABLE = "OTTLA_TEST_POINTS"
WAIT_SECONDS = 120.0
PAUSE_SECONDS = 0.02

OFFSETS_FOUND = "offsets-found"
"""The source has said where the micro-batch ends, and Spark has not written it down."""
BATCH_PLANNED = "batch-planned"
"""Spark has written down where the micro-batch ends, and there are no tasks yet."""
TASK_HAS_READ = "task-has-read"
"""A task has handed over its first records."""
TASK_FLUSHED = "task-flushed"
"""A task of the topic sink has had all its rows acknowledged, and Spark does not know."""
BEFORE_SINK_COMMIT = "before-sink-commit"
"""All tasks of the topic sink are done."""
AFTER_SINK_COMMIT = "after-sink-commit"
"""The topic sink has committed, Spark has not."""
FILES_WRITTEN = "files-written"
"""A task of the table sink has written its files, and Spark does not know."""
BEFORE_TABLE_COMMIT = "before-table-commit"
"""All tasks of the table sink are done."""
AFTER_TABLE_COMMIT = "after-table-commit"
"""The table has the micro-batch, Spark's checkpoint has not."""

ON_EXECUTORS = (TASK_HAS_READ, TASK_FLUSHED, FILES_WRITTEN)
ON_THE_DRIVER = (
    OFFSETS_FOUND,
    BATCH_PLANNED,
    BEFORE_SINK_COMMIT,
    AFTER_SINK_COMMIT,
    BEFORE_TABLE_COMMIT,
    AFTER_TABLE_COMMIT,
)


@dataclass(frozen=True)
class Points:
    """The folder where a run asks for points. It travels with what is sent to workers."""

    folder: Path

    @classmethod
    def of_this_run(cls) -> "Points":
        """That of the run which this process belongs to."""
        return cls(Path(os.environ[VARIABLE]))

    def ask(self, name: str) -> None:
        """Have the first who comes there wait."""
        (self.folder / name).touch()

    def take_back(self, name: str) -> None:
        """Nobody has to wait there any more."""
        (self.folder / name).unlink(missing_ok=True)

    def who_is_at(self, name: str) -> int | None:
        """The process that waits there."""
        for file in self.folder.glob(f"{name}.reached-*"):
            return int(file.name.rpartition("-")[2])
        return None

    def let_go(self, name: str) -> None:
        """Whoever waits there may go on."""
        for file in self.folder.glob(f"{name}.reached-*"):
            file.unlink(missing_ok=True)

    def reach(self, name: str) -> None:
        """Be at a point: wait there if that is asked for."""
        reached = self.folder / f"{name}.reached-{os.getpid()}"
        try:
            (self.folder / name).rename(reached)
        except FileNotFoundError:
            return
        with suppress(OSError):
            deadline = time.monotonic() + WAIT_SECONDS
            while reached.exists() and time.monotonic() < deadline:
                time.sleep(PAUSE_SECONDS)


class PointedSource(OttlaDataSource):
    """`format("ottla")` with points."""

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return PointedReader(SourceOptions.parse(self.options, streaming=True), schema, Points.of_this_run())

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        options = SinkOptions.parse(self.options)
        return PointedWriter(options, columns_of(schema, options), Points.of_this_run())


class PointedReader(StreamReader):
    def __init__(self, options: SourceOptions, schema: StructType, points: Points) -> None:
        super().__init__(options, schema)
        self._points = points

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        end = super().latestOffset(start, limit)
        if end != start:
            self._points.reach(OFFSETS_FOUND)
        return end

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Any:
        self._points.reach(BATCH_PLANNED)
        return super().partitions(start, end)

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        for batch in super().read(partition):
            yield batch
            self._points.reach(TASK_HAS_READ)


class PointedWriter(SinkStreamWriter):
    def __init__(self, options: SinkOptions, columns: tuple[str, ...], points: Points) -> None:
        super().__init__(options, columns)
        self._points = points

    def write(self, iterator: "Iterator[pa.RecordBatch]") -> RowsWritten:
        written = super().write(iterator)
        if written.rows:
            self._points.reach(TASK_FLUSHED)
        return written

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        self._points.reach(BEFORE_SINK_COMMIT)
        super().commit(messages, batchId)
        self._points.reach(AFTER_SINK_COMMIT)


def with_point_after_files(
    file_writer: "Callable[..., Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]]", points: Points
) -> "Callable[..., Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]]":
    """The function that makes the tasks of the table sink, with a point after their files."""

    def make(*args: Any) -> "Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]":
        write = file_writer(*args)

        def write_and_reach(batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
            for files in write(batches):
                points.reach(FILES_WRITTEN)
                yield files

        return write_and_reach

    return make


def with_points_around_commit(commit: Callable[..., None], points: Points) -> Callable[..., None]:
    """The commit of the table, with a point before it and one after it."""

    def commit_between(*args: Any, **kwargs: Any) -> None:
        points.reach(BEFORE_TABLE_COMMIT)
        commit(*args, **kwargs)
        points.reach(AFTER_TABLE_COMMIT)

    return commit_between
