"""Avro values to rows: what type of column a schema makes, and records by fastavro."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from io import BytesIO
from typing import Any

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from ottla.spark.framing import read_schema_id

AvroSchema = str | Mapping[str, Any] | list[Any]
"""A schema as JSON text, or as what JSON text becomes."""

_PLAIN: dict[str, DataType] = {
    "null": NullType(),
    "boolean": BooleanType(),
    "int": IntegerType(),
    "long": LongType(),
    "float": FloatType(),
    "double": DoubleType(),
    "bytes": BinaryType(),
    "fixed": BinaryType(),
    "string": StringType(),
    "enum": StringType(),
}
_LOGICAL: dict[str, DataType] = {
    "date": DateType(),
    "timestamp-millis": TimestampType(),
    "timestamp-micros": TimestampType(),
    "local-timestamp-millis": TimestampNTZType(),
    "local-timestamp-micros": TimestampNTZType(),
}
_WIDER = [({"int", "long"}, "long"), ({"float", "double"}, "double")]


@dataclass(frozen=True)
class AvroFormat:
    """How to read Avro values.

    >>> order = '{"type": "record", "name": "order", "fields": [{"name": "id", "type": "long"}]}'
    >>> AvroFormat(order).spark_type.simpleString()
    'struct<id:bigint>'
    >>> AvroFormat(order).reader()(bytes([84]))
    {'id': 42}
    """

    schema: AvroSchema
    """What rows are to look like."""
    confluent: bool | Mapping[int, AvroSchema] = False
    """Whether values begin with a schema's id, as serializers with a registry write them; or the schemas by id."""

    @property
    def spark_type(self) -> DataType:
        """The type of the column."""
        from fastavro.schema import expand_schema

        return _spark_type(expand_schema(_plain(self.schema)), "the Avro schema")

    def reader(self) -> Callable[[bytes], Any]:
        """A function that reads a value, and raises if it does not fit."""
        import fastavro

        wanted = fastavro.parse_schema(_plain(self.schema))
        written: dict[int, Any] = {}
        if isinstance(self.confluent, Mapping):
            # Each schema has names of its own: versions of one record share theirs.
            written = {number: fastavro.parse_schema(_plain(one)) for number, one in self.confluent.items()}
        framed = self.confluent is not False

        def read(value: bytes) -> Any:
            source = BytesIO(value)
            writer = wanted
            if framed:
                number = read_schema_id(value)
                source.seek(5)
                if written:
                    if number not in written:
                        raise ValueError(f"no schema {number} was given, only {sorted(written)}")
                    writer = written[number]
            row = fastavro.schemaless_reader(source, writer, None if writer is wanted else wanted)
            if left := len(value) - source.tell():
                raise ValueError(f"{left} bytes are left over after the record")
            return row

        return read


def _plain(schema: AvroSchema) -> Any:
    """The schema without logical types that columns do not have, whose values stay what they are stored as."""
    if isinstance(schema, str) and schema not in _PLAIN:
        try:
            schema = json.loads(schema)
        except ValueError as error:
            raise ValueError(f"the Avro schema is no JSON: {error}") from None
    return _without_odd_logical_types(schema)


def _without_odd_logical_types(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_without_odd_logical_types(one) for one in schema]
    if isinstance(schema, Mapping):
        return {
            key: _without_odd_logical_types(value) if key in ("type", "fields", "items", "values") else value
            for key, value in schema.items()
            if key != "logicalType" or value == "decimal" or value in _LOGICAL
        }
    return schema


def _spark_type(schema: Any, place: str) -> DataType:
    if isinstance(schema, list):
        return _union_type(schema, place)
    kind = schema if isinstance(schema, str) else schema["type"]
    if isinstance(kind, list | dict):
        return _spark_type(kind, place)
    if kind == "record":
        fields = [
            StructField(one["name"], _spark_type(one["type"], f"{place}.{one['name']}")) for one in schema["fields"]
        ]
        return StructType(fields)
    if kind == "array":
        return ArrayType(_spark_type(schema["items"], f"{place}[]"))
    if kind == "map":
        return MapType(StringType(), _spark_type(schema["values"], f"{place}[]"))
    if kind not in _PLAIN:
        raise ValueError(f"{place} is of type {kind!r}, which contains itself; Spark has no such columns")
    logical = schema.get("logicalType") if isinstance(schema, Mapping) else None
    if logical == "decimal":
        precision, scale = schema["precision"], schema.get("scale", 0)
        if precision > 38:
            raise ValueError(f"{place} has {precision} digits; Spark's decimals have at most 38")
        return DecimalType(precision, scale)
    return _LOGICAL.get(logical or "") or _PLAIN[kind]


def _union_type(union: list[Any], place: str) -> DataType:
    others = [one for one in union if one != "null"]
    if len(others) == 1:
        return _spark_type(others[0], place)
    for kinds, wide in _WIDER:
        if others and all(isinstance(one, str) and one in kinds for one in others):
            return _PLAIN[wide]
    names = [one if isinstance(one, str) else one.get("name", one["type"]) for one in union]
    raise ValueError(f"{place} may be any of {names}; a column has one type (and null), so split the schema in two")
