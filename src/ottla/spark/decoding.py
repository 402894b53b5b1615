"""Values of JSON, Avro or Protobuf to typed columns, in batch and in streaming.

JSON is read by Spark itself, Avro and Protobuf by Python over Arrow batches. What does not fit stops the query, is kept
beside a reason, or goes to a dead-letter topic in the same pass (see `ottla.spark.dead_letters`).
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.types import DataType, StringType, StructField, StructType

from ottla.spark.avro import AvroFormat, AvroSchema
from ottla.spark.dead_letters import DeadLetters, divert
from ottla.spark.framing import FRAME_BYTES
from ottla.spark.protobuf import ProtobufFormat

if TYPE_CHECKING:
    import pyarrow as pa

FORMATS = ("json", "avro", "protobuf")
_PARSED, _CORRUPT, _WHY = "_ottla_parsed", "_ottla_corrupt", "_ottla_reason"


def decode(
    df: DataFrame,
    format: Literal["json", "avro", "protobuf"],
    schema: Any,
    *,
    column: str = "value",
    message: str | None = None,
    confluent: bool | Mapping[int, AvroSchema] = False,
    dead_letters: DeadLetters | None = None,
    error_column: str | None = None,
    options: Mapping[str, str] | None = None,
) -> DataFrame:
    """The same rows with `column` as a struct: `select("value.*")` makes its fields columns.

    The schema is a DDL string or a StructType for JSON (fields that are NOT NULL there must be in each record), JSON
    text or what it becomes for Avro, and for Protobuf a class that protoc has made, or a descriptor set (bytes, or
    the Path of a file) together with the name of the `message`. Values that begin with the id of a schema, as
    serializers with a registry write them, want `confluent=True`, or for Avro the schemas by id, to read each value
    with its own. A null value, as deletes are in compacted topics, stays null.

    A record that does not fit stops the query, with an error that says which it is, unless there are `dead_letters`
    to take it, or an `error_column`: a struct of reason and raw value, null where all is well. `options` are those of
    Spark's from_json, such as `timestampFormat`.
    """
    if format not in FORMATS:
        raise ValueError(f"format is {format!r}; it must be one of {', '.join(FORMATS)}")
    if dead_letters is not None and error_column is not None:
        raise ValueError("dead_letters take what does not fit, so an error_column would be empty; give one of the two")
    if column not in df.columns:
        raise ValueError(f"there is no column {column!r} to decode; there are {', '.join(df.columns)}")
    if format == "json":
        parsed, value, reason = _json(df, column, _struct(schema), confluent is not False, options or {})
    elif format == "avro":
        parsed, value, reason = _python(df, column, AvroFormat(schema, confluent))
    else:
        parsed, value, reason = _python(df, column, _protobuf(schema, message, confluent is not False))
    marked = parsed.withColumn(_WHY, reason)
    why = sql.col(_WHY)
    if dead_letters is not None:
        marked = divert(marked, why, dead_letters, sql.col(column))
    elif error_column is None:
        value = sql.when(why.isNull(), value).otherwise(sql.raise_error(_complaint(df, column, why)))
    columns = [value.alias(name) if name == column else sql.col(name) for name in df.columns]
    if error_column is not None:
        error = sql.struct(why.alias("reason"), sql.col(column).alias("value"))
        columns.append(sql.when(why.isNotNull(), error).alias(error_column))
    return marked.select(columns)


Parts = tuple[DataFrame, Column, Column]
"""Rows with one more column, and from it what becomes the value, and why not."""


def _json(df: DataFrame, column: str, schema: StructType, framed: bool, options: Mapping[str, str]) -> Parts:
    raw = sql.col(column)
    text = (sql.substring(raw, FRAME_BYTES + 1, 2**31 - 1) if framed else raw).cast("string")
    with_corrupt = StructType([*schema.fields, StructField(_CORRUPT, StringType())])
    spark_options = {**options, "columnNameOfCorruptRecord": _CORRUPT, "mode": "PERMISSIVE"}
    parsed = df.withColumn(_PARSED, sql.from_json(text, with_corrupt, spark_options))
    found = sql.col(_PARSED)
    names = [field.name for field in schema.fields]
    value = sql.when(found.isNotNull(), sql.struct(*[found[name].alias(name) for name in names]))
    missing = [sql.when(_is_missing(found[field.name], field), sql.lit(field.name)) for field in schema.fields]
    required = [one for one, field in zip(missing, schema.fields, strict=True) if not field.nullable]
    # Looked at only for records that do not fit: the fields that are there, but with another type.
    wrong = [
        sql.when(sql.get_json_object(text, f"$['{name}']").isNotNull() & found[name].isNull(), sql.lit(name))
        for name in names
    ]
    reason = sql.when(raw.isNull(), None)
    if framed:
        frame_is_there = (sql.length(raw) >= FRAME_BYTES) & (sql.substring(raw, 1, 1) == sql.lit(b"\0"))
        reason = reason.when(~frame_is_there, "it does not begin with 00 and a schema's id")
    reason = reason.when(
        found.isNull() | found[_CORRUPT].isNotNull(),
        sql.when(~sql.is_valid_utf8(text), "it is not UTF-8, so no JSON")
        .when(sql.try_parse_json(text).isNull(), "it is no JSON")
        .otherwise(sql.concat(sql.lit("it does not fit the schema: "), _list(wrong, "it is no object"))),
    )
    if required:
        lacking = sql.concat_ws(", ", *required)
        reason = reason.when(lacking != "", sql.concat(sql.lit("it lacks "), lacking))
    return parsed, value, reason


def _is_missing(found: Column, field: StructField) -> Column:
    return found.isNull() if not field.nullable else sql.lit(False)


def _list(names: list[Column], otherwise: str) -> Column:
    listed = sql.concat_ws(", ", *names)
    return sql.when(listed == "", otherwise).otherwise(listed)


def _python(df: DataFrame, column: str, form: AvroFormat | ProtobufFormat) -> Parts:
    value_type = form.spark_type
    result = StructType([StructField("value", value_type), StructField("reason", StringType())])
    read = arrow_udf(_reader(form, value_type), result)  # type: ignore[call-overload]
    parsed = df.withColumn(_PARSED, read(sql.col(column)))
    return parsed, sql.col(_PARSED)["value"], sql.col(_PARSED)["reason"]


def _reader(form: AvroFormat | ProtobufFormat, value_type: DataType) -> "Callable[[pa.Array], pa.Array]":
    import pyarrow as pa
    from pyspark.sql.pandas.types import to_arrow_type

    cached: list[Callable[[bytes], Any]] = []

    def read(values: pa.Array) -> pa.Array:
        if not cached:
            cached.append(form.reader())
        arrow_type = to_arrow_type(value_type, timezone="UTC")
        rows, reasons = read_values(values, cached[0], arrow_type)
        return pa.StructArray.from_arrays([rows, reasons], names=["value", "reason"])

    return read


def read_values(
    values: "pa.Array", read: Callable[[bytes], Any], arrow_type: "pa.DataType"
) -> "tuple[pa.Array, pa.Array]":
    """Values as an array of rows, and why some of them are null.

    >>> import pyarrow as pa
    >>> rows, reasons = read_values(pa.array([b"1", b"x", None]), int, pa.int32())
    >>> rows.to_pylist(), reasons[1].as_py()
    ([1, None, None], "invalid literal for int() with base 10: b'x'")
    """
    import pyarrow as pa

    rows: list[Any] = []
    reasons: list[str | None] = []
    for value in values.to_pylist():
        row, reason = None, None
        if value is not None:
            try:
                row = read(value)
            except Exception as error:  # noqa: BLE001 - whatever a library raises over odd bytes is the record's fault
                reason = str(error) or type(error).__name__
        rows.append(row)
        reasons.append(reason)
    try:
        found = pa.array(rows, arrow_type)
    except (pa.ArrowException, OverflowError, ValueError, TypeError):
        # A value that the column cannot hold, as a date in the year 20000. Which one it is takes a second look.
        for place, row in enumerate(rows):
            try:
                pa.array([row], arrow_type)
            except (pa.ArrowException, OverflowError, ValueError, TypeError) as error:
                rows[place], reasons[place] = None, f"a value is out of range: {error}"
        found = pa.array(rows, arrow_type)
    return found, pa.array(reasons, pa.string())


def _struct(schema: Any) -> StructType:
    if isinstance(schema, str):
        schema = StructType.fromDDL(schema)
    if not isinstance(schema, StructType):
        raise TypeError(f"the schema is {schema!r}; for JSON give a DDL string such as 'id BIGINT', or a StructType")
    return schema


def _protobuf(schema: Any, message: str | None, confluent: bool) -> ProtobufFormat:
    if hasattr(schema, "DESCRIPTOR"):
        return ProtobufFormat.of(schema, confluent=confluent)
    if isinstance(schema, Path):
        schema = schema.read_bytes()
    if not isinstance(schema, bytes):
        raise TypeError(f"the schema is {schema!r}; for Protobuf give a message class, or the Path of a descriptor set")
    if message is None:
        raise ValueError("a descriptor set has many messages; say which with message='package.Name'")
    return ProtobufFormat(schema, message, confluent)


def _complaint(df: DataFrame, column: str, why: Column) -> Column:
    parts = [sql.lit(f"the {column} of ")]
    if {"topic", "partition", "offset"} <= set(df.columns):
        place = [sql.col("topic"), sql.lit("-"), sql.col("partition"), sql.lit(" at offset "), sql.col("offset")]
        parts += [one.cast("string") for one in place]
    else:
        parts.append(sql.lit("a record"))
    advice = "; give decode() dead_letters or an error_column to go on without such records"
    return sql.concat(*parts, sql.lit(" cannot be decoded: "), why, sql.lit(advice))
