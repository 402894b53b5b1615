"""What idempotent producers have written last, so that a batch sent twice is stored once.

Kafka's rules: the last five batches of a producer are known. A batch that equals one of them in epoch and sequence
numbers is a duplicate; otherwise its sequence must follow the last one. A producer without state may begin anywhere.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from ottla.log.walk import Header
from ottla.record.batch import Batch
from ottla.record.control import EndMarker
from ottla.wire.errors import ErrorCode, KafkaError

REMEMBERED_BATCHES: Final = 5
_SEQUENCE_MASK: Final = 2**31 - 1


class ProducedBatch(NamedTuple):
    """A batch that a producer has written."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    def first_sequence(self) -> int:
        """The sequence number of the first record; the numbers wrap to 0 after 2**31 - 1."""
        return (self.last_sequence - self.offset_delta) & _SEQUENCE_MASK

    @property
    def first_offset(self) -> int:
        """The offset of the first record."""
        return self.last_offset - self.offset_delta


class ProducerState:
    """What is known of one producer."""

    __slots__ = ("batches", "coordinator_epoch", "epoch", "last_timestamp", "producer_id", "transaction_first_offset")

    def __init__(self, producer_id: int, epoch: int) -> None:
        self.producer_id = producer_id
        self.epoch = epoch
        self.batches: list[ProducedBatch] = []
        """The last ones, oldest first."""
        self.last_timestamp = -1
        """When it was last heard of, by the broker's clock."""
        self.coordinator_epoch = -1
        """Of the coordinator that wrote its last transaction marker."""
        self.transaction_first_offset = -1
        """Where its open transaction begins; -1 if it has none."""

    @property
    def last_sequence(self) -> int:
        """The sequence number of the last record, -1 if no batch of this epoch is known."""
        return self.batches[-1].last_sequence if self.batches else -1

    @property
    def last_offset(self) -> int:
        """The offset of the last record, -1 if no batch of this epoch is known."""
        return self.batches[-1].last_offset if self.batches else -1

    def enter_epoch(self, epoch: int) -> None:
        """A newer epoch starts its sequence afresh."""
        if epoch != self.epoch:
            self.epoch = epoch
            self.batches = []


class Producers:
    """The producers of one partition.

    >>> from ottla.record.build import build_batch
    >>> from ottla.record.kernels import Record
    >>> batch = Batch(build_batch([Record(0, 1, None, b"a")], producer_id=9, producer_epoch=0, base_sequence=0))
    >>> producers = Producers()
    >>> producers.check(batch)
    >>> producers.note(batch, now_ms=1)
    >>> producers.check(batch)
    ProducedBatch(last_sequence=0, last_offset=0, offset_delta=0, timestamp=1)
    """

    __slots__ = ("_open", "_unreplicated", "states")

    def __init__(self, states: Iterable[ProducerState] = ()) -> None:
        self.states = {state.producer_id: state for state in states}
        self._open = {
            state.producer_id: state.transaction_first_offset
            for state in self.states.values()
            if state.transaction_first_offset >= 0
        }
        self._unreplicated: list[tuple[int, int]] = []
        """First and last offsets of transactions that have ended."""

    def __len__(self) -> int:
        return len(self.states)

    def check(self, batch: Batch) -> ProducedBatch | None:
        """The batch as it was written before if it is a duplicate; KafkaError if it must not be written now."""
        state = self.states.get(batch.producer_id)
        if state is None:
            return None
        epoch = batch.producer_epoch
        if epoch < state.epoch:
            raise KafkaError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"epoch {epoch} of producer {batch.producer_id} is older than {state.epoch}, which is in use",
            )
        last_sequence = state.last_sequence if epoch == state.epoch else -1
        if batch.base_sequence != last_sequence + 1 & _SEQUENCE_MASK and batch.base_sequence >= 0:
            duplicate = self._find_duplicate(state, batch) if epoch == state.epoch else None
            if duplicate is not None:
                return duplicate
            raise KafkaError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {batch.producer_id} in epoch {epoch} sends sequence {batch.base_sequence}, and the last "
                f"one stored is {last_sequence}",
            )
        if state.transaction_first_offset >= 0 and not batch.transactional:
            raise KafkaError(
                ErrorCode.INVALID_TXN_STATE,
                f"producer {batch.producer_id} sends a batch outside of its open transaction, which began at offset "
                f"{state.transaction_first_offset}",
            )
        return None

    @staticmethod
    def _find_duplicate(state: ProducerState, batch: Batch) -> ProducedBatch | None:
        last_sequence = batch.last_sequence
        for known in state.batches:
            if known.last_sequence == last_sequence and known.first_sequence == batch.base_sequence:
                return known
        return None

    def note(self, batch: Batch | Header, now_ms: int) -> None:
        """A data batch has been written."""
        state = self.states.get(batch.producer_id)
        if state is None:
            state = self.states[batch.producer_id] = ProducerState(batch.producer_id, batch.producer_epoch)
        state.enter_epoch(batch.producer_epoch)
        state.last_timestamp = now_ms
        if batch.base_sequence >= 0:
            delta = batch.last_offset - batch.base_offset
            state.batches.append(ProducedBatch(batch.last_sequence, batch.last_offset, delta, batch.max_timestamp))
            if len(state.batches) > REMEMBERED_BATCHES:
                del state.batches[0]
        if batch.transactional and state.transaction_first_offset < 0:
            state.transaction_first_offset = self._open[batch.producer_id] = batch.base_offset

    def note_marker(self, batch: Batch, marker: EndMarker, now_ms: int) -> None:
        """A transaction marker has been written, and ends the producer's transaction if one is open."""
        state = self.states.get(batch.producer_id)
        if state is None:
            state = self.states[batch.producer_id] = ProducerState(batch.producer_id, batch.producer_epoch)
        state.enter_epoch(batch.producer_epoch)
        state.last_timestamp = now_ms
        state.coordinator_epoch = marker.coordinator_epoch
        first_offset = state.transaction_first_offset
        if first_offset < 0:
            return
        state.transaction_first_offset = -1
        del self._open[batch.producer_id]
        self._unreplicated.append((first_offset, batch.last_offset))

    def first_unstable_offset(self, high_watermark: int) -> int | None:
        """Where the earliest transaction begins that is open, or whose end is not replicated yet.

        To be asked whenever the high watermark moves, since it forgets the transactions that are through.
        """
        if not self._open and not self._unreplicated:
            return None
        self._unreplicated = [ended for ended in self._unreplicated if ended[1] >= high_watermark]
        return min([*self._open.values(), *(first_offset for first_offset, _ in self._unreplicated)], default=None)

    def first_open_offset(self, apart_from: int = -1) -> int | None:
        """Where the earliest open transaction begins, not counting that of one producer."""
        return min((first for producer_id, first in self._open.items() if producer_id != apart_from), default=None)

    def open_transaction(self, producer_id: int) -> int | None:
        """Where a producer's open transaction begins."""
        return self._open.get(producer_id)

    def expire(self, before_ms: int) -> int:
        """Forget producers without open transaction that were last heard of before a time; how many they were."""
        expired = [
            state.producer_id
            for state in self.states.values()
            if state.last_timestamp < before_ms and state.transaction_first_offset < 0
        ]
        for producer_id in expired:
            del self.states[producer_id]
        return len(expired)
