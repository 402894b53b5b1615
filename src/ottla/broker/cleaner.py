"""Compacts the logs of topics that want it, one after the other. Reading and rewriting happen off the event loop."""

import asyncio
import logging
from typing import TYPE_CHECKING

from ottla.broker.idle import open_idle
from ottla.log.clean import Compaction, Dirt, compaction_is_due, find_dirt, is_due
from ottla.replica.partition import Partition
from ottla.wire.errors import KafkaError, ProtocolError

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

log = logging.getLogger("ottla.cleaner")


class Cleaner:
    """Looks for logs that are dirty enough, the dirtiest first."""

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker

    async def run(self) -> int:
        """Compact what is due; how many logs that were."""
        if not self._broker.config.log_cleaner_enable:
            return 0
        await open_idle(self._broker, compaction_is_due)
        due = sorted(
            ((dirt.ratio, partition) for partition in self._candidates() if (dirt := self._due(partition)) is not None),
            key=lambda found: found[0],
            reverse=True,
        )
        for _, partition in due:
            try:
                await self._compact(partition)
            except (KafkaError, OSError, ProtocolError) as error:
                # Retention or a deletion was faster, the disk is full, or the log is damaged. What is not swapped in
                # yet is worth nothing, and the other logs need not wait.
                log.warning("%s: compaction was given up: %s", partition.name, error)
        return len(due)

    def _candidates(self) -> list[Partition]:
        partitions = self._broker.logs.partitions.values()
        return [partition for partition in partitions if "compact" in partition.config.cleanup_policy]

    def _due(self, partition: Partition) -> Dirt | None:
        dirt = self._dirt(partition, partition.log.end_offset)
        return dirt if is_due(partition.log, dirt) else None

    def _dirt(self, partition: Partition, recovery_point: int) -> Dirt:
        now_ms = self._broker.clock.now_ms()
        return find_dirt(partition.log, now_ms, high_watermark=partition.high_watermark, recovery_point=recovery_point)

    async def _compact(self, partition: Partition) -> None:
        broker, found = self._broker, partition.log
        loop = asyncio.get_running_loop()
        # What is rewritten must be known to be on the disk, also to a broker that starts after a crash.
        recovery_point = await loop.run_in_executor(None, found.flush)
        await loop.run_in_executor(None, broker.logs.write_checkpoints)
        dirt = self._dirt(partition, recovery_point)
        if not is_due(found, dirt):
            return
        before = found.size
        compaction = Compaction(
            broker.disk, found, dirt, broker.clock.now_ms(), map_bytes=broker.config.log_cleaner_dedupe_buffer_size
        )
        await loop.run_in_executor(None, compaction.build_map)
        for group in await loop.run_in_executor(None, list, compaction.groups()):
            state = await loop.run_in_executor(None, compaction.rewrite, group)
            found.replace_segments(group, state)
        compaction.finish()
        log.info("%s: compacted from %d to %d bytes", partition.name, before, found.size)
