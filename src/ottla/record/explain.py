"""Shows people what is in some records: every field of every format, with its place, slowly and in plain sight.

Records inside compression have their places counted from the start of what was decompressed.
"""

from collections.abc import Iterator
from struct import Struct
from typing import Any

from ottla.record.batch import DEFAULT_LIMIT, HEADER_SIZE, Batch, LegacyEntry, batches
from ottla.record.compression import Codec, decompress
from ottla.wire.schema import Bytes
from ottla.wire.walk import Step

_V2_HEADER = (
    ("base_offset", "q", "int64"),
    ("length", "i", "int32"),
    ("leader_epoch", "i", "int32"),
    ("magic", "b", "int8"),
    ("crc", "I", "CRC-32C"),
    ("attributes", "h", "int16"),
    ("last_offset_delta", "i", "int32"),
    ("base_timestamp", "q", "int64"),
    ("max_timestamp", "q", "int64"),
    ("producer_id", "q", "int64"),
    ("producer_epoch", "h", "int16"),
    ("base_sequence", "i", "int32"),
    ("count", "i", "int32"),
)
_MESSAGE_HEADER = (
    ("offset", "q", "int64"),
    ("size", "i", "int32"),
    ("crc", "I", "CRC-32"),
    ("magic", "b", "int8"),
    ("attributes", "b", "int8"),
)


def explain(buffer: Bytes) -> Iterator[Step]:
    """Every field of a run of batches or of a message set.

    >>> from ottla.record import Record, build_batch
    >>> steps = list(explain(build_batch([Record(0, 5, b"k", b"v")])))
    >>> [(step.start, step.path, step.value) for step in steps if step.path.endswith(("magic", "value"))]
    [(16, 'batch[0].magic', 2), (68, 'batch[0].records[0].value', b'v')]
    """
    start = 0
    for index, entry in enumerate(batches(buffer)):
        if isinstance(entry, Batch):
            yield from _batch(entry, start, f"batch[{index}]")
        else:
            yield from _message(entry, start, f"message[{index}]")
        start += entry.size


class _Cursor:
    """Reads one thing after another, and remembers where each began."""

    def __init__(self, data: Bytes, position: int, shift: int) -> None:
        self.data = data
        self.position = position
        self.shift = shift

    def fixed(self, path: str, code: str, kind: str) -> Step:
        layout = Struct(">" + code)
        (value,) = layout.unpack_from(self.data, self.position)
        return self._step(layout.size, path, kind, value)

    def varint(self, path: str, kind: str = "varint") -> Step:
        raw = shift = 0
        position = self.position
        while True:
            byte = self.data[position]
            position += 1
            raw |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        return self._step(position - self.position, path, kind, (raw >> 1) ^ -(raw & 1))

    def octets(self, path: str, length: int, kind: str = "bytes") -> Step:
        value = None if length < 0 else bytes(self.data[self.position : self.position + length])
        return self._step(max(0, length), path, kind, value)

    def _step(self, length: int, path: str, kind: str, value: Any) -> Step:
        start = self.position + self.shift
        self.position += length
        return Step(start, start + length, path, kind, value)


def _batch(batch: Batch, start: int, path: str) -> Iterator[Step]:
    cursor = _Cursor(batch.data, 0, start)
    for name, code, kind in _V2_HEADER:
        yield cursor.fixed(f"{path}.{name}", code, kind)
    section: Bytes = batch.section(DEFAULT_LIMIT)
    shift = start + HEADER_SIZE
    if batch.codec is not Codec.NONE:
        yield cursor.octets(f"{path}.records", len(batch.payload), batch.codec.name.lower())
        shift = 0
    inner = _Cursor(section, 0, shift)
    for index in range(batch.count):
        yield from _record(inner, f"{path}.records[{index}]")


def _record(cursor: _Cursor, path: str) -> Iterator[Step]:
    yield cursor.varint(f"{path}.length")
    yield cursor.fixed(f"{path}.attributes", "b", "int8")
    yield cursor.varint(f"{path}.timestamp_delta")
    yield cursor.varint(f"{path}.offset_delta")
    for name in ("key", "value"):
        length = cursor.varint(f"{path}.{name}_length")
        yield length
        yield cursor.octets(f"{path}.{name}", length.value)
    count = cursor.varint(f"{path}.header_count")
    yield count
    for index in range(count.value):
        for name in ("key", "value"):
            length = cursor.varint(f"{path}.headers[{index}].{name}_length")
            yield length
            yield cursor.octets(f"{path}.headers[{index}].{name}", length.value)


def _message(entry: LegacyEntry, start: int, path: str) -> Iterator[Step]:
    cursor = _Cursor(entry.data, 0, start)
    attributes = 0
    for name, code, kind in _MESSAGE_HEADER:
        step = cursor.fixed(f"{path}.{name}", code, kind)
        attributes = step.value
        yield step
    if entry.magic == 1:
        yield cursor.fixed(f"{path}.timestamp", "q", "int64")
    codec = Codec.of(attributes)
    for name in ("key", "value"):
        length = cursor.fixed(f"{path}.{name}_length", "i", "int32")
        yield length
        compressed = name == "value" and codec is not Codec.NONE
        value = cursor.octets(f"{path}.{name}", length.value, codec.name.lower() if compressed else "bytes")
        yield value
        if compressed and value.value is not None:
            inner = decompress(codec, value.value, DEFAULT_LIMIT, legacy_lz4=entry.magic == 0)
            for step in explain(inner):
                yield step._replace(path=f"{path}.{step.path}")
