"""Building v2 batches, record by record or from records that have their offsets already."""

from collections.abc import Iterable

from ottla.record._kernel_types import LARGEST_SECTION, Buffer, Headers
from ottla.record.batch import (
    CHECKED,
    CONTROL,
    DELETE_HORIZON,
    HEADER_SIZE,
    LENGTH_END,
    LOG_APPEND_TIME,
    TRANSACTIONAL,
    UNCHECKED,
)
from ottla.record.checksum import crc32c
from ottla.record.compression import Codec, compress
from ottla.record.kernels import Record, RecordWriter
from ottla.wire.errors import EncodeError


class BatchBuilder(RecordWriter):
    """Collects records and makes a batch of them.

    `append` and `append_rows` come from the record writer. They say when a record does not fit in `max_size`, which is
    the size of the batch before compression; the first record always fits. The producer's fields may be set until the
    batch is built, since a sequence number is often known only then.

    >>> builder = BatchBuilder(Codec.GZIP, max_size=100, producer_id=9, producer_epoch=0)
    >>> builder.append(1_700_000_000_000, b"key", b"value")
    0
    >>> print(builder.append(1_700_000_000_001, b"key", bytes(50)))
    None
    >>> builder.base_sequence = 17
    >>> builder.build()[16]
    2
    """

    __slots__ = (
        "base_sequence",
        "codec",
        "control",
        "leader_epoch",
        "level",
        "producer_epoch",
        "producer_id",
        "transactional",
    )

    def __init__(
        self,
        codec: Codec = Codec.NONE,
        *,
        max_size: int = LARGEST_SECTION + HEADER_SIZE,
        base_offset: int = 0,
        base_timestamp: int | None = None,
        leader_epoch: int = -1,
        producer_id: int = -1,
        producer_epoch: int = -1,
        base_sequence: int = -1,
        transactional: bool = False,
        control: bool = False,
        level: int | None = None,
    ) -> None:
        super().__init__(max_size - HEADER_SIZE, base_offset, base_timestamp, HEADER_SIZE)
        if not isinstance(codec, Codec):
            raise EncodeError(f"codec {codec!r} is no ottla.record.Codec, such as Codec.LZ4")
        self.codec = codec
        self.leader_epoch = leader_epoch
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.base_sequence = base_sequence
        self.transactional = transactional
        self.control = control
        self.level = level

    @property
    def batch_size(self) -> int:
        """Bytes of the batch as it would be now without compression."""
        return HEADER_SIZE + self.size

    def build(
        self,
        *,
        append_time: int | None = None,
        last_offset: int | None = None,
        delete_horizon: bool = False,
    ) -> bytes:
        """The batch. What it holds stays, so that it can be built again with other producer fields.

        `append_time` makes it a batch stamped by the log. `last_offset` lets a compacted batch keep the offsets that it
        covered when its last records are gone. `delete_horizon` says that the base timestamp is one.
        """
        if not self.codec:
            return bytes(self._headed(append_time, last_offset, delete_horizon))
        payload = compress(self.codec, self.records(), self.level)
        header = bytearray(HEADER_SIZE)
        self._put_checked(header, append_time, last_offset, delete_horizon)
        self._put_unchecked(header, len(payload), crc32c(payload, crc32c(header[UNCHECKED.size :])))
        return b"".join((header, payload))

    def build_once(self) -> Buffer:
        """The batch, without a copy where it is not compressed. Nothing may be appended from then on."""
        return self.build() if self.codec else self._headed(None, None, False)

    def _headed(self, append_time: int | None, last_offset: int | None, delete_horizon: bool) -> memoryview:
        """The batch where its records are."""
        batch = self.with_room()
        self._put_checked(batch, append_time, last_offset, delete_horizon)
        self._put_unchecked(batch, self.size, crc32c(batch[UNCHECKED.size :]))
        return batch

    def _put_unchecked(self, batch: bytearray | memoryview, payload_size: int, crc: int) -> None:
        length = HEADER_SIZE - LENGTH_END + payload_size
        UNCHECKED.pack_into(batch, 0, self.base_offset, length, self.leader_epoch, 2, crc)

    def _put_checked(
        self, batch: bytearray | memoryview, append_time: int | None, last_offset: int | None, delete_horizon: bool
    ) -> None:
        last_offset_delta = self.last_offset_delta
        if last_offset is not None or last_offset_delta < 0:
            last_offset_delta = self._last_offset_delta_of(last_offset)
        attributes = int(self.codec)
        if self.transactional:
            attributes |= TRANSACTIONAL
        if self.control:
            attributes |= CONTROL
        if append_time is not None:
            attributes |= LOG_APPEND_TIME
        if delete_horizon:
            attributes |= DELETE_HORIZON
        CHECKED.pack_into(
            batch,
            UNCHECKED.size,
            attributes,
            last_offset_delta,
            self.base_timestamp,
            self.max_timestamp if append_time is None else append_time,
            self.producer_id,
            self.producer_epoch,
            self.base_sequence,
            self.count,
        )

    def _last_offset_delta_of(self, last_offset: int | None) -> int:
        delta = -1 if last_offset is None else last_offset - self.base_offset
        if delta < max(self.last_offset_delta, 0):
            raise EncodeError(
                f"a batch of {self.count} records from offset {self.base_offset} on cannot end at {last_offset}"
            )
        return delta


def build_single(
    timestamp: int, key: bytes | None, value: bytes | None, headers: Headers, producer: tuple[int, int], sequence: int
) -> memoryview:
    """A batch of one record, uncompressed, from a producer of this id and epoch: what a builder makes, sooner.

    >>> single = build_single(5, None, b"a", (), (9, 0), 17)
    >>> builder = BatchBuilder(producer_id=9, producer_epoch=0, base_sequence=17)
    >>> builder.append(5, None, b"a")
    0
    >>> bytes(single) == builder.build()
    True
    """
    writer = RecordWriter(room=HEADER_SIZE)
    writer.append(timestamp, key, value, headers)
    batch = writer.with_room()
    CHECKED.pack_into(batch, UNCHECKED.size, 0, 0, timestamp, timestamp, *producer, sequence, 1)
    UNCHECKED.pack_into(batch, 0, 0, len(batch) - LENGTH_END, -1, 2, crc32c(batch[UNCHECKED.size :]))
    return batch


def build_batch(
    records: Iterable[Record],
    codec: Codec = Codec.NONE,
    *,
    base_offset: int | None = None,
    last_offset: int | None = None,
    base_timestamp: int | None = None,
    append_time: int | None = None,
    delete_horizon_ms: int | None = None,
    leader_epoch: int = -1,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    transactional: bool = False,
    control: bool = False,
    level: int | None = None,
) -> bytes:
    """A batch of records that keep their offsets, which may have gaps, and their timestamps.

    The base offset is that of the first record unless it is given; without records both ends must be.

    >>> from ottla.record.batch import Batch
    >>> batch = Batch(build_batch([Record(3, 5, None, b"a"), Record(8, 4, None, b"b")], last_offset=9))
    >>> batch.base_offset, batch.next_offset, batch.count, batch.max_timestamp
    (3, 10, 2, 5)
    """
    kept = list(records)
    if base_offset is None:
        if not kept:
            raise EncodeError("a batch without records needs a base offset")
        base_offset = kept[0].offset
    builder = BatchBuilder(
        codec,
        base_offset=base_offset,
        base_timestamp=base_timestamp if delete_horizon_ms is None else delete_horizon_ms,
        leader_epoch=leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        transactional=transactional,
        control=control,
        level=level,
    )
    for record in kept:
        if builder.append(record.timestamp, record.key, record.value, record.headers, record.offset) is None:
            raise EncodeError(f"{len(kept)} records are more than the 2 GiB that a batch can hold")
    return builder.build(append_time=append_time, last_offset=last_offset, delete_horizon=delete_horizon_ms is not None)
