"""The rows of a partition, gathered from fetched bytes into columns."""

from array import array

from ottla.client.consumer.chunk import Chunk
from ottla.client.consumer.decoding import entry_epoch, next_offset
from ottla.client.types import ConsumerRecord
from ottla.record import Batch, LegacyEntry
from ottla.record._kernel_types import LARGEST_INT32
from ottla.record.checksum import crc32c
from ottla.record.kernels import ColumnBuffers, Columns, read_run_tuples
from ottla.record.legacy import runs

MAX_BYTES = 2**23
"""How many bytes of batches are gathered together: what a fetch brings as a rule, so that values can stay there."""

ENOUGH_BYTES = MAX_BYTES // 2
"""From how many gathered bytes on no more is begun where as many rows are wanted as there are: the event loop stands
still meanwhile, for about a tenth of a millisecond a megabyte. Less than what a fetch brings as a rule, so that
that goes into one piece."""

Part = tuple[ColumnBuffers, bool] | list[ConsumerRecord]
"""Rows: columns, and whether their timestamps are the broker's; or messages of old formats, without their topic."""


class Gathering:
    """Rows of one partition, until enough are there, or bytes make no sense.

    Batches that are as most are, which `Chunk.gather` says, go into the columns many at a time; any other by itself.
    """

    def __init__(
        self,
        columns: Columns,
        *,
        start_offset: int,
        stop_offset: int,
        leader_epoch: int,
        max_rows: int | None,
        enough_bytes: int,
        with_types: bool,
        check_crcs: bool,
        limit: int,
    ) -> None:
        self.is_over = False
        """Whether there are enough rows or bytes, or those from the end on are not wanted."""
        self.leader_epoch = leader_epoch
        """The epoch of the last entry that was read."""
        self._next_offset = self._start_offset = start_offset
        self._stop_offset = stop_offset
        self._columns = columns
        self._rows_left = LARGEST_INT32 if max_rows is None else max_rows
        self._enough_bytes = enough_bytes
        self.bytes_gathered = 0
        """Bytes of the batches that have rows for the user."""
        self._checksum = crc32c if check_crcs else None
        self._limit = min(limit, LARGEST_INT32)
        self._append_time = False if with_types else None
        """Whether what is being gathered has the broker's timestamps; None if nobody wants to know."""
        self._bytes = 0
        self._parts: list[Part] = []

    @property
    def position(self) -> int:
        """The offset after all that was read."""
        return min(self._next_offset, self._stop_offset)

    def read(self, chunk: Chunk) -> None:
        """Read a chunk to its end, or as far as rows are wanted. ProtocolError where bytes make no sense: what comes
        before them has been gathered then."""
        while not (chunk.is_read or self.is_over):
            rows = self._columns.rows
            passed = chunk.gather(
                self._columns,
                append_time=self._append_time,
                max_bytes=MAX_BYTES - self._bytes,
                max_rows=self._rows_left,
                start_offset=self._start_offset,
                stop_offset=self._stop_offset,
                checksum=self._checksum,
            )
            if passed is None:
                self._read_entry(chunk)
                continue
            size, offset, epoch = passed
            self._count(size, self._columns.rows - rows)
            self._pass(offset, epoch)

    def finish(self) -> list[Part]:
        """What was gathered."""
        self._cut()
        return self._parts

    def _count(self, size: int, rows: int) -> None:
        """So many rows were added, out of so many bytes."""
        self._bytes += size
        self._rows_left -= rows
        self.bytes_gathered += size if rows else 0

    def _pass(self, offset: int, epoch: int) -> None:
        self._next_offset, self.leader_epoch = max(self._next_offset, offset), epoch
        self.is_over = offset >= self._stop_offset or not self._rows_left or self.bytes_gathered >= self._enough_bytes

    def _read_entry(self, chunk: Chunk) -> None:
        entry, is_shown = chunk.peek()
        if is_shown and next_offset(entry) > self._start_offset:
            if isinstance(entry, LegacyEntry):
                self._add_messages(entry)
            else:
                self._add_batch(entry)
        self._pass(next_offset(entry), entry_epoch(entry))
        # An entry of which only some rows were wanted is read once more for the others.
        if next_offset(entry) <= self._stop_offset:
            chunk.skip(entry)

    def _add_batch(self, batch: Batch) -> None:
        if self._checksum is not None:
            batch.check_crc()
        section = batch.section(self._limit)
        of_batch = (batch.count, batch.base_offset, batch.base_timestamp, batch.append_time, self._start_offset)
        if batch.count > self._rows_left:
            only_offsets = Columns(keys=False, values=False, headers=False)
            only_offsets.extend(section, *of_batch, self._stop_offset)
            self._stop_after_rows(array("q", bytes(only_offsets.finish().offsets)))
        if self._append_time is not None and batch.log_append_time != self._append_time:
            self._cut()
            self._append_time = batch.log_append_time
        size = max(batch.size, len(section))
        if self._bytes + size > MAX_BYTES:
            self._cut()
        self._count(size, self._columns.extend(section, *of_batch, self._stop_offset))

    def _add_messages(self, entry: LegacyEntry) -> None:
        messages: list[ConsumerRecord] = []
        for run in runs(entry.data, self._limit):
            messages += read_run_tuples(run, self._start_offset, ConsumerRecord, "", 0)
        self._stop_after_rows([message.offset for message in messages if message.offset < self._stop_offset])
        wanted = [message for message in messages if message.offset < self._stop_offset]
        self._count(entry.size, len(wanted))
        self._cut()
        if wanted:
            self._parts.append(wanted)

    def _stop_after_rows(self, offsets: "array[int] | list[int]") -> None:
        """Have the rows end where there are enough of them, if these are the next."""
        if len(offsets) > self._rows_left:
            self._stop_offset = offsets[self._rows_left]

    def _cut(self) -> None:
        """Begin another part."""
        self._bytes = 0
        if self._columns.rows:
            self._parts.append((self._columns.finish(), bool(self._append_time)))
