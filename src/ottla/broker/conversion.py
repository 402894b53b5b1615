"""Records for clients of Fetch before v10: in the formats of their time, and without zstd.

Emptied batches, which compaction leaves, and control batches have no place in the formats before magic 2. A client
that asks for an offset where only such batches are would get nothing and ask for the same offset for ever; so they are
passed over, up to the next batch with records.
"""

from collections.abc import Callable

from ottla.ports import FileSlice
from ottla.record.batch import Batch, batches
from ottla.record.compression import Codec
from ottla.record.convert import downconvert
from ottla.replica.validate import MOST_DECOMPRESSED_BYTES
from ottla.wire.errors import ErrorCode, KafkaError, ProtocolError

FIRST_VERSION_AS_STORED = 10
"""Before it, records are looked at or rewritten, and so are in memory."""

FIRST_VERSION_OF_BATCHES = 4
MOST_BYTES_PASSED_OVER = 256 * 1024 * 1024
"""In one request: about three million control batches in a row."""

BATCH_PREFIX_BYTES = 61

ReadOn = Callable[[int], FileSlice | None]
"""What follows from an offset on; None if that is the end."""


def records_for(version: int, first: FileSlice, offset: int, limit: int, read_on: ReadOn) -> bytes:
    """What a fetch of some version from an offset gets for the batches that it found, or for those that follow.

    Waits for the disk, so it belongs in a thread. It has one slice in memory at a time.
    """
    data = first.read()
    if version >= FIRST_VERSION_OF_BATCHES:
        if _has_zstd(data):
            raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"zstd needs Fetch v10 or later, not v{version}")
        return data
    magic = 0 if version < 2 else 1
    passed_over = 0
    while True:
        try:
            converted = downconvert(data, magic, MOST_DECOMPRESSED_BYTES, first_offset=offset)
        except ProtocolError as error:
            raise KafkaError(error.code, str(error)) from error
        passed_over += len(data)
        end = _end_of(data)
        if converted or end is None or passed_over >= MOST_BYTES_PASSED_OVER:
            return converted[:limit]
        following = read_on(end)
        if following is None:
            return b""
        data = following.read()


def _end_of(data: bytes) -> int | None:
    """The offset after the last batch that is there as a whole; None if none is."""
    end = None
    for batch in batches(data):
        if isinstance(batch, Batch):
            end = batch.next_offset
    return end


def _has_zstd(data: bytes) -> bool:
    position = 0
    while len(data) - position >= BATCH_PREFIX_BYTES:
        if data[position + 22] & 0x07 == Codec.ZSTD:
            return True
        position += 12 + int.from_bytes(data[position + 8 : position + 12], "big")
    return False
