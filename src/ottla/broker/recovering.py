"""Opening logs that were not closed, with what is known of each."""

import logging

from ottla.broker.folders import Folders
from ottla.cluster.image import TopicImage
from ottla.config.topic import TopicConfig
from ottla.log import checkpoint
from ottla.log.checkpoint import Marks
from ottla.log.files import OpenFiles
from ottla.log.log import Log
from ottla.ports import Chance, Clock, Disk

log = logging.getLogger("ottla.logs")


class Recoverer:
    """Opens such logs of one disk."""

    def __init__(self, disk: Disk, files: OpenFiles, clock: Clock, chance: Chance | None, folders: Folders) -> None:
        self._disk = disk
        self._files = files
        self._clock = clock
        self._chance = chance
        self._folders = folders
        self._marks, self._claimed_starts = self._read_marks()

    def _read_marks(self) -> tuple[dict[str, Marks], dict[str, int]]:
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

    def open(self, folder: str, topic: TopicImage, config: TopicConfig) -> Log | None:
        """The log in a folder; None if it is not this topic's, and so out of the way now."""
        mark = self._marks.get(folder)
        if not self._folders.belongs(folder, topic.topic_id, mark):
            return None
        # The marks of a topic that had the name before say nothing of this one.
        known = mark if mark is not None and mark.topic_id == topic.topic_id else None
        found = Log.open(
            self._disk,
            self._files,
            folder,
            config,
            self._clock,
            recovery_point=0 if known is None else known.recovery_point,
            start_offset=None if known is None else known.start_offset,
            chance=self._chance,
        )
        _report(found)
        _apply_claim(found, self._claimed_starts.get(folder, 0))
        return found


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
