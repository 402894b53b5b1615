"""The logs of this broker's partitions: opened when first used, written down when it stops, recovered when it did not.

After a clean stop nothing is opened at the start: what each log looked like was written down, and a partition that
nobody asks for costs that one line. After a crash every log is checked, from the point up to which it was synced.
"""

import asyncio
import logging
from collections.abc import Iterable
from threading import Lock

from ottla.cluster.image import ClusterImage, PartitionImage, TopicImage
from ottla.config.broker import BrokerConfig
from ottla.config.topic import TopicConfig
from ottla.log import checkpoint
from ottla.log.checkpoint import LogState
from ottla.log.files import OpenFiles
from ottla.log.log import DELETE_SUFFIX, Log
from ottla.log.metadata import read_topic_id
from ottla.ports import Clock, Disk
from ottla.replica.partition import Partition
from ottla.wire.errors import ErrorCode, KafkaError

log = logging.getLogger("ottla.logs")


def folder_of(topic: str, index: int) -> str:
    """Where a partition's log lies, as in Kafka."""
    return f"{topic}-{index}"


class Logs:
    """All logs of one data folder."""

    def __init__(self, disk: Disk, clock: Clock, config: BrokerConfig) -> None:
        self._disk = disk
        self._clock = clock
        self.config = config
        self._files = OpenFiles(disk)
        self._closed: dict[str, LogState] = {}
        self._opening = Lock()
        self.partitions: dict[tuple[str, int], Partition] = {}
        """The partitions that were used since the start."""

    async def recover(self, image: ClusterImage) -> None:
        """Make the folders agree with the image; check the logs if the last stop was not a clean one."""
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(None, self._recover, image)

    def _recover(self, image: ClusterImage) -> None:
        states = checkpoint.take_clean(self._disk)
        wanted = {
            folder_of(topic.name, partition.index): (topic, partition)
            for topic in image.topics.values()
            for partition in topic.partitions
        }
        if states is not None:
            self._closed = {folder: state for folder, state in states.items() if folder in wanted}
            leftovers: Iterable[str] = states.keys() - wanted.keys()
        else:
            leftovers = self._recover_each(wanted)
        for folder in leftovers:
            self._disk.remove_folder(folder)
        self.write_checkpoints()

    def _recover_each(self, wanted: dict[str, tuple[TopicImage, PartitionImage]]) -> list[str]:
        points = self._offsets(checkpoint.RECOVERY_POINTS_FILE)
        starts = self._offsets(checkpoint.START_OFFSETS_FILE)
        leftovers = []
        for folder in self._disk.list():
            if folder in wanted:
                topic, partition = wanted[folder]
                if read_topic_id(self._disk, folder) in (None, topic.topic_id):
                    found = Log.open(
                        self._disk,
                        self._files,
                        folder,
                        self._topic_config(topic),
                        self._clock,
                        recovery_point=points.get(folder, 0),
                        start_offset=starts.get(folder),
                    )
                    _report(found)
                    self._keep(topic, partition, found)
                    continue
                # A topic of the same name that was deleted: its records must not come back.
                self._disk.remove_folder(folder)
            elif folder.endswith(DELETE_SUFFIX) or self._disk.exists(f"{folder}/partition.metadata"):
                leftovers.append(folder)
        return leftovers

    def _offsets(self, name: str) -> dict[str, int]:
        try:
            return checkpoint.read_offsets(self._disk, name)
        except ValueError as error:
            # Without it more is checked, that is all.
            log.warning("%s", error)
            return {}

    def _topic_config(self, topic: TopicImage) -> TopicConfig:
        return TopicConfig.of(topic.configs, self.config)

    def _keep(self, topic: TopicImage, partition: PartitionImage, found: Log) -> Partition:
        kept = Partition(topic.name, partition.index, found, found.config, partition.leader_epoch)
        self.partitions[topic.name, partition.index] = kept
        return kept

    def open(self, topic: TopicImage, index: int) -> Partition:
        """A partition that is used for the first time."""
        folder = folder_of(topic.name, index)
        # A fetch that has to wait for the disk comes here in a thread, while the event loop serves others.
        with self._opening:
            opened = self.partitions.get((topic.name, index))
            if opened is not None:
                return opened
            config = self._topic_config(topic)
            state = self._closed.get(folder)
            if state is not None:
                found = Log.open(self._disk, self._files, folder, config, self._clock, state=state)
            else:
                # Between a topic's entry in the catalog and its folder the broker may have been killed.
                found = Log.create(self._disk, self._files, folder, config, self._clock, topic.topic_id)
            kept = self._keep(topic, topic.partitions[index], found)
            self._closed.pop(folder, None)
            return kept

    def size_of(self, topic: str, index: int) -> int | None:
        """Bytes of a partition's log, which stays closed if it is; None if it is not here."""
        found = self.partitions.get((topic, index))
        if found is not None:
            return found.log.size
        state = self._closed.get(folder_of(topic, index))
        return None if state is None else sum(segment.size for segment in state.segments)

    async def create(self, topic: TopicImage, partitions: Iterable[PartitionImage]) -> None:
        """Make the folders of new partitions."""
        loop = asyncio.get_running_loop()
        config = self._topic_config(topic)

        def make() -> list[tuple[PartitionImage, Log]]:
            made = []
            for partition in partitions:
                folder = folder_of(topic.name, partition.index)
                # A folder that is there belonged to a topic that no longer is.
                self._disk.remove_folder(folder)
                made.append(
                    (partition, Log.create(self._disk, self._files, folder, config, self._clock, topic.topic_id))
                )
            return made

        try:
            made = await loop.run_in_executor(None, make)
        except OSError as error:
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR, f"no folders could be made for {topic.name!r}: {error}"
            ) from error
        for partition, found in made:
            self._keep(topic, partition, found)

    async def delete(self, topic: TopicImage) -> None:
        """Remove a topic's partitions; those who wait on them are let go."""
        doomed = []
        for partition in topic.partitions:
            folder = folder_of(topic.name, partition.index)
            self._closed.pop(folder, None)
            found = self.partitions.pop((topic.name, partition.index), None)
            if found is not None:
                found.close()
                doomed.append(found.log.delete())
            else:
                doomed.append(folder)
        loop = asyncio.get_running_loop()
        for folder in doomed:
            await loop.run_in_executor(None, self._disk.remove_folder, folder)

    def configure(self, topic: TopicImage, config: TopicConfig) -> None:
        """Put changed configs into effect."""
        for partition in topic.partitions:
            found = self.partitions.get((topic.name, partition.index))
            if found is not None:
                found.configure(config)

    def wake_all(self) -> None:
        """Let everyone who waits for records go."""
        for partition in self.partitions.values():
            partition.waiters.wake_all()

    # What upkeep calls.

    def flush_due(self) -> None:
        """Sync the logs whose flush.ms is over. In an executor."""
        now_ms = self._clock.now_ms()
        for partition in list(self.partitions.values()):
            if partition.flush_is_due(now_ms):
                partition.log.flush()

    def enforce_retention(self) -> None:
        """Let old segments go. On the event loop: it only renames files."""
        now_ms = self._clock.now_ms()
        for partition in list(self.partitions.values()):
            for gone in partition.log.enforce_retention(now_ms, partition.high_watermark):
                log.info("%s: segment %d goes: %s", partition.name, gone.base_offset, gone.reason)
            partition.log.expire_producers(now_ms - self.config.producer_id_expiration_ms)

    def remove_retired(self) -> None:
        """Remove the files of segments that went a while ago. In an executor."""
        now_ms = self._clock.now_ms()
        for partition in list(self.partitions.values()):
            partition.log.remove_retired(now_ms)

    def write_checkpoints(self) -> None:
        """Write down up to where each log is synced and from where it can be read. In an executor."""
        # A copy: partitions may be opened meanwhile. One that is just being opened is in both places.
        closed = dict(self._closed)
        points = {folder: state.end_offset for folder, state in closed.items()}
        starts = {folder: state.start_offset for folder, state in closed.items() if state.start_offset}
        for partition in list(self.partitions.values()):
            points[partition.name] = partition.log.recovery_point
            if partition.log.start_offset:
                starts[partition.name] = partition.log.start_offset
        checkpoint.write_offsets(self._disk, checkpoint.RECOVERY_POINTS_FILE, points)
        checkpoint.write_offsets(self._disk, checkpoint.START_OFFSETS_FILE, starts)

    async def close(self) -> None:
        """Sync everything and write down what each log looks like, so that the next start is quick."""
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(None, self._close)

    def _close(self) -> None:
        self.write_checkpoints()
        states = dict(self._closed)
        for partition in self.partitions.values():
            states[partition.name] = partition.log.close()
        checkpoint.write_clean(self._disk, states)
        self.partitions.clear()


def _report(found: Log) -> None:
    report = found.recovery
    if report is None:
        return
    for cut in report.cuts:
        log.warning("%s: %s", found.folder, cut)
    for damaged in report.damaged:
        log.error("%s: %s", found.folder, damaged)
    for rebuilt in report.rebuilt:
        log.info("%s: %s", found.folder, rebuilt)
