"""Fetched bytes as Arrow columns, without an object per record."""

import sys
from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ottla.client.checks import shown
from ottla.client.consumer.decoding import corrupt
from ottla.client.consumer.gathering import ENOUGH_BYTES, Gathering, Part
from ottla.client.consumer.handout import Handout, Partitions
from ottla.client.consumer.subscription import PartitionState, Subscription
from ottla.client.types import CREATE_TIME, LOG_APPEND_TIME, ConsumerRecord, TopicPartition
from ottla.record._kernel_types import LARGEST_INT64
from ottla.record.batch import DEFAULT_LIMIT
from ottla.record.columns import arrow_column, arrow_schema
from ottla.record.kernels import Columns
from ottla.wire.errors import ProtocolError

if TYPE_CHECKING:
    import pyarrow as pa

COLUMNS = ("topic", "partition", "offset", "timestamp", "timestamp_type", "key", "value", "headers")
"""The columns of a table of records, in their order."""

SHARED_ROWS = 1024
"""Rows at first of the arrays that hold one value, which batches have in common: who reads little makes short ones."""

MOST_SHARED_ROWS = 2**22
"""How long such arrays grow ahead of what is needed: the names of topics in them must stay below 2 GiB."""

MOST_SHARED_IN_ALL = 2**22
"""Rows of all such arrays together from which on they are made anew: who reads many topics does not keep all."""


def table_schema(columns: Sequence[str] | None = None, *, zero_copy: bool = False) -> "pa.Schema":
    """The schema of a table of records, with all columns or with some; of values that are not copied, if so wanted.

    >>> print(table_schema(["topic", "partition", "value"]))
    topic: string
    partition: int32
    value: binary
    """
    import pyarrow as pa

    wanted = _wanted(columns)
    for name in wanted:
        if name not in COLUMNS:
            raise ValueError(f"there is no column {name!r}; there are {', '.join(COLUMNS)}")
        if wanted.count(name) > 1:
            raise ValueError(f"columns has {name!r} {wanted.count(name)} times; name it once")
    kinds = {"topic": pa.string(), "partition": pa.int32(), "timestamp_type": pa.int32()}
    of_records = arrow_schema([name for name in wanted if name not in kinds], views=zero_copy)
    return pa.schema([(name, kinds[name]) if name in kinds else of_records.field(name) for name in wanted])


def check_columns(columns: Sequence[str] | None) -> None:
    """A table without columns would have no rows either.

    >>> check_columns([])
    Traceback (most recent call last):
    ValueError: columns is empty; name some of topic, partition, offset, timestamp, timestamp_type, key, value, headers
    """
    if columns is not None and not len(_wanted(columns)):
        raise ValueError(f"columns is empty; name some of {', '.join(COLUMNS)}")


def _wanted(columns: Sequence[str] | None) -> Sequence[str]:
    wanted = COLUMNS if columns is None else columns
    if isinstance(wanted, str) or not isinstance(wanted, Sequence):
        raise TypeError(f"columns is {shown(wanted)}; give a list of names")
    return wanted


class ArrowDecoder:
    """Decodes what was fetched of partitions into Arrow batches of one schema."""

    def __init__(
        self,
        columns: Sequence[str] | None = None,
        *,
        zero_copy: bool = False,
        check_crcs: bool = True,
        limit: int = DEFAULT_LIMIT,
    ) -> None:
        self.schema = table_schema(columns, zero_copy=zero_copy)
        self._fields = list(self.schema)
        self.zero_copy = zero_copy
        """Whether values stay in the fetched bytes."""
        self.bytes_taken = 0
        """Bytes of all batches that rows were taken of."""
        self._check_crcs = check_crcs
        self._limit = limit
        self._shared: dict[str | int, pa.Array] = {}
        self._shared_rows = 0

    def take(
        self,
        state: PartitionState,
        max_rows: int | None = None,
        stop_offset: int = LARGEST_INT64,
        enough_bytes: int = ENOUGH_BYTES,
    ) -> "list[pa.RecordBatch]":
        """What was fetched of a partition, until it is enough; or so many rows of it. The position moves after them.

        Where bytes make no sense the position stays before them: what is before comes first, the exception the next
        time.
        """
        if self._shared_rows > MOST_SHARED_IN_ALL:
            self._shared.clear()
            self._shared_rows = 0
        try:
            return self._take(state, max_rows, stop_offset, enough_bytes if max_rows is None else sys.maxsize)
        except BaseException:
            # The position is still before what was read, also if memory ran out, so all of it is fetched again.
            state.drop_chunks()
            raise

    def _take(
        self, state: PartitionState, max_rows: int | None, stop_offset: int, enough_bytes: int
    ) -> "list[pa.RecordBatch]":
        names = self.schema.names
        gathering = Gathering(
            Columns("key" in names, "value" in names, "headers" in names, self.zero_copy),
            start_offset=state.position or 0,
            stop_offset=stop_offset,
            leader_epoch=state.leader_epoch,
            max_rows=max_rows,
            enough_bytes=enough_bytes,
            with_types="timestamp_type" in names,
            check_crcs=self._check_crcs,
            limit=self._limit,
        )
        fault: ProtocolError | None = None
        try:
            while state.chunks and not gathering.is_over:
                gathering.read(state.chunks[0])
                if state.chunks[0].is_read:
                    state.chunks.popleft()
        except ProtocolError as error:
            # What is wrong on the way only is right the next time, so it is fetched again.
            state.drop_chunks()
            fault = error
        found = [self._record_batch(state.partition, part) for part in gathering.finish()]
        position = gathering.position
        state.advance(position, gathering.leader_epoch)
        self.bytes_taken += gathering.bytes_gathered
        if fault is not None and not found:
            raise corrupt(state.partition, position, fault) from fault
        return found

    def _record_batch(self, partition: TopicPartition, part: Part) -> "pa.RecordBatch":
        import pyarrow as pa

        if isinstance(part, list):
            return self._old_messages(partition, part)
        columns, append_time = part
        arrays = []
        for field in self._fields:
            if field.name == "topic":
                arrays.append(self._repeated(partition.topic, columns.rows))
            elif field.name == "partition":
                arrays.append(self._repeated(partition.partition, columns.rows))
            elif field.name == "timestamp_type":
                arrays.append(self._repeated(LOG_APPEND_TIME if append_time else CREATE_TIME, columns.rows))
            else:
                arrays.append(arrow_column(columns, field))
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _repeated(self, value: str | int, rows: int) -> "pa.Array":
        """A column that is the same in all rows. All batches share one array of each such value."""
        shared = self._shared.get(value)
        if shared is None or len(shared) < rows:
            ahead = SHARED_ROWS if shared is None else min(2 * len(shared), MOST_SHARED_ROWS)
            self._shared_rows -= 0 if shared is None else len(shared)
            self._shared[value] = shared = _repeated(value, max(rows, ahead))
            self._shared_rows += len(shared)
        return shared[:rows]

    def _old_messages(self, partition: TopicPartition, rows: list[ConsumerRecord]) -> "pa.RecordBatch":
        """Messages of the formats before batches are rare enough to become objects first."""
        import pyarrow as pa

        constants = {"topic": partition.topic, "partition": partition.partition}
        arrays = [
            pa.array([constants.get(field.name, getattr(row, field.name)) for row in rows], field.type)
            for field in self._fields
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def _repeated(value: str | int, rows: int) -> "pa.Array":
    """An array of one value, made of bytes: `pyarrow.scalar` and its like import pandas wherever that is installed."""
    import pyarrow as pa

    if isinstance(value, int):
        numbers = array("i", [value]) * rows
        return pa.Array.from_buffers(pa.int32(), rows, [None, pa.py_buffer(numbers)])
    text = value.encode()
    ends = array("i", range(0, (rows + 1) * len(text), len(text))) if text else array("i", [0]) * (rows + 1)
    return pa.Array.from_buffers(pa.string(), rows, [None, pa.py_buffer(ends), pa.py_buffer(text * rows)])


class ArrowReader:
    """`read_arrow` of a consumer."""

    def __init__(self, subscription: Subscription, handout: Handout, *, check_crcs: bool, enough_bytes: int) -> None:
        self._subscription = subscription
        self._handout = handout
        self._check_crcs = check_crcs
        self._enough_bytes = enough_bytes
        """How much may lie fetched before it is taken, though more rows are wanted."""
        self._decoder: ArrowDecoder | None = None

    async def read(
        self,
        partitions: Partitions,
        max_records: int | None,
        timeout_s: float,
        columns: Sequence[str] | None,
        *,
        zero_copy: bool = False,
    ) -> "pa.Table":
        """Rows that were fetched, or the first that come in time."""
        import pyarrow as pa

        decoder = self._decoder_of(columns, zero_copy=zero_copy)
        self._subscription.reads_columns = True

        def take_if_enough() -> "list[pa.RecordBatch] | None":
            if not self._are_enough(partitions, max_records):
                return None
            return self._take(decoder, partitions, max_records)

        self._drop_objects(partitions)
        found = await self._handout.wait_for(take_if_enough, partitions, timeout_s)
        # Nothing is taken before all of it can be returned, so that a call that is cancelled loses nothing.
        found = found or self._take(decoder, partitions, max_records)
        return pa.Table.from_batches(found or [], decoder.schema)

    def _decoder_of(self, columns: Sequence[str] | None, *, zero_copy: bool) -> ArrowDecoder:
        """That of the call before, mostly: its arrays of topics and partitions serve again."""
        wanted = list(_wanted(columns))
        before = self._decoder
        if before is None or before.schema.names != wanted or before.zero_copy != zero_copy:
            self._decoder = before = ArrowDecoder(columns, zero_copy=zero_copy, check_crcs=self._check_crcs)
        return before

    def _drop_objects(self, partitions: Partitions) -> None:
        """Objects do not become columns again: what is left of them is fetched anew."""
        self._subscription.user_returned()
        for state in self._states(partitions):
            if state.run is not None:
                state.seek(state.position or 0)
        self._handout.there_is_room()

    def _are_enough(self, partitions: Partitions, max_records: int | None) -> bool:
        if max_records is None:
            return True
        rows = sum(chunk.count for state in self._states(partitions) for chunk in state.chunks)
        if rows >= max_records:
            return True
        # Others may hold so much that no more is fetched of these.
        buffered_bytes = sum(state.buffered_bytes for state in self._subscription.assigned.values())
        return rows > 0 and buffered_bytes >= self._enough_bytes

    def _states(self, partitions: Partitions) -> list[PartitionState]:
        subscription = self._subscription
        found = map(subscription.state, partitions) if partitions else subscription.assigned.values()
        return [state for state in found if state.is_readable]

    def _take(
        self, decoder: ArrowDecoder, partitions: Partitions, max_records: int | None
    ) -> "list[pa.RecordBatch] | None":
        found: list[pa.RecordBatch] = []
        seen: set[TopicPartition] = set()
        left, bytes_before = max_records, decoder.bytes_taken
        for state in self._handout.turns(partitions):
            enough_bytes = ENOUGH_BYTES - (decoder.bytes_taken - bytes_before)
            if state.partition in seen or left == 0 or (left is None and enough_bytes <= 0):
                self._handout.return_turn(state, partitions)
                break
            seen.add(state.partition)
            if state.run is not None:
                # Somebody else is reading it meanwhile.
                continue
            self._subscription.hand_out(state)
            try:
                batches = decoder.take(state, left, enough_bytes=enough_bytes)
            except Exception as error:
                if not found:
                    raise
                # What was taken of others must not be lost. The user is told the next time.
                self._subscription.fail(state, error)
                break
            found += batches
            if left is not None:
                left -= sum(len(batch) for batch in batches)
        self._handout.there_is_room()
        return found or None
