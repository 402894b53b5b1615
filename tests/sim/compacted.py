"""Machines whose topic is compacted: of each key the last value must stay, and what was deleted must stay deleted."""

from dataclasses import dataclass

from ottla.log.log import Log
from ottla.record.batch import Batch, records
from ottla.record.kernels import Record
from tests.sim.history import History, Sent, read_all
from tests.sim.world import PARTITIONS, TOPIC, World

FOREVER_MS = 86_400_000
"""A `delete.retention.ms` that no run lives to see the end of."""


@dataclass(slots=True)
class CompactedHistory(History):
    """A compacted partition as its clients know it."""

    tombstones_stay: bool = False
    """Whether the deletion of a key must still be there as well."""

    def _compare(self, log: Log) -> None:
        found = read_all(log, Batch.check_crc)
        present = {record.offset: record for batch in found for record in records(batch)}
        written = self._written(log.start_offset, log.end_offset)
        for offset, record in present.items():
            sent, number = written.get(offset, (None, 0))
            self.check(sent is not None, f"nothing was ever written at offset {offset}")
            assert sent is not None
            self.check(
                (record.key, record.value, record.timestamp)
                == (sent.keys[number], sent.values[number], sent.timestamp),
                f"{record} is not what was written at {offset}",
            )
            epoch = log.epochs.of_offset(offset)
            self.check(epoch == sent.leader_epoch, f"leader epoch {epoch} at {offset}, not {sent.leader_epoch}")
        self._compare_keys(written, present)
        self._compare_times(log, present)
        self._compare_last_batches(log, found)
        self.compacted = len(written) - len(present)

    def _written(self, start_offset: int, end_offset: int) -> dict[int, tuple[Sent, int]]:
        """The batch that was written at each offset from start to end, and the number of the record in it."""
        return {
            sent.base_offset + number: (sent, number)
            for sent in self.stored
            if sent.base_offset is not None and start_offset <= sent.base_offset and sent.next_offset <= end_offset
            for number in range(len(sent.values))
        }

    def _compare_keys(self, written: dict[int, tuple[Sent, int]], present: dict[int, Record]) -> None:
        newest = {sent.keys[number]: offset for offset, (sent, number) in sorted(written.items())}
        last = {record.key: offset for offset, record in sorted(present.items())}
        for key, offset in newest.items():
            sent, number = written[offset]
            if offset in present:
                continue
            self.check(sent.values[number] is None, f"the last value of {key!r}, at {offset}, is gone")
            self.check(not self.tombstones_stay, f"the deletion of {key!r} at {offset} was forgotten too early")
            self.check(
                key not in last, f"{key!r} was deleted at {offset}, and is back with the value at {last.get(key)}"
            )

    def _compare_times(self, log: Log, present: dict[int, Record]) -> None:
        for offset in sorted(present)[:: max(1, len(present) // 5)]:
            wanted = present[offset].timestamp
            earliest = min(each.offset for each in present.values() if each.timestamp >= wanted)
            at = log.offset_for_time(wanted)
            self.check(at is not None and at.offset == earliest, f"time {wanted} leads to {at}, not {earliest}")

    def _compare_last_batches(self, log: Log, found: list[Batch]) -> None:
        """Of each producer the last batch stays, if only as a shell, so that none of them is forgotten."""
        self._compare_producers(log, found)
        last = {sent.producer_id: sent for sent, _ in self._written(log.start_offset, log.end_offset).values()}
        for producer_id, sent in last.items():
            state = log.producers.states.get(producer_id)
            self.check(
                producer_id < 0 or (state is not None and state.last_offset == sent.next_offset - 1),
                f"producer {producer_id}: state {state}, and its last batch ends before {sent.next_offset}",
            )


class CompactedWorld(World):
    """One machine with a compacted topic."""

    def __init__(self, policy: str, seed: int) -> None:
        super().__init__(policy, seed)
        chance = self.chance
        delete_retention_ms = chance.choice((0, 300, FOREVER_MS))
        self.configs = {
            "cleanup.policy": "compact",
            "min.cleanable.dirty.ratio": chance.choice(("0.01", "0.5")),
            "delete.retention.ms": str(delete_retention_ms),
            "segment.bytes": str(chance.choice((3_500, 6_000))),
            "segment.ms": chance.choice(("200", "604800000")),
            "index.interval.bytes": chance.choice(("0", "500", "4096")),
            "file.delete.delay.ms": chance.choice(("0", "1000", "60000")),
            **self.policy.configs,
        }
        self.deletes = False
        self.most_operations = 2**10
        tombstones_stay = delete_retention_ms == FOREVER_MS
        self.histories = [
            CompactedHistory(f"{TOPIC}-{index}", tombstones_stay=tombstones_stay) for index in range(PARTITIONS)
        ]
        self._hire_writers(key_count=chance.choice((3, 15)))
