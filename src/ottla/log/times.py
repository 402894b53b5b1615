"""Offsets by time."""

from collections.abc import Sequence
from typing import NamedTuple

from ottla.log.replay import read_batch
from ottla.log.segment import Segment
from ottla.log.walk import LONG_CHUNK, Header, headers
from ottla.record.batch import records
from ottla.wire.errors import KafkaError, ProtocolError


class OffsetAtTime(NamedTuple):
    """A record's offset and timestamp, and the leader epoch that it was written in."""

    offset: int
    timestamp: int
    leader_epoch: int


def first_since(
    segments: Sequence[Segment], timestamp_ms: int, start_offset: int, end_offset: int
) -> OffsetAtTime | None:
    """The first record, from one offset up to another, with a timestamp at or after a time."""
    for number, segment in enumerate(segments):
        is_last = number + 1 == len(segments)
        if segment.max_timestamp < timestamp_ms or (not is_last and segments[number + 1].base_offset <= start_offset):
            continue
        header = segment.first_batch_since(timestamp_ms, segment.size, start_offset)
        while header is not None and header.base_offset < end_offset:
            found = _first_record(segment, header, timestamp_ms, start_offset)
            if found is not None:
                return found if found.offset < end_offset else None
            header = segment.first_batch_since(timestamp_ms, segment.size, header.last_offset + 1)
    return None


def largest(segments: Sequence[Segment], start_offset: int) -> OffsetAtTime | None:
    """The first record with the largest timestamp of all."""
    timestamp_ms = max(_max_timestamp(segment, start_offset) for segment in segments)
    return None if timestamp_ms < 0 else first_since(segments, timestamp_ms, start_offset, 2**63 - 1)


def _max_timestamp(segment: Segment, start_offset: int) -> int:
    if segment.max_timestamp_offset >= start_offset:
        return segment.max_timestamp
    # What the segment knows of was deleted.
    first = segment.find(start_offset)
    if first is None:
        return -1
    rest = headers(segment.file(), first.position, segment.size, chunk_bytes=LONG_CHUNK)
    return max(header.max_timestamp for header in rest)


def _first_record(segment: Segment, header: Header, timestamp_ms: int, start_offset: int) -> OffsetAtTime | None:
    try:
        batch = read_batch(segment.file(), header)
        if batch.log_append_time:
            return OffsetAtTime(max(batch.base_offset, start_offset), batch.max_timestamp, batch.leader_epoch)
        for record in records(batch):
            if record.timestamp >= timestamp_ms and record.offset >= start_offset:
                return OffsetAtTime(record.offset, record.timestamp, batch.leader_epoch)
    except ProtocolError as error:
        raise KafkaError(error.code, f"the batch at offset {header.base_offset}: {error}") from error
    return None


def segment_offsets(
    segments: Sequence[Segment], timestamp_ms: int, limit: int, start_offset: int, end_offset: int
) -> list[int]:
    """First offsets of segments, newest first, as ListOffsets v0 gives them: the end of the log stands before them.

    The times -1 and -2 stand for the newest and the oldest; any other time takes the segments whose records were all
    written up to then.
    """
    offsets = [max(segment.base_offset, start_offset) for segment in segments]
    written = [segment.largest_timestamp for segment in segments]
    if segments[-1].size:
        offsets.append(end_offset)
        written.append(2**63 - 1)
    if timestamp_ms == -1:
        count = len(offsets)
    elif timestamp_ms == -2:
        count = 1
    else:
        count = max((number for number, time in enumerate(written, start=1) if time <= timestamp_ms), default=0)
    return offsets[max(0, count - limit) : count][::-1]
