"""Producers' states on the disk: `00000000000000000042.snapshot` holds those at offset 42, in Kafka's format.

Kafka's entries have room for a producer's last batch alone. The four before it follow after the end of that format,
inside its CRC: Kafka's reader stops short of them, and a producer that repeats several batches after a restart is
still understood.
"""

from contextlib import suppress
from struct import Struct
from typing import Final

from ottla.log.producers import ProducedBatch, ProducerState
from ottla.log.segment import SNAPSHOT_SUFFIX, stem_of
from ottla.ports import Disk
from ottla.record.checksum import crc32c

_FRONT = Struct(">hI")
_COUNT = Struct(">i")
_PRODUCER = Struct(">qhiqiqiq")
_EARLIER = Struct(">qiqiq")
_VERSION: Final = 1


def encode(states: list[ProducerState]) -> bytes:
    """The bytes of a snapshot."""
    body = bytearray(_COUNT.pack(len(states)))
    earlier = bytearray()
    for state in states:
        last = state.batches[-1] if state.batches else ProducedBatch(-1, -1, 0, -1)
        body += _PRODUCER.pack(
            state.producer_id,
            state.epoch,
            last.last_sequence,
            last.last_offset,
            last.offset_delta,
            state.last_timestamp,
            state.coordinator_epoch,
            state.transaction_first_offset,
        )
        for batch in state.batches[:-1]:
            earlier += _EARLIER.pack(state.producer_id, *batch)
    body += earlier
    return _FRONT.pack(_VERSION, crc32c(bytes(body))) + bytes(body)


def decode(data: bytes) -> list[ProducerState]:
    """The states in a snapshot's bytes; ValueError if they are damaged.

    >>> state = ProducerState(9, 0)
    >>> state.batches.append(ProducedBatch(last_sequence=4, last_offset=14, offset_delta=4, timestamp=1))
    >>> decode(encode([state]))[0].batches[0].first_offset
    10
    """
    if len(data) < _FRONT.size + _COUNT.size:
        raise ValueError(f"{len(data)} bytes are too few for a producer snapshot")
    version, crc = _FRONT.unpack_from(data)
    computed = crc32c(data[_FRONT.size :])
    if version != _VERSION or crc != computed:
        raise ValueError(f"version {version}, and a CRC of {crc:#010x} where the bytes give {computed:#010x}")
    (count,) = _COUNT.unpack_from(data, _FRONT.size)
    at = _FRONT.size + _COUNT.size
    earlier_at = at + count * _PRODUCER.size
    if count < 0 or earlier_at > len(data) or (len(data) - earlier_at) % _EARLIER.size:
        raise ValueError(f"{count} producers do not agree with {len(data)} bytes")
    states: dict[int, ProducerState] = {}
    lasts: dict[int, ProducedBatch] = {}
    for fields in _PRODUCER.iter_unpack(data[at:earlier_at]):
        producer_id, epoch, last_sequence, last_offset, offset_delta, timestamp, coordinator_epoch, first = fields
        state = states[producer_id] = ProducerState(producer_id, epoch)
        state.last_timestamp = timestamp
        state.coordinator_epoch = coordinator_epoch
        state.transaction_first_offset = first
        if last_offset >= 0:
            lasts[producer_id] = ProducedBatch(last_sequence, last_offset, offset_delta, timestamp)
    for producer_id, *batch in _EARLIER.iter_unpack(data[earlier_at:]):
        states[producer_id].batches.append(ProducedBatch(*batch))
    for producer_id, last in lasts.items():
        states[producer_id].batches.append(last)
    return list(states.values())


def snapshot_name(folder: str, offset: int) -> str:
    """The file of the snapshot at an offset."""
    return stem_of(folder, offset) + SNAPSHOT_SUFFIX


def write(disk: Disk, folder: str, offset: int, states: list[ProducerState]) -> None:
    """Write a snapshot. It is not synced: one that a power cut spoils is told by its CRC, and the one before serves."""
    name = snapshot_name(folder, offset)
    disk.remove(name)
    disk.open(name, create=True).append(encode(states))


def sync(disk: Disk, folder: str, offset: int) -> None:
    """Return when the snapshot at an offset, if there is one, is on the disk: those before it are about to go."""
    with suppress(FileNotFoundError):
        disk.open(snapshot_name(folder, offset)).sync()


def load(disk: Disk, folder: str, offset: int) -> list[ProducerState] | None:
    """The states at an offset; None if the snapshot is missing or damaged."""
    try:
        return decode(disk.read(snapshot_name(folder, offset)))
    except (FileNotFoundError, ValueError):
        return None
