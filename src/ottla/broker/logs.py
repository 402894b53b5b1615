"""The logs of this broker's partitions: opened when first used, written down when it stops, recovered when it did not.

After a clean stop nothing is opened at the start: what each log looked like was written down, and a partition that
nobody asks for costs that one line. After a crash every log is checked, from the point up to which it was synced.
"""

import asyncio
import logging
from collections.abc import Iterable, Mapping
from threading import Lock

from ottla.broker.folders import Deletions, Folders, folder_of
from ottla.broker.recovering import Recoverer
from ottla.cluster.image import ClusterImage, PartitionImage, TopicImage
from ottla.config.broker import BrokerConfig
from ottla.config.topic import TopicConfig
from ottla.log import checkpoint
from ottla.log.checkpoint import Marks
from ottla.log.files import OpenFiles
from ottla.log.log import Log
from ottla.log.metadata import DELETE_SUFFIX, deleted_name
from ottla.log.state import LogState
from ottla.ports import Chance, Clock, Disk
from ottla.replica.group_sync import GroupSync
from ottla.replica.partition import Partition
from ottla.wire.errors import ErrorCode, KafkaError

log = logging.getLogger("ottla.logs")

LOGS_PER_TURN = 50
"""How many logs retention goes through at once; the event loop looks after others in between."""


class Logs:
    """All logs of one data folder."""

    def __init__(self, disk: Disk, clock: Clock, config: BrokerConfig, chance: Chance | None = None) -> None:
        self._disk = disk
        self._clock = clock
        self._chance = chance
        self.config = config
        self._files = OpenFiles(disk)
        self._closed: dict[str, LogState] = {}
        self._topic_ids: dict[str, bytes] = {}
        self._opening = Lock()
        self._writing_marks = Lock()
        self._marks_written = GroupSync(self._write_marks)
        self._deletions = Deletions(disk)
        self._deletions_written = GroupSync(self._deletions.write)
        self._folders = Folders(disk, clock, self._deletions)
        self.partitions: dict[tuple[str, int], Partition] = {}
        """The partitions that were used since the start."""

    async def recover(self, image: ClusterImage) -> None:
        """Make the folders agree with the image; check the logs if the last stop was not a clean one.

        KAFKA_STORAGE_ERROR, and nothing has changed, if the image cannot be that of these folders.
        """
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(None, self._recover, image)

    def _recover(self, image: ClusterImage) -> None:
        self._deletions.load(image)
        self._folders.check_catalog(image)
        states = checkpoint.take_clean(self._disk) or {}
        wanted = {
            folder_of(topic.name, partition.index): (topic, partition)
            for topic in image.topics.values()
            for partition in topic.partitions
        }
        self._topic_ids = {folder: topic.topic_id for folder, (topic, _) in wanted.items()}
        self._closed = {folder: state for folder, state in states.items() if folder in wanted}
        self._folders.sort(set(wanted))
        self._recover_each(wanted)
        self._disk.sync_folder()
        self._deletions.finish_all()
        self.write_checkpoints()

    def _recover_each(self, wanted: dict[str, tuple[TopicImage, PartitionImage]]) -> None:
        """Open the logs that were not closed."""
        unclean = [each for each in self._disk.list() if each in wanted and each not in self._closed]
        if not unclean:
            return
        recoverer = Recoverer(self._disk, self._files, self._clock, self._chance, self._folders)
        for folder in unclean:
            topic, partition = wanted[folder]
            found = recoverer.open(folder, topic, self._topic_config(topic))
            if found is not None:
                self._keep(topic, partition, found)

    def _topic_config(self, topic: TopicImage) -> TopicConfig:
        return TopicConfig.of(topic.configs, self.config)

    def _keep(self, topic: TopicImage, partition: PartitionImage, found: Log) -> Partition:
        kept = Partition(topic.name, partition.index, found, found.config, partition.leader_epoch)
        self._topic_ids[found.folder] = topic.topic_id
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
                found = Log.open(self._disk, self._files, folder, config, self._clock, state=state, chance=self._chance)
            else:
                # Between a topic's entry in the catalog and its folder the broker may have been killed.
                found = self._create(folder, config, topic)
            kept = self._keep(topic, topic.partitions[index], found)
            self._closed.pop(folder, None)
            return kept

    def _create(self, folder: str, config: TopicConfig, topic: TopicImage) -> Log:
        self._folders.clear(folder)
        return Log.create(self._disk, self._files, folder, config, self._clock, topic.topic_id, chance=self._chance)

    def size_of(self, topic: str, index: int) -> int | None:
        """Bytes of a partition's log, which stays closed if it is; None if it is not here."""
        found = self.partitions.get((topic, index))
        if found is not None:
            return found.log.size
        state = self._closed.get(folder_of(topic, index))
        return None if state is None else state.size

    def measure(self, topic: str, index: int) -> tuple[int, int, int] | None:
        """Bytes, start offset and end offset of a partition's log, which stays closed if it is; None if not here."""
        found = self.partitions.get((topic, index))
        here = found.log if found is not None else self._closed.get(folder_of(topic, index))
        return None if here is None else (here.size, here.start_offset, here.end_offset)

    def closed(self) -> dict[str, LogState]:
        """The logs, by folder, that were not opened since the start, and are as they were written down."""
        return dict(self._closed)

    def is_closed(self, topic: str, index: int) -> bool:
        """Whether a log is one of those."""
        return folder_of(topic, index) in self._closed

    async def create(self, topic: TopicImage, partitions: Iterable[PartitionImage]) -> None:
        """Make the folders of new partitions."""
        loop = asyncio.get_running_loop()
        config = self._topic_config(topic)

        def make() -> list[tuple[PartitionImage, Log]]:
            return [(each, self._create(folder_of(topic.name, each.index), config, topic)) for each in partitions]

        try:
            made = await loop.run_in_executor(None, make)
        except OSError as error:
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR, f"no folders could be made for {topic.name!r}: {error}"
            ) from error
        for partition, found in made:
            self._keep(topic, partition, found)

    async def begin_deletion(self, topic: TopicImage) -> None:
        """Write down that a topic is to be deleted, before the catalog forgets it: `delete` is then sure to be done."""
        self._deletions.begin(topic)
        try:
            await self._deletions_written.synced()
        except OSError as error:
            # On a full disk nothing is needed more than a deletion.
            log.warning("%s: after a crash its folders would be set aside, not removed: %s", topic.name, error)

    async def delete(self, topic: TopicImage) -> None:
        """Remove a topic's partitions; those who wait on them are let go."""
        doomed = []
        for partition in topic.partitions:
            folder = folder_of(topic.name, partition.index)
            self._closed.pop(folder, None)
            self._topic_ids.pop(folder, None)
            found = self.partitions.pop((topic.name, partition.index), None)
            if found is not None:
                found.close()
                doomed.append(found.log.delete())
            else:
                doomed.append(folder)
        await asyncio.get_running_loop().run_in_executor(None, self._remove, topic, doomed)

    def _remove(self, topic: TopicImage, folders: Iterable[str]) -> None:
        doomed = []
        for folder in folders:
            name = folder if folder.endswith(DELETE_SUFFIX) else deleted_name(folder, topic.topic_id)
            if folder != name and self._disk.exists(folder):
                self._disk.rename(folder, name)
            doomed.append(name)
        # From here on a crash finds no folder under its old name.
        self._disk.sync_folder()
        self._deletions.finish(topic)
        for name in doomed:
            self._disk.remove_folder(name)

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

    async def enforce_retention(self) -> None:
        """Let old segments go, of logs that are open."""
        partitions = list(self.partitions.values())
        for first in range(0, len(partitions), LOGS_PER_TURN):
            await self._enforce_retention(partitions[first : first + LOGS_PER_TURN])
            await asyncio.sleep(0)

    async def _enforce_retention(self, partitions: Iterable[Partition]) -> None:
        now_ms = self._clock.now_ms()
        shortened = []
        for partition in partitions:
            if self.partitions.get((partition.topic, partition.index)) is not partition:
                # It was deleted while it waited for its turn.
                continue
            removed = partition.log.expire(now_ms, partition.high_watermark)
            for gone in removed:
                log.info("%s: segment %d goes: %s", partition.name, gone.base_offset, gone.reason)
            partition.log.expire_producers(now_ms - self.config.producer_id_expiration_ms)
            if removed:
                shortened.append(partition.log)
                # New segments were begun, and there may be thousands of such logs.
                await asyncio.sleep(0)
        for each, error in (await self.settle_starts(shortened)).items():
            log.warning("%s: what was to go stays: %s", each.folder, error)

    async def settle_starts(self, shortened: Iterable[Log]) -> dict[Log, KafkaError]:
        """Return when the start offsets of these logs survive a power cut, and let go of the segments before them.

        Says for which that failed: their segments stay, and a crash may bring the records back.
        """
        starts = {each: each.start_offset for each in shortened}
        failed: dict[Log, KafkaError] = {}
        if not starts:
            return failed
        await asyncio.get_running_loop().run_in_executor(None, self._secure, starts, failed)
        try:
            await self._marks_written.synced()
        except OSError as error:
            reason = f"{checkpoint.MARKS_FILE} cannot be written: {error}"
            return dict.fromkeys(starts, KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, reason))
        for each in starts.keys() - failed.keys():
            each.release(starts[each])
            await asyncio.sleep(0)
        return failed

    @staticmethod
    def _secure(starts: Mapping[Log, int], failed: dict[Log, KafkaError]) -> None:
        for each, start_offset in starts.items():
            try:
                each.secure(start_offset)
            except KafkaError as error:
                failed[each] = error

    def remove_retired(self) -> None:
        """Remove the files of segments that went a while ago. In an executor."""
        now_ms = self._clock.now_ms()
        for partition in list(self.partitions.values()):
            partition.log.remove_retired(now_ms)

    def write_checkpoints(self) -> None:
        """Write down up to where each log is synced and from where it can be read. In an executor."""
        self._deletions.write()
        with self._writing_marks:
            marks = self._collect_marks()
            checkpoint.write_marks(self._disk, marks)
            points = {folder: each.recovery_point for folder, each in marks.items()}
            checkpoint.write_offsets(self._disk, checkpoint.RECOVERY_POINTS_FILE, points)
            starts = {folder: each.start_offset for folder, each in marks.items() if each.start_offset}
            checkpoint.write_offsets(self._disk, checkpoint.START_OFFSETS_FILE, starts)

    def _write_marks(self) -> None:
        with self._writing_marks:
            checkpoint.write_marks(self._disk, self._collect_marks())

    def _collect_marks(self) -> dict[str, Marks]:
        # Copies: topics come and go meanwhile. The ids first: marks with the id of a topic that went are not believed.
        ids = dict(self._topic_ids)
        found = {folder: (state.end_offset, state.start_offset) for folder, state in dict(self._closed).items()}
        # A partition that is just being opened is in both places.
        for partition in list(self.partitions.values()):
            found[partition.name] = partition.log.recovery_point, partition.log.start_offset
        return {folder: Marks(ids[folder], *offsets) for folder, offsets in found.items() if folder in ids}

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
        # In this order: somebody may still be writing down what is in either.
        self._closed = states
        self.partitions.clear()
