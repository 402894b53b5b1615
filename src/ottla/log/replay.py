"""Producers' states at the end of a log, from a snapshot and the headers of the batches after it."""

from collections.abc import Sequence
from typing import NamedTuple

from ottla.log import snapshots
from ottla.log.aborted import AbortedTransaction
from ottla.log.producers import Producers
from ottla.log.segment import Segment
from ottla.log.walk import LONG_CHUNK, DamagedError, Header, headers
from ottla.ports import Disk, File
from ottla.record.batch import Batch, records
from ottla.record.control import EndMarker, read_end_marker
from ottla.wire.errors import ProtocolError


class LoadedProducers(NamedTuple):
    """Producers' states, and where they come from."""

    producers: Producers
    snapshot_offset: int
    """Of the snapshot; -1 if there was none, and all headers of the log had to be read."""
    faults: list[str]
    """Batches that could not be read."""


def load_producers(
    disk: Disk, folder: str, segments: Sequence[Segment], offsets: Sequence[int], now_ms: int
) -> LoadedProducers:
    """The states after the last batch, from the newest of the snapshots at these offsets that can be read."""
    for offset in sorted(offsets, reverse=True):
        states = snapshots.load(disk, folder, offset)
        if states is not None:
            break
    else:
        states, offset = [], -1
    producers = Producers(states)
    faults = []
    for number, segment in enumerate(segments):
        if number + 1 == len(segments) or segments[number + 1].base_offset > offset:
            try:
                _replay(segment, producers, offset, now_ms)
            except (DamagedError, ProtocolError) as error:
                # What was synced may rot all the same. The rest of the log is worth having.
                faults.append(f"{segment.name}: {error}")
    return LoadedProducers(producers, offset, faults)


def _replay(segment: Segment, producers: Producers, offset: int, now_ms: int) -> None:
    """Note the batches of a segment from an offset on, and the transactions that were aborted there."""
    position = 0
    if offset > segment.base_offset:
        found = segment.find(offset)
        position = segment.size if found is None else found.position
    for header in headers(segment.file(), position, segment.size, chunk_bytes=LONG_CHUNK):
        if header.producer_id < 0:
            continue
        if not header.control:
            producers.note(header, now_ms)
            continue
        batch = read_batch(segment.file(), header)
        marker = marker_of(batch)
        if marker is not None:
            abort = abort_of(producers, batch, marker)
            if abort is not None:
                segment.aborted.append(abort)
            producers.note_marker(batch, marker, now_ms)


def marker_of(batch: Batch) -> EndMarker | None:
    """The transaction marker in a control batch, if that is what it holds."""
    found = records(batch)
    return read_end_marker(found[0]) if found else None


def abort_of(producers: Producers, batch: Batch, marker: EndMarker) -> AbortedTransaction | None:
    """What a segment must list if the batch, with this marker, aborts a transaction."""
    first_offset = producers.open_transaction(batch.producer_id)
    if marker.commit or first_offset is None:
        return None
    others = producers.first_open_offset(apart_from=batch.producer_id)
    stable = batch.next_offset if others is None else others
    return AbortedTransaction(batch.producer_id, first_offset, batch.last_offset, stable)


def read_batch(file: File, header: Header) -> Batch:
    """The whole batch of a header. It has a buffer of its own."""
    return Batch(file.read_at(header.position, header.size))
