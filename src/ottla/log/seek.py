"""Finding batches by offset among the segments of a log."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from operator import attrgetter

from ottla.log.aborted import AbortedTransaction
from ottla.log.segment import Segment
from ottla.ports import FileSlice

_base_offset = attrgetter("base_offset")


def segments_from(segments: Sequence[Segment], offset: int) -> Iterator[tuple[Segment, int | None]]:
    """The segment that can hold an offset and those after it, each with the base offset of the next."""
    first = max(0, bisect_right(segments, offset, key=_base_offset) - 1)
    for number in range(first, len(segments)):
        yield segments[number], segments[number + 1].base_offset if number + 1 < len(segments) else None


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
    for segment, next_base in segments_from(segments, offset):
        size = tail_size if next_base is None else segment.size
        header = segment.find(offset, size, wait=wait)
        if header is None:
            continue
        if header.last_offset >= end:
            return None
        if end < (tail_offset if next_base is None else next_base):
            beyond = segment.find(end, size, wait=wait)
            size = size if beyond is None else beyond.position
        length = min(size - header.position, max(max_bytes, header.size if minimum_one else 0))
        return FileSlice(segment.file(wait=wait), header.position, length) if length > 0 else None
    return None


def aborted_between(segments: Sequence[Segment], offset: int, end: int) -> list[AbortedTransaction]:
    """The aborted transactions that a reader from one offset up to another must know of."""
    found = []
    for segment, _ in segments_from(segments, offset):
        for entry in segment.aborted.entries():
            if entry.first_offset < end and entry.last_offset >= offset:
                found.append(entry)
            if entry.last_stable_offset >= end:
                return found
    return found
