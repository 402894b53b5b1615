"""What a closed log looked like: all that opening it needs, and enough to see whether something is due in it."""

from typing import NamedTuple

from ottla.log.files import OpenFiles
from ottla.log.segment import Segment


class SegmentState(NamedTuple):
    """What a closed log knew of one of its segments."""

    base_offset: int
    size: int
    max_timestamp: int
    max_timestamp_offset: int
    created_ms: int
    first_batch_timestamp: int | None = None
    """None if nobody has looked."""

    @property
    def largest_timestamp(self) -> int:
        """As `Segment.largest_timestamp`."""
        return self.max_timestamp if self.max_timestamp >= 0 else self.created_ms

    def first_timestamp(self) -> int:
        """The timestamp of the first batch; -1 if it has none, or if nobody knows: it may be as old as can be."""
        return -1 if self.first_batch_timestamp is None else self.first_batch_timestamp


class LogState(NamedTuple):
    """A closed log, all of which is on the disk."""

    start_offset: int
    end_offset: int
    unstable_offset: int
    """Where the earliest open transaction begins; -1 if there is none."""
    cleaned_offset: int
    """Up to where compaction has come."""
    segments: tuple[SegmentState, ...]

    @property
    def size(self) -> int:
        """Bytes of all batches."""
        return sum(segment.size for segment in self.segments)

    @property
    def stable_offset(self) -> int:
        """Up to where no transaction is open."""
        return self.end_offset if self.unstable_offset < 0 else min(self.end_offset, self.unstable_offset)


def state_of(segment: Segment) -> SegmentState:
    """What is to be remembered of a segment."""
    return SegmentState(
        segment.base_offset,
        segment.size,
        segment.max_timestamp,
        segment.max_timestamp_offset,
        segment.created_ms,
        segment.known_first_timestamp,
    )


def restored(files: OpenFiles, folder: str, state: SegmentState) -> Segment:
    """The segment of which that was remembered; no file is touched."""
    segment = Segment(files, folder, state.base_offset, state.created_ms, state.size)
    segment.max_timestamp = state.max_timestamp
    segment.max_timestamp_offset = state.max_timestamp_offset
    segment.known_first_timestamp = state.first_batch_timestamp
    return segment
