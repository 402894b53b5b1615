"""The sink: `df.write.format("ottla")` and `df.writeStream.format("ottla")`, as the driver sees them."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter
from pyspark.sql.types import ArrayType, BinaryType, DataType, IntegerType, StringType, StructType, TimestampType

from ottla.spark.java_socket import FromJava
from ottla.spark.sink_options import SinkOptions
from ottla.spark.writing import RowsWritten, write_rows

if TYPE_CHECKING:
    import pyarrow as pa


class SinkWriter(FromJava, DataSourceArrowWriter):
    """Writes a DataFrame to topics, each row at least once."""

    def __init__(self, options: SinkOptions, columns: tuple[str, ...]) -> None:
        self._options = options
        self._columns = columns

    def write(self, iterator: "Iterator[pa.RecordBatch]") -> RowsWritten:
        """Write the rows of a partition of the DataFrame, on an executor."""
        return write_rows(iterator, self._options, self._columns)


class SinkStreamWriter(FromJava, DataSourceStreamArrowWriter):
    """Writes the micro-batches of a query to topics, each row at least once."""

    def __init__(self, options: SinkOptions, columns: tuple[str, ...]) -> None:
        self._options = options
        self._columns = columns

    def write(self, iterator: "Iterator[pa.RecordBatch]") -> RowsWritten:
        """Write the rows of a partition of a micro-batch, on an executor."""
        return write_rows(iterator, self._options, self._columns)


def batch_writer(options: Mapping[str, str], schema: StructType, overwrite: bool) -> SinkWriter:
    """The writer of a DataFrame, if it can be written so."""
    if overwrite:
        raise ValueError("save mode overwrite: records are only ever added to a topic; use mode append")
    read = SinkOptions.parse(options)
    return SinkWriter(read, columns_of(schema, read))


def stream_writer(options: Mapping[str, str], schema: StructType, overwrite: bool) -> SinkStreamWriter:
    """The writer of a query. In output mode complete, which is what `overwrite` says, all rows are added each time."""
    read = SinkOptions.parse(options)
    return SinkStreamWriter(read, columns_of(schema, read))


def columns_of(schema: StructType, options: SinkOptions) -> tuple[str, ...]:
    """The columns that go into records; others are left out, as the official connector does.

    >>> from pyspark.sql.types import StructType
    >>> options = SinkOptions.parse({"kafka.bootstrap.servers": "broker:9092", "topic": "orders"})
    >>> columns_of(StructType().add("value", "string").add("price", "double"), options)
    ('value',)
    >>> columns_of(StructType().add("value", "double"), options)
    Traceback (most recent call last):
    ValueError: column 'value' is of type double; it must be string or binary: CAST(value AS STRING), for one
    """
    kinds = {field.name: field.dataType for field in schema.fields}
    if "value" not in kinds:
        raise ValueError(
            f"there is no column 'value' among {', '.join(kinds) or 'none'}; give the one that is to be sent that name"
        )
    wanted = ["key", "value", "headers", "partition"]
    if options.topic is None:
        if "topic" not in kinds:
            raise ValueError("no topic: set option topic, or add a column 'topic'")
        wanted.append("topic")
    if options.include_timestamp:
        if "timestamp" not in kinds:
            raise ValueError("option includeTimestamp is true, and there is no column 'timestamp'")
        wanted.append("timestamp")
    columns = tuple(name for name in wanted if name in kinds)
    for name in columns:
        _check_type(name, kinds[name])
    return columns


def _check_type(name: str, kind: DataType) -> None:
    is_right, wanted = {
        "key": (isinstance(kind, (StringType, BinaryType)), "string or binary: CAST(key AS STRING), for one"),
        "value": (isinstance(kind, (StringType, BinaryType)), "string or binary: CAST(value AS STRING), for one"),
        "headers": (_is_headers(kind), "array<struct<key: string, value: binary>>"),
        "topic": (isinstance(kind, StringType), "string"),
        "partition": (isinstance(kind, IntegerType), "int: CAST(partition AS INT)"),
        "timestamp": (isinstance(kind, TimestampType), "timestamp"),
    }[name]
    if not is_right:
        raise ValueError(f"column {name!r} is of type {kind.simpleString()}; it must be {wanted}")


def _is_headers(kind: DataType) -> bool:
    if not isinstance(kind, ArrayType) or not isinstance(kind.elementType, StructType):
        return False
    fields = {field.name: type(field.dataType) for field in kind.elementType.fields}
    return fields == {"key": StringType, "value": BinaryType}
