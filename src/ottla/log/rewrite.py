"""Which records of a batch survive compaction, and the batch that they make."""

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from operator import attrgetter
from typing import NamedTuple

from ottla.log.aborted import AbortedTransaction
from ottla.log.replay import marker_of
from ottla.record.batch import Batch, records
from ottla.record.build import build_batch
from ottla.record.compression import Codec
from ottla.record.kernels import Record

_first_offset = attrgetter("first_offset")


class Survivors(NamedTuple):
    """The newest offset of each key, among the batches before `end`."""

    newest: Mapping[bytes, int]
    end: int


class Void:
    """What lies in aborted transactions."""

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        self._by_producer: dict[int, list[AbortedTransaction]] = {}
        for entry in sorted(aborted, key=_first_offset):
            self._by_producer.setdefault(entry.producer_id, []).append(entry)

    def holds(self, batch: Batch) -> bool:
        """Whether a batch is part of an aborted transaction."""
        if not batch.transactional:
            return False
        entries = self._by_producer.get(batch.producer_id, [])
        number = bisect_right(entries, batch.base_offset, key=_first_offset) - 1
        return number >= 0 and batch.base_offset < entries[number].last_offset


def note_keys(batch: Batch, void: Void, newest: dict[bytes, int]) -> int:
    """Note the offsets of a batch's keys; bytes of those that were not known."""
    if batch.control or void.holds(batch):
        return 0
    key_bytes = 0
    for record in records(batch):
        key = record.key
        if key is not None:
            if key not in newest:
                key_bytes += len(key)
            newest[key] = record.offset
    return key_bytes


class Rewriter:
    """Goes over the batches of a log from its start, in order.

    `producers` are the epochs and last offsets of those that are known; their last batches stay.
    """

    def __init__(
        self,
        survivors: Survivors,
        void: Void,
        producers: Mapping[int, tuple[int, int]],
        now_ms: int,
        delete_retention_ms: int,
    ) -> None:
        self._newest = survivors.newest
        self._end = survivors.end
        self._void = void
        self._producers = producers
        self._now_ms = now_ms
        self._horizon_ms = now_ms + delete_retention_ms
        self._with_data: set[int] = set()
        """Producers of whose running transaction a batch was passed, so that its marker must stay."""

    def rewrite(self, batch: Batch, *, stays: bool) -> Batch | None:
        """What is left of a batch: the same, a smaller one, an empty one, or, unless it `stays`, nothing."""
        if batch.base_offset >= self._end:
            return batch
        if batch.control:
            kept, may_go = self._control_records(batch)
        else:
            kept, may_go = self._data_records(batch), False
        needs_horizon = batch.delete_horizon_ms is None and (
            may_go or (not batch.control and any(record.value is None for record in kept))
        )
        if len(kept) == batch.count and not needs_horizon:
            return batch if kept or stays or self._is_producers_last(batch) else None
        if not kept and not stays and not self._is_producers_last(batch):
            return None
        return _rebuilt(batch, kept, self._horizon_ms if needs_horizon and kept else batch.delete_horizon_ms)

    def _is_producers_last(self, batch: Batch) -> bool:
        """Whether a producer's sequence numbers would be forgotten with the batch."""
        epoch, last_offset = self._producers.get(batch.producer_id, (None, None))
        if last_offset == -1:
            return batch.control and batch.producer_epoch == epoch
        return batch.last_offset == last_offset

    def _data_records(self, batch: Batch) -> list[Record]:
        if batch.transactional:
            self._with_data.add(batch.producer_id)
        if self._void.holds(batch):
            return []
        horizon_ms = batch.delete_horizon_ms
        tombstones_stay = horizon_ms is None or self._now_ms < horizon_ms
        newest = self._newest
        return [
            record
            for record in records(batch)
            if record.offset >= self._end
            or (
                record.key is not None
                and record.offset >= newest.get(record.key, -1)
                and (tombstones_stay or record.value is not None)
            )
        ]

    def _control_records(self, batch: Batch) -> tuple[list[Record], bool]:
        """What stays of a marker, and whether it may go some time because its transaction has left no batch."""
        found = records(batch)
        if marker_of(batch) is None:
            return found, False
        if batch.producer_id in self._with_data:
            self._with_data.discard(batch.producer_id)
            return found, False
        horizon_ms = batch.delete_horizon_ms
        if horizon_ms is not None and horizon_ms <= self._now_ms:
            return [], True
        return found, True


def _rebuilt(batch: Batch, kept: list[Record], horizon_ms: int | None) -> Batch:
    """A batch like another, with fewer records, or with the time from which its tombstones may go.

    An empty one has no time: searches by time must not be led to it.
    """
    data = bytearray(
        build_batch(
            kept,
            batch.codec if kept else Codec.NONE,
            base_offset=batch.base_offset,
            last_offset=batch.last_offset,
            base_timestamp=None if kept else -1,
            append_time=batch.append_time if kept else None,
            delete_horizon_ms=horizon_ms if kept else None,
            leader_epoch=batch.leader_epoch,
            producer_id=batch.producer_id,
            producer_epoch=batch.producer_epoch,
            base_sequence=batch.base_sequence,
            transactional=batch.transactional,
            control=batch.control,
        )
    )
    return Batch(data)
