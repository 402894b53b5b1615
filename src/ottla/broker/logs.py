"""The logs of this broker's partitions: opened when first used, written down when it stops, recovered when it did not.

After a clean stop nothing is opened at the start: what each log looked like was written down, and a partition that
nobody asks for costs that one line. After a crash every log is checked, from the point up to which it was synced.
"""

import asyncio
import logging
from collections.abc import Iterable, Mapping
from threading import Lock

from ottla.cluster.image import ClusterImage, PartitionImage, TopicImage
from ottla.config.broker import BrokerConfig
from ottla.config.topic import TopicConfig
from ottla.log import checkpoint
from ottla.log.checkpoint import LogState, Marks
from ottla.log.files import OpenFiles
from ottla.log.log import DELETE_SUFFIX, Log
from ottla.log.metadata import METADATA_FILE, read_topic_id, write_topic_id
from ottla.ports import Chance, Clock, Disk
from ottla.replica.group_sync import GroupSync
from ottla.replica.partition import Partition
from ottla.wire.errors import ErrorCode, KafkaError

log = logging.getLogger("ottla.logs")


STRAY_SUFFIX = "-stray"
"""What the name of a folder ends in that was set aside because it may belong to another topic."""


def folder_of(topic: str, index: int) -> str:
    """Where a partition's log lies, as in Kafka."""
    return f"{topic}-{index}"


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
        self._topic_ids = {folder: topic.topic_id for folder, (topic, _) in wanted.items()}
        if states is not None:
            self._closed = {folder: state for folder, state in states.items() if folder in wanted}
            leftovers: Iterable[str] = states.keys() - wanted.keys()
        else:
            leftovers = self._recover_each(wanted)
        for folder in leftovers:
            self._disk.remove_folder(folder)
        self.write_checkpoints()

    def _recover_each(self, wanted: dict[str, tuple[TopicImage, PartitionImage]]) -> list[str]:
        marks, claimed_starts = self._marks()
        leftovers = []
        for folder in self._disk.list():
            if folder in wanted:
                topic, partition = wanted[folder]
                mark = marks.get(folder)
                if not self._belongs(folder, topic.topic_id, mark):
                    continue
                # The marks of a topic that had the name before say nothing of this one.
                known = mark if mark is not None and mark.topic_id == topic.topic_id else None
                found = Log.open(
                    self._disk,
                    self._files,
                    folder,
                    self._topic_config(topic),
                    self._clock,
                    recovery_point=0 if known is None else known.recovery_point,
                    start_offset=None if known is None else known.start_offset,
                    chance=self._chance,
                )
                _report(found)
                _apply_claim(found, claimed_starts.get(folder, 0))
                self._keep(topic, partition, found)
            elif _is_leftover(self._disk, folder):
                leftovers.append(folder)
        return leftovers

    def _belongs(self, folder: str, topic_id: bytes, mark: Marks | None) -> bool:
        """Whether a folder is that of the topic of its name; if not, it goes, or is set aside if that is not sure."""
        found = read_topic_id(self._disk, folder)
        if found == topic_id:
            return True
        if found is None or (mark is not None and mark.topic_id == topic_id):
            log.warning("%s: %s is missing or damaged, and is written anew", folder, METADATA_FILE)
            write_topic_id(self._disk, folder, topic_id)
            return True
        if mark is not None and mark.topic_id == found:
            # A topic of the same name that was deleted: its records must not come back.
            self._disk.remove_folder(folder)
            return False
        aside = f"{folder[:200]}.{self._clock.now_ms()}{STRAY_SUFFIX}"
        log.error(
            "%s belongs to a topic with the id %s, its %s says, and the topic of that name has the id %s; it is kept "
            "as %s, and the partition begins anew. To have it back, stop the broker, put it in the place of the new "
            "one, and remove its %s and the data folder's %s",
            *(folder, found.hex(), METADATA_FILE, topic_id.hex(), aside, METADATA_FILE, checkpoint.CLEAN_FILE),
        )
        self._disk.rename(folder, aside)
        return False

    def _marks(self) -> tuple[dict[str, Marks], dict[str, int]]:
        """What was written down of each log; and, where only Kafka did so, the start offsets it claims."""
        try:
            marks = checkpoint.read_marks(self._disk)
            if marks is not None:
                return marks, {}
            # Of Kafka's files, which have no checksum, none is trusted to say that something need not be checked.
            return {}, checkpoint.read_offsets(self._disk, checkpoint.START_OFFSETS_FILE)
        except ValueError as error:
            log.error("%s; all logs are checked from their start, and deleted records may be back", error)
            return {}, {}

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
        return Log.create(self._disk, self._files, folder, config, self._clock, topic.topic_id, chance=self._chance)

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
                made.append((partition, self._create(folder, config, topic)))
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
            self._topic_ids.pop(folder, None)
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

    async def enforce_retention(self) -> None:
        """Let old segments go."""
        now_ms = self._clock.now_ms()
        shortened = []
        for partition in list(self.partitions.values()):
            removed = partition.log.expire(now_ms, partition.high_watermark)
            for gone in removed:
                log.info("%s: segment %d goes: %s", partition.name, gone.base_offset, gone.reason)
            if removed:
                shortened.append(partition.log)
            partition.log.expire_producers(now_ms - self.config.producer_id_expiration_ms)
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


def _is_leftover(disk: Disk, folder: str) -> bool:
    if folder.endswith(STRAY_SUFFIX):
        return False
    return folder.endswith(DELETE_SUFFIX) or disk.exists(f"{folder}/{METADATA_FILE}")


def _apply_claim(found: Log, start_offset: int) -> None:
    """Delete what is said to be deleted, if that can be true."""
    if start_offset <= found.end_offset:
        found.delete_before(start_offset)
    else:
        log.error(
            "%s ends at %d, and cannot begin at %d as %s says; what it holds stays readable",
            *(found.folder, found.end_offset, start_offset, checkpoint.START_OFFSETS_FILE),
        )


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
