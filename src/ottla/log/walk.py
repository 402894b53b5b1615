"""Walking the batches of a segment file: headers alone, or whole batches where their bytes are to be checked."""

from collections.abc import Iterator
from struct import Struct
from typing import Final

from ottla.ports import File
from ottla.record.batch import CONTROL, HEADER, HEADER_SIZE, LENGTH_END, TRANSACTIONAL, Batch
from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.schema import Bytes

SHORT_CHUNK: Final = 4_096
"""Bytes to read at once when looking for one batch from an index entry on."""
LONG_CHUNK: Final = 262_144
"""Bytes to read at once when walking a whole segment."""

_LARGEST_SEQUENCE: Final = 2**31 - 1
_SMALLEST_LENGTH: Final = HEADER_SIZE - LENGTH_END
# Base offset, length, magic and last offset delta.
_PASSED: Final = Struct(">qi4xb6xi")


class WouldWaitError(Exception):
    """The answer needs bytes that are not in the page cache; ask again, with `wait`, where waiting is allowed."""


class DamagedError(KafkaError):
    """What lies at a position of a segment is no batch."""

    def __init__(self, position: int, reason: str) -> None:
        super().__init__(ErrorCode.CORRUPT_MESSAGE, f"{reason}, at byte {position} of the segment")
        self.position = position
        self.reason = reason


class Header:
    """The header of a batch in a file, with the names that `Batch` has, and its position there."""

    __slots__ = (
        "attributes",
        "base_offset",
        "base_sequence",
        "base_timestamp",
        "count",
        "crc",
        "last_offset",
        "leader_epoch",
        "length",
        "magic",
        "max_timestamp",
        "position",
        "producer_epoch",
        "producer_id",
        "size",
    )

    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    count: int
    position: int
    last_offset: int
    size: int

    def __init__(self, buffer: Bytes, at: int, position: int) -> None:
        (
            self.base_offset,
            self.length,
            self.leader_epoch,
            self.magic,
            self.crc,
            self.attributes,
            last_offset_delta,
            self.base_timestamp,
            self.max_timestamp,
            self.producer_id,
            self.producer_epoch,
            self.base_sequence,
            self.count,
        ) = HEADER.unpack_from(buffer, at)
        self.position = position
        self.last_offset = self.base_offset + last_offset_delta
        self.size = self.length + LENGTH_END

    @property
    def last_sequence(self) -> int:
        """The sequence number of the last record; -1 without sequences."""
        if self.base_sequence < 0:
            return -1
        return (self.base_sequence + self.last_offset - self.base_offset) & _LARGEST_SEQUENCE

    @property
    def transactional(self) -> bool:
        """Whether the batch is part of a transaction."""
        return bool(self.attributes & TRANSACTIONAL)

    @property
    def control(self) -> bool:
        """Whether the batch carries a transaction marker or the like."""
        return bool(self.attributes & CONTROL)


def read(file: File, position: int, length: int, wait: bool) -> Bytes:
    """Bytes of a file; WouldWaitError instead of waiting for the disk unless `wait`."""
    if wait:
        return file.read_at(position, length)
    data = file.read_cached(position, length)
    if data is None:
        raise WouldWaitError
    return data


def headers(
    file: File, position: int, end: int, *, chunk_bytes: int = SHORT_CHUNK, wait: bool = True
) -> Iterator[Header]:
    """The headers of the batches from one position, where a batch begins, to another.

    Records are skipped, not read, where batches are larger than a chunk. DamagedError where no batch is.
    """
    chunk: Bytes = b""
    chunk_at = position
    while position < end:
        at = position - chunk_at
        if at + HEADER_SIZE > len(chunk):
            chunk, chunk_at, at = read(file, position, min(chunk_bytes, end - position), wait), position, 0
            if len(chunk) < HEADER_SIZE:
                raise DamagedError(position, f"{len(chunk)} bytes are fewer than the {HEADER_SIZE} of a batch header")
        header = Header(chunk, at, position)
        _check(header, end)
        yield header
        position += header.size


def holder(file: File, position: int, end: int, offset: int, *, last_offset: int, wait: bool = True) -> Header | None:
    """The batch at a position, which is said to end with an offset, if it holds another; None whatever is not so."""
    if position < 0 or end - position < HEADER_SIZE:
        return None
    data = read(file, position, HEADER_SIZE, wait)
    if len(data) < HEADER_SIZE:
        return None
    header = Header(data, 0, position)
    if header.magic != 2 or not header.base_offset <= offset <= header.last_offset == last_offset:
        return None
    return header if HEADER_SIZE <= header.size <= end - position else None


def find(
    file: File, position: int, end: int, offset: int, *, wait: bool = True, first_ends_by: int | None = None
) -> Header | None:
    """The first batch, from a position on, that ends at or after an offset.

    What `headers` would give, at a fraction of the cost for each batch that is passed over. DamagedError also if the
    batch at the position ends after `first_ends_by`: then whoever named the position is wrong.
    """
    unpack, size = _PASSED.unpack_from, HEADER_SIZE
    if first_ends_by is not None and not 0 <= position < end:
        raise DamagedError(position, f"no batch begins there; there are {end} bytes")
    while position < end:
        chunk = read(file, position, min(SHORT_CHUNK, end - position), wait)
        at, last = 0, len(chunk) - size
        if last < 0:
            raise DamagedError(position, f"{len(chunk)} bytes are fewer than the {size} of a batch header")
        while at <= last:
            base_offset, length, magic, last_offset_delta = unpack(chunk, at)
            if first_ends_by is not None:
                if base_offset + last_offset_delta > first_ends_by:
                    raise DamagedError(position, f"the batch there ends after {first_ends_by}")
                first_ends_by = None
            if base_offset + last_offset_delta >= offset or magic != 2 or length < _SMALLEST_LENGTH:
                header = Header(chunk, at, position + at)
                _check(header, end)
                return header
            at += length + LENGTH_END
        position += at
    return None


def whole_batches(file: File, position: int, end: int) -> Iterator[tuple[int, Batch]]:
    """Whole batches with their positions. DamagedError where no batch is; CRCs are left to the caller."""
    chunk, chunk_at = b"", position
    while position < end:
        at = position - chunk_at
        if at + HEADER_SIZE > len(chunk):
            chunk, chunk_at, at = file.read_at(position, min(LONG_CHUNK, end - position)), position, 0
            if len(chunk) < HEADER_SIZE:
                raise DamagedError(position, f"{len(chunk)} bytes are fewer than the {HEADER_SIZE} of a batch header")
        header = Header(chunk, at, position)
        _check(header, end)
        if at + header.size > len(chunk):
            wanted = min(max(header.size, LONG_CHUNK), end - position)
            chunk, chunk_at, at = file.read_at(position, wanted), position, 0
        yield position, Batch(chunk, at)
        position += header.size


def _check(header: Header, end: int) -> None:
    if header.magic != 2:
        raise DamagedError(header.position, f"magic {header.magic} is not that of a v2 batch")
    if header.size < HEADER_SIZE or header.size > end - header.position:
        raise DamagedError(
            header.position,
            f"batch length {header.length} is below {HEADER_SIZE - LENGTH_END} or beyond the "
            f"{end - header.position - LENGTH_END} bytes that are there",
        )
    if header.base_offset < 0 or header.last_offset < header.base_offset:
        raise DamagedError(header.position, f"base offset {header.base_offset}, last offset {header.last_offset}")
