"""The records that travel between Ottla and other people's clients, and how they look as rows of a table."""

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow
import pytest

from ottla.record import Batch, Codec, Record, batches, records, scan
from ottla.record.columns import arrow_schema, from_arrow, to_arrow
from ottla.record.legacy import Message, messages

LIMIT = 1 << 22
NOW_MS = 1_700_000_000_000
OLD_CODECS = [codec for codec in Codec if codec is not Codec.ZSTD]
"""What message sets of magic 0 and 1 may be compressed with."""

each_codec = pytest.mark.parametrize("codec", Codec, ids=lambda codec: codec.name.lower())
each_old_codec = pytest.mark.parametrize("codec", OLD_CODECS, ids=lambda codec: codec.name.lower())
each_magic = pytest.mark.parametrize("magic", [0, 1], ids=["magic 0", "magic 1"])

_ODD = [
    Record(0, NOW_MS, b"key", b"value", [("trace", b"a1"), ("trace", b"a2")]),
    Record(0, NOW_MS + 70, None, b"no key", [("null", None), ("empty", b""), ("ünïcode", "ž".encode())]),
    Record(0, NOW_MS - 86_400_000, b"a tombstone from yesterday", None),
    Record(0, NOW_MS + 1, b"", b"empty key"),
    Record(0, NOW_MS + 1, b"empty value", b""),
    Record(0, NOW_MS + 2, None, None),
    # More than a block of each codec: 32 KiB in Java's snappy streams, 64 KiB in lz4, 128 KiB in zstd.
    Record(0, NOW_MS + 3, b"large", b"over and over and over again " * 6000),
]


def sample(base_offset: int = 0, *, count: int = 200, headers: bool = True) -> list[Record]:
    """Records at consecutive offsets: nulls, empty fields, headers, time that runs back, and enough to compress."""
    many = [
        Record(0, NOW_MS + n * 10, b"key %d" % (n % 7), b"value %d, " % n * 5, [("n", b"%d" % n)]) for n in range(count)
    ]
    return [
        Record(offset, record.timestamp, record.key, record.value, record.headers if headers else ())
        for offset, record in enumerate(_ODD + many, start=base_offset)
    ]


def without_timestamps(originals: Iterable[Record]) -> list[Record]:
    """Records as magic 0 keeps them."""
    return [Record(record.offset, -1, record.key, record.value) for record in originals]


def stamped(originals: Iterable[Record], timestamp_ms: int) -> list[Record]:
    """Records as they are read where the log's own time is used."""
    return [Record(r.offset, timestamp_ms, r.key, r.value, r.headers) for r in originals]


def whole_batches(run: bytes | memoryview) -> list[Batch]:
    """The batches of a run that is nothing but whole ones, checked down to the last record."""
    walk = batches(run)
    found: list[Batch] = []
    for entry in walk:
        assert isinstance(entry, Batch), f"{entry} is no batch"
        entry.validate()
        scan(entry)
        found.append(entry)
    assert not walk.remainder
    return found


def read_batches(run: bytes | memoryview) -> list[Record]:
    """The records of a run of batches, which must be the same as objects and as Arrow columns."""
    as_objects = [record for batch in whole_batches(run) for record in records(batch)]
    assert to_arrow(run).to_pylist() == rows(as_objects)
    return as_objects


def read_message_set(data: bytes | memoryview) -> list[Message]:
    """The messages of an old set, which must be the same as objects and as Arrow columns."""
    found = list(messages(data, LIMIT, partial_tail=False))
    assert to_arrow(data).to_pylist() == rows(as_records(found))
    return found


def as_records(found: Iterable[Message]) -> list[Record]:
    """Messages as records."""
    return [Record(message.offset, message.timestamp, message.key, message.value) for message in found]


def batches_from_columns(originals: Sequence[Record], codec: Codec, **fields: Any) -> list[bytes]:
    """Batches made from an Arrow table of records."""
    table = pyarrow.Table.from_pylist(rows(originals), arrow_schema())
    return from_arrow(table, codec, base_offset=originals[0].offset, **fields)


def rows(originals: Iterable[Record]) -> list[dict[str, Any]]:
    """Records as Arrow gives them back."""
    timestamps = pyarrow.array([record.timestamp for record in originals], pyarrow.timestamp("ms", "UTC")).to_pylist()
    return [
        {
            "offset": record.offset,
            "timestamp": timestamp,
            "key": record.key,
            "value": record.value,
            "headers": [{"key": name, "value": value} for name, value in record.headers],
        }
        for record, timestamp in zip(originals, timestamps, strict=True)
    ]
