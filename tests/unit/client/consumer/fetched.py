"""Fetched bytes and states for tests, without a broker."""

from collections.abc import Iterable

from ottla.client.consumer.chunk import Chunk, extent_of
from ottla.client.consumer.subscription import PartitionState
from ottla.client.types import TopicPartition
from ottla.record import Record, build_batch
from ottla.wire.api.fetch import AbortedTransaction

PLACE = TopicPartition("t", 0)


def batch(*offsets: int, epoch: int = 0, **options: object) -> bytes:
    """A batch of records whose values say their offsets."""
    records = [Record(offset, 1000 + offset, b"k%d" % offset, b"v%d" % offset) for offset in offsets]
    return build_batch(records, leader_epoch=epoch, **options)  # type: ignore[arg-type]


def chunk(*parts: bytes, aborted: Iterable[AbortedTransaction] = ()) -> Chunk:
    """What a fetch brought."""
    return received(b"".join(parts), aborted)


def received(frame: bytes | bytearray, aborted: Iterable[AbortedTransaction] = ()) -> Chunk:
    """The same, in the buffer that it was received into."""
    data = memoryview(frame)
    extent = extent_of(data)
    assert extent is not None
    return Chunk(data, extent, aborted)


def state_with(*chunks: Chunk, position: int = 0) -> PartitionState:
    """A partition of which something was fetched."""
    state = PartitionState(PLACE)
    state.seek(position)
    state.chunks.extend(chunks)
    return state
