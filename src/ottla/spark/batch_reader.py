"""`spark.read.format("ottla")`."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from ottla.spark.connections import connected
from ottla.spark.java_socket import FromJava
from ottla.spark.options import SourceOptions
from ottla.spark.parallelism import cores
from ottla.spark.planning import plan_batch
from ottla.spark.reading import Task, read_task, tasks_of
from ottla.spark.splitting import split

if TYPE_CHECKING:
    import pyarrow as pa


class BatchReader(FromJava, DataSourceReader):
    """Reads what there is between two places in each partition."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema

    def partitions(self) -> Sequence[InputPartition]:
        """Find out what to read, and split it into tasks."""
        options = self._options
        ranges = connected(options.client, plan_batch, options)
        tasks = tasks_of(
            split(
                ranges,
                min_partitions=options.min_partitions,
                max_records=options.max_records_per_partition,
                parallelism=cores(),
            )
        )
        # Spark takes no tasks at all for one of its own.
        return tasks or [Task(())]

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        """The records of a task."""
        assert isinstance(partition, Task)
        return read_task(partition, self._options, self._schema)
