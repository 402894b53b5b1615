"""Record batches to Arrow columns and back, without a Python object per record.

Needs pyarrow, the `arrow` extra, which is imported on first use.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ottla.record._kernel_types import LARGEST_INT32, LARGEST_INT64, Buffer
from ottla.record.batch import DEFAULT_LIMIT, Batch, LegacyEntry, batches
from ottla.record.build import BatchBuilder
from ottla.record.compression import Codec
from ottla.record.kernels import (
    BinaryColumn,
    ColumnBuffers,
    Columns,
    HeaderColumn,
    RecordWriter,
    ViewColumn,
    append_run,
)
from ottla.record.legacy import first_offset_of, runs
from ottla.wire.errors import EncodeError

if TYPE_CHECKING:
    import pyarrow as pa

COLUMNS = ("offset", "timestamp", "key", "value", "headers")
"""The columns of a run of records, in their order."""

Source = Buffer | Iterable[Batch | LegacyEntry]


def arrow_schema(columns: Sequence[str] = COLUMNS, *, views: bool = False) -> "pa.Schema":
    """The Arrow schema of these columns; `views` are values that stay in the bytes that they were read from.

    >>> print(arrow_schema(["offset", "timestamp", "value"]))
    offset: int64
    timestamp: timestamp[ms, tz=UTC]
    value: binary
    """
    pa = _pyarrow()
    kinds = {
        "offset": pa.int64(),
        "timestamp": pa.timestamp("ms", tz="UTC"),
        "key": pa.binary(),
        "value": pa.binary_view() if views else pa.binary(),
        "headers": pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
    }
    for name in columns:
        if name not in kinds:
            raise ValueError(f"there is no column {name!r}; there are {', '.join(COLUMNS)}")
    return pa.schema([(name, kinds[name]) for name in columns])


def to_arrow(
    source: Source,
    *,
    columns: Sequence[str] = COLUMNS,
    start_offset: int = 0,
    stop_offset: int = LARGEST_INT64,
    limit: int = DEFAULT_LIMIT,
) -> "pa.Table":
    """The records of a run of batches, given as bytes or as an iterable of batches, as an Arrow table.

    Control batches are left out, and so are records with offsets outside [start_offset, stop_offset) and a batch that
    is cut off at the end. What one batch decompresses to is bounded by `limit` bytes. Batches of aborted transactions
    are for the caller to leave out: a transaction takes whole batches. The CRCs of batches are not checked:
    `Batch.check_crc` does that.

    >>> from ottla.record import Record, build_batch
    >>> data = build_batch([Record(7, 1_700_000_000_000, b"k", b"v", [("trace", b"a1")])])
    >>> to_arrow(data, columns=["offset", "value", "headers"]).to_pylist()
    [{'offset': 7, 'value': b'v', 'headers': [{'key': 'trace', 'value': b'a1'}]}]
    """
    parts = arrow_batches(source, columns=columns, start_offset=start_offset, stop_offset=stop_offset, limit=limit)
    return _pyarrow().Table.from_batches(list(parts), arrow_schema(columns))


def arrow_batches(
    source: Source,
    *,
    columns: Sequence[str] = COLUMNS,
    start_offset: int = 0,
    stop_offset: int = LARGEST_INT64,
    limit: int = DEFAULT_LIMIT,
    max_rows: int = 65_536,
    max_bytes: int = 2**21,
) -> Iterator["pa.RecordBatch"]:
    """The same as `to_arrow`, as Arrow batches, which are cut between record batches before they pass a maximum.

    A few megabytes are best: larger arrays cost more in fresh memory than they save in calls.
    """
    schema = arrow_schema(columns)
    gathered = Columns("key" in columns, "value" in columns, "headers" in columns)
    gathered_bytes = 0
    max_bytes = min(max_bytes, LARGEST_INT32)
    for entry in _entries(source):
        if not _wanted(entry, start_offset, stop_offset):
            continue
        section, count, base_offset, base_timestamp, append_time = _section(entry, min(limit, LARGEST_INT32))
        if gathered.rows and (gathered.rows + count > max_rows or gathered_bytes + len(section) > max_bytes):
            yield _record_batch(gathered.finish(), schema)
            gathered_bytes = 0
        gathered.extend(section, count, base_offset, base_timestamp, append_time, start_offset, stop_offset)
        gathered_bytes += len(section)
    if gathered.rows:
        yield _record_batch(gathered.finish(), schema)


def from_arrow(data: "pa.Table | pa.RecordBatch", codec: Codec = Codec.NONE, **options: Any) -> list[bytes]:
    """The rows of a table as a list of record batches; `record_batches` has the options.

    >>> import pyarrow
    >>> [batch] = from_arrow(pyarrow.table({"key": ["a", None], "value": ["one", "two"]}), timestamp_ms=5)
    >>> to_arrow(batch, columns=["key", "value"]).to_pylist()
    [{'key': b'a', 'value': b'one'}, {'key': None, 'value': b'two'}]
    """
    return list(record_batches(data, codec, **options))


def record_batches(
    data: "pa.Table | pa.RecordBatch",
    codec: Codec = Codec.NONE,
    *,
    batch_size: int = 2**20,
    timestamp_ms: int = -1,
    base_offset: int = 0,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    transactional: bool = False,
    level: int | None = None,
) -> Iterator[bytes]:
    """The rows of a table as record batches of up to `batch_size` bytes before compression, one after another.

    The columns are `value` and any of `key`, `timestamp` and `headers`; `offset` is ignored. Key and value are binary
    or string; the timestamp is any date or time, of which what is below a millisecond is cut off, or a number of
    milliseconds. Where it is null or there is no such column it is `timestamp_ms`, by default -1, which means none. A
    row that alone is larger than `batch_size` gets a batch of its own.
    """
    _check_columns(data.schema)

    def new_builder(rows_before: int) -> BatchBuilder:
        sequence = base_sequence if base_sequence < 0 else (base_sequence + rows_before) & LARGEST_INT32
        return BatchBuilder(
            codec,
            max_size=batch_size,
            base_offset=base_offset + rows_before,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=sequence,
            transactional=transactional,
            level=level,
        )

    builder, rows_before = new_builder(0), 0
    for part in data.to_batches() if hasattr(data, "to_batches") else [data]:
        columns = row_columns(part, timestamp_ms)
        row = 0
        while row < part.num_rows:
            added = builder.append_rows(row, part.num_rows, **columns)
            row += added
            rows_before += added
            if row < part.num_rows:
                yield builder.build()
                builder = new_builder(rows_before)
    if builder.count:
        yield builder.build()


def _pyarrow() -> Any:
    try:
        import pyarrow
    except ImportError as error:
        raise ImportError("Arrow columns need pyarrow: install ottla with its `arrow` extra") from error
    return pyarrow


# ---- batches to columns ----


def _entries(source: Source) -> Iterable[Batch | LegacyEntry]:
    try:
        # Not only what is declared: Arrow's own buffers, mapped files and arrays come as well.
        return batches(memoryview(source).cast("B"))  # type: ignore[arg-type]
    except TypeError:
        return source  # type: ignore[return-value]


def _wanted(entry: Batch | LegacyEntry, start_offset: int, stop_offset: int) -> bool:
    if not isinstance(entry, (Batch, LegacyEntry)):
        raise TypeError(f"a source is bytes, or batches one by one, of which {type(entry).__name__} is none")
    if isinstance(entry, LegacyEntry):
        # The offset of a compressed entry is that of its last message.
        return entry.offset >= start_offset
    return not entry.control and entry.next_offset > start_offset and entry.base_offset < stop_offset


def _section(entry: Batch | LegacyEntry, limit: int) -> tuple[Buffer, int, int, int, int | None]:
    """What the kernel takes: records, their count, base offset, base timestamp and the append time, if any."""
    if isinstance(entry, Batch):
        return entry.section(limit), entry.count, entry.base_offset, entry.base_timestamp, entry.append_time
    found = list(runs(entry.data, limit))
    writer = RecordWriter(base_offset=first_offset_of(found[0]) if found else 0)
    for run in found:
        append_run(writer, run)
    return writer.records(), writer.count, writer.base_offset, writer.base_timestamp, None


def _record_batch(columns: ColumnBuffers, schema: "pa.Schema") -> "pa.RecordBatch":
    return _pyarrow().RecordBatch.from_arrays([arrow_column(columns, field) for field in schema], schema=schema)


def arrow_column(columns: ColumnBuffers, field: "pa.Field") -> "pa.Array":
    """One of the columns that were gathered, by a field of `arrow_schema`."""
    pa = _pyarrow()
    if field.name == "value":
        return _binary_array(columns.value, field.type)
    if field.name == "key":
        return _binary_array(columns.key, field.type)
    if field.name == "headers":
        return _header_array(columns.headers, field.type)
    numbers = columns.offsets if field.name == "offset" else columns.timestamps
    return pa.Array.from_buffers(field.type, columns.rows, [None, pa.py_buffer(numbers)])


def _binary_array(column: BinaryColumn | ViewColumn | None, kind: "pa.DataType") -> "pa.Array":
    pa = _pyarrow()
    assert column is not None, "a column of the schema was not gathered"
    validity = None if column.validity is None else pa.py_buffer(column.validity)
    if isinstance(column, ViewColumn):
        buffers = [validity, pa.py_buffer(column.views), *map(pa.py_buffer, column.sources)]
    else:
        buffers = [validity, pa.py_buffer(column.offsets), pa.py_buffer(column.data)]
    return pa.Array.from_buffers(kind, column.length, buffers)


def _header_array(column: HeaderColumn | None, kind: "pa.DataType") -> "pa.ListArray":
    pa = _pyarrow()
    assert column is not None, "a column of the schema was not gathered"
    headers = _headers(column, kind.value_type) if column.keys.length else _no_headers(kind.value_type)
    return pa.Array.from_buffers(kind, column.length, [None, pa.py_buffer(column.offsets)], children=[headers])


def _headers(column: HeaderColumn, kind: "pa.DataType") -> "pa.StructArray":
    pa = _pyarrow()
    keys = _binary_array(column.keys, pa.binary())
    try:
        keys = keys.cast(pa.string())
    except pa.ArrowInvalid:
        # Not UTF-8: rare enough to take the slow way, which agrees with how records are read as objects.
        keys = pa.array([key.decode("utf-8", "replace") for key in keys.to_pylist()], pa.string())
    return pa.StructArray.from_arrays([keys, _binary_array(column.values, pa.binary())], fields=list(kind))


@lru_cache(maxsize=1)
def _no_headers(kind: "pa.DataType") -> "pa.StructArray":
    """What most records have. Made once: it takes longer than all the other columns together."""
    nothing = BinaryColumn(0, None, bytes(4), b"")
    return _headers(HeaderColumn(0, None, bytes(4), nothing, nothing), kind)


# ---- columns to batches ----


def _check_columns(schema: "pa.Schema") -> None:
    if "value" not in schema.names:
        raise EncodeError(f"there is no column 'value' among {', '.join(schema.names) or 'none'}")
    for name in schema.names:
        if name not in COLUMNS:
            raise EncodeError(f"column {name!r} is none of {', '.join(COLUMNS)}")
        if schema.names.count(name) > 1:
            raise EncodeError(f"there is more than one column {name!r}")


def row_columns(part: "pa.RecordBatch", timestamp_ms: int = -1) -> dict[str, Any]:
    """The arguments of `BatchBuilder.append_rows` for a batch of rows; `record_batches` says which columns it may have.

    >>> import pyarrow
    >>> rows = pyarrow.record_batch({"value": ["one", "two"]})
    >>> builder = BatchBuilder()
    >>> builder.append_rows(0, 2, **row_columns(rows, timestamp_ms=5))
    2
    """
    _check_columns(part.schema)
    columns: dict[str, Any] = {"timestamp": timestamp_ms}
    for name in part.schema.names:
        array = part.column(name)
        if name in ("key", "value"):
            columns[name] = binary_column(array, name)
        elif name == "headers":
            columns["headers"] = _header_column(array)
        elif name == "timestamp":
            columns["timestamps"] = _milliseconds(array, timestamp_ms)
    return columns


def _cast(array: "pa.Array", kind: "pa.DataType", name: str, wanted: str) -> "pa.Array":
    from pyarrow.compute import CastOptions

    try:
        return array.cast(options=CastOptions(kind, allow_time_truncate=True))
    except _pyarrow().ArrowException as error:
        raise EncodeError(
            f"column {name!r} is of type {array.type}, which cannot be read as {wanted}: {error}"
        ) from error


def binary_column(array: "pa.Array", name: str) -> BinaryColumn:
    """An array of bytes or text as the kernels take it; `name` is what an error calls it."""
    pa = _pyarrow()
    kind = array.type
    if not (pa.types.is_binary(kind) or pa.types.is_string(kind)):
        wide = pa.types.is_large_binary(kind) or pa.types.is_large_string(kind)
        if not wide:
            array = _cast(array, pa.large_binary(), name, "binary")
        return _layout(array, wide=True)
    return _layout(array, wide=False)


def _layout(array: "pa.Array", *, wide: bool) -> BinaryColumn:
    validity, offsets, data = array.buffers()
    return BinaryColumn(len(array), validity, offsets or b"", data or b"", array.offset, wide)


def _header_column(array: "pa.Array") -> HeaderColumn:
    pa = _pyarrow()
    if pa.types.is_list_view(array.type) or pa.types.is_large_list_view(array.type):
        # Casts of list views give broken arrays, as of pyarrow 26.
        raise EncodeError(f"column 'headers' is of type {array.type}, not a plain list of structs of key and value")
    is_list = pa.types.is_list(array.type) or pa.types.is_large_list(array.type)
    # Lists that are all empty may have lost what they are lists of, as those of pandas do.
    if not is_list or pa.types.is_null(array.type.value_type):
        kind = pa.list_(pa.struct([("key", pa.binary()), ("value", pa.binary())]))
        array = _cast(array, kind, "headers", "a list of key and value")
    wide = pa.types.is_large_list(array.type)
    fields = array.type.value_type
    names = [field.name for field in fields] if pa.types.is_struct(fields) else []
    if sorted(names) != ["key", "value"]:
        raise EncodeError(f"column 'headers' is of type {array.type}, not a list of structs of key and value")
    # Flattening gives the children the validity of the struct, so that a null header shows as a null key.
    children = dict(zip(names, array.values.flatten(), strict=True))
    validity, offsets = array.buffers()[:2]
    return HeaderColumn(
        len(array),
        validity,
        offsets or b"",
        binary_column(children["key"], "headers.key"),
        binary_column(children["value"], "headers.value"),
        array.offset,
        wide,
    )


def _milliseconds(array: "pa.Array", default_ms: int) -> "pa.Buffer":
    pa = _pyarrow()
    if not pa.types.is_integer(array.type):
        kind = pa.timestamp("ms", getattr(array.type, "tz", None))
        array = _cast(array, kind, "timestamp", "a time")
    array = _cast(array, pa.int64(), "timestamp", "milliseconds").fill_null(default_ms)
    return array.buffers()[1].slice(array.offset * 8, len(array) * 8)
