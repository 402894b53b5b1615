"""Finding batches by offset among the segments of a log."""

from bisect import bisect_right
from collections.abc import Sequence
from operator import attrgetter

from ottla.log.aborted import AbortedTransaction
from ottla.log.segment import Segment
from ottla.ports import FileSlice

_base_offset = attrgetter("base_offset")


def place_of(segments: Sequence[Segment], offset: int) -> int:
    """The number of the segment that can hold an offset."""
    last = len(segments) - 1
    # Most readers are in the last one.
    if offset >= segments[last].base_offset:
        return last
    return max(0, bisect_right(segments, offset, key=_base_offset) - 1)


def segments_from(segments: Sequence[Segment], offset: int) -> Sequence[Segment]:
    """The segment that can hold an offset and those after it."""
    return segments[place_of(segments, offset) :]


def slice_from(
    segments: Sequence[Segment],
    tail: tuple[int, int],
    offset: int,
    max_bytes: int,
    *,
    end: int,
    minimum_one: bool,
    wait: bool,
) -> FileSlice | None:
    """Batches of one segment, from the one that holds an offset on, none of which reaches `end`.

    `tail` is the end offset of the log and the size of its last segment at one moment.
    """
    tail_offset, tail_size = tail
    last = len(segments) - 1
    for number in range(place_of(segments, offset), last + 1):
        segment = segments[number]
        size = tail_size if number == last else segment.size
        header = segment.find(offset, size, wait=wait)
        if header is None:
            continue
        if header.last_offset >= end:
            return None
        if end < tail_offset and (number == last or end < segments[number + 1].base_offset):
            beyond = segment.find(end, size, wait=wait)
            size = size if beyond is None else beyond.position
        length = size - header.position
        if length > max_bytes:
            length = min(length, max(max_bytes, header.size if minimum_one else 0))
        return FileSlice(segment.file(wait=wait), header.position, length) if length > 0 else None
    return None


def aborted_between(segments: Sequence[Segment], offset: int, end: int) -> list[AbortedTransaction]:
    """The aborted transactions that a reader from one offset up to another must know of."""
    found = []
    for segment in segments_from(segments, offset):
        for entry in segment.aborted.entries():
            if entry.first_offset < end and entry.last_offset >= offset:
                found.append(entry)
            if entry.last_stable_offset >= end:
                return found
    return found
