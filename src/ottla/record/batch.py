"""The v2 record batch as a view of its bytes, and the walk over a run of entries of any format.

Parsing a batch reads the 61 bytes of its header and nothing else. Records are touched by `Batch.section`, `scan` and
`records` alone.
"""

from collections.abc import Iterator
from struct import Struct
from typing import Final

from ottla.record._kernel_types import LARGEST_INT32, LARGEST_INT64, Buffer
from ottla.record.checksum import crc32c
from ottla.record.compression import Codec, decompress, moved
from ottla.record.kernels import Record, Summary, read
from ottla.record.kernels import scan as scan_section
from ottla.wire.errors import ErrorCode, ProtocolError

UNCHECKED: Final = Struct(">qiibI")
"""The front of a v2 header: base offset, length, leader epoch, magic and CRC."""

CHECKED: Final = Struct(">hiqqqhii")
"""The rest, which the CRC covers: attributes, last offset delta, base and max timestamp, producer id and epoch, base
sequence and record count. So base offset and leader epoch can change while the CRC stays."""

HEADER: Final = Struct(UNCHECKED.format + CHECKED.format[1:])
HEADER_SIZE: Final = HEADER.size
MAGIC_AT: Final = 16
"""Where every entry, of any format, says which one it is of."""
LENGTH_END: Final = 12
"""The length field counts the bytes after itself, so an entry takes this many more."""

CODEC_MASK: Final = 0x07
LOG_APPEND_TIME: Final = 0x08
TRANSACTIONAL: Final = 0x10
CONTROL: Final = 0x20
DELETE_HORIZON: Final = 0x40

DEFAULT_LIMIT: Final = 2**28
"""Bytes that the records of one batch may decompress to, unless the caller says otherwise."""

_PREFIX: Final = Struct(">qiib")
_SMALLEST_LENGTH: Final = {0: 14, 1: 22, 2: HEADER_SIZE - LENGTH_END}
_CRC_AT: Final = UNCHECKED.size - 4


class Batch:
    """A v2 batch in a buffer: its header as attributes, and `data`, a view of its bytes.

    What the header claims is only as good as its sender; `validate` checks it, `scan` checks the records too.

    >>> from ottla.record.build import BatchBuilder
    >>> builder = BatchBuilder(base_offset=40)
    >>> builder.append(1_700_000_000_000, b"key", b"value")
    0
    >>> batch = Batch(builder.build())
    >>> batch.count, batch.next_offset, batch.codec.name
    (1, 41, 'NONE')
    """

    __slots__ = (
        "attributes",
        "base_offset",
        "base_sequence",
        "base_timestamp",
        "count",
        "crc",
        "data",
        "last_offset_delta",
        "leader_epoch",
        "length",
        "magic",
        "max_timestamp",
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
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    count: int
    size: int
    """Bytes of the whole batch."""
    data: memoryview

    def __init__(self, buffer: Buffer, position: int = 0) -> None:
        view = memoryview(buffer)
        available = len(view) - position
        if available < HEADER_SIZE:
            raise _corrupt(f"{available} bytes are fewer than the {HEADER_SIZE} of a batch header", position)
        (
            self.base_offset,
            self.length,
            self.leader_epoch,
            self.magic,
            self.crc,
            self.attributes,
            self.last_offset_delta,
            self.base_timestamp,
            self.max_timestamp,
            self.producer_id,
            self.producer_epoch,
            self.base_sequence,
            self.count,
        ) = HEADER.unpack_from(view, position)
        if self.magic != 2:
            raise _corrupt(f"magic {self.magic} is not that of a v2 batch", position + MAGIC_AT)
        size = self.size = self.length + LENGTH_END
        if size < HEADER_SIZE or size > available:
            raise _corrupt(
                f"batch length {self.length} is below {HEADER_SIZE - LENGTH_END} or beyond the "
                f"{available - LENGTH_END} bytes that are there",
                position + 8,
            )
        self.data = view[position : position + size]

    def __repr__(self) -> str:
        return f"Batch(base_offset={self.base_offset}, count={self.count}, size={self.size})"

    @property
    def last_offset(self) -> int:
        """The offset of the last record, or of the last one there was before compaction."""
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        """The offset after this batch."""
        return self.base_offset + self.last_offset_delta + 1

    @property
    def last_sequence(self) -> int:
        """The sequence number of the last record, which wraps to 0 after 2**31 - 1; -1 without sequences."""
        if self.base_sequence < 0:
            return -1
        return (self.base_sequence + self.last_offset_delta) & LARGEST_INT32

    @property
    def codec(self) -> Codec:
        """How the records are compressed."""
        return Codec.of(self.attributes)

    @property
    def log_append_time(self) -> bool:
        """Whether `max_timestamp`, set by the broker, is the timestamp of every record."""
        return bool(self.attributes & LOG_APPEND_TIME)

    @property
    def append_time(self) -> int | None:
        """The timestamp that the broker gave to every record, if it did."""
        return self.max_timestamp if self.attributes & LOG_APPEND_TIME else None

    @property
    def transactional(self) -> bool:
        """Whether the batch is part of a transaction."""
        return bool(self.attributes & TRANSACTIONAL)

    @property
    def control(self) -> bool:
        """Whether the batch carries a transaction marker or the like, and nothing for applications."""
        return bool(self.attributes & CONTROL)

    @property
    def delete_horizon_ms(self) -> int | None:
        """When the tombstones of a compacted batch may go; it takes the place of the base timestamp."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON else None

    @property
    def payload(self) -> memoryview:
        """The records as they are on the wire, perhaps compressed."""
        return self.data[HEADER_SIZE:]

    def compute_crc(self) -> int:
        """The CRC-32C that the batch should carry."""
        crc: int = crc32c(self.data[UNCHECKED.size :])
        return crc

    def check_crc(self) -> None:
        """Raise ProtocolError if the bytes are not those that were sent."""
        computed = self.compute_crc()
        if computed != self.crc:
            raise _corrupt(f"the CRC is {self.crc:#010x} and the bytes give {computed:#010x}", _CRC_AT)

    def validate(self, *, gaps: bool = False) -> None:
        """Check the header against itself and the CRC; the records are not looked at.

        A batch as a client sends it has as many records as offsets. With `gaps` it may have fewer, as after compaction.
        """
        offsets = self.last_offset_delta + 1
        if self.base_offset < 0 or self.last_offset_delta < 0 or self.last_offset > LARGEST_INT64:
            raise _invalid(f"base offset {self.base_offset} with last offset delta {self.last_offset_delta}")
        if self.count < 0 or self.count > offsets or (self.count != offsets and not gaps):
            raise _invalid(f"record count {self.count} does not agree with {offsets} offsets")
        _ = self.codec
        self.check_crc()

    def section(self, limit: int = DEFAULT_LIMIT) -> Buffer:
        """The records without compression; ProtocolError if that would be more than `limit` bytes."""
        payload = self.payload
        if not self.attributes & CODEC_MASK or (self.count == 0 and not payload):
            return payload
        codec = self.codec
        try:
            return decompress(codec, payload, limit)
        except ProtocolError as error:
            raise moved(error, HEADER_SIZE, "records") from error

    def assign(self, base_offset: int, leader_epoch: int) -> None:
        """Write where the log put the batch into its buffer, which must be writable. The CRC stays right."""
        _PREFIX.pack_into(self.data, 0, base_offset, self.length, leader_epoch, self.magic)
        self.base_offset, self.leader_epoch = base_offset, leader_epoch

    def set_max_timestamp(self, timestamp_ms: int, *, append_time: bool) -> None:
        """Write the largest timestamp, and whether it is the log's own, into the writable buffer; renew the CRC."""
        self.max_timestamp = timestamp_ms
        self.attributes = self.attributes | LOG_APPEND_TIME if append_time else self.attributes & ~LOG_APPEND_TIME
        checked = (
            self.attributes,
            self.last_offset_delta,
            self.base_timestamp,
            self.max_timestamp,
            self.producer_id,
            self.producer_epoch,
            self.base_sequence,
            self.count,
        )
        CHECKED.pack_into(self.data, UNCHECKED.size, *checked)
        self.crc = self.compute_crc()
        front = (self.base_offset, self.length, self.leader_epoch, self.magic, self.crc)
        UNCHECKED.pack_into(self.data, 0, *front)


def scan(batch: Batch, limit: int = DEFAULT_LIMIT, *, gaps: bool = False) -> Summary:
    """Check that the records are what the header claims, and sum them up, without an object per record."""
    summary = scan_section(batch.section(limit), batch.count, gaps)
    last = summary.last_offset_delta
    if last > batch.last_offset_delta or (last != batch.last_offset_delta and not gaps):
        raise _invalid(f"the last offset delta is {last} and the header says {batch.last_offset_delta}")
    return summary


def records(batch: Batch, limit: int = DEFAULT_LIMIT) -> list[Record]:
    """The records as objects. `limit` bounds the bytes that they may decompress to.

    The CRC is not checked: `Batch.check_crc` does that, once for however many readings.

    >>> from ottla.record.build import build_batch
    >>> records(Batch(build_batch([Record(3, 1_700_000_000_000, b"k", None)])))
    [Record(offset=3, timestamp=1700000000000, key=b'k', value=None, headers=())]
    """
    return read(batch.section(limit), batch.count, batch.base_offset, batch.base_timestamp, batch.append_time)


class LegacyEntry:
    """A message of the formats before v2, perhaps a compressed set of them, as it lies in a run of entries."""

    __slots__ = ("data", "magic", "offset")

    def __init__(self, data: memoryview, offset: int, magic: int) -> None:
        self.data = data
        self.offset = offset
        self.magic = magic

    def __repr__(self) -> str:
        return f"LegacyEntry(offset={self.offset}, magic={self.magic}, size={self.size})"

    @property
    def size(self) -> int:
        """Bytes of the whole entry."""
        return len(self.data)


class Batches:
    """The entries of a buffer, one after another.

    The last one may be cut off, as it is in fetch replies; once the walk is over `remainder` is what was left.
    """

    def __init__(self, buffer: Buffer) -> None:
        self._view = memoryview(buffer)
        self.remainder = self._view

    def __iter__(self) -> Iterator[Batch | LegacyEntry]:
        view, position = self._view, 0
        while len(view) - position >= _PREFIX.size:
            offset, length, _, magic = _PREFIX.unpack_from(view, position)
            smallest = _SMALLEST_LENGTH.get(magic)
            if smallest is None:
                raise _corrupt(f"magic {magic} is not 0, 1 or 2", position + MAGIC_AT)
            if length < smallest:
                raise _corrupt(f"length {length} is below {smallest}, the least for magic {magic}", position + 8)
            end = position + LENGTH_END + length
            if end > len(view):
                break
            yield Batch(view, position) if magic == 2 else LegacyEntry(view[position:end], offset, magic)
            position = end
        self.remainder = view[position:]


def batches(buffer: Buffer) -> Batches:
    """Walk the batches of a buffer, and the messages of older formats among them.

    >>> from ottla.record.build import build_batch
    >>> data = build_batch([Record(0, 1, None, b"a")]) + build_batch([Record(1, 2, None, b"b")])
    >>> walk = batches(data + data[:20])
    >>> [batch.size for batch in walk], len(walk.remainder)
    ([69, 69], 20)
    """
    return Batches(buffer)


def _corrupt(reason: str, position: int) -> ProtocolError:
    return ProtocolError(reason, offset=position, where="batch", code=ErrorCode.CORRUPT_MESSAGE)


def _invalid(reason: str) -> ProtocolError:
    return ProtocolError(reason, where="batch header", code=ErrorCode.INVALID_RECORD)
