"""Shows people what is in some records: every field of every format, with its place, slowly and in plain sight.

Records inside compression have their places counted from the start of what was decompressed.
"""

from collections.abc import Iterator
from struct import Struct
from typing import Any

from ottla.record.batch import DEFAULT_LIMIT, HEADER_SIZE, Batch, LegacyEntry, batches
from ottla.record.compression import Codec, decompress, moved
from ottla.record.legacy import DEEPEST_NESTING, Budget
from ottla.wire.errors import ErrorCode, ProtocolError
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


def explain(buffer: Bytes, limit: int = DEFAULT_LIMIT) -> Iterator[Step]:
    """Every field of a run of batches or of a message set, which may decompress to `limit` bytes in all.

    Steps come until something makes no sense, and then a ProtocolError that names the field.

    >>> from ottla.record import Record, build_batch
    >>> steps = list(explain(build_batch([Record(0, 5, b"k", b"v")])))
    >>> [(step.start, step.path, step.value) for step in steps if step.path.endswith(("magic", "value"))]
    [(16, 'batch[0].magic', 2), (68, 'batch[0].records[0].value', b'v')]
    """
    return _entries(buffer, Budget(limit), "", 0)


def _entries(buffer: Bytes, budget: Budget, prefix: str, depth: int) -> Iterator[Step]:
    start = 0
    for index, entry in enumerate(batches(buffer)):
        if isinstance(entry, Batch):
            yield from _batch(entry, start, f"{prefix}batch[{index}]", budget)
        else:
            yield from _message(entry, start, f"{prefix}message[{index}]", budget, depth)
        start += entry.size


class _Cursor:
    """Reads one thing after another, and remembers where each began. `shift` is where its data begins."""

    def __init__(self, data: Bytes, shift: int) -> None:
        self.data = memoryview(data)
        self.position = 0
        self.shift = shift

    def fixed(self, path: str, code: str, kind: str) -> Step:
        layout = Struct(">" + code)
        self._need(layout.size, path, kind)
        (value,) = layout.unpack_from(self.data, self.position)
        return self._step(layout.size, path, kind, value)

    def varint(self, path: str, bits: int = 32) -> Step:
        raw = shift = 0
        position = self.position
        while True:
            if position == len(self.data):
                raise self.wrong("the bytes end inside a varint", path)
            byte = self.data[position]
            position += 1
            raw |= (byte & 0x7F) << shift
            shift += 7
            if raw >> bits or shift > bits + 7:
                raise self.wrong(f"a varint does not fit its {bits} bits", path)
            if byte < 0x80:
                return self._step(position - self.position, path, "varint", (raw >> 1) ^ -(raw & 1))

    def octets(self, path: str, length: int, kind: str = "bytes") -> Step:
        self._need(0 if length == -1 else length, path, kind)
        value = None if length < 0 else bytes(self.data[self.position : self.position + length])
        return self._step(max(0, length), path, kind, value)

    def part(self, length: int, path: str, what: str) -> "_Cursor":
        """A cursor for the next bytes alone, which this one then has behind it."""
        self._need(length, path, what)
        start = self.position
        self.position += length
        return _Cursor(self.data[start : self.position], self.shift + start)

    def end(self, path: str) -> None:
        left = len(self.data) - self.position
        if left:
            raise self.wrong(f"{left} bytes follow the last field", path)

    def wrong(self, reason: str, path: str) -> ProtocolError:
        return ProtocolError(reason, offset=self.position + self.shift, where=path, code=ErrorCode.INVALID_RECORD)

    def _need(self, length: int, path: str, what: str) -> None:
        left = len(self.data) - self.position
        if not 0 <= length <= left:
            raise self.wrong(f"{what} has length {length}, and {left} bytes are left", path)

    def _step(self, length: int, path: str, kind: str, value: Any) -> Step:
        start = self.position + self.shift
        self.position += length
        return Step(start, start + length, path, kind, value)


def _batch(batch: Batch, start: int, path: str, budget: Budget) -> Iterator[Step]:
    cursor = _Cursor(batch.data, start)
    for name, code, kind in _V2_HEADER:
        yield cursor.fixed(f"{path}.{name}", code, kind)
    shift = start + HEADER_SIZE
    if batch.codec is not Codec.NONE:
        yield cursor.octets(f"{path}.records", len(batch.payload), batch.codec.name.lower())
        shift = 0
    try:
        section = batch.section(budget.left)
    except ProtocolError as error:
        raise moved(error, start, f"{path}.records") from error
    if batch.codec is not Codec.NONE:
        budget.left -= len(section)
    inner = _Cursor(section, shift)
    if batch.count < 0:
        raise inner.wrong(f"the record count is {batch.count}", f"{path}.count")
    for index in range(batch.count):
        yield from _record(inner, f"{path}.records[{index}]")
    inner.end(f"{path}.records")


def _record(section: _Cursor, path: str) -> Iterator[Step]:
    length = section.varint(f"{path}.length")
    yield length
    cursor = section.part(length.value, f"{path}.length", "the record")
    yield cursor.fixed(f"{path}.attributes", "b", "int8")
    yield cursor.varint(f"{path}.timestamp_delta", 64)
    yield cursor.varint(f"{path}.offset_delta")
    for name in ("key", "value"):
        yield from _field(cursor, f"{path}.{name}")
    count = cursor.varint(f"{path}.header_count")
    yield count
    if count.value < 0:
        raise cursor.wrong(f"the header count is {count.value}", count.path)
    for index in range(count.value):
        for name in ("key", "value"):
            yield from _field(cursor, f"{path}.headers[{index}].{name}")
    cursor.end(path)


def _field(cursor: _Cursor, path: str) -> Iterator[Step]:
    length = cursor.varint(f"{path}_length")
    yield length
    yield cursor.octets(path, length.value)


def _message(entry: LegacyEntry, start: int, path: str, budget: Budget, depth: int) -> Iterator[Step]:
    cursor = _Cursor(entry.data, start)
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
            if depth == DEEPEST_NESTING:
                raise cursor.wrong(f"a message set is wrapped more than {DEEPEST_NESTING} times", value.path)
            yield from _entries(_unwrap(codec, value, entry.magic, budget), budget, f"{path}.", depth + 1)


def _unwrap(codec: Codec, value: Step, magic: int, budget: Budget) -> Bytes:
    try:
        inner = decompress(codec, value.value, budget.left, legacy_lz4=magic == 0)
    except ProtocolError as error:
        raise moved(error, value.start, value.path) from error
    budget.left -= len(inner)
    return inner
