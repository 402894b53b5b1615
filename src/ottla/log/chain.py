"""The segments of one log: they come, are replaced and go while others read."""

from collections.abc import Sequence
from itertools import pairwise
from threading import Lock

from ottla.config.topic import TopicConfig
from ottla.log.files import OpenFiles
from ottla.log.guard import Guard
from ottla.log.segment import SUFFIXES, SWAP_SUFFIX, Segment
from ottla.log.state import SegmentState, restored
from ottla.ports import Clock, Disk


class Chain:
    """Segments one after the other, the last of which is written to.

    All changes come from the log's own thread; other threads may look meanwhile, through the `guard` where they open
    files.
    """

    __slots__ = (
        "_clock",
        "_disk",
        "_files",
        "_folder",
        "_retired",
        "_retiring",
        "guard",
        "names_changed",
        "segments",
        "tail",
    )

    def __init__(
        self, disk: Disk, files: OpenFiles, folder: str, clock: Clock, segments: list[Segment], end_offset: int
    ) -> None:
        self._disk = disk
        self._files = files
        self._folder = folder
        self._clock = clock
        self._retired: list[tuple[int, list[str]]] = []
        self._retiring = Lock()
        self.guard = Guard()
        self.segments = segments
        """Replaced by a new list when it changes, so that other threads can go on with the old one."""
        self.tail = (end_offset, segments[-1].size)
        """End offset and size of the last segment, which belong together."""
        self.names_changed = False
        """Whether files were made or renamed since the folder was last synced."""

    def roll(self, base_offset: int, config: TopicConfig, jitter_ms: int) -> None:
        """Begin a new segment. If the last one is empty, it takes its place."""
        last = self.segments[-1]
        segment = Segment(self._files, self._folder, base_offset, self._clock.now_ms())
        segment.jitter_ms = jitter_ms
        if last.size:
            last.seal()
            if last.may_have_room:
                last.give_back()
        self._files.create(segment.name)
        if config.preallocate:
            segment.reserve(self._disk, config.segment_bytes)
        self.names_changed = True
        self.segments = [*(self.segments if last.size else self.segments[:-1]), segment]
        self.tail = (base_offset, 0)
        if not last.size:
            with self.guard.change():
                self._retire([last], config)

    def release(self, start_offset: int, config: TopicConfig) -> None:
        """Take away the segments that lie before an offset."""
        gone = [each for each, next_one in pairwise(self.segments) if next_one.base_offset <= start_offset]
        if gone:
            with self.guard.change():
                self.segments = self.segments[len(gone) :]
                self._retire(gone, config)

    def begin_beside(self, base_offset: int, suffix: str) -> Segment:
        """An empty segment that is none of these yet; what another attempt has left there goes."""
        segment = Segment(self._files, self._folder, base_offset, self._clock.now_ms(), suffix=suffix)
        names = [segment.stem + each + suffix for each in SUFFIXES]
        for name in names:
            self._disk.remove(name)
        self._files.forget(*names)
        self._files.create(segment.name)
        return segment

    def replace(self, compacted: Sequence[Segment], replacement: SegmentState, config: TopicConfig) -> bool:
        """Put the segment that lies beside these as `.swap` in their place; False if they are not all there."""
        first = compacted[0]
        if not set(compacted) <= set(self.segments):
            for suffix in SUFFIXES:
                self._disk.remove(first.stem + suffix + SWAP_SUFFIX)
            return False
        number = self.segments.index(first)
        with self.guard.change():
            self._retire(compacted[1:], config)
            first.take_over(self._disk)
            fresh = restored(self._files, self._folder, replacement)
            self.segments = [*self.segments[:number], fresh, *self.segments[number + len(compacted) :]]
            self.names_changed = True
        return True

    def truncate(self, offset: int, config: TopicConfig) -> None:
        """Drop the batch that holds an offset and all after it. The caller has begun a change."""
        kept = [segment for segment in self.segments if segment.base_offset < offset]
        gone = self.segments[len(kept) :]
        if kept:
            kept[-1].truncate(offset)
        else:
            kept = [Segment(self._files, self._folder, offset, self._clock.now_ms())]
        self._retire(gone, config)
        self._files.create(kept[-1].name)
        self.segments = kept
        self.tail = (offset, kept[-1].size)

    def _retire(self, segments: Sequence[Segment], config: TopicConfig) -> None:
        due_ms = self._clock.now_ms() + config.file_delete_delay_ms
        retired = [(due_ms, segment.retire(self._disk)) for segment in segments]
        with self._retiring:
            self._retired += retired
        self.names_changed = True

    def remove_retired(self, now_ms: int) -> int:
        """Remove the files of segments that were taken away `file.delete.delay.ms` ago; how many they were."""
        with self._retiring:
            due = [names for due_ms, names in self._retired if due_ms <= now_ms]
            self._retired = [each for each in self._retired if each[0] > now_ms]
        for names in due:
            for name in names:
                self._disk.remove(name)
        return sum(map(len, due))
