"""Opening a log that was not closed: what lies after the recovery point is checked, and what is no batch is cut."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from ottla.config.topic import TopicConfig
from ottla.log.epochs import Epochs
from ottla.log.files import OpenFiles
from ottla.log.producers import Producers
from ottla.log.replay import load_producers
from ottla.log.segment import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    LARGEST_RELATIVE_OFFSET,
    LOG_SUFFIX,
    SNAPSHOT_SUFFIX,
    SUFFIXES,
    SWAP_SUFFIX,
    Segment,
    stem_of,
)
from ottla.log.walk import LONG_CHUNK, DamagedError, headers, whole_batches
from ottla.ports import Disk
from ottla.record.batch import Batch
from ottla.wire.errors import ProtocolError


@dataclass(slots=True)
class Recovery:
    """What recovery has done to a log."""

    scanned_bytes: int = 0
    cut_bytes: int = 0
    cuts: list[str] = field(default_factory=list)
    """What was taken off, and why."""
    damaged: list[str] = field(default_factory=list)
    """What cannot be read although it was synced; it is left as it is."""
    rebuilt: list[str] = field(default_factory=list)
    """Indexes and the like that were made anew, and why."""
    removed: list[str] = field(default_factory=list)
    """Leftovers of unfinished work."""


@dataclass(slots=True)
class Recovered:
    """A log as recovery has found it."""

    segments: list[Segment]
    start_offset: int
    end_offset: int
    epochs: Epochs
    producers: Producers
    snapshot_offset: int
    """Of the newest snapshot of producers that can be read; -1 if there is none."""
    report: Recovery


class Recoverer:
    """Recovers one log."""

    def __init__(self, disk: Disk, files: OpenFiles, folder: str, config: TopicConfig, now_ms: int) -> None:
        self._disk = disk
        self._files = files
        self._folder = folder
        self._config = config
        self._now_ms = now_ms
        self._epochs = Epochs()
        self.report = Recovery()

    def run(self, recovery_point: int, start_offset: int | None) -> Recovered:
        """Check the log from the recovery point on. Records before the start offset, if there is one, are deleted."""
        names = self._tidy(self._disk.list(self._folder))
        segments = self._without_deleted(_offsets(names, LOG_SUFFIX), start_offset)
        self._load_epochs(segments)
        segments, end_offset = self._check(segments, recovery_point)
        first = segments[0].base_offset if segments else 0
        start_offset = first if start_offset is None else max(start_offset, first)
        if not segments or end_offset < start_offset:
            self._drop(segments, f"they end at {end_offset}, before the log's start at {start_offset}")
            segments, end_offset = [self._create(start_offset)], start_offset
        self._epochs.truncate_end(end_offset)
        self._epochs.truncate_start(start_offset)
        # What came before the start is settled too: no transaction that ended there matters any more.
        settled = min(max(recovery_point, start_offset), end_offset)
        producers, snapshot_offset = self._producers(segments, settled, names)
        return Recovered(segments, start_offset, end_offset, self._epochs, producers, snapshot_offset, self.report)

    def _tidy(self, names: list[str]) -> list[str]:
        for name in names:
            if name.endswith(LOG_SUFFIX + SWAP_SUFFIX):
                self._finish_swap(int(name.partition(".")[0]))
        for name in self._disk.list(self._folder):
            if name.endswith((DELETED_SUFFIX, CLEANED_SUFFIX, SWAP_SUFFIX, ".tmp")):
                self._remove(name)
        names = self._disk.list(self._folder)
        logs = set(_offsets(names, LOG_SUFFIX))
        for suffix in SUFFIXES[1:]:
            for offset in _offsets(names, suffix):
                if offset not in logs:
                    self._remove(f"{offset:020d}{suffix}")
        return self._disk.list(self._folder)

    def _finish_swap(self, base_offset: int) -> None:
        """Put a compacted segment, which is whole once its file of batches has this name, where it belongs."""
        stem = stem_of(self._folder, base_offset)
        file = self._disk.open(stem + LOG_SUFFIX + SWAP_SUFFIX)
        last_offset = base_offset
        for header in headers(file, 0, file.size(), chunk_bytes=LONG_CHUNK):
            last_offset = header.last_offset
        for offset in _offsets(self._disk.list(self._folder), LOG_SUFFIX):
            if base_offset <= offset <= last_offset:
                for suffix in SUFFIXES:
                    self._disk.remove(stem_of(self._folder, offset) + suffix)
        for suffix in reversed(SUFFIXES):
            if self._disk.exists(stem + suffix + SWAP_SUFFIX):
                self._disk.rename(stem + suffix + SWAP_SUFFIX, stem + suffix)
        self.report.rebuilt.append(f"{base_offset:020d}{LOG_SUFFIX} took the place of what it was compacted from")

    def _remove(self, name: str) -> None:
        self._disk.remove(f"{self._folder}/{name}")
        self.report.removed.append(name)

    def _without_deleted(self, base_offsets: list[int], start_offset: int | None) -> list[Segment]:
        """The segments that reach beyond the start of the log.

        Of those before it some may be left, with gaps between them, where a power cut came while they were removed.
        """
        before = sum(offset <= start_offset for offset in base_offsets) - 1 if start_offset is not None else 0
        for offset in base_offsets[: max(before, 0)]:
            for suffix in SUFFIXES:
                if self._disk.exists(stem_of(self._folder, offset) + suffix):
                    self._remove(f"{offset:020d}{suffix}")
        return [self._segment(offset) for offset in base_offsets[max(before, 0) :]]

    def _segment(self, base_offset: int) -> Segment:
        segment = Segment(self._files, self._folder, base_offset, self._now_ms)
        segment.size = segment.file().size()
        return segment

    def _create(self, base_offset: int) -> Segment:
        segment = Segment(self._files, self._folder, base_offset, self._now_ms)
        self._files.create(segment.name)
        return segment

    def _load_epochs(self, segments: Sequence[Segment]) -> None:
        try:
            self._epochs = Epochs.load(self._disk, self._folder)
        except ValueError as error:
            self.report.rebuilt.append(str(error))
            for segment in segments:
                self._note_epochs(segment)

    def _note_epochs(self, segment: Segment) -> None:
        try:
            for header in headers(segment.file(), 0, segment.size, chunk_bytes=LONG_CHUNK):
                self._epochs.assign(header.leader_epoch, header.base_offset)
        except DamagedError:
            # The scan of the segment will find it too, and say so.
            return

    def _check(self, segments: list[Segment], recovery_point: int) -> tuple[list[Segment], int]:
        """Those segments, or parts of them, that are sound, and the offset after them."""
        segments = self._without_covered(segments, recovery_point)
        end_offset = segments[0].base_offset if segments else 0
        for number, segment in enumerate(segments):
            following = segments[number + 1] if number + 1 < len(segments) else None
            if following is not None and following.base_offset <= recovery_point:
                self._check_flushed(segment, following.base_offset)
                self._seal(segment)
                end_offset = following.base_offset
                continue
            if 0 < segment.base_offset - end_offset <= LARGEST_RELATIVE_OFFSET:
                # Only a far leap of offsets makes a segment begin elsewhere than where the one before it ended.
                self._drop(segments[number:], f"the log breaks off before them, at offset {end_offset}")
                return segments[:number], end_offset
            sound, end_offset = self._scan(segment, recovery_point, end_offset)
            if not sound:
                self._drop(segments[number + 1 :], f"they follow on {segment.name}, which was cut")
                return segments[: number + 1], end_offset
            if following is not None:
                segment.seal()
        return segments, end_offset

    def _seal(self, segment: Segment) -> None:
        """Finish the time index of a segment that was synced: the entry that rolling adds to it may not have been."""
        try:
            segment.find_max_timestamp()
        except DamagedError as error:
            self.report.damaged.append(f"{segment.name}: {error.message}")
            return
        segment.seal()
        # It may be there already, and only in the page cache.
        segment.times.unsynced = True

    def _without_covered(self, segments: list[Segment], recovery_point: int) -> list[Segment]:
        """All but those that were compacted into the one before them, and came back because a power cut undid a rename.

        Only what was synced is ever compacted.
        """
        kept: list[Segment] = []
        last_offset = -1
        for segment in segments:
            if segment.base_offset <= last_offset:
                for name in segment.retire(self._disk):
                    self._disk.remove(name)
                    self.report.removed.append(name.removeprefix(self._folder + "/"))
                continue
            kept.append(segment)
            if segment.base_offset < recovery_point and segment is not segments[-1]:
                last_offset = self._last_offset(segment)
        return kept

    @staticmethod
    def _last_offset(segment: Segment) -> int:
        try:
            return segment.last_offset()
        except DamagedError:
            return segment.base_offset

    def _check_flushed(self, segment: Segment, next_offset: int) -> None:
        """A segment before the recovery point is whole; only its indexes may be missing or spoilt."""
        faults = [
            f"{index.name} {fault}"
            for index, limit in (
                (segment.offsets, segment.size - 1),
                (segment.times, next_offset - 1 - segment.base_offset),
            )
            if (fault := index.fault(limit)) is not None
        ]
        if not faults and not segment.trust_times():
            faults = [f"{segment.times.name} ends in the entry {segment.times.last}, which no batch agrees with"]
        elif not faults and segment.size and segment.times.last is None:
            # Unless no batch has a timestamp, which is rare and seen only by looking.
            faults = [f"{segment.times.name} has no entry"]
        if faults:
            self.report.rebuilt += faults
            self._rebuild(segment)

    def _rebuild(self, segment: Segment) -> None:
        segment.offsets.clear()
        segment.times.clear()
        interval, end_offset = self._config.index_interval_bytes, segment.base_offset
        try:
            for header in headers(segment.file(), 0, segment.size, chunk_bytes=LONG_CHUNK):
                segment.note(header.last_offset, header.max_timestamp, header.position, header.size, interval)
                end_offset = header.last_offset + 1
        except DamagedError as error:
            self._cut(segment, end_offset, error)
        segment.seal()
        # What lies before the recovery point is not synced again.
        segment.sync_indexes()

    def _cut(self, segment: Segment, end_offset: int, error: DamagedError) -> None:
        size = segment.size - error.position
        segment.cut(error.position, end_offset)
        # Another power cut must not bring back what was cut behind what is written from now on.
        segment.sync()
        self.report.cut_bytes += size
        self.report.cuts.append(f"{size} bytes from byte {error.position} of {segment.name} on: {error.reason}")

    def _scan_start(self, segment: Segment, recovery_point: int) -> int:
        """The position of a batch before the recovery point. Of the indexes, only what is sure is kept."""
        spoilt = segment.offsets.keep_growing(), segment.times.keep_growing()
        entry = segment.offsets.find(recovery_point - 1 - segment.base_offset)
        if entry is not None and not self._is_batch(segment, *entry):
            entry, spoilt = None, (True, True)
        for index, is_spoilt in zip((segment.offsets, segment.times), spoilt, strict=True):
            if is_spoilt:
                self.report.rebuilt.append(f"{index.name} holds entries that do not grow, or lead to no batch")
        segment.offsets.truncate(-1 if entry is None else entry[0])
        segment.times.truncate(-1 if entry is None else entry[0], column=1)
        segment.aborted.truncate(recovery_point)
        if not segment.trust_times():
            self.report.rebuilt.append(f"{segment.times.name} holds an entry that no batch agrees with")
            segment.offsets.clear()
            segment.times.clear()
            return 0
        return 0 if entry is None else entry[1]

    @staticmethod
    def _is_batch(segment: Segment, relative_offset: int, position: int) -> bool:
        try:
            header = next(headers(segment.file(), position, segment.size), None)
        except DamagedError:
            return False
        return header is not None and header.last_offset == segment.base_offset + relative_offset

    def _scan(self, segment: Segment, recovery_point: int, end_offset: int) -> tuple[bool, int]:
        """Check the batches from the recovery point on; whether all are sound, and the offset after those that are."""
        interval = self._config.index_interval_bytes
        end_offset = max(end_offset, segment.base_offset)
        start = self._scan_start(segment, recovery_point)
        try:
            for position, batch in whole_batches(segment.file(), start, segment.size):
                self._check_batch(batch, position, segment, end_offset, recovery_point)
                segment.note(batch.last_offset, batch.max_timestamp, position, batch.size, interval)
                self._epochs.assign(batch.leader_epoch, batch.base_offset)
                self.report.scanned_bytes += batch.size
                end_offset = batch.next_offset
        except DamagedError as error:
            self._cut(segment, end_offset, error)
            if end_offset < recovery_point:
                self.report.cuts.append(f"offsets {end_offset} to {recovery_point - 1} had been synced, and are lost")
            return False, end_offset
        return True, end_offset

    def _check_batch(self, batch: Batch, position: int, segment: Segment, end_offset: int, recovery_point: int) -> None:
        if batch.base_offset < end_offset or batch.last_offset - segment.base_offset > LARGEST_RELATIVE_OFFSET:
            raise DamagedError(position, f"offset {batch.base_offset} does not follow on {end_offset - 1}")
        if batch.next_offset > recovery_point:
            try:
                batch.check_crc()
            except ProtocolError as error:
                raise DamagedError(position, error.reason) from error

    def _drop(self, segments: Sequence[Segment], reason: str) -> None:
        for segment in segments:
            for name in segment.retire(self._disk):
                self._disk.remove(name)
            self.report.cut_bytes += segment.size
            self.report.cuts.append(f"all {segment.size} bytes of {segment.name}: {reason}")
        if segments:
            self._disk.sync_folder(self._folder)

    def _producers(self, segments: Sequence[Segment], synced_offset: int, names: list[str]) -> tuple[Producers, int]:
        # Later snapshots may be sound, but not the lists of aborted transactions, which replaying completes.
        offsets = _offsets(names, SNAPSHOT_SUFFIX)
        usable = [offset for offset in offsets if offset <= synced_offset]
        producers, used, faults = load_producers(self._disk, self._folder, segments, usable, self._now_ms)
        self.report.damaged += faults
        needed = {used, *(segment.base_offset for segment in segments)}
        for offset in offsets:
            if offset not in needed:
                self._remove(f"{offset:020d}{SNAPSHOT_SUFFIX}")
        return producers, used


def _offsets(names: Sequence[str], suffix: str) -> list[int]:
    """The offsets of the files that are named after one and end in the suffix."""
    stems = (name.removesuffix(suffix) for name in names if name.endswith(suffix))
    return sorted(int(stem) for stem in stems if stem.isdecimal())
