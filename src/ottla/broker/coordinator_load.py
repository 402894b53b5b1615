"""Loading groups from their log: a replay of everything that was ever decided, off the event loop and in pieces."""

import asyncio
import logging
from typing import TYPE_CHECKING

from ottla.log.log import Log
from ottla.record.batch import Batch, batches, records
from ottla.replica.partition import Partition
from ottla.wire.errors import ErrorCode, KafkaError, ProtocolError

if TYPE_CHECKING:
    from ottla.coordinator.group.shard import GroupShard

log = logging.getLogger("ottla.groups")


class Loader:
    """Replays one partition into groups that nobody else sees yet."""

    def __init__(self, partition: Partition, groups: "GroupShard", piece_bytes: int) -> None:
        self._log: Log = partition.log
        self._name = partition.name
        self._groups = groups
        self._piece_bytes = piece_bytes
        self._next_offset = self._log.start_offset
        self.record_count = 0
        """Records that were replayed."""

    async def run(self) -> None:
        """Return when everything is replayed. A piece that was begun is finished, also if this is cancelled."""
        loop = asyncio.get_running_loop()
        while self._next_offset < self._log.end_offset:
            piece = loop.run_in_executor(None, self._replay_piece)
            try:
                await asyncio.shield(piece)
            except asyncio.CancelledError:
                await asyncio.wait([piece])
                raise

    def _replay_piece(self) -> None:
        found = self._log.read(self._next_offset, self._piece_bytes, end=self._log.end_offset)
        if found is None:
            # What is left are offsets whose records compaction has taken away.
            self._next_offset = self._log.end_offset
            return
        before = self._next_offset
        for batch in batches(found.read()):
            assert isinstance(batch, Batch), "the offsets topic holds what its broker wrote"
            if batch.next_offset > self._next_offset:
                self._next_offset = batch.next_offset
                if not batch.control:
                    self._replay(batch)
        if self._next_offset == before:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"there is no whole batch at offset {before}")

    def _replay(self, batch: Batch) -> None:
        try:
            batch.check_crc()
            found = records(batch)
        except ProtocolError as error:
            log.error(
                "%s: the %d records from offset %d on are damaged, and what they say of groups is lost: %s",
                *(self._name, batch.count, batch.base_offset, error),
            )
            return
        for record in found:
            try:
                if record.key is None:
                    raise ProtocolError("it has no key")
                self._groups.replay(bytes(record.key), None if record.value is None else bytes(record.value))
            except Exception as error:  # noqa: BLE001 - whatever it is, the other groups must not suffer from it
                log.error("%s: the record at offset %d is left out: %s", self._name, record.offset, error)
            else:
                self.record_count += 1
