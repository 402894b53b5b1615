"""What one fetch brought of one partition, as bytes, and the walk over it."""

from collections.abc import Callable, Iterable
from struct import Struct
from typing import NamedTuple

from ottla.record import Batch, ControlType, LegacyEntry, batches, control_type, records
from ottla.record.batch import CODEC_MASK, CONTROL, HEADER_SIZE, LOG_APPEND_TIME, TRANSACTIONAL
from ottla.record.kernels import Columns, whole_entries
from ottla.wire.api.fetch import AbortedTransaction

CONTROL_LIMIT = 2**20
"""Bytes that a batch of transaction markers may decompress to."""

_ENTRY = Struct(">qiib")
_INT32 = Struct(">i")
_LAST_DELTA_AT = 23
_MAGIC_AT = 16
FIRST_MAGIC_OF_BATCHES = 2


class Extent(NamedTuple):
    """What whole entries there are in a reply."""

    size: int
    next_offset: int
    leader_epoch: int
    """That of the last entry, -1 if it has none."""
    record_count: int
    """Records, as far as can be told without looking into what is compressed."""


def extent_of(data: memoryview) -> Extent | None:
    """What there is up to the last whole entry; None if there is not one.

    Only what leads from one entry to the next is looked at: the rest is for when the records are read.
    """
    position, last, count = whole_entries(data)
    if last < 0:
        return None
    offset, _, epoch, magic = _ENTRY.unpack_from(data, last)
    if magic < FIRST_MAGIC_OF_BATCHES or position - last < HEADER_SIZE:
        return Extent(position, offset + 1, -1, count)
    return Extent(position, offset + _INT32.unpack_from(data, last + _LAST_DELTA_AT)[0] + 1, epoch, count)


class Chunk:
    """Batches of one partition, not decoded yet."""

    __slots__ = ("_at", "_transactions", "count", "data", "next_offset")

    def __init__(self, data: memoryview, extent: Extent, aborted: Iterable[AbortedTransaction] = ()) -> None:
        self.data = data[: extent.size]
        self.next_offset = extent.next_offset
        """The offset after the last batch."""
        self.count = extent.record_count
        """About how many records there are."""
        self._at = 0
        self._transactions = _Transactions(aborted)

    @property
    def size(self) -> int:
        """Bytes."""
        return len(self.data)

    @property
    def is_read(self) -> bool:
        """Whether the walk is over."""
        return self._at >= len(self.data)

    def peek(self) -> tuple[Batch | LegacyEntry, bool]:
        """The entry at which the walk is, and whether it is for the user. Messages of old formats come together."""
        if len(self.data) - self._at > _MAGIC_AT and self.data[self._at + _MAGIC_AT] < FIRST_MAGIC_OF_BATCHES:
            return self._old_messages(), True
        batch = Batch(self.data, self._at)
        return batch, not (self._transactions.leave_out(batch) or batch.control)

    def skip(self, entry: Batch | LegacyEntry) -> None:
        """Walk on."""
        self._at += entry.size

    def gather(
        self,
        columns: Columns,
        *,
        append_time: bool | None,
        max_bytes: int,
        max_rows: int,
        start_offset: int,
        stop_offset: int,
        checksum: Callable[[memoryview], int] | None,
    ) -> tuple[int, int, int] | None:
        """Walk on over batches that need no second look, and add their records to columns: those without compression,
        and of one type of timestamps, if `append_time` says which.

        Returns how many bytes they were, the offset after them and their leader epoch; or None if the entry at which
        the walk is has something special, or goes beyond a limit: `peek` at that.
        """
        mask = CODEC_MASK | CONTROL
        if append_time is not None:
            mask |= LOG_APPEND_TIME
        if self._transactions.are_left:
            mask |= TRANSACTIONAL
        attributes = LOG_APPEND_TIME if append_time else 0
        end, next_offset, epoch = columns.extend_batches(
            self.data,
            self._at,
            max_bytes,
            max_rows,
            mask,
            attributes,
            checksum,
            start_offset,
            stop_offset,
            consume=True,
        )
        size, self._at = end - self._at, end
        return (size, next_offset, epoch) if size else None

    def detach(self) -> None:
        """Keep a copy of the bytes, so that the reply that they are a part of can be freed."""
        self.data = memoryview(bytes(self.data))

    def _old_messages(self) -> LegacyEntry:
        end, last = self._at, 0
        for entry in batches(self.data[self._at :]):
            if isinstance(entry, Batch):
                break
            end, last = end + entry.size, entry.offset
        return LegacyEntry(self.data[self._at : end], last, 1)


class _Transactions:
    """Which batches belong to transactions that were given up, by the list that came with the reply."""

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        self._coming = sorted(aborted, key=lambda one: one.first_offset, reverse=True)
        self._open: set[int] = set()

    @property
    def are_left(self) -> bool:
        """Whether batches may have to be left out."""
        return bool(self._coming or self._open)

    def leave_out(self, batch: Batch) -> bool:
        while self._coming and self._coming[-1].first_offset <= batch.last_offset:
            self._open.add(self._coming.pop().producer_id)
        if not self._open or batch.producer_id not in self._open:
            return False
        if batch.control:
            first = records(batch, CONTROL_LIMIT)[:1]
            if first and control_type(first[0]) == ControlType.ABORT:
                self._open.discard(batch.producer_id)
            return True
        return batch.transactional
