"""Whole columns to partitions: rows are encoded straight from Arrow's buffers, without an object per row."""

import asyncio
from array import array
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ottla.client.checks import shown
from ottla.client.producer.accumulator import PartitionQueue
from ottla.client.producer.batch import Rows
from ottla.client.producer.intake import Intake
from ottla.client.producer.partitioners import Routes
from ottla.client.types import TopicPartition
from ottla.record.columns import row_columns
from ottla.record.split import key_partitions, rows_by_partition
from ottla.wire.errors import EncodeError, KafkaError

if TYPE_CHECKING:
    import pyarrow as pa

CHUNK_ROWS = 65_536
"""How many rows are looked at together when they are told apart by partition."""

BYTES_PER_ROW = 24
"""What a record takes in a batch beside its key, value and headers, at most."""

_PLACE = ("topic", "partition", "offset", "timestamp_type")
"""Columns that say where a row goes, or went when it was read. They are no part of a record."""

_TAKEN = ("value", "key", "timestamp", "headers", "topic", "partition")

_DROP_COLUMN = "leave out the column, as in table.drop_columns(['partition']), so that the partitioner chooses"


class ArrowStream(Protocol):
    """Rows that can be had as Arrow, such as a DataFrame of pandas or polars."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """The rows, by Arrow's C stream interface."""


class TableMetadata(NamedTuple):
    """Where the rows of a table have gone.

    >>> TableMetadata(rows=2, offsets={TopicPartition("orders", 0): (7, 8)}).rows
    2
    """

    rows: int
    offsets: dict[TopicPartition, tuple[int, int]]
    """The first and the last offset in each partition; other producers may have written between them. -1 where the
    broker was not asked to acknowledge them (acks=0)."""


class TableDelivery:
    """What `send_arrow` gives: an awaitable with the table's metadata once all its rows are acknowledged.

    As with the delivery of a single record, a failure that nobody has asked for is raised by `flush` and `stop`.

    >>> import pyarrow
    >>> async def story(producer: "Producer") -> "TableDelivery":
    ...     delivery = await producer.send_arrow(pyarrow.table({"value": ["one", "two"]}), "orders")
    ...     print((await delivery).rows)
    ...     return delivery
    >>> delivery = run(story)
    2
    >>> delivery.done(), delivery.exception()
    (True, None)
    >>> delivery.result().offsets
    {TopicPartition(topic='orders', partition=0): (0, 1)}
    """

    __slots__ = ("_added", "rows")

    def __init__(self, added: list[Rows]) -> None:
        self._added = added
        self.rows = sum(rows.length for rows in added)
        """How many rows it is of."""

    def __repr__(self) -> str:
        return f"<TableDelivery of {self.rows} rows, {'done' if self.done() else 'on its way'}>"

    def __await__(self) -> Generator[Any, None, TableMetadata]:
        for rows in self._leaves():
            rows.notice()
        for rows in self._added:
            # One that is split while it is waited for has two ends.
            while waiting := [part for part in rows.leaves() if not part.batch.settled]:
                yield from waiting[0].batch.watch(waiting[0].first)
        return self.result()

    def done(self) -> bool:
        """Whether it is known what became of all rows.

        >>> async def send_some(producer) -> bool:
        ...     delivery = await producer.send_arrow(pyarrow.table({"value": [b"one", b"two"]}), "orders")
        ...     await producer.flush()
        ...     return delivery.done()
        >>> import pyarrow
        >>> run(send_some)
        True
        """
        return all(rows.batch.settled for rows in self._leaves())

    def result(self) -> TableMetadata:
        """Where the rows went, or the first failure; `asyncio.InvalidStateError` while some are on their way.

        >>> async def send_some(producer) -> TableMetadata:
        ...     delivery = await producer.send_arrow(pyarrow.table({"value": [b"one", b"two"]}), "orders")
        ...     await producer.flush()
        ...     return delivery.result()
        >>> import pyarrow
        >>> run(send_some).offsets
        {TopicPartition(topic='orders', partition=0): (0, 1)}
        """
        error = self.exception()
        if error is not None:
            raise error.with_traceback(None)
        offsets: dict[TopicPartition, tuple[int, int]] = {}
        for batch, first, length in self._leaves():
            if batch.base_offset < 0:
                offsets[batch.partition] = (-1, -1)
                continue
            begin = batch.base_offset + first
            known = offsets.get(batch.partition, (begin, begin))
            offsets[batch.partition] = (min(known[0], begin), max(known[1], begin + length - 1))
        return TableMetadata(self.rows, offsets)

    def exception(self) -> KafkaError | None:
        """Why some rows were not delivered; `asyncio.InvalidStateError` while some are on their way.

        >>> async def send_some(producer) -> bool:
        ...     delivery = await producer.send_arrow(pyarrow.table({"value": [b"one", b"two"]}), "orders")
        ...     await producer.flush()
        ...     return delivery.exception() is None
        >>> import pyarrow
        >>> run(send_some)
        True
        """
        if not self.done():
            raise asyncio.InvalidStateError(f"some of the {self.rows} rows are on their way; await them")
        failure = None
        for rows in self._leaves():
            rows.notice()
            failure = failure or rows.batch.error
        return failure

    def _leaves(self) -> Iterator[Rows]:
        for rows in self._added:
            yield from rows.leaves()


async def send_table(
    intake: Intake,
    data: "pa.Table | pa.RecordBatch | ArrowStream",
    topic: str | None,
    partition: int | None,
    timestamp_ms: int,
) -> TableDelivery:
    """Take all rows of a table."""
    table = _table_of(data, topic)
    try:
        return TableDelivery(await _add_table(intake, table, topic, partition, timestamp_ms))
    except EncodeError as error:
        raise ValueError(f"the table cannot be sent: {error}") from error


async def _add_table(
    intake: Intake, table: "pa.Table", topic: str | None, partition: int | None, timestamp_ms: int
) -> list[Rows]:
    added: list[Rows] = []
    async for routes, chunk in _by_topic(intake, table, topic):
        place = chunk.column("partition") if "partition" in chunk.schema.names else None
        kept = [name for name in chunk.schema.names if name not in _PLACE]
        rows = chunk.select(kept)
        columns = row_columns(rows, timestamp_ms)
        estimate = rows.nbytes + BYTES_PER_ROW * rows.num_rows
        if partition is not None:
            choose = _always(routes.of(None, partition))
            added += await intake.add_rows(choose, columns, None, rows.num_rows, estimate)
            continue
        for number, selection in _selections(routes, rows, place).items():
            count = rows.num_rows if selection is None else len(selection) // 8
            share = estimate * count // rows.num_rows
            choose = routes.stick if number is None else _always(routes.of(None, number))
            added += await intake.add_rows(choose, columns, selection, count, share)
    return added


def _always(queue: PartitionQueue) -> Callable[[], PartitionQueue]:
    return lambda: queue


def _table_of(data: "pa.Table | pa.RecordBatch | ArrowStream", topic: str | None) -> "pa.Table":
    """What was given, as a table whose columns can be sent."""
    import pyarrow as pa

    if not hasattr(data, "__arrow_c_stream__") and not isinstance(data, pa.RecordBatch):
        raise TypeError(f"table is {shown(data)}; give a pyarrow Table, or a DataFrame of pandas or polars")
    table = pa.Table.from_batches([data]) if isinstance(data, pa.RecordBatch) else pa.table(data)
    # What pandas numbers its rows with is no data.
    table = table.drop_columns([name for name in table.column_names if name.startswith("__index_level_")])
    names = table.column_names
    if "value" not in names:
        raise ValueError(f"the table has no column 'value', but {', '.join(names) or 'none'}")
    for name in names:
        if name not in _TAKEN and name not in _PLACE:
            raise ValueError(f"the table has a column {name!r}; columns may be {', '.join(_TAKEN)}")
        if names.count(name) > 1:
            raise ValueError(f"the table has {names.count(name)} columns {name!r}; give one")
    if topic is None and "topic" not in names:
        raise ValueError("give a topic, or a column 'topic'")
    if topic is None and table.column("topic").null_count:
        raise ValueError("column 'topic' has nulls; give a topic for all rows, or one for each")
    return _without_views(table)


def _without_views(table: "pa.Table") -> "pa.Table":
    """The table with text and bytes as others have them than polars: not all that is done with rows can be done with
    views."""
    import pyarrow as pa

    headers = pa.large_list(pa.struct([("key", pa.large_string()), ("value", pa.large_binary())]))
    plain = {"key": pa.large_binary(), "value": pa.large_binary(), "headers": headers, "topic": pa.large_string()}
    for number, field in enumerate(table.schema):
        kind = str(field.type)
        # Views of lists are refused later: casting them gives broken arrays.
        if field.name in plain and ("string_view" in kind or "binary_view" in kind) and "list_view" not in kind:
            column = table.column(number)
            if pa.types.is_dictionary(field.type):
                # What categories become cannot be said of views, but of what they are views of.
                wide = pa.dictionary(field.type.index_type, plain[field.name])
                chunks = [
                    pa.DictionaryArray.from_arrays(one.indices, one.dictionary.cast(wide.value_type))
                    for one in column.chunks
                ]
                column = pa.chunked_array(chunks, wide)
            try:
                column = column.cast(plain[field.name])
            except pa.ArrowException as error:
                wanted = f"give {plain[field.name]}, or what can be cast to it"
                raise ValueError(f"column {field.name!r} is of type {field.type}; {wanted}: {error}") from error
            table = table.set_column(number, field.name, column)
    return table


async def _by_topic(
    intake: Intake, table: "pa.Table", topic: str | None
) -> "AsyncIterator[tuple[Routes, pa.RecordBatch]]":
    """Chunks of rows of one topic each: of the topic that is given, or those that the column names."""
    import pyarrow as pa

    for chunk in table.to_batches(max_chunksize=CHUNK_ROWS):
        if not chunk.num_rows:
            continue
        if topic is not None:
            yield await intake.known(topic), chunk
            continue
        names = chunk.column("topic").dictionary_encode()
        for number, selection in rows_by_partition(names.indices).items():
            indices = pa.Array.from_buffers(pa.int64(), len(selection) // 8, [None, selection])
            name = names.dictionary[number].as_py()
            yield await intake.known(name), chunk if len(names.dictionary) == 1 else chunk.take(indices)


def _selections(
    routes: Routes, rows: "pa.RecordBatch", place: "pa.Array | None"
) -> "dict[int | None, pa.Buffer | None]":
    """Which rows go to which partition, None being wherever records without a key go."""
    from pyarrow import compute

    partitions = _by_partitioner(routes, rows)
    if place is not None:
        named = _partition_numbers(place)
        partitions = named if partitions is None else compute.coalesce(named, partitions)
    if partitions is None:
        return {None: None}
    found = rows_by_partition(partitions)
    for number in found:
        if number is not None:
            # Before any row of the chunk is taken.
            routes.named(number, _DROP_COLUMN)
    return dict(found)


def _partition_numbers(column: "pa.Array") -> "pa.Array":
    import pyarrow as pa

    try:
        return column.cast(pa.int32())
    except pa.ArrowException as error:
        raise ValueError(
            f"column 'partition' is of type {column.type}; give integers, or leave it out: {error}"
        ) from error


def _by_partitioner(routes: Routes, rows: "pa.RecordBatch") -> "pa.Array | None":
    import pyarrow as pa
    from pyarrow import compute

    has_keys = "key" in rows.schema.names
    if routes.function is not None:
        keys = rows.column("key").cast(pa.binary()).to_pylist() if has_keys else [None] * rows.num_rows
        return pa.array(array("i", [routes.of(key, None).partition.partition for key in keys]), pa.int32())
    if not has_keys or routes.method is None:
        return None
    found = key_partitions(rows, len(routes.partitions), routes.method)
    if routes.method == "crc32":
        empty = compute.equal(compute.binary_length(rows.column("key")), 0)
        found = compute.if_else(empty, pa.scalar(None, pa.int32()), found)
    return found
