"""Records for the tests of this folder: strategies, both kernels, and what other libraries make of the same records."""

import importlib
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
from aiokafka.record.default_records import DefaultRecordBatch as AiokafkaBatch
from aiokafka.record.default_records import DefaultRecordBatchBuilder as AiokafkaBuilder
from hypothesis import strategies as st

from ottla.record import _twin as twin
from ottla.record.kernels import BinaryColumn, Record, ViewColumn
from ottla.wire.errors import EncodeError, ProtocolError

with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
    from kafka.record.default_records import DefaultRecordBatch as KafkaPythonBatch
    from kafka.record.default_records import DefaultRecordBatchBuilder as KafkaPythonBuilder

__all__ = ["AiokafkaBatch", "AiokafkaBuilder", "KafkaPythonBatch", "KafkaPythonBuilder"]

try:
    compiled: Any = importlib.import_module("ottla.record._kernels")
except ImportError:
    compiled = None

Fields = tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]
"""Timestamp, key, value and headers."""

some_bytes = st.none() | st.binary(max_size=20) | st.binary(min_size=60, max_size=200)
some_headers = st.lists(st.tuples(st.text(max_size=6), some_bytes), max_size=3)
# Within 62 bits, so that the distance of two of them is within 64.
some_timestamps = st.integers(-1, 2**42) | st.integers(-(2**61), 2**61)
some_fields: st.SearchStrategy[list[Fields]] = st.lists(
    st.tuples(some_timestamps, some_bytes, some_bytes, some_headers), min_size=1, max_size=12
)
# For other libraries' builders, to which a timestamp of -1 means that none has come yet.
dated_fields: st.SearchStrategy[list[Fields]] = st.lists(
    st.tuples(st.integers(0, 2**61), some_bytes, some_bytes, some_headers), min_size=1, max_size=12
)

NOW = 1_700_000_000_000
EXAMPLE: list[Fields] = [
    (NOW, b"k1", b"first", []),
    (NOW + 70, None, b"x" * 300, [("trace", b"a1"), ("ünïcode", None), ("", b"")]),
    (NOW - 90_000, b"", None, []),
    (NOW + 5, b"k2", b"", [("only", b"one")]),
]


def section_of(fields: Sequence[Fields], kernel: Any = twin) -> bytes:
    """The records section that a kernel writes for these fields."""
    writer = kernel.RecordWriter()
    for timestamp, key, value, headers in fields:
        assert writer.append(timestamp, key, value, headers) is not None
    return bytes(writer.records())


def records_of(fields: Sequence[Fields], base_offset: int = 0) -> list[Record]:
    """The same fields as records with consecutive offsets."""
    return [
        Record(offset, timestamp, key, value, headers)
        for offset, (timestamp, key, value, headers) in enumerate(fields, start=base_offset)
    ]


def plain(record: Any) -> tuple[Any, ...]:
    """A record of either kernel, or of another library, as a tuple that compares with any other."""
    return (record.offset, record.timestamp, record.key, record.value, [tuple(pair) for pair in record.headers])


def outcome(call: Callable[[], Any]) -> Any:
    """What a call gives, or how it fails, in a form that compares between the kernels."""
    try:
        result = call()
    except ProtocolError as error:
        return "refused", str(error), error.offset, error.where, error.code
    except (EncodeError, TypeError, IndexError, BufferError) as error:
        return type(error).__name__, str(error)
    except OverflowError as error:
        return type(error).__name__
    return [plain(record) for record in result] if isinstance(result, list) else result


def values_seen(column: BinaryColumn | ViewColumn) -> list[bytes | None]:
    """What a column has, or what its views show, as Arrow reads them."""
    if isinstance(column, ViewColumn):
        kind, buffers = pa.binary_view(), [column.validity, column.views, *column.sources]
    else:
        kind, buffers = pa.binary(), [column.validity, column.offsets, column.data]
    known = [None if buffer is None else pa.py_buffer(buffer) for buffer in buffers]
    array = pa.Array.from_buffers(kind, column.length, known)
    array.validate(full=True)
    found: list[bytes | None] = array.to_pylist()
    return found


def gather(kernel: Any, data: bytes, count: int, *arguments: Any, **wanted: bool) -> Any:
    """The columns that a kernel makes of one section."""
    columns = kernel.Columns(**wanted)
    added = columns.extend(data, count, *arguments)
    assert added == columns.rows
    return columns.finish()
