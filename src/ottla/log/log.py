"""One partition on one disk: batches appended, read, kept for a while, and found again after a crash.

Appends, and all else that changes a log, come from one thread. `flush`, `secure`, `read`, the searches by time and
`remove_retired` may run in others meanwhile. What is appended lies in the page cache; `flush` brings it to the disk.
"""

from collections.abc import Sequence
from typing import Self

from ottla.config.topic import TopicConfig
from ottla.log import times
from ottla.log.aborted import AbortedTransaction
from ottla.log.append import Appended, append_marker, too_large
from ottla.log.chain import Chain
from ottla.log.epochs import Epochs
from ottla.log.files import OpenFiles
from ottla.log.kept_producers import KeptProducers
from ottla.log.metadata import deleted_name, read_topic_id, write_topic_id
from ottla.log.producers import Producers
from ottla.log.recover import Recoverer, Recovery
from ottla.log.replay import abort_of, marker_of
from ottla.log.retention import Removed, outlived
from ottla.log.seek import aborted_between, slice_from
from ottla.log.segment import LARGEST_RELATIVE_OFFSET, Segment
from ottla.log.state import LogState, SegmentState, restored, state_of
from ottla.log.syncing import Syncer
from ottla.log.times import OffsetAtTime
from ottla.ports import Chance, Clock, Disk, FileSlice
from ottla.record.batch import Batch
from ottla.wire.errors import ErrorCode, KafkaError


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
        "_chain",
        "_chance",
        "_clock",
        "_disk",
        "_epochs",
        "_files",
        "_producers",
        "_syncer",
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
        self._chain = Chain(disk, files, folder, clock, segments, end_offset)
        self._syncer = Syncer(disk, folder, self._chain)
        self._producers = KeptProducers(disk, folder, clock, self._chain, end_offset)
        self._epochs: Epochs | None = None
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
        log._syncer.new_folder = log._chain.names_changed = True
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
        if state is not None:
            segments = [restored(files, folder, each) for each in state.segments]
            log = cls(disk, files, folder, config, clock, segments, state.start_offset, state.end_offset, chance)
            log._producers.closed_with(state.unstable_offset)
            log.cleaned_offset = state.cleaned_offset
            return log
        try:
            found = Recoverer(disk, files, folder, config, clock.now_ms()).run(recovery_point, start_offset)
        except OSError as error:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{folder} cannot be recovered: {error}") from error
        log = cls(disk, files, folder, config, clock, found.segments, found.start_offset, found.end_offset, chance)
        log.recovery_point = min(recovery_point, found.end_offset)
        log.recovery = found.report
        log._epochs = found.epochs
        log._producers.found(found.producers, found.snapshot_offset)
        log._syncer.new_folder = log._chain.names_changed = True
        return log

    def __repr__(self) -> str:
        return f"Log({self.folder!r}, start_offset={self.start_offset}, end_offset={self.end_offset})"

    @property
    def size(self) -> int:
        """Bytes of all batches."""
        return sum(segment.size for segment in self._chain.segments)

    @property
    def segments(self) -> Sequence[Segment]:
        """The segments, oldest first; the last is the one that is written to."""
        return self._chain.segments

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
        return self._producers.loaded

    def last_stable_offset(self, high_watermark: int) -> int:
        """Up to where no transaction is open, as far as is replicated."""
        return self._producers.last_stable_offset(high_watermark)

    # Writing.

    def append_as_leader(self, batch: Batch, leader_epoch: int, *, of_any_size: bool = False) -> Appended:
        """Give a batch the next offsets and write it. Its buffer, which must be writable, is changed.

        The caller has validated it. One `of_any_size` that is larger than a segment gets one for itself. A duplicate is
        told, not written; KafkaError if the producer's epoch or sequence is wrong, or if the disk refuses, and then the
        log is as before.
        """
        config = self.config
        if not of_any_size and batch.size > config.segment_bytes:
            raise too_large(batch, config)
        if batch.producer_id >= 0 and not batch.control:
            duplicate = self.producers.check(batch)
            if duplicate is not None:
                return Appended.before(duplicate, config)
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
        self._syncer.check()
        # All that may fail comes before the write, or with it.
        config = self.config
        epochs = self._epochs or self.epochs
        producers = self.producers if batch.producer_id >= 0 else None
        marker = marker_of(batch) if batch.control else None
        segment, rolled = self._chain.segments[-1], False
        try:
            if segment.must_roll(batch, config, now_ms):
                far = batch.last_offset - self.end_offset > LARGEST_RELATIVE_OFFSET
                self._roll(batch.base_offset if far else self.end_offset)
                segment, rolled = self._chain.segments[-1], True
            if producers is not None and marker is not None:
                append_marker(segment, batch, abort_of(producers, batch, marker), config)
            else:
                segment.append(batch, config.index_interval_bytes)
        except OSError as error:
            raise self._refused(error) from error
        epochs.assign(batch.leader_epoch, batch.base_offset)
        if producers is not None:
            if marker is not None:
                producers.note_marker(batch, marker, now_ms)
            elif not batch.control:
                producers.note(batch, now_ms)
        self.end_offset = next_offset = batch.next_offset
        self._chain.tail = (next_offset, segment.size)
        return rolled

    def roll(self) -> None:
        """Begin a new segment at the end of the log, unless the last one is empty."""
        if self._chain.segments[-1].size:
            try:
                self._roll(self.end_offset)
            except OSError as error:
                raise self._refused(error) from error

    def _roll(self, base_offset: int) -> None:
        if self._chain.segments[-1].size:
            self._producers.write_snapshot(base_offset)
        self._chain.roll(base_offset, self.config, self._jitter_ms())

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
        return self._chain.guard.look(self._read, offset, max_bytes, end, minimum_one, wait)

    def _read(self, offset: int, max_bytes: int, end: int, minimum_one: bool, wait: bool) -> FileSlice | None:
        # The tail before the segments: one that has grown since can do no harm, one that is of a later segment could.
        tail = self._chain.tail
        if not self.start_offset <= offset <= tail[0]:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE, f"offset {offset} is not between {self.start_offset} and {tail[0]}"
            )
        if end > tail[0]:
            end = tail[0]
        if offset >= end:
            return None
        return slice_from(self._chain.segments, tail, offset, max_bytes, end=end, minimum_one=minimum_one, wait=wait)

    def offset_for_time(self, timestamp_ms: int, end: int | None = None) -> OffsetAtTime | None:
        """The first record before `end` with a timestamp at or after a time."""
        end = self.end_offset if end is None else min(end, self.end_offset)
        return self._chain.guard.look(
            lambda: times.first_since(self._chain.segments, timestamp_ms, self.start_offset, end)
        )

    def max_timestamp(self) -> OffsetAtTime | None:
        """The first record with the largest timestamp of all; None if no record has one."""
        return self._chain.guard.look(lambda: times.largest(self._chain.segments, self.start_offset))

    def segment_offsets(self, timestamp_ms: int, limit: int) -> list[int]:
        """First offsets of segments, newest first, as ListOffsets v0 gives them."""
        return times.segment_offsets(self._chain.segments, timestamp_ms, limit, self.start_offset, self.end_offset)

    def aborted_transactions(self, offset: int, end: int) -> list[AbortedTransaction]:
        """The aborted transactions that a reader from one offset up to another must know of."""
        return self._chain.guard.look(lambda: aborted_between(self._chain.segments, offset, end))

    # Keeping.

    def flush(self, up_to: int | None = None) -> int:
        """Return when all records, or those before an offset, are on the disk; the recovery point then.

        May run in a thread while appends go on; two flushes at once take turns, and the second may find its work done.
        """
        with self._syncer.turn():
            target = self.end_offset if up_to is None else min(up_to, self.end_offset)
            if target > self.recovery_point:
                self._syncer.sync(self.recovery_point, target, self._epochs)
                self.recovery_point = max(target, self.recovery_point)
            return self.recovery_point

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
            self._chain.segments,
            self.config,
            now_ms=now_ms,
            start_offset=self.start_offset,
            high_watermark=self.end_offset if high_watermark is None else high_watermark,
            end_offset=self.end_offset,
        )
        if removed:
            if len(removed) == len(self._chain.segments):
                self.roll()
            self.start_offset = max(self.start_offset, self._chain.segments[len(removed)].base_offset)
        return removed

    def secure(self, start_offset: int) -> None:
        """Return when a power cut finds all it must once the segments before an offset are gone.

        That is the names of those after it, and what was known of producers where they begin. May run in a thread.
        """
        self._syncer.secure(start_offset)

    def release(self, start_offset: int) -> None:
        """Take away the segments before an offset that no log will ever begin before again.

        First comes `secure`, then whoever opens the log after a crash must be sure to learn of the offset. Else a power
        cut could bring back some of the segments, or none, and offsets would be given to other records.
        """
        self._chain.release(start_offset, self.config)
        self.epochs.truncate_start(start_offset)

    def begin_segment(self, base_offset: int, suffix: str) -> Segment:
        """An empty segment beside the log, for compaction to fill; what another attempt has left there goes."""
        return self._chain.begin_beside(base_offset, suffix)

    def replace_segments(self, compacted: Sequence[Segment], replacement: SegmentState) -> bool:
        """Put what segments were compacted to, which lies beside them as `.swap`, in their place.

        False if they are not there any more, since retention was faster.
        """
        return self._chain.replace(compacted, replacement, self.config)

    def remove_retired(self, now_ms: int) -> int:
        """Remove the files of segments that were taken away `file.delete.delay.ms` ago; how many they were."""
        return self._chain.remove_retired(now_ms)

    def expire_producers(self, before_ms: int) -> int:
        """Forget producers that were last heard of before a time; how many they were."""
        return self._producers.expire(before_ms)

    def truncate_to(self, offset: int) -> None:
        """Drop the batch that holds an offset and all after it: a new leader has other records there.

        The recovery point may go back; whoever keeps it elsewhere must write it down before appending anew.
        """
        if offset >= self.end_offset:
            return
        with self._syncer.excluded(), self._chain.guard.change():
            try:
                self._chain.truncate(offset, self.config)
            except OSError as error:
                raise self._refused(error) from error
            self.end_offset = offset
            self.start_offset = min(self.start_offset, offset)
            self.recovery_point = min(self.recovery_point, offset)
            self.cleaned_offset = min(self.cleaned_offset, offset)
            self.epochs.truncate_end(offset)
            self._producers.truncate(offset)

    # Ending.

    def close(self) -> LogState:
        """Bring all to the disk; the state with which the log can be opened again at once."""
        self.flush()
        try:
            self._producers.write_snapshot(self.end_offset)
            if self._epochs is not None:
                self._epochs.write(self._disk, self.folder)
            self.remove_retired(2**63 - 1)
            # The next start takes the files as they are for granted, also what recovery or rolling did without a flush.
            for segment in self._chain.segments:
                segment.sync_indexes()
            last = self._chain.segments[-1]
            if last.has_room and not self.config.preallocate:
                last.give_back()
            self._syncer.sync_names()
        except OSError as error:
            raise self._refused(error) from error
        self._files.forget_folder(self.folder)
        segments, unstable = tuple(map(state_of, self._chain.segments)), self._producers.unstable_offset
        return LogState(self.start_offset, self.end_offset, unstable, self.cleaned_offset, segments)

    def delete(self) -> str:
        """Give the folder a name that says it is to go, which waits for nothing; the name, to be removed at leisure."""
        self._syncer.failure = f"{self.folder} was deleted"
        # Nor may a flush that is under way write any in a log that is made anew under this name.
        for segment in self._chain.segments:
            segment.forget_unwritten()
        name = deleted_name(self.folder, self.topic_id or bytes(16))
        self._disk.rename(self.folder, name)
        self._files.forget_folder(self.folder)
        return name

    def _refused(self, error: OSError) -> KafkaError:
        return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"the disk refuses to serve {self.folder}: {error}")
