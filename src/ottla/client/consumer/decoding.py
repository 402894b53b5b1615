"""From fetched bytes to records, when the user takes them."""

from collections.abc import Callable
from typing import Any

from ottla.client.consumer.runs import Run
from ottla.client.consumer.subscription import PartitionState
from ottla.client.errors import CorruptRecordError, RecordDeserializationError
from ottla.client.types import CREATE_TIME, LOG_APPEND_TIME, ConsumerRecord, TopicPartition
from ottla.record import Batch, LegacyEntry
from ottla.record.batch import DEFAULT_LIMIT
from ottla.record.kernels import read_run_tuples, read_tuples
from ottla.record.legacy import runs
from ottla.wire.errors import ProtocolError

Deserializer = Callable[[bytes], Any]
"""What makes a key or a value of bytes. It is not called for those that are null."""

ENOUGH = 2_000
"""Records after which no further batch is decoded. More would be no faster, and be in memory longer."""


class Decoder:
    """Decodes what was fetched, as little at a time as is fast."""

    def __init__(
        self,
        *,
        check_crcs: bool = True,
        key_deserializer: Deserializer | None = None,
        value_deserializer: Deserializer | None = None,
        limit: int = DEFAULT_LIMIT,
    ) -> None:
        self._check_crcs = check_crcs
        self._key_deserializer = key_deserializer
        self._value_deserializer = value_deserializer
        self._limit = limit

    def begin_run(self, state: PartitionState) -> Run | None:
        """Decode the next records of a partition; None if what was fetched has none, which moves the position.

        Where bytes make no sense, or a deserializer fails, the position stays before the first such record: what is
        before it comes first, and the exception the next time.
        """
        try:
            run = self._decode(state)
        except Exception:
            # What is wrong on the way only is right the next time, so it is fetched again.
            state.drop_chunks()
            raise
        if run.records:
            state.begin_run(run)
            return run
        state.advance(run.next_offset, run.leader_epoch)
        return None

    def _decode(self, state: PartitionState) -> Run:
        start = position = state.position or 0
        records: list[ConsumerRecord] = []
        epoch = state.leader_epoch
        while state.chunks and len(records) < ENOUGH:
            chunk = state.chunks[0]
            if chunk.is_read:
                state.chunks.popleft()
                continue
            try:
                entry, shown = chunk.peek()
                if records and entry_epoch(entry) != epoch:
                    break
                found = self._records(state.partition, entry, position) if shown else []
            except ProtocolError as error:
                if records:
                    break
                raise corrupt(state.partition, position, error) from error
            records += found
            position = max(position, next_offset(entry))
            epoch = entry_epoch(entry)
            chunk.skip(entry)
        while state.chunks and state.chunks[0].is_read:
            state.chunks.popleft()
        if self._key_deserializer or self._value_deserializer:
            return self._deserialize(state, Run(records, start, position, epoch))
        return Run(records, start, position, epoch)

    def _records(self, partition: TopicPartition, entry: Batch | LegacyEntry, position: int) -> list[ConsumerRecord]:
        """The records from a position on: a broker sends whole batches, also where the position lies inside."""
        if next_offset(entry) <= position:
            return []
        topic, index = partition
        if isinstance(entry, LegacyEntry):
            found: list[ConsumerRecord] = []
            for run in runs(entry.data, self._limit):
                found += read_run_tuples(run, position, ConsumerRecord, topic, index)
            return found
        if self._check_crcs:
            entry.check_crc()
        append_time = entry.append_time
        return read_tuples(
            entry.section(self._limit),
            entry.count,
            entry.base_offset,
            entry.base_timestamp,
            append_time,
            position,
            ConsumerRecord,
            topic,
            index,
            CREATE_TIME if append_time is None else LOG_APPEND_TIME,
        )

    def _deserialize(self, state: PartitionState, run: Run) -> Run:
        make_key, make_value = self._key_deserializer, self._value_deserializer
        done: list[ConsumerRecord] = []
        for record in run.records:
            topic, partition, offset, timestamp, kind, key, value, headers = record
            try:
                if make_key is not None and key is not None:
                    key = make_key(key)
                if make_value is not None and value is not None:
                    value = make_value(value)
            except Exception as error:
                if not done:
                    what = f"{type(error).__name__}: {error}"
                    raise RecordDeserializationError(state.partition, offset, what) from error
                # The rest is fetched again once these have been handed out.
                state.drop_chunks()
                return Run(done, run.start_offset, offset, run.leader_epoch)
            done.append(ConsumerRecord(topic, partition, offset, timestamp, kind, key, value, headers))
        return Run(done, run.start_offset, run.next_offset, run.leader_epoch)


def next_offset(entry: Batch | LegacyEntry) -> int:
    """The offset after an entry."""
    return entry.next_offset if isinstance(entry, Batch) else entry.offset + 1


def entry_epoch(entry: Batch | LegacyEntry) -> int:
    """The epoch of the leader that wrote an entry, -1 if it does not say."""
    return entry.leader_epoch if isinstance(entry, Batch) else -1


def corrupt(partition: TopicPartition, position: int, error: ProtocolError) -> CorruptRecordError:
    """The exception for bytes at a position that make no sense."""
    message = f"what was fetched of {partition} at offset {position} is corrupt: {error}"
    return CorruptRecordError(message).at(partition, position)
