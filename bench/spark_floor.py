"""The data source `floor`, which reads nothing: rows like those of a topic, in an Arrow batch that is ready made.

What a query over it takes, Spark takes for such rows from any source written in Python. Tasks are Ottla's, and so is
what Ottla does to Spark's Python processes, so that nothing but the reading is missing.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from ottla import TopicPartition
from ottla.spark.java_socket import FromJava
from ottla.spark.parallelism import cores
from ottla.spark.reading import Task, pieces_of, tasks_of
from ottla.spark.schema import arrow_schema, source_schema
from ottla.spark.splitting import Range, split
from ottla.spark.workers import spare_garbage_collector

TOPIC = "bench-1"
KEY = b"123456"
FETCH_BYTES = 4 * 2**20
"""What Ottla fetches from a partition at a time, which becomes one Arrow batch, handed out in pieces."""
RECORD_BYTES = 16
"""What a record of the bench has in a topic besides its value: the key, lengths, a timestamp."""


@cache
def ready_batch(value_bytes: int) -> pa.RecordBatch:
    """As many rows as one fetch brings, made once in a process.

    >>> ready_batch(100).num_rows, ready_batch(1024).num_rows
    (36157, 4032)
    """
    rows = FETCH_BYTES // (value_bytes + RECORD_BYTES)
    columns = [
        [KEY] * rows,
        [bytes(value_bytes)] * rows,
        [TOPIC] * rows,
        [0] * rows,
        range(rows),
        [0] * rows,
        [0] * rows,
    ]
    schema = arrow_schema(source_schema(include_headers=False))
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


@dataclass(frozen=True)
class Shape:
    """A topic as it would be."""

    partitions: int
    rows: int
    value_bytes: int

    def tasks(self, start: int, end: int) -> list[Task]:
        """Those that Ottla would make of so many rows, which all partitions share.

        >>> tasks = Shape(partitions=2, rows=9, value_bytes=100).tasks(3, 6)
        >>> [str(one) for task in tasks for one in task.ranges]
        ['bench-1-0 from 1 to 3', 'bench-1-1 from 2 to 3']
        """
        ranges = []
        for number in range(self.partitions):
            first, last = ((rows + number) // self.partitions for rows in (start, end))
            ranges.append(Range(TopicPartition(TOPIC, number), first, last))
        return tasks_of(split(ranges, parallelism=cores()))


class Floor(FromJava):
    """What tasks of both readers do."""

    def __init__(self, shape: Shape) -> None:
        self._shape = shape

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The batch that there is, or the beginning of it, until there were as many rows as a task has."""
        assert isinstance(partition, Task)
        batch = ready_batch(self._shape.value_bytes)
        for one in partition.ranges:
            for start in range(one.start, one.end, batch.num_rows):
                yield from pieces_of(batch.slice(0, one.end - start))
        spare_garbage_collector()


class FloorReader(Floor, DataSourceReader):
    """For batch queries."""

    def partitions(self) -> Sequence[InputPartition]:
        """The tasks of all rows."""
        return self._shape.tasks(0, self._shape.rows)


class FloorStreamReader(Floor, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """For streaming queries. An offset is how many rows there were."""

    def __init__(self, shape: Shape, most_rows: int) -> None:
        super().__init__(shape)
        self._most_rows = most_rows

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        """None so far."""
        return {"rows": 0}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """The rows of a micro-batch."""
        return ReadMaxRows(self._most_rows)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """There are never more rows than at the beginning."""

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802
        """Where the next micro-batch ends."""
        return {"rows": min(start["rows"] + self._most_rows, self._shape.rows)}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        """The tasks of a micro-batch."""
        return self._shape.tasks(start["rows"], end["rows"])


class FloorDataSource(DataSource):
    """`format("floor")`: options `partitions`, `rows` and `valueBytes`, and for streams `maxOffsetsPerTrigger`."""

    @classmethod
    def name(cls) -> str:
        """What goes into `format`."""
        return "floor"

    def schema(self) -> StructType:
        """The columns of topics."""
        return source_schema(include_headers=False)

    def reader(self, schema: StructType) -> DataSourceReader:
        """For batch queries."""
        return FloorReader(self._shape())

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """For streaming queries."""
        spare_garbage_collector()
        return FloorStreamReader(self._shape(), int(self.options["maxOffsetsPerTrigger"]))

    def _shape(self) -> Shape:
        partitions, rows, value_bytes = (int(self.options[name]) for name in ("partitions", "rows", "valueBytes"))
        return Shape(partitions, rows, value_bytes)
