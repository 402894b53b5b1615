"""One segment: a run of batches in one file, with its indexes."""

from contextlib import suppress
from typing import Final

from ottla.config.topic import TopicConfig
from ottla.log.aborted import AbortedIndex
from ottla.log.files import OpenFiles
from ottla.log.index import OFFSET_ENTRY, TIME_ENTRY, SparseIndex
from ottla.log.walk import LONG_CHUNK, SHORT_CHUNK, DamagedError, Header, WouldWaitError, find, headers, holder
from ottla.ports import Disk, File
from ottla.record.batch import Batch

LOG_SUFFIX: Final = ".log"
OFFSETS_SUFFIX: Final = ".index"
TIMES_SUFFIX: Final = ".timeindex"
ABORTED_SUFFIX: Final = ".txnindex"
SNAPSHOT_SUFFIX: Final = ".snapshot"
DELETED_SUFFIX: Final = ".deleted"
CLEANED_SUFFIX: Final = ".cleaned"
"""Of a segment that compaction has not finished: worth nothing."""
SWAP_SUFFIX: Final = ".swap"
"""Of a segment that compaction has finished, and that is to take the place of those whose offsets it covers."""
SUFFIXES: Final = (LOG_SUFFIX, OFFSETS_SUFFIX, TIMES_SUFFIX, ABORTED_SUFFIX)
"""What a segment's files end in, its batches first."""

LARGEST_RELATIVE_OFFSET: Final = 2**31 - 1
"""Indexes hold offsets in 32 bits."""

MOST_UNWRITTEN: Final = 64
"""Index entries that are kept in memory: to write each by itself would take longer than to write its batch."""

AHEAD_FROM: Final = 128 * 1024
AHEAD_BYTES: Final = 1024 * 1024
"""From this size on a segment has room set aside on the disk ahead of what is written, as much again but no more than
the second at once: a file system takes longer to find room for each page by itself than to copy it. Small segments, of
which there may be thousands, keep none."""

LARGE_BATCH: Final = 2 * SHORT_CHUNK
"""From how many bytes between two index entries on it takes more than one read to go from the first to the second."""


def stem_of(folder: str, offset: int) -> str:
    """The name that the files of one offset share.

    >>> stem_of("orders-0", 42)
    'orders-0/00000000000000000042'
    """
    return f"{folder}/{offset:020d}"


class Segment:
    """The batches from one offset on, up to the next segment's first.

    What it knows of its batches (`size`, `max_timestamp`) was counted while they were written, restored from a
    checkpoint, or found by recovery; files are opened when they are needed.
    """

    __slots__ = (
        "_files",
        "_room",
        "_since_entry",
        "aborted",
        "base_offset",
        "created_ms",
        "jitter_ms",
        "known_first_timestamp",
        "max_timestamp",
        "max_timestamp_offset",
        "name",
        "offsets",
        "size",
        "stem",
        "times",
    )

    def __init__(
        self, files: OpenFiles, folder: str, base_offset: int, created_ms: int, size: int = 0, suffix: str = ""
    ) -> None:
        self._files = files
        self.base_offset = base_offset
        self.created_ms = created_ms
        """When it was made, or found after a crash: the age of segments whose batches carry no timestamps."""
        self.jitter_ms = 0
        """How much earlier than others it is full by its age, so that not all logs roll at once."""
        self.stem = stem_of(folder, base_offset)
        self.name = self.stem + LOG_SUFFIX + suffix
        self.size = size
        self.max_timestamp = -1
        self.max_timestamp_offset = base_offset
        """The last offset of the first batch that has the largest timestamp."""
        self.offsets = SparseIndex(files, self.stem + OFFSETS_SUFFIX + suffix, OFFSET_ENTRY)
        self.times = SparseIndex(files, self.stem + TIMES_SUFFIX + suffix, TIME_ENTRY)
        self.aborted = AbortedIndex(files, self.stem + ABORTED_SUFFIX + suffix)
        self.known_first_timestamp: int | None = None
        """Of the first batch; None if it has to be looked up, or there is none."""
        self._since_entry = 0
        self._room = 0
        """Up to which position there is room on the disk, as far as is known."""

    def __repr__(self) -> str:
        return f"Segment(base_offset={self.base_offset}, size={self.size})"

    @property
    def largest_timestamp(self) -> int:
        """The largest timestamp, or when the segment was made if its batches carry none."""
        return self.max_timestamp if self.max_timestamp >= 0 else self.created_ms

    def file(self, *, wait: bool = True) -> File:
        """The open file of batches. Without `wait`, WouldWaitError if it is not open yet."""
        file = self._files.get_open(self.name)
        if file is None:
            if not wait:
                raise WouldWaitError
            file = self._files.get(self.name)
        return file

    def must_roll(self, batch: Batch, config: TopicConfig, now_ms: int) -> bool:
        """Whether the batch, which is to be the next, belongs into a new segment."""
        last_relative = batch.last_offset - self.base_offset
        if self.size == 0:
            return last_relative > LARGEST_RELATIVE_OFFSET
        most_bytes = config.segment_index_bytes
        return (
            self.size + batch.size > config.segment_bytes
            or last_relative > LARGEST_RELATIVE_OFFSET
            or self._waited_ms(batch.max_timestamp, now_ms) > _roll_ms(config) - self.jitter_ms
            or self.offsets.count >= most_bytes // OFFSET_ENTRY.size
            or self.times.count >= most_bytes // TIME_ENTRY.size
        )

    def _waited_ms(self, timestamp: int, now_ms: int) -> int:
        """As in Kafka, age is measured in the batches' own time where they have one."""
        first = self.known_first_timestamp
        if first is None:
            first = self.first_timestamp()
        return timestamp - first if first >= 0 else now_ms - self.created_ms

    def first_timestamp(self) -> int:
        """The timestamp of the first batch, -1 if there is none."""
        if self.known_first_timestamp is None:
            if not self.size:
                return -1
            self.known_first_timestamp = next(headers(self.file(), 0, self.size)).max_timestamp
        return self.known_first_timestamp

    def append(self, batch: Batch, index_interval_bytes: int) -> None:
        """Write a batch at the end. With OSError nothing has changed."""
        position = self.size
        file = self._files.get(self.name)
        if file.size() != position:
            file = self._files.sized(self.name, position)
        size = batch.size
        end = position + size
        if end > self._room and position >= AHEAD_FROM:
            self._room = end + min(position, AHEAD_BYTES)
            file.reserve(self._room)
        file.append(batch.data)
        if position == 0:
            self.known_first_timestamp = batch.max_timestamp
        self.size = end
        # What is wrong with an index is no reason to refuse a batch that lies in the file. The next one tries again.
        try:  # noqa: SIM105 - `suppress` takes as long as all of the note
            self.note(batch.last_offset, batch.max_timestamp, position, size, index_interval_bytes)
        except OSError:
            pass

    def note(self, last_offset: int, timestamp: int, position: int, size: int, index_interval_bytes: int) -> None:
        """Take a batch that lies in the file into account: its timestamp, and an index entry now and then."""
        if timestamp > self.max_timestamp:
            self.max_timestamp = timestamp
            self.max_timestamp_offset = last_offset
        since = self._since_entry
        self._since_entry = since + size
        if since > index_interval_bytes:
            # The time first: an offset entry promises that the time index covers all up to its batch.
            self._note_time()
            self.offsets.append(last_offset - self.base_offset, position)
            self._since_entry = size
            if self.offsets.unwritten >= MOST_UNWRITTEN:
                self._write_indexes()

    def _note_time(self) -> None:
        last = self.times.last
        if self.max_timestamp > (-1 if last is None else last[0]):
            self.times.append(self.max_timestamp, self.max_timestamp_offset - self.base_offset)

    def _write_indexes(self) -> None:
        """Write the entries that are in memory only.

        A full disk can refuse them where it had room for the batches. Then they are forgotten: the next batch brings
        others. All of them, for the promise of `note`.
        """
        try:
            self.times.write_out()
            self.offsets.write_out()
        except OSError:
            self.forget_unwritten()

    def forget_unwritten(self) -> None:
        """Forget index entries that are in memory only."""
        # In this order: a batch that comes in between may have a time without an offset, and not the other way round.
        self.times.forget_unwritten()
        self.offsets.forget_unwritten()

    def reserve(self, disk: Disk, size: int) -> None:
        """Set aside room on the disk for all that the segment is to hold. With OSError its file is gone again."""
        try:
            disk.reserve(self.name, size)
            self._room = size
        except OSError:
            disk.remove(self.name)
            self._files.forget(self.name)
            raise

    @property
    def may_have_room(self) -> bool:
        """Whether room may be set aside: by this broker, or by one before it that was killed."""
        return self._room > self.size or self.size >= AHEAD_FROM

    @property
    def has_room(self) -> bool:
        """Whether this broker has set room aside that is not used yet."""
        return self._room > self.size

    def give_back(self) -> None:
        """Give room back that was set aside and is not needed."""
        self._files.sized(self.name, self.size).truncate(self.size)
        self._room = self.size

    def seal(self) -> None:
        """Finish the indexes of a segment that gets no more batches."""
        self.offsets.create()
        self.times.create()
        self._note_time()
        self.times.write_out()
        self.offsets.write_out()

    def find(self, offset: int, end: int | None = None, *, wait: bool = True) -> Header | None:
        """The first batch that ends at or after the offset, if it begins before the position `end`."""
        entry, after = self.offsets.neighbours(offset - self.base_offset, wait=wait)
        file, end = self.file(wait=wait), self.size if end is None else end
        if after is not None and after[1] - (0 if entry is None else entry[1]) > LARGE_BATCH:
            # Batches this large all have entries, so that most readers are after the one that the next entry names.
            named = self.base_offset + after[0]
            held = holder(file, after[1], end, offset, last_offset=named, wait=wait)
            if held is not None:
                return held
        if entry is not None:
            try:
                return find(file, entry[1], end, offset, wait=wait, first_ends_by=self.base_offset + entry[0])
            except DamagedError:
                # An index has no checksum. One that disagrees with the batches must not make a reader skip any.
                pass
        return find(file, 0, end, offset, wait=wait)

    def first_batch_since(self, timestamp_ms: int, end: int, minimum_offset: int) -> Header | None:
        """The first batch before position `end`, and not before an offset, with a timestamp at or after a time."""
        entry = self.times.find(timestamp_ms)
        passed = None if entry is None else self._timed_batch(entry)
        offset = minimum_offset if passed is None else max(passed.last_offset, minimum_offset)
        first = self.find(offset, end)
        if first is None:
            return None
        for header in headers(self.file(), first.position, end):
            if header.max_timestamp >= timestamp_ms and header.last_offset >= minimum_offset:
                return header
        return None

    def _timed_batch(self, entry: tuple[int, int]) -> Header | None:
        """The batch that an entry of the time index speaks of; None if there is no such, so that the index is damaged.

        Damage to other entries leads a search to a sound one that is too early, which costs time and no more.
        """
        timestamp, offset = entry[0], self.base_offset + entry[1]
        try:
            header = self.find(offset)
        except DamagedError:
            return None
        agrees = header is not None and header.base_offset <= offset and header.max_timestamp == timestamp
        return header if agrees else None

    def trust_times(self) -> bool:
        """Take the largest timestamp from the time index, if its last entry agrees with the batches."""
        last = self.times.last
        if last is not None:
            if self._timed_batch(last) is None:
                return False
            self.max_timestamp, self.max_timestamp_offset = last[0], self.base_offset + last[1]
        return True

    def last_offset(self) -> int:
        """The offset of the last record, one less than the first if the segment is empty."""
        last = self.base_offset - 1
        for header in headers(self.file(), self._last_indexed(), self.size):
            last = header.last_offset
        return last

    def _last_indexed(self) -> int:
        """The position of the last batch that the index leads to."""
        last = self.offsets.last
        found = None if last is None else self.find(self.base_offset + last[0])
        return 0 if found is None else found.position

    def truncate(self, offset: int) -> None:
        """Drop the batch that holds the offset and all after it."""
        header = self.find(offset)
        if header is not None:
            self.cut(header.position, offset)

    def cut(self, position: int, offset: int) -> None:
        """Cut the file where the batch that holds an offset begins, and the indexes with it."""
        self._files.sized(self.name, self.size).truncate(position)
        self.size = position
        self.offsets.truncate(position - 1, column=1)
        self.times.truncate(offset - 1 - self.base_offset, column=1)
        self.aborted.truncate(offset)
        self.known_first_timestamp = None
        self._since_entry = 0
        self.find_max_timestamp()

    def find_max_timestamp(self) -> None:
        """Find the largest timestamp from the time index and the few batches that it does not cover."""
        self.max_timestamp, self.max_timestamp_offset = -1, self.base_offset
        position = self._last_indexed() if self.trust_times() else 0
        for header in headers(self.file(), position, self.size, chunk_bytes=LONG_CHUNK):
            if header.max_timestamp > self.max_timestamp:
                self.max_timestamp, self.max_timestamp_offset = header.max_timestamp, header.last_offset

    def sync(self) -> None:
        """Return when the batches and their index entries are on the disk."""
        self.file().sync()
        self.sync_indexes()

    def sync_indexes(self) -> None:
        """Return when the index entries are on the disk."""
        self._write_indexes()
        self.offsets.sync()
        self.times.sync()
        self.aborted.sync()

    def take_over(self, disk: Disk) -> None:
        """Put the files of the compacted segment in the place of this one's.

        The batches come last: as long as their file is called `.swap`, recovery knows how to go on.
        """
        disk.remove(self.stem + ABORTED_SUFFIX)
        for suffix in (TIMES_SUFFIX, OFFSETS_SUFFIX, LOG_SUFFIX):
            disk.rename(self.stem + suffix + SWAP_SUFFIX, self.stem + suffix)
        self._files.forget(*(self.stem + suffix for suffix in SUFFIXES))

    def retire(self, disk: Disk) -> list[str]:
        """Mark the segment's files as deleted, by a rename that waits for nothing; says what to remove later."""
        renamed = []
        for suffix in (*SUFFIXES, SNAPSHOT_SUFFIX):
            name = self.stem + suffix
            with suppress(FileNotFoundError):
                disk.rename(name, name + DELETED_SUFFIX)
                renamed.append(name + DELETED_SUFFIX)
        self._files.forget(*(self.stem + suffix for suffix in SUFFIXES))
        return renamed


def _roll_ms(config: TopicConfig) -> int:
    # The segment that is written to is not compacted, so it must not be for longer than compaction may wait.
    if "compact" in config.cleanup_policy:
        return min(config.segment_ms, config.max_compaction_lag_ms)
    return config.segment_ms
