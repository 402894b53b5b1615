"""What a simulated partition must hold: every batch that was ever sent to it, and what became of each."""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise

from ottla.log.log import Log
from ottla.record.batch import Batch, batches, records


@dataclass(slots=True, eq=False)
class Sent:
    """A batch on its way, stored, or lost again."""

    values: tuple[bytes | None, ...]
    producer_id: int
    producer_epoch: int
    sequence: int
    timestamp: int
    leader_epoch: int = -1
    base_offset: int | None = None
    """Where it lies; None if it was not stored, or was lost."""
    acknowledged_ms: int | None = None
    keys: tuple[bytes | None, ...] = ()
    """One for each value; none at all if the records have none."""

    @property
    def next_offset(self) -> int:
        """The offset after its last record."""
        assert self.base_offset is not None
        return self.base_offset + len(self.values)


@dataclass(slots=True)
class History:
    """One partition as its clients know it."""

    name: str
    stored: list[Sent] = field(default_factory=list)
    """In the order of their offsets, without gaps, deleted ones included; the last may not have made it."""
    durable_end: int = 0
    """Up to where everything is known to be on the disk."""
    start: int = 0
    """Where the log began when it was last seen."""
    settled_start: int = 0
    """Before where everything is deleted for good: a client was told, or a segment is gone."""
    compacted: int = 0
    """How many records compaction had taken when the log was last opened."""

    @property
    def end(self) -> int:
        """The offset after the last batch."""
        return self.stored[-1].next_offset if self.stored else self.durable_end

    def place(self, sent: Sent, base_offset: int) -> None:
        """A batch is about to be written at an offset."""
        self.check(base_offset == self.end, f"the log ends at {base_offset}, its history at {self.end}")
        sent.base_offset = base_offset
        self.stored.append(sent)

    def begins(self, log: Log) -> None:
        """The log begins somewhere else now."""
        self.start = log.start_offset
        self.deleted_before(log.segments[0].base_offset)

    def deleted_before(self, offset: int) -> None:
        """The records before an offset are gone for good."""
        self.settled_start = max(self.settled_start, offset)

    def recovered(self, log: Log, required_end: int, *, all_of_it: bool) -> list[Sent]:
        """Compare a log that was opened again with what was sent; the batches that are lost.

        All of it must be there unless the power was cut; what a power cut has left is on the disk for good.
        """
        self.check(
            log.start_offset >= self.settled_start,
            f"starts at {log.start_offset}, and all before {self.settled_start} was deleted",
        )
        # Without a sync even the first segments may be gone, and the log then begins with those that are left.
        self.check(
            log.start_offset <= max(self.start, self.settled_start) or required_end <= self.start,
            f"starts at {log.start_offset}, it was {self.start}, and all before {required_end} was promised to stay",
        )
        self.check(
            log.end_offset >= max(required_end, self.settled_start),
            f"ends at {log.end_offset}; all before {required_end} was promised to stay, and no offset before "
            f"{self.settled_start} to be used again",
        )
        self.check(log.end_offset <= max(self.end, self.start), f"ends at {log.end_offset}, beyond {self.end}")
        if all_of_it:
            # The last batch may have been on its way into the page cache.
            known = [sent for sent in self.stored if sent.acknowledged_ms is not None]
            self.check(not known or log.end_offset >= known[-1].next_offset, f"a kill lost {log.end_offset} and more")
        self._compare(log)
        lost = [sent for sent in self.stored if sent.next_offset > log.end_offset]
        kept = [sent for sent in self.stored if sent.next_offset <= log.end_offset]
        if kept and kept[-1].next_offset != log.end_offset:
            # All that is left was deleted, and the log goes on behind a gap.
            self.check(log.start_offset == log.end_offset, f"ends at {log.end_offset}, inside a batch")
        if not kept or kept[-1].next_offset != log.end_offset:
            kept, self.durable_end = [], log.end_offset
        if not all_of_it:
            self.durable_end = log.end_offset
        self.stored = kept
        for sent in lost:
            sent.base_offset = None
        self.begins(log)
        return lost

    def _compare(self, log: Log) -> None:
        expected = {sent.base_offset: sent for sent in self.stored}
        found = read_all(log)
        for earlier, later in pairwise(found):
            self.check(later.base_offset == earlier.next_offset, f"a gap after offset {earlier.last_offset}")
        for batch in found:
            sent = expected.get(batch.base_offset)
            self.check(sent is not None, f"nothing was ever written at offset {batch.base_offset}")
            assert sent is not None
            values = tuple(record.value for record in records(batch))
            self.check(values == sent.values, f"{values} at {batch.base_offset}, where {sent.values} were written")
            self.check(
                (batch.producer_id, batch.producer_epoch, batch.base_sequence)
                == (sent.producer_id, sent.producer_epoch, sent.sequence),
                f"another producer at {batch.base_offset}",
            )
            offset = max(batch.base_offset, log.start_offset)
            self.check(log.epochs.of_offset(offset) == sent.leader_epoch, f"another leader epoch at {offset}")
        self._compare_searches(log, found)
        self._compare_producers(log, found)

    def _compare_searches(self, log: Log, found: list[Batch]) -> None:
        for batch in found[:: max(1, len(found) // 5)]:
            offset = max(batch.last_offset, log.start_offset)
            piece = log.read(offset, 1, end=log.end_offset)
            assert piece is not None
            first = next(iter(batches(piece.read())))
            assert isinstance(first, Batch)
            self.check(first.base_offset == batch.base_offset, f"offset {offset} leads to {first.base_offset}")
            wanted = batch.base_timestamp
            earliest = min(max(each.base_offset, log.start_offset) for each in found if each.base_timestamp >= wanted)
            at = log.offset_for_time(wanted)
            self.check(at is not None and at.offset == earliest, f"time {wanted} leads to {at}, not {earliest}")

    def _compare_producers(self, log: Log, found: list[Batch]) -> None:
        last = {batch.producer_id: batch for batch in found if batch.producer_id >= 0}
        for producer_id, batch in last.items():
            state = log.producers.states.get(producer_id)
            self.check(state is not None, f"producer {producer_id} is not known any more")
            assert state is not None
            self.check(
                (state.epoch, state.last_sequence, state.last_offset)
                == (batch.producer_epoch, batch.last_sequence, batch.last_offset),
                f"producer {producer_id}: state {state.epoch}, {state.last_sequence}, {state.last_offset}; its last "
                f"batch {batch.producer_epoch}, {batch.last_sequence}, {batch.last_offset}",
            )
        for state in log.producers.states.values():
            self.check(state.last_offset < log.end_offset, f"producer {state.producer_id} knows a lost batch")

    def check(self, holds: bool, message: str) -> None:
        """Fail with the partition's name."""
        assert holds, f"{self.name}: {message}"


def read_all(log: Log, check: Callable[[Batch], object] = Batch.validate) -> list[Batch]:
    """All batches of a log, checked."""
    found: list[Batch] = []
    offset = log.start_offset
    while (piece := log.read(offset, 1_000_000, end=log.end_offset)) is not None:
        for batch in batches(piece.read()):
            assert isinstance(batch, Batch)
            check(batch)
            found.append(batch)
        offset = found[-1].next_offset
    return found
