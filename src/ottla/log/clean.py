"""Compaction: of the records with one key only the newest stays, and of a deletion nothing after a while.

As in Kafka: offsets never change, the segment that is written to is never touched, a record without value (a
tombstone) goes `delete.retention.ms` after it was first compacted, and the last batch of each known producer stays as
an empty shell, so that its sequence numbers are not forgotten.

A `Compaction` is made in the log's own thread, which also calls `Log.replace_segments` and `finish`; the work between,
`build_map`, `groups` and `rewrite`, can be done in any other.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple, Protocol

from ottla.config.topic import TopicConfig
from ottla.log.log import Log
from ottla.log.retention import Aging
from ottla.log.rewrite import Rewriter, Survivors, Void, note_keys
from ottla.log.segment import (
    CLEANED_SUFFIX,
    LARGEST_RELATIVE_OFFSET,
    LOG_SUFFIX,
    OFFSETS_SUFFIX,
    SWAP_SUFFIX,
    TIMES_SUFFIX,
    Segment,
)
from ottla.log.state import LogState, SegmentState, state_of
from ottla.log.walk import LONG_CHUNK, headers, whole_batches
from ottla.ports import Disk

DEFAULT_MAP_BYTES: Final = 128 * 1024 * 1024
"""Kafka's `log.cleaner.dedupe.buffer.size`."""

_BYTES_PER_KEY = 120
"""What an entry of the map takes beside the key's own bytes."""


class Dirt(NamedTuple):
    """What compaction would find in a log."""

    start: int
    """The first offset that was never compacted."""
    end: int
    """The offset up to which compaction may go now."""
    clean_bytes: int
    dirty_bytes: int
    overdue: bool
    """Whether a record waits for longer than `max.compaction.lag.ms`."""

    @property
    def ratio(self) -> float:
        """How much of what can be compacted is dirty."""
        total = self.clean_bytes + self.dirty_bytes
        return self.dirty_bytes / total if total else 0.0


class Layer(Aging, Protocol):
    """What must be known of a segment to see whether it is dirty, be its log open or closed."""

    def first_timestamp(self) -> int:
        """How old they are."""


def find_dirt(log: Log, now_ms: int, *, high_watermark: int, recovery_point: int) -> Dirt:
    """What there is to compact: whole segments that are synced, committed, and old enough.

    The recovery point is the one that is written down for the next start: what recovery scans was never compacted.
    """
    end = min(log.last_stable_offset(high_watermark), recovery_point)
    return _dirt(log.segments, log.config, now_ms, log.cleaned_offset, end)


def _dirt(segments: Sequence[Layer], config: TopicConfig, now_ms: int, cleaned_offset: int, end: int) -> Dirt:
    start = max(cleaned_offset, segments[0].base_offset)
    end = min(segments[-1].base_offset, end)
    clean_bytes = dirty_bytes = 0
    overdue = False
    # No record is older than time itself, so that most logs need not be asked how old they are.
    has_longest_wait = config.max_compaction_lag_ms <= now_ms
    for segment, following in pairwise(segments):
        if following.base_offset <= start:
            clean_bytes += segment.size
            continue
        if following.base_offset > end or segment.largest_timestamp > now_ms - config.min_compaction_lag_ms:
            end = min(end, segment.base_offset)
            break
        dirty_bytes += segment.size
        if has_longest_wait and not overdue:
            overdue = now_ms - segment.first_timestamp() > config.max_compaction_lag_ms
    return Dirt(start, max(start, end), clean_bytes, dirty_bytes, overdue)


def is_due(log: Log, dirt: Dirt) -> bool:
    """Whether compacting the log is worth while by its configs."""
    return _is_due(dirt, log.config)


def _is_due(dirt: Dirt, config: TopicConfig) -> bool:
    if "compact" not in config.cleanup_policy or dirt.dirty_bytes == 0:
        return False
    return dirt.overdue or dirt.ratio > config.min_cleanable_dirty_ratio


def compaction_is_due(state: LogState, config: TopicConfig, now_ms: int) -> bool:
    """Whether compacting a closed log is worth while; also if only its files could tell, which are not asked here."""
    if "compact" not in config.cleanup_policy:
        return False
    return _is_due(_dirt(state.segments, config, now_ms, state.cleaned_offset, state.stable_offset), config)


class Compaction:
    """One compaction of one log.

    `rest` is called every now and then while it works, so that the caller can take breaks.
    """

    def __init__(
        self,
        disk: Disk,
        log: Log,
        dirt: Dirt,
        now_ms: int,
        *,
        map_bytes: int = DEFAULT_MAP_BYTES,
        rest: Callable[[], None] | None = None,
    ) -> None:
        self._disk = disk
        self._log = log
        self._now_ms = now_ms
        self._map_bytes = map_bytes
        self._rest = rest or (lambda: None)
        self._segments = [segment for segment in log.segments if segment.base_offset < dirt.end]
        self._dirt = dirt
        self._survivors = Survivors({}, dirt.start)
        # Taken now, in the log's own thread.
        self._producers = {
            state.producer_id: (state.epoch, state.last_offset) for state in log.producers.states.values()
        }
        self._void = Void(log.aborted_transactions(log.segments[0].base_offset, dirt.end))
        self._rewriter: Rewriter | None = None

    def build_map(self) -> int:
        """Learn the newest offset of each key that is dirty; the offset up to which there was room for that."""
        self._find_last_batches()
        newest: dict[bytes, int] = {}
        taken = 0
        for segment in self._segments:
            first = segment.find(self._dirt.start)
            if first is None:
                continue
            for _, batch in whole_batches(segment.file(), first.position, segment.size):
                before = len(newest)
                key_bytes = note_keys(batch, self._void, newest)
                taken += key_bytes + (len(newest) - before) * _BYTES_PER_KEY
                self._survivors = Survivors(newest, batch.next_offset)
                self._rest()
                if taken > self._map_bytes:
                    return self._survivors.end
        return self._survivors.end

    def _find_last_batches(self) -> None:
        """See which batches must stay for the sake of their producers, of those that are to be compacted.

        What a producer wrote later may not be synced: after a power cut the batch before that is its last one.
        """
        wanted = {each for each, (_, last_offset) in self._producers.items() if last_offset >= self._dirt.end}
        for segment in reversed(self._segments):
            if not wanted:
                return
            walked = headers(segment.file(), 0, segment.size, chunk_bytes=LONG_CHUNK)
            found = {each.producer_id: each.last_offset for each in walked if not each.control}
            for producer_id in wanted & found.keys():
                self._producers[producer_id] = self._producers[producer_id][0], found[producer_id]
            wanted -= found.keys()
            self._rest()

    def groups(self) -> Iterator[list[Segment]]:
        """Runs of segments that can become one each, small ones being merged."""
        config, group, size = self._log.config, list[Segment](), 0
        for segment in self._segments:
            if segment.base_offset >= self._survivors.end:
                break
            index_bytes = sum(each.offsets.size for each in group) + segment.offsets.size
            if group and (
                size + segment.size > config.segment_bytes
                or index_bytes > config.segment_index_bytes
                or segment.last_offset() - group[0].base_offset > LARGEST_RELATIVE_OFFSET
            ):
                yield group
                group, size = [], 0
            group.append(segment)
            size += segment.size
        if group:
            yield group

    def rewrite(self, group: list[Segment]) -> SegmentState:
        """Write what stays of some segments to one that lies beside them, synced, under the name `.swap`."""
        if self._rewriter is None:
            self._rewriter = Rewriter(
                self._survivors, self._void, self._producers, self._now_ms, self._log.config.delete_retention_ms
            )
        target = self._log.begin_segment(group[0].base_offset, CLEANED_SUFFIX)
        # A segment goes on ending where the next one begins, so that a gap between them always means a loss.
        last_offset = group[-1].last_offset()
        for segment in group:
            for _, batch in whole_batches(segment.file(), 0, segment.size):
                kept = self._rewriter.rewrite(batch, stays=batch.last_offset == last_offset)
                if kept is not None:
                    target.append(kept, self._log.config.index_interval_bytes)
                self._rest()
        target.seal()
        target.sync()
        # The batches last: once they have the name, the segment counts.
        for suffix in (OFFSETS_SUFFIX, TIMES_SUFFIX, LOG_SUFFIX):
            self._disk.rename(target.stem + suffix + CLEANED_SUFFIX, target.stem + suffix + SWAP_SUFFIX)
        self._disk.sync_folder(self._log.folder)
        return state_of(target)._replace(created_ms=group[0].created_ms)

    def finish(self) -> None:
        """All groups are in place: remember how far compaction has come."""
        self._log.cleaned_offset = max(self._log.cleaned_offset, self._survivors.end)


def compact(disk: Disk, log: Log, dirt: Dirt, now_ms: int, *, map_bytes: int = DEFAULT_MAP_BYTES) -> int:
    """Compact a log in one go, in its own thread; bytes that were saved."""
    before = log.size
    compaction = Compaction(disk, log, dirt, now_ms, map_bytes=map_bytes)
    compaction.build_map()
    for group in compaction.groups():
        log.replace_segments(group, compaction.rewrite(group))
    compaction.finish()
    return before - log.size
