"""Fetched bytes as Arrow columns, without an object per record."""

from array import array
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from ottla.client.consumer.decoding import corrupt, entry_epoch, next_offset
from ottla.client.consumer.handout import Handout, Partitions
from ottla.client.consumer.subscription import PartitionState, Subscription
from ottla.client.types import CREATE_TIME, LOG_APPEND_TIME, ConsumerRecord, TopicPartition
from ottla.record import Batch, LegacyEntry
from ottla.record._kernel_types import LARGEST_INT64
from ottla.record.batch import DEFAULT_LIMIT
from ottla.record.columns import COLUMNS as RECORD_COLUMNS
from ottla.record.columns import arrow_batches, arrow_schema, to_arrow
from ottla.record.kernels import read_run_tuples
from ottla.record.legacy import runs
from ottla.wire.errors import ProtocolError

if TYPE_CHECKING:
    import pyarrow as pa

COLUMNS = ("topic", "partition", "offset", "timestamp", "timestamp_type", "key", "value", "headers")
"""The columns of a table of records, in their order."""

SHARED_ROWS = 1024
"""Rows at first of the arrays that hold one value, which batches have in common: who reads little makes short ones."""

MOST_SHARED_ROWS = 2**22
"""How long such arrays grow ahead of what is needed: the names of topics in them must stay below 2 GiB."""

Entries = list[Batch | LegacyEntry]


def table_schema(columns: Sequence[str] | None = None) -> "pa.Schema":
    """The schema of a table of records, with all columns or with some.

    >>> print(table_schema(["topic", "partition", "value"]))
    topic: string
    partition: int32
    value: binary
    """
    import pyarrow as pa

    wanted = COLUMNS if columns is None else columns
    for name in wanted:
        if name not in COLUMNS:
            raise ValueError(f"there is no column {name!r}; there are {', '.join(COLUMNS)}")
    kinds = {"topic": pa.string(), "partition": pa.int32(), "timestamp_type": pa.int32()}
    of_records = arrow_schema([name for name in wanted if name not in kinds])
    return pa.schema([(name, kinds[name]) if name in kinds else of_records.field(name) for name in wanted])


class ArrowDecoder:
    """Decodes what was fetched of partitions into Arrow batches of one schema."""

    def __init__(
        self, columns: Sequence[str] | None = None, *, check_crcs: bool = True, limit: int = DEFAULT_LIMIT
    ) -> None:
        self.schema = table_schema(columns)
        # A batch needs a column to know how many rows it has.
        self._of_records = [name for name in self.schema.names if name in RECORD_COLUMNS] or ["offset"]
        self._with_types = "timestamp_type" in self.schema.names
        self._check_crcs = check_crcs
        self._limit = limit
        self._shared: dict[str | int, pa.Array] = {}

    def take(
        self, state: PartitionState, max_rows: int | None = None, stop_offset: int = LARGEST_INT64
    ) -> "list[pa.RecordBatch]":
        """All that was fetched of a partition, or so many rows of it. The position moves after them.

        Where bytes make no sense the position stays before them: what is before comes first, the exception the next
        time.
        """
        start = position = state.position or 0
        epoch = state.leader_epoch
        walk = _Walk(state, start, max_rows, stop_offset, self._check_crcs)
        entries = list(walk)
        found, good, fault = self._decode(state.partition, entries, start, walk.stop_offset)
        if fault is not None:
            walk.end_before(entries[good], fault)
        for entry in walk.passed:
            position, epoch = max(position, next_offset(entry)), entry_epoch(entry)
        position = min(position, walk.stop_offset)
        if walk.fault is not None:
            # What is wrong on the way only is right the next time, so it is fetched again.
            state.chunks.clear()
        state.advance(position, epoch)
        if walk.fault is not None and not found:
            raise corrupt(state.partition, position, walk.fault) from walk.fault
        return found

    def _decode(
        self, partition: TopicPartition, entries: Entries, start_offset: int, stop_offset: int
    ) -> "tuple[list[pa.RecordBatch], int, ProtocolError | None]":
        """Arrow batches, how many of the entries they are of, and why not of more."""
        found: list[pa.RecordBatch] = []
        good = 0
        for kind, together in groupby(entries, key=self._kind):
            group = list(together)
            try:
                found += self._batches(partition, kind, group, start_offset, stop_offset)
                good += len(group)
            except ProtocolError:
                for entry in group:
                    try:
                        found += self._batches(partition, kind, [entry], start_offset, stop_offset)
                    except ProtocolError as error:
                        return found, good, error
                    good += 1
        return found, good, None

    def _kind(self, entry: Batch | LegacyEntry) -> int | None:
        """What entries that are decoded together have in common: the type of timestamps. None for old formats."""
        if isinstance(entry, LegacyEntry):
            return None
        return LOG_APPEND_TIME if self._with_types and entry.log_append_time else CREATE_TIME

    def _batches(
        self, partition: TopicPartition, kind: int | None, entries: Entries, start_offset: int, stop_offset: int
    ) -> "list[pa.RecordBatch]":
        if kind is None:
            return [self._old_messages(partition, entry, start_offset, stop_offset) for entry in entries]
        batches = arrow_batches(
            entries,
            columns=self._of_records,
            start_offset=start_offset,
            stop_offset=stop_offset,
            limit=self._limit,
        )
        return [self._completed(partition, kind, batch) for batch in batches]

    def _completed(self, partition: TopicPartition, kind: int, batch: "pa.RecordBatch") -> "pa.RecordBatch":
        """Add the columns that are the same in all rows. All batches share one array of each such value."""
        import pyarrow as pa

        constants: dict[str, str | int] = {
            "topic": partition.topic,
            "partition": partition.partition,
            "timestamp_type": kind,
        }
        arrays = []
        for field in self.schema:
            if field.name in constants:
                value = constants[field.name]
                shared = self._shared.get(value)
                if shared is None or len(shared) < len(batch):
                    rows = max(len(batch), SHARED_ROWS if shared is None else min(2 * len(shared), MOST_SHARED_ROWS))
                    self._shared[value] = shared = _repeated(value, rows)
                arrays.append(shared[: len(batch)])
            else:
                arrays.append(batch.column(field.name))
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _old_messages(
        self, partition: TopicPartition, entry: Batch | LegacyEntry, start_offset: int, stop_offset: int
    ) -> "pa.RecordBatch":
        """Messages of the formats before batches are rare enough to become objects first."""
        import pyarrow as pa

        topic, index = partition
        records: list[ConsumerRecord] = []
        for run in runs(entry.data, self._limit):
            records += read_run_tuples(run, start_offset, ConsumerRecord, topic, index)
        rows = [record for record in records if record.offset < stop_offset]
        arrays = [pa.array([getattr(row, field.name) for row in rows], field.type) for field in self.schema]
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


class _Walk:
    """The batches of a partition that are for the user, until enough rows are there, or bytes make no sense."""

    def __init__(
        self, state: PartitionState, start_offset: int, max_rows: int | None, stop_offset: int, check_crcs: bool
    ) -> None:
        self.passed: list[Batch | LegacyEntry] = []
        """All entries up to the end of the walk."""
        self.stop_offset = stop_offset
        """Where the rows end."""
        self.fault: ProtocolError | None = None
        """Why the walk ended, if it was for that."""
        self._state = state
        self._start_offset = start_offset
        self._rows_left = max_rows
        self._check_crcs = check_crcs

    def __iter__(self) -> Iterator[Batch | LegacyEntry]:
        """The entries that have rows."""
        chunks = self._state.chunks
        while chunks:
            chunk = chunks[0]
            if chunk.is_read:
                chunks.popleft()
                continue
            try:
                entry, is_shown = chunk.peek()
                if is_shown and next_offset(entry) > self._start_offset:
                    if self._check_crcs and isinstance(entry, Batch):
                        entry.check_crc()
                    whole = self._count(entry)
                    yield entry
                else:
                    whole = True
            except ProtocolError as error:
                self.fault = error
                return
            self.passed.append(entry)
            if not whole:
                return
            chunk.skip(entry)
            if next_offset(entry) >= self.stop_offset:
                return

    def end_before(self, entry: Batch | LegacyEntry, fault: ProtocolError) -> None:
        """Have the walk end before an entry, which turned out to be broken."""
        self.fault = fault
        del self.passed[self.passed.index(entry) :]

    def _count(self, entry: Batch | LegacyEntry) -> bool:
        """Count the rows of an entry; False if not all of them are wanted any more."""
        if self._rows_left is None:
            return True
        if isinstance(entry, Batch) and entry.count <= self._rows_left:
            self._rows_left -= entry.count
            return True
        offsets = to_arrow([entry], columns=["offset"], start_offset=self._start_offset)["offset"]
        if len(offsets) <= self._rows_left:
            self._rows_left -= len(offsets)
            return True
        self.stop_offset = min(self.stop_offset, offsets[self._rows_left].as_py())
        return False


class ArrowReader:
    """`read_arrow` of a consumer."""

    def __init__(self, subscription: Subscription, handout: Handout, *, check_crcs: bool, enough_bytes: int) -> None:
        self._subscription = subscription
        self._handout = handout
        self._check_crcs = check_crcs
        self._enough_bytes = enough_bytes
        """How much may lie fetched before it is taken, though more rows are wanted."""

    async def read(
        self, partitions: Partitions, max_records: int | None, timeout_s: float, columns: Sequence[str] | None
    ) -> "pa.Table":
        """Rows that were fetched, or the first that come in time."""
        import pyarrow as pa

        decoder = ArrowDecoder(columns, check_crcs=self._check_crcs)

        def take() -> "list[pa.RecordBatch] | None":
            return self._take(decoder, partitions, max_records)

        def take_if_enough() -> "list[pa.RecordBatch] | None":
            return take() if self._are_enough(partitions, max_records) else None

        self._drop_objects(partitions)
        found = await self._handout.wait_for(take_if_enough, partitions, timeout_s)
        # Nothing is taken before all of it can be returned, so that a call that is cancelled loses nothing.
        return pa.Table.from_batches(found or take() or [], decoder.schema)

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
        states = self._states(partitions)
        rows = sum(chunk.count for state in states for chunk in state.chunks)
        return rows >= max_records or sum(state.buffered_bytes for state in states) >= self._enough_bytes

    def _states(self, partitions: Partitions) -> list[PartitionState]:
        subscription = self._subscription
        found = map(subscription.state, partitions) if partitions else subscription.assigned.values()
        return [state for state in found if state.is_readable]

    def _take(
        self, decoder: ArrowDecoder, partitions: Partitions, max_records: int | None
    ) -> "list[pa.RecordBatch] | None":
        found: list[pa.RecordBatch] = []
        seen: set[TopicPartition] = set()
        left = max_records
        for state in self._handout.turns(partitions):
            if state.partition in seen or left == 0:
                self._handout.return_turn(state)
                break
            seen.add(state.partition)
            if state.run is not None:
                # Somebody else is reading it meanwhile.
                continue
            self._subscription.hand_out(state)
            batches = decoder.take(state, left)
            found += batches
            if left is not None:
                left -= sum(len(batch) for batch in batches)
        self._handout.there_is_room()
        return found or None
