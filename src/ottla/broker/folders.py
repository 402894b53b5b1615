"""The folders in the data folder: whose each is, and what becomes of one that is nobody's.

A folder with records in it is removed only if its topic is known to have been deleted. That the catalog lacks a topic
does not prove it: catalogs get lost, and are replaced by older ones. So a deletion is written down before the catalog
forgets the topic, and a folder without such a proof is set aside.
"""

import logging
import re
from itertools import count
from threading import Lock

from ottla.cluster.image import ClusterImage, TopicImage
from ottla.log import checkpoint
from ottla.log.checkpoint import Marks
from ottla.log.metadata import METADATA_FILE, read_topic_id, write_topic_id
from ottla.ports import Clock, Disk
from ottla.wire.errors import ErrorCode, KafkaError

log = logging.getLogger("ottla.logs")

STRAY_SUFFIX = "-stray"
"""What the name of a folder ends in that was set aside because nobody knows whose it is."""

CATALOG_FILE = "metadata.sqlite"

_PARTITION = re.compile(r"(.+)-[0-9]+")
_DELETED = re.compile(r".+-[0-9]+\..+-delete")
_SEGMENT = re.compile(r"([0-9]{20})\.log(\.swap)?")


def folder_of(topic: str, index: int) -> str:
    """Where a partition's log lies, as in Kafka."""
    return f"{topic}-{index}"


class Deletions:
    """Topics whose deletion has begun, and may have to be finished after a crash."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._names: dict[bytes, str] = {}
        self._written: dict[bytes, str] = {}
        self._writing = Lock()

    def load(self, image: ClusterImage) -> None:
        """Take up what was begun before the last stop. A topic that the catalog still has was not deleted."""
        try:
            self._written = checkpoint.read_deletions(self._disk)
        except ValueError as error:
            log.error("%s; folders of topics that were just being deleted are kept", error)
        self._names = {topic_id: name for topic_id, name in self._written.items() if not image.topic_by_id(topic_id)}

    def begin(self, topic: TopicImage) -> None:
        """A topic is to be deleted. This counts once it is written."""
        self._names[topic.topic_id] = topic.name

    def finish(self, topic: TopicImage) -> None:
        """No folder of the topic is left, and none can come back."""
        self._names.pop(topic.topic_id, None)

    def finish_all(self) -> None:
        """The same of all topics."""
        self._names.clear()

    def write(self) -> None:
        """Write down what has changed. In an executor."""
        with self._writing:
            names = dict(self._names)
            if names != self._written:
                checkpoint.write_deletions(self._disk, names)
                self._written = names

    def release(self, folder: str) -> None:
        """See that no deletion that is finished covers a new folder of that name after a crash. In an executor."""
        match = _PARTITION.fullmatch(folder)
        if match is not None and match[1] in self._written.values():
            self.write()

    def cover(self, folder: str) -> bool:
        """Whether a folder is that of a topic that was deleted."""
        topic_id = read_topic_id(self._disk, folder)
        if topic_id is not None:
            return topic_id in self._names
        # Where half of a folder is gone, the topic's id may be among it.
        match = _PARTITION.fullmatch(folder)
        return match is not None and match[1] in dict(self._names).values()


class Folders:
    """Sorts the folders of one disk."""

    def __init__(self, disk: Disk, clock: Clock, deletions: Deletions) -> None:
        self._disk = disk
        self._clock = clock
        self._deletions = deletions

    def check_catalog(self, image: ClusterImage) -> None:
        """Refuse a catalog without topics where there are records: it is not the one that belongs here."""
        if image.topics:
            return
        found = [each for each in self._disk.list() if self._is_unknown(each) and self._is_used(each)]
        if found:
            few = ", ".join(found[:3]) + (f" and {len(found) - 3} more" if len(found) > 3 else "")
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR,
                f"{self._disk.root} has folders with records ({few}), and its {CATALOG_FILE} knows no topic at all: "
                f"was it lost or replaced? Put the {CATALOG_FILE} back that belongs to them, or move these folders "
                f"away to begin anew; nothing was changed",
            )

    def sort(self, known: set[str]) -> None:
        """Remove what was deleted, and set aside what is not known and might be missed."""
        for folder in self._disk.list():
            if _DELETED.fullmatch(folder):
                self._disk.remove_folder(folder)
            elif folder not in known and self._is_partition(folder):
                self.clear(folder)

    def _is_unknown(self, folder: str) -> bool:
        return self._is_partition(folder) and not self._deletions.cover(folder)

    def _is_partition(self, folder: str) -> bool:
        if not _PARTITION.fullmatch(folder):
            return False
        return any(name == METADATA_FILE or _SEGMENT.fullmatch(name) for name in self._names_in(folder))

    def _is_used(self, folder: str) -> bool:
        """Whether a log has records, or had some: its offsets are worth keeping too."""
        segments = [match for name in self._names_in(folder) if (match := _SEGMENT.fullmatch(name))]
        return any(int(each[1]) or self._disk.open(f"{folder}/{each[0]}").size() for each in segments)

    def _names_in(self, folder: str) -> list[str]:
        try:
            return self._disk.list(folder)
        except (FileNotFoundError, NotADirectoryError):
            return []

    def clear(self, folder: str) -> None:
        """See that a name is free for a new folder."""
        self._deletions.release(folder)
        if not self._disk.exists(folder):
            return
        if self._deletions.cover(folder) or (self._is_partition(folder) and not self._is_used(folder)):
            self._disk.remove_folder(folder)
            return
        aside = self._set_aside(folder)
        log.error(
            "%s is of no topic in %s, and nothing says that its topic was deleted; it is kept as %s. To have it back, "
            "stop the broker, put the %s back that knows its topic, and give it its name again",
            *(folder, CATALOG_FILE, aside, CATALOG_FILE),
        )

    def belongs(self, folder: str, topic_id: bytes, mark: Marks | None) -> bool:
        """Whether a folder is that of the topic of its name; if not, it is out of the way afterwards."""
        found = read_topic_id(self._disk, folder)
        if found == topic_id:
            return True
        is_marked = mark is not None and mark.topic_id == topic_id
        if is_marked or (found is None and not self._deletions.cover(folder)):
            log.warning("%s: %s is missing or damaged, and is written anew", folder, METADATA_FILE)
            write_topic_id(self._disk, folder, topic_id)
            return True
        if self._deletions.cover(folder):
            # A topic of the same name that was deleted: its records must not come back.
            self._disk.remove_folder(folder)
            return False
        assert found is not None
        aside = self._set_aside(folder)
        log.error(
            "%s belongs to a topic with the id %s, its %s says, and the topic of that name has the id %s; it is kept "
            "as %s, and the partition begins anew. To have it back, stop the broker, put it in the place of the new "
            "one, and remove its %s and the data folder's %s",
            *(folder, found.hex(), METADATA_FILE, topic_id.hex(), aside, METADATA_FILE, checkpoint.CLEAN_FILE),
        )
        return False

    def _set_aside(self, folder: str) -> str:
        # File names have 255 bytes, and topic names up to 249. Those of two topics may begin alike.
        topic, _, index = folder.rpartition("-")
        names = (f"{topic[:200]}-{index}.{now_ms}{STRAY_SUFFIX}" for now_ms in count(self._clock.now_ms()))
        aside = next(name for name in names if not self._disk.exists(name))
        self._disk.rename(folder, aside)
        return aside
