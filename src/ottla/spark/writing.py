"""What a task of the sink does: Arrow batches from Spark become record batches, and all are acknowledged in the end."""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark.sql.datasource import WriterCommitMessage

from ottla.client.producer import Producer
from ottla.client.producer.arrow import TableDelivery
from ottla.client.types import TopicPartition
from ottla.spark.producers import producers
from ottla.spark.sink_options import SinkOptions
from ottla.spark.workers import keep_memory, spare_garbage_collector
from ottla.sync.loop import background

if TYPE_CHECKING:
    import pyarrow as pa


GATHERED_ROWS = 32_768
GATHERED_BYTES = 4 * 2**20
"""Spark's batches are gathered up to these. It gives 10,000 rows at a time: where there are many partitions, that is a
few for each, at a cost of their own."""


@dataclass(slots=True)
class RowsWritten(WriterCommitMessage):
    """What a task tells the driver once its rows are acknowledged.

    The driver builds a new writer for each commit, so whatever a commit has to know of the tasks travels in here.
    """

    rows: int = 0
    offsets: dict[TopicPartition, tuple[int, int]] = field(default_factory=dict)
    """The first and the last offset in each partition; others may have written between them."""

    def add(self, delivery: TableDelivery) -> None:
        """Take in what became of some rows; raises if they were not delivered."""
        metadata = delivery.result()
        self.rows += metadata.rows
        for partition, (first, last) in metadata.offsets.items():
            known = self.offsets.get(partition, (first, last))
            self.offsets[partition] = (min(known[0], first), max(known[1], last))


def write_rows(batches: "Iterator[pa.RecordBatch]", options: SinkOptions, columns: tuple[str, ...]) -> RowsWritten:
    """Send the given columns of all rows, and return when all are acknowledged."""
    keep_memory()
    producer = producers.get(options.producer)
    try:
        return _write_rows(producer, batches, options, columns)
    except BaseException:
        producers.discard(options.producer)
        raise
    finally:
        spare_garbage_collector()


def _write_rows(
    producer: Producer, batches: "Iterator[pa.RecordBatch]", options: SinkOptions, columns: tuple[str, ...]
) -> RowsWritten:
    call = background().call
    written = RowsWritten()
    on_their_way: deque[TableDelivery] = deque()
    for rows in gathered(batch.select(columns) for batch in batches):
        if "topic" in columns and rows.column("topic").null_count:
            raise ValueError("null topic: a row has no topic; filter such rows out, or set option topic for all rows")
        on_their_way.append(call(producer.send_arrow, rows, options.topic))
        # However many rows a task has, no more is remembered of them than of those that are on their way.
        while on_their_way and on_their_way[0].done():
            written.add(on_their_way.popleft())
    call(producer.flush)
    for delivery in on_their_way:
        written.add(delivery)
    return written


def gathered(batches: "Iterable[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
    """The same rows in larger batches. No more is held back than fits into one, and what is large goes as it is.

    >>> import pyarrow
    >>> small = [pyarrow.record_batch({"value": [b"one"]}), pyarrow.record_batch({"value": [b"two"]})]
    >>> [batch.num_rows for batch in gathered(small)]
    [2]
    """
    held: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        if held and (rows + batch.num_rows > GATHERED_ROWS or size + batch.nbytes > GATHERED_BYTES):
            yield _joined(held)
            held, rows, size = [], 0, 0
        held.append(batch)
        rows += batch.num_rows
        size += batch.nbytes
        if rows >= GATHERED_ROWS or size >= GATHERED_BYTES:
            yield _joined(held)
            held, rows, size = [], 0, 0
    if held:
        yield _joined(held)


def _joined(batches: "list[pa.RecordBatch]") -> "pa.RecordBatch":
    import pyarrow as pa

    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)
