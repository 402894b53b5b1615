"""What a task does: ranges of partitions become Arrow batches as Spark wants them."""

from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from ottla.client.errors import OffsetOutOfRangeError, RequestTimedOutError, UnknownTopicOrPartitionError
from ottla.client.ranges import RangeReader
from ottla.spark.connections import shared_cluster
from ottla.spark.options import SourceOptions
from ottla.spark.planning import keep_what_is_there
from ottla.spark.schema import arrow_schema, client_columns
from ottla.spark.splitting import Range, Ranges
from ottla.spark.workers import keep_memory, spare_garbage_collector
from ottla.sync.loop import background

if TYPE_CHECKING:
    import pyarrow as pa

BUFFER_BYTES = 32 * 2**20
"""What a task fetches ahead of Spark."""

PIECE_BYTES = 2**20
"""About how much Java gets at a time. It takes in a batch as a whole before it looks at the first row: of a large one
the rows are out of the processor's caches by then, and there is nothing to do for it until all of that has come."""


@dataclass(frozen=True)
class Task(InputPartition):
    """What one task reads."""

    ranges: tuple[Range, ...]

    def __repr__(self) -> str:
        return "; ".join(map(str, self.ranges))


def read_task(task: Task, options: SourceOptions, schema: StructType) -> "Iterator[pa.RecordBatch]":
    """The records of a task. What comes next is fetched while Spark takes what there is."""
    keep_memory()
    shape = _Shape(schema)
    loop = background()
    batches = _read(task, options, shape.wanted_columns)

    async def next_batch() -> "pa.RecordBatch | None":
        return await anext(batches, None)

    try:
        while (batch := loop.call(next_batch)) is not None:
            yield from pieces_of(shape.fit(batch))
    finally:
        loop.call(batches.aclose)
        spare_garbage_collector()


async def _read(task: Task, options: SourceOptions, columns: list[str]) -> "AsyncGenerator[pa.RecordBatch, None]":
    cluster = shared_cluster(options.client)
    wanted = left = {one.place: (one.start, one.end) for one in task.ranges}
    is_known_anew = False
    while left:
        reader = RangeReader(
            cluster,
            left,
            columns=columns,
            read_committed=options.read_committed,
            check_crcs=options.check_crcs,
            buffer_memory=BUFFER_BYTES,
            fetch_max_bytes=options.fetch_max_bytes,
            max_partition_fetch_bytes=options.max_partition_fetch_bytes,
            timeout_ms=options.poll_timeout_ms,
        )
        try:
            async for place, batch in reader.batches_by_partition():
                if batch.num_rows:
                    left = {**left, place: (batch["offset"][-1].as_py() + 1, left[place][1])}
                    yield batch
            return
        except (OffsetOutOfRangeError, UnknownTopicOrPartitionError, RequestTimedOutError) as error:
            ranges = [Range(place, start, end) for place, (start, end) in left.items() if start < end]
            kept = await keep_what_is_there(cluster, options, ranges)
            if kept == ranges:
                # Nothing is gone. An earlier task of this process may have known a topic that was made again since, and
                # looking has told what it is now; otherwise it was something else.
                if is_known_anew or left != wanted or not isinstance(error, OffsetOutOfRangeError):
                    raise
                is_known_anew = True
                continue
            left = {one.place: (one.start, one.end) for one in kept}


class _Shape:
    """How batches of the client become batches of Spark."""

    def __init__(self, schema: StructType) -> None:
        self._schema = arrow_schema(schema)
        self._columns = client_columns(schema)
        # Offsets tell how far a partition was read.
        self.wanted_columns = self._columns if "offset" in self._columns else [*self._columns, "offset"]

    def fit(self, batch: "pa.RecordBatch") -> "pa.RecordBatch":
        """The same rows, in Spark's schema."""
        import pyarrow as pa

        arrays = []
        for name, field in zip(self._columns, self._schema, strict=True):
            array = batch.column(name)
            if name == "headers":
                array = _null_if_empty(array, field.type)
            arrays.append(array if array.type.equals(field.type) else array.cast(field.type))
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)


def pieces_of(batch: "pa.RecordBatch") -> "Iterator[pa.RecordBatch]":
    """The same rows, in pieces of about PIECE_BYTES, or of one row that is larger.

    >>> import pyarrow
    >>> rows = pyarrow.record_batch({"value": [bytes(600_000)] * 5})
    >>> [piece.num_rows for piece in pieces_of(rows)]
    [2, 2, 1]
    """
    count = -(-batch.nbytes // PIECE_BYTES)
    rows = max(1, -(-batch.num_rows // max(1, count)))
    for start in range(0, batch.num_rows, rows):
        yield batch.slice(start, rows)


def _null_if_empty(headers: "pa.ListArray", kind: "pa.DataType") -> "pa.ListArray":
    """Records without headers have null, as in the official connector."""
    import pyarrow as pa
    import pyarrow.compute as pc

    is_empty = pc.equal(pc.list_value_length(headers), 0)
    return pa.ListArray.from_arrays(headers.offsets, headers.values, type=kind, mask=is_empty)


def tasks_of(pieces: list[Ranges]) -> list[Task]:
    """The tasks that Spark hands out."""
    return [Task(tuple(ranges)) for ranges in pieces]
