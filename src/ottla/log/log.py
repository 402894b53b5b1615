"""One partition on one disk: batches appended, read, kept for a while, and found again after a crash.

Appends, and all else that changes a log, come from one thread. `flush`, `secure`, `read`, the searches by time and
`remove_retired` may run in others meanwhile. What is appended lies in the page cache; `flush` brings it to the disk.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from threading import Lock
from typing import Final, NamedTuple, Self

from ottla.config.topic import TopicConfig
from ottla.log import snapshots, times
from ottla.log.aborted import AbortedTransaction
from ottla.log.checkpoint import LogState, SegmentState
from ottla.log.epochs import Epochs
from ottla.log.files import OpenFiles
from ottla.log.guard import Guard
from ottla.log.metadata import read_topic_id, write_topic_id
from ottla.log.producers import Producers
from ottla.log.recover import Recoverer, Recovery
from ottla.log.replay import abort_of, load_producers, marker_of
from ottla.log.retention import Removed, outlived
from ottla.log.seek import aborted_between, segments_from, slice_from
from ottla.log.segment import LARGEST_RELATIVE_OFFSET, SUFFIXES, SWAP_SUFFIX, Segment
from ottla.log.times import OffsetAtTime
from ottla.ports import Chance, Clock, Disk, FileSlice
from ottla.record.batch import Batch
from ottla.wire.errors import ErrorCode, KafkaError

DELETE_SUFFIX: Final = "-delete"
"""What the folder of a deleted partition ends in until it is gone."""


class Appended(NamedTuple):
    """Where a batch went. A duplicate went there before."""

    base_offset: int
    last_offset: int
    log_append_time: int = -1
    """The time that the log gave to the records; -1 if they keep their own."""
    duplicate: bool = False
    rolled: bool = False
    """Whether the batch began a new segment, so that the one before it can be flushed."""


class Log:
    """The log of one partition. Its folder is named after topic and number, as in `orders-0`.

    >>> import tempfile
    >>> from ottla.ports import SystemClock, SystemDisk
    >>> from ottla.record.batch import batches
    >>> from ottla.record.build import build_batch
    >>> from ottla.record.kernels import Record
    >>> disk = SystemDisk(tempfile.mkdtemp())
    >>> log = Log.create(disk, OpenFiles(disk), "orders-0", TopicConfig(), SystemClock(), bytes(15) + b"1")
    >>> batch = Batch(bytearray(build_batch([Record(0, 1, None, b"a"), Record(1, 2, None, b"b")])))
    >>> log.append_as_leader(batch, leader_epoch=0)[:2], log.append_as_leader(batch, leader_epoch=0)[:2]
    ((0, 1), (2, 3))
    >>> [batch.base_offset for batch in batches(log.read(1, 1_000, end=log.end_offset).read())]
    [0, 2]
    """

    __slots__ = (
        "_chance",
        "_clock",
        "_disk",
        "_epochs",
        "_failure",
        "_files",
        "_flushing",
        "_guard",
        "_new_folder",
        "_new_names",
        "_producers",
        "_retired",
        "_segments",
        "_snapshot_offset",
        "_tail",
        "_unstable_offset",
        "cleaned_offset",
        "config",
        "end_offset",
        "folder",
        "recovery",
        "recovery_point",
        "start_offset",
    )

    def __init__(
        self,
        disk: Disk,
        files: OpenFiles,
        folder: str,
        config: TopicConfig,
        clock: Clock,
        segments: list[Segment],
        start_offset: int,
        end_offset: int,
        chance: Chance | None = None,
    ) -> None:
        self._disk = disk
        self._files = files
        self._clock = clock
        self._chance = chance
        self._segments = segments
        """Replaced by a new list when it changes, so that other threads can go on with the old one."""
        self._tail = (end_offset, segments[-1].size)
        """End offset and size of the last segment, which belong together."""
        self._epochs: Epochs | None = None
        self._producers: Producers | None = None
        self._snapshot_offset = end_offset
        self._unstable_offset = -1
        self._retired: list[tuple[int, list[str]]] = []
        self._failure: str | None = None
        self._flushing = Lock()
        self._new_folder = False
        self._new_names = False
        self._guard = Guard()
        self.folder = folder
        self.config = config
        segments[-1].jitter_ms = self._jitter_ms()
        self.start_offset = start_offset
        """The first offset that can be read."""
        self.end_offset = end_offset
        """The offset that the next record gets."""
        self.recovery_point = end_offset
        """Up to where all is on the disk."""
        self.cleaned_offset = start_offset
        """Up to where compaction has come."""
        self.recovery: Recovery | None = None
        """What was done when the log was opened without having been closed."""

    @classmethod
    def create(
        cls,
        disk: Disk,
        files: OpenFiles,
        folder: str,
        config: TopicConfig,
        clock: Clock,
        topic_id: bytes,
        *,
        chance: Chance | None = None,
    ) -> Self:
        """An empty log in a new folder. Without chance its segments roll exactly when they are due."""
        if disk.exists(folder):
            raise FileExistsError(f"{folder} exists; open the log that is there, or delete it first")
        disk.make_folder(folder)
        write_topic_id(disk, folder, topic_id)
        segment = Segment(files, folder, 0, clock.now_ms())
        # Opened past the shared files: a partition that nobody writes to holds none open.
        disk.open(segment.name, create=True)
        if config.preallocate:
            segment.reserve(disk, config.segment_bytes)
        log = cls(disk, files, folder, config, clock, [segment], 0, 0, chance)
        log._new_folder = log._new_names = True
        return log

    @classmethod
    def open(
        cls,
        disk: Disk,
        files: OpenFiles,
        folder: str,
        config: TopicConfig,
        clock: Clock,
        *,
        state: LogState | None = None,
        recovery_point: int = 0,
        start_offset: int | None = None,
        chance: Chance | None = None,
    ) -> Self:
        """The log in a folder. With the state in which it was closed no file is touched; without it, it is recovered.

        Recovery checks what lies after the recovery point, and may take a while.
        """
        now_ms = clock.now_ms()
        if state is not None:
            segments = [_restore(files, folder, each, now_ms) for each in state.segments]
            log = cls(disk, files, folder, config, clock, segments, state.start_offset, state.end_offset, chance)
            log._unstable_offset = state.unstable_offset
            log.cleaned_offset = state.cleaned_offset
            return log
        try:
            found = Recoverer(disk, files, folder, config, now_ms).run(recovery_point, start_offset)
        except OSError as error:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{folder} cannot be recovered: {error}") from error
        log = cls(disk, files, folder, config, clock, found.segments, found.start_offset, found.end_offset, chance)
        log.recovery_point = min(recovery_point, found.end_offset)
        log.recovery = found.report
        log._epochs, log._producers = found.epochs, found.producers
        log._snapshot_offset = found.snapshot_offset
        log._new_folder = log._new_names = True
        return log

    def __repr__(self) -> str:
        return f"Log({self.folder!r}, start_offset={self.start_offset}, end_offset={self.end_offset})"

    @property
    def size(self) -> int:
        """Bytes of all batches."""
        return sum(segment.size for segment in self._segments)

    @property
    def segments(self) -> Sequence[Segment]:
        """The segments, oldest first; the last is the one that is written to."""
        return self._segments

    @property
    def topic_id(self) -> bytes | None:
        """The id of the topic, as the folder says."""
        return read_topic_id(self._disk, self.folder)

    @property
    def epochs(self) -> Epochs:
        """The leader epochs."""
        if self._epochs is None:
            try:
                self._epochs = Epochs.load(self._disk, self.folder)
            except ValueError as error:
                raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error
        return self._epochs

    @property
    def producers(self) -> Producers:
        """The idempotent producers."""
        if self._producers is None:
            # Nothing of theirs was written since the log was opened, or they would have been loaded.
            if self._snapshot_offset == 0:
                self._producers = Producers()
            else:
                self._load_producers([self._snapshot_offset])
        assert self._producers is not None
        return self._producers

    def _load_producers(self, snapshot_offsets: list[int]) -> None:
        self._producers, self._snapshot_offset, _ = load_producers(
            self._disk, self.folder, self._segments, snapshot_offsets, self._clock.now_ms()
        )

    def last_stable_offset(self, high_watermark: int) -> int:
        """Up to where no transaction is open, as far as is replicated."""
        if self._producers is None:
            return min(high_watermark, self._unstable_offset) if self._unstable_offset >= 0 else high_watermark
        unstable = self._producers.first_unstable_offset(high_watermark)
        return high_watermark if unstable is None else min(high_watermark, unstable)

    # Writing.

    def append_as_leader(self, batch: Batch, leader_epoch: int) -> Appended:
        """Give a batch the next offsets and write it. Its buffer, which must be writable, is changed.

        The caller has validated it. A duplicate is told, not written; KafkaError if the producer's epoch or sequence
        is wrong, or if the disk refuses, and then the log is as before.
        """
        config = self.config
        if batch.size > config.segment_bytes:
            raise KafkaError(
                ErrorCode.RECORD_LIST_TOO_LARGE,
                f"a batch of {batch.size} bytes does not fit in a segment; segment.bytes is {config.segment_bytes}",
            )
        if batch.producer_id >= 0 and not batch.control:
            duplicate = self.producers.check(batch)
            if duplicate is not None:
                stamped = duplicate.timestamp if config.message_timestamp_type == "LogAppendTime" else -1
                return Appended(duplicate.first_offset, duplicate.last_offset, stamped, duplicate=True)
        now_ms, log_append_time = self._clock.now_ms(), -1
        if config.message_timestamp_type == "LogAppendTime":
            log_append_time = now_ms
            batch.set_max_timestamp(now_ms, append_time=True)
        base_offset = self.end_offset
        batch.assign(base_offset, leader_epoch)
        rolled = self._append(batch, now_ms)
        return Appended(base_offset, self.end_offset - 1, log_append_time, False, rolled)

    def append_as_follower(self, batch: Batch) -> Appended:
        """Write a batch that has its offsets from the leader, which has checked it."""
        if batch.base_offset < self.end_offset:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"a batch from offset {batch.base_offset} on does not follow on {self.end_offset - 1}",
            )
        rolled = self._append(batch, self._clock.now_ms())
        return Appended(batch.base_offset, batch.last_offset, rolled=rolled)

    def _append(self, batch: Batch, now_ms: int) -> bool:
        if self._failure is not None:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, self._failure)
        # All that may fail comes before the write, or with it.
        epochs = self._epochs or self.epochs
        producers = self.producers if batch.producer_id >= 0 else None
        marker = marker_of(batch) if batch.control else None
        segment, rolled = self._segments[-1], False
        try:
            if segment.must_roll(batch, self.config, now_ms):
                far = batch.last_offset - self.end_offset > LARGEST_RELATIVE_OFFSET
                self._roll(batch.base_offset if far else self.end_offset)
                segment, rolled = self._segments[-1], True
            if producers is not None and marker is not None:
                self._append_marker(segment, batch, abort_of(producers, batch, marker))
            else:
                segment.append(batch, self.config.index_interval_bytes)
        except OSError as error:
            raise self._refused(error) from error
        epochs.assign(batch.leader_epoch, batch.base_offset)
        if producers is not None:
            if marker is not None:
                producers.note_marker(batch, marker, now_ms)
            elif not batch.control:
                producers.note(batch, now_ms)
        self.end_offset = next_offset = batch.next_offset
        self._tail = (next_offset, segment.size)
        return rolled

    def _append_marker(self, segment: Segment, batch: Batch, abort: AbortedTransaction | None) -> None:
        """The list of aborted transactions comes first: without it, readers would take void records for good."""
        try:
            if abort is not None:
                segment.aborted.append(abort)
            segment.append(batch, self.config.index_interval_bytes)
        except OSError:
            segment.aborted.truncate(batch.base_offset)
            raise

    def roll(self) -> None:
        """Begin a new segment at the end of the log, unless the last one is empty."""
        if self._segments[-1].size:
            try:
                self._roll(self.end_offset)
            except OSError as error:
                raise self._refused(error) from error

    def _roll(self, base_offset: int) -> None:
        last = self._segments[-1]
        segment = Segment(self._files, self.folder, base_offset, self._clock.now_ms())
        segment.jitter_ms = self._jitter_ms()
        if last.size:
            self._write_snapshot(base_offset)
            last.seal()
            if self.config.preallocate:
                last.give_back()
        self._files.create(segment.name)
        if self.config.preallocate:
            segment.reserve(self._disk, self.config.segment_bytes)
        self._new_names = True
        self._segments = [*(self._segments if last.size else self._segments[:-1]), segment]
        self._tail = (base_offset, 0)
        if not last.size:
            with self._guard.change():
                self._retire([last])

    def _jitter_ms(self) -> int:
        longest_ms = min(self.config.segment_jitter_ms, self.config.segment_ms)
        return 0 if self._chance is None else int(self._chance.uniform(0, longest_ms))

    def assign_epoch(self, leader_epoch: int) -> None:
        """A new leader's term begins at the end of the log."""
        self.epochs.assign(leader_epoch, self.end_offset)

    # Reading.

    def read(
        self, offset: int, max_bytes: int, *, end: int, minimum_one: bool = True, wait: bool = True
    ) -> FileSlice | None:
        """Batches from the one that holds the offset on, none of which reaches `end`; None if there are none.

        They are cut at `max_bytes`, which may be inside a batch; the first comes whole with `minimum_one`. They are all
        from one segment. Without `wait`, WouldWaitError if the place must be looked up on the disk.
        """
        return self._guard.look(lambda: self._read(offset, max_bytes, end, minimum_one, wait))

    def _read(self, offset: int, max_bytes: int, end: int, minimum_one: bool, wait: bool) -> FileSlice | None:
        # The tail before the segments: one that has grown since can do no harm, one that is of a later segment could.
        tail = self._tail
        if not self.start_offset <= offset <= tail[0]:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE, f"offset {offset} is not between {self.start_offset} and {tail[0]}"
            )
        end = min(end, tail[0])
        if offset >= end:
            return None
        return slice_from(self._segments, tail, offset, max_bytes, end=end, minimum_one=minimum_one, wait=wait)

    def offset_for_time(self, timestamp_ms: int, end: int | None = None) -> OffsetAtTime | None:
        """The first record before `end` with a timestamp at or after a time."""
        end = self.end_offset if end is None else min(end, self.end_offset)
        return self._guard.look(lambda: times.first_since(self._segments, timestamp_ms, self.start_offset, end))

    def max_timestamp(self) -> OffsetAtTime | None:
        """The first record with the largest timestamp of all; None if no record has one."""
        return self._guard.look(lambda: times.largest(self._segments, self.start_offset))

    def segment_offsets(self, timestamp_ms: int, limit: int) -> list[int]:
        """First offsets of segments, newest first, as ListOffsets v0 gives them."""
        return times.segment_offsets(self._segments, timestamp_ms, limit, self.start_offset, self.end_offset)

    def aborted_transactions(self, offset: int, end: int) -> list[AbortedTransaction]:
        """The aborted transactions that a reader from one offset up to another must know of."""
        return self._guard.look(lambda: aborted_between(self._segments, offset, end))

    # Keeping.

    def flush(self, up_to: int | None = None) -> int:
        """Return when all records, or those before an offset, are on the disk; the recovery point then.

        May run in a thread while appends go on; two flushes at once take turns, and the second may find its work done.
        """
        with self._flushing:
            target = self.end_offset if up_to is None else min(up_to, self.end_offset)
            with self._bringing_to_disk():
                if target > self.recovery_point:
                    self._sync(self.recovery_point, target)
                    self.recovery_point = max(target, self.recovery_point)
            return self.recovery_point

    @contextmanager
    def _bringing_to_disk(self) -> Iterator[None]:
        if self._failure is not None:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, self._failure)
        try:
            yield
        except OSError as error:
            # What the page cache holds after a failed sync is anybody's guess: nothing more can be promised.
            self._failure = f"{self.folder} could not be brought to the disk: {error}"
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, self._failure) from error

    def _sync(self, start: int, end: int) -> None:
        segments = self._segments
        for number, segment in enumerate(segments):
            is_last = number + 1 == len(segments)
            # One that ends right at the start may have been rolled since: its indexes were finished then.
            if segment.base_offset >= end or (not is_last and segments[number + 1].base_offset < start):
                continue
            try:
                segment.sync()
            except FileNotFoundError:
                # Retention may take a segment away meanwhile.
                if segment in self._segments:
                    raise
        self._sync_names()
        if self._epochs is not None:
            self._epochs.write(self._disk, self.folder)

    def _sync_names(self) -> None:
        if self._new_names:
            self._new_names = False
            self._disk.sync_folder(self.folder)
        if self._new_folder:
            self._new_folder = False
            self._disk.sync_folder(self.folder.rpartition("/")[0])

    def delete_before(self, offset: int) -> None:
        """Records before an offset can be read no more. Their segments go with `release`."""
        if not 0 <= offset <= self.end_offset:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, f"offset {offset} is not between 0 and {self.end_offset}")
        self.start_offset = max(self.start_offset, offset)

    def expire(self, now_ms: int, high_watermark: int | None = None) -> list[Removed]:
        """Delete the records of segments that are too old or too much; a last segment among them is rolled first.

        The segments, among them those whose records were deleted otherwise, go with `release`.
        """
        removed = outlived(
            self._segments,
            self.config,
            now_ms=now_ms,
            start_offset=self.start_offset,
            high_watermark=self.end_offset if high_watermark is None else high_watermark,
            end_offset=self.end_offset,
        )
        if removed:
            if len(removed) == len(self._segments):
                self.roll()
            self.start_offset = max(self.start_offset, self._segments[len(removed)].base_offset)
        return removed

    def secure(self, start_offset: int) -> None:
        """Return when a power cut finds all it must once the segments before an offset are gone.

        That is the names of those after it, and what was known of producers where they begin. May run in a thread.
        """
        stays, _ = next(segments_from(self._segments, start_offset))
        with self._flushing, self._bringing_to_disk():
            snapshots.sync(self._disk, self.folder, stays.base_offset)
            self._sync_names()

    def release(self, start_offset: int) -> None:
        """Take away the segments before an offset that no log will ever begin before again.

        First comes `secure`, then whoever opens the log after a crash must be sure to learn of the offset. Else a power
        cut could bring back some of the segments, or none, and offsets would be given to other records.
        """
        gone = [each for each, next_one in pairwise(self._segments) if next_one.base_offset <= start_offset]
        if gone:
            with self._guard.change():
                self._segments = self._segments[len(gone) :]
                self._retire(gone)
        self.epochs.truncate_start(start_offset)

    def begin_segment(self, base_offset: int, suffix: str) -> Segment:
        """An empty segment beside the log, for compaction to fill; what another attempt has left there goes."""
        segment = Segment(self._files, self.folder, base_offset, self._clock.now_ms(), suffix=suffix)
        names = [segment.stem + each + suffix for each in SUFFIXES]
        for name in names:
            self._disk.remove(name)
        self._files.forget(*names)
        self._files.create(segment.name)
        return segment

    def replace_segments(self, compacted: Sequence[Segment], replacement: SegmentState) -> bool:
        """Put what segments were compacted to, which lies beside them as `.swap`, in their place.

        False if they are not there any more, since retention was faster.
        """
        first = compacted[0]
        if not set(compacted) <= set(self._segments):
            for suffix in SUFFIXES:
                self._disk.remove(first.stem + suffix + SWAP_SUFFIX)
            return False
        number = self._segments.index(first)
        with self._guard.change():
            self._retire(compacted[1:])
            first.take_over(self._disk)
            fresh = _restore(self._files, self.folder, replacement, first.created_ms)
            self._segments = [*self._segments[:number], fresh, *self._segments[number + len(compacted) :]]
            self._new_names = True
        return True

    def _retire(self, segments: Sequence[Segment]) -> None:
        due_ms = self._clock.now_ms() + self.config.file_delete_delay_ms
        self._retired += [(due_ms, segment.retire(self._disk)) for segment in segments]
        self._new_names = True

    def remove_retired(self, now_ms: int) -> int:
        """Remove the files of segments that were taken away `file.delete.delay.ms` ago; how many they were."""
        due = [names for due_ms, names in self._retired if due_ms <= now_ms]
        self._retired = [each for each in self._retired if each[0] > now_ms]
        for names in due:
            for name in names:
                self._disk.remove(name)
        return sum(map(len, due))

    def expire_producers(self, before_ms: int) -> int:
        """Forget producers that were last heard of before a time; how many they were."""
        return 0 if self._producers is None else self._producers.expire(before_ms)

    def truncate_to(self, offset: int) -> None:
        """Drop the batch that holds an offset and all after it: a new leader has other records there.

        The recovery point may go back; whoever keeps it elsewhere must write it down before appending anew.
        """
        if offset >= self.end_offset:
            return
        with self._flushing, self._guard.change():
            try:
                kept = [segment for segment in self._segments if segment.base_offset < offset]
                gone = self._segments[len(kept) :]
                if kept:
                    kept[-1].truncate(offset)
                else:
                    kept = [Segment(self._files, self.folder, offset, self._clock.now_ms())]
                self._retire(gone)
                self._files.create(kept[-1].name)
            except OSError as error:
                raise self._refused(error) from error
            self._segments = kept
            self.end_offset = offset
            self._tail = (offset, kept[-1].size)
            self.start_offset = min(self.start_offset, offset)
            self.recovery_point = min(self.recovery_point, offset)
            self.cleaned_offset = min(self.cleaned_offset, offset)
            self.epochs.truncate_end(offset)
            self._reload_producers(offset)

    def _reload_producers(self, offset: int) -> None:
        if self._snapshot_offset > offset:
            self._disk.remove(snapshots.snapshot_name(self.folder, self._snapshot_offset))
        self._load_producers([segment.base_offset for segment in self._segments])

    def _write_snapshot(self, offset: int) -> None:
        if offset == self._snapshot_offset:
            return
        snapshots.write(self._disk, self.folder, offset, list(self.producers.states.values()))
        if self._snapshot_offset >= 0 and all(
            segment.base_offset != self._snapshot_offset for segment in self._segments
        ):
            # Snapshots where a segment begins stay as long as the segment.
            self._disk.remove(snapshots.snapshot_name(self.folder, self._snapshot_offset))
        self._snapshot_offset = offset

    # Ending.

    def close(self) -> LogState:
        """Bring all to the disk; the state with which the log can be opened again at once."""
        self.flush()
        try:
            self._write_snapshot(self.end_offset)
            if self._epochs is not None:
                self._epochs.write(self._disk, self.folder)
            self.remove_retired(2**63 - 1)
            # The next start takes the files as they are for granted, also what recovery or rolling did without a flush.
            for segment in self._segments:
                segment.sync_indexes()
            self._sync_names()
        except OSError as error:
            raise self._refused(error) from error
        self._files.forget_folder(self.folder)
        unstable = self._unstable_offset
        if self._producers is not None:
            first_open = self._producers.first_open_offset()
            unstable = -1 if first_open is None else first_open
        segments = tuple(
            SegmentState(each.base_offset, each.size, each.max_timestamp, each.max_timestamp_offset)
            for each in self._segments
        )
        return LogState(self.start_offset, self.end_offset, unstable, self.cleaned_offset, segments)

    def delete(self) -> str:
        """Give the folder a name that says it is to go, which waits for nothing; the name, to be removed at leisure."""
        self._failure = f"{self.folder} was deleted"
        topic_id = self.topic_id or bytes(16)
        # File names have 255 bytes, and topic names up to 249.
        topic, _, partition = self.folder.rpartition("-")
        name = f"{topic[:200]}-{partition}.{topic_id.hex()}{DELETE_SUFFIX}"
        self._disk.rename(self.folder, name)
        self._files.forget_folder(self.folder)
        return name

    def _refused(self, error: OSError) -> KafkaError:
        return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"the disk refuses to serve {self.folder}: {error}")


def _restore(files: OpenFiles, folder: str, state: SegmentState, now_ms: int) -> Segment:
    segment = Segment(files, folder, state.base_offset, now_ms, state.size)
    segment.max_timestamp = state.max_timestamp
    segment.max_timestamp_offset = state.max_timestamp_offset
    return segment
