"""The columns of the source, for Spark and for Arrow."""

from typing import TYPE_CHECKING

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

if TYPE_CHECKING:
    import pyarrow as pa

_HEADERS = ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())]))

COLUMNS: dict[str, DataType] = {
    "key": BinaryType(),
    "value": BinaryType(),
    "topic": StringType(),
    "partition": IntegerType(),
    "offset": LongType(),
    "timestamp": TimestampType(),
    "timestampType": IntegerType(),
    "headers": _HEADERS,
}

_CLIENT_NAMES = {"timestampType": "timestamp_type"}


def source_schema(*, include_headers: bool) -> StructType:
    """The columns of a source, the official connector's.

    >>> source_schema(include_headers=False).names
    ['key', 'value', 'topic', 'partition', 'offset', 'timestamp', 'timestampType']
    """
    fields = [StructField(name, kind) for name, kind in COLUMNS.items() if include_headers or name != "headers"]
    return StructType(fields)


def check_schema(schema: StructType, *, include_headers: bool) -> None:
    """Refuse a schema of the user's that is not some of the columns with their own types.

    >>> from pyspark.sql.types import StructType
    >>> check_schema(StructType().add("value", "string"), include_headers=False)
    Traceback (most recent call last):
    ValueError: column value is string in the schema, but binary in topics; leave the type, and cast it in a query
    """
    for field in schema.fields:
        kind = COLUMNS.get(field.name)
        if kind is None:
            raise ValueError(f"there is no column {field.name}; there are {', '.join(COLUMNS)}")
        if field.name == "headers" and not include_headers:
            raise ValueError("the schema has a column headers; set option includeHeaders to true")
        given, ours = field.dataType.simpleString(), kind.simpleString()
        if given != ours:
            raise ValueError(
                f"column {field.name} is {given} in the schema, but {ours} in topics; leave the type, and cast it in a "
                f"query"
            )
    if not schema.names:
        raise ValueError(f"the schema has no columns; name some of {', '.join(COLUMNS)}")
    if len(set(schema.names)) < len(schema.names):
        raise ValueError(f"the schema names a column twice: {', '.join(schema.names)}")


def client_columns(schema: StructType) -> list[str]:
    """What the client calls these columns.

    >>> client_columns(source_schema(include_headers=False))[-2:]
    ['timestamp', 'timestamp_type']
    """
    return [_CLIENT_NAMES.get(name, name) for name in schema.names]


def arrow_schema(schema: StructType) -> "pa.Schema":
    """The Arrow schema that Spark expects for these columns."""
    from pyspark.sql.pandas.types import to_arrow_schema

    return to_arrow_schema(schema, timezone="UTC")
