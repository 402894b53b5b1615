"""Protobuf values to rows: what type of column a message makes, and messages by the protobuf package."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from ottla.spark.framing import skip_message_indexes

Convert = Callable[[Any], Any]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TIMESTAMP = "google.protobuf.Timestamp"
_WRAPPERS = {
    f"google.protobuf.{name}Value"
    for name in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
}


@dataclass(frozen=True)
class ProtobufFormat:
    """How to read Protobuf values.

    >>> from google.protobuf.source_context_pb2 import SourceContext
    >>> form = ProtobufFormat.of(SourceContext)
    >>> form.spark_type.simpleString()
    'struct<file_name:string>'
    >>> form.reader()(SourceContext(file_name="orders.proto").SerializeToString())
    {'file_name': 'orders.proto'}
    """

    descriptors: bytes
    """A FileDescriptorSet, as `protoc --include_imports --descriptor_set_out` writes it."""
    message: str
    """The full name of the message."""
    confluent: bool = False
    """Whether values begin as serializers with a registry write them."""

    @classmethod
    def of(cls, message: Any, *, confluent: bool = False) -> "ProtobufFormat":
        """The format of a class that protoc has made."""
        from google.protobuf.descriptor_pb2 import FileDescriptorSet

        files = FileDescriptorSet()
        seen: set[str] = set()

        def add(file: Any) -> None:
            if file.name not in seen:
                seen.add(file.name)
                for other in file.dependencies:
                    add(other)
                file.CopyToProto(files.file.add())

        add(message.DESCRIPTOR.file)
        return cls(files.SerializeToString(), message.DESCRIPTOR.full_name, confluent)

    @property
    def spark_type(self) -> DataType:
        """The type of the column."""
        return _message_type(self._descriptor(), ())

    def reader(self) -> Callable[[bytes], Any]:
        """A function that reads a value, and raises if it does not fit."""
        from google.protobuf.message_factory import GetMessageClass

        descriptor = self._descriptor()
        message_class = GetMessageClass(descriptor)
        convert = _message_converter(descriptor)

        def read(value: bytes) -> Any:
            body = value[skip_message_indexes(value) :] if self.confluent else value
            return convert(message_class.FromString(body))

        return read

    def _descriptor(self) -> Any:
        from google.protobuf.descriptor_pb2 import FileDescriptorSet
        from google.protobuf.descriptor_pool import DescriptorPool
        from google.protobuf.message import DecodeError

        try:
            files = FileDescriptorSet.FromString(self.descriptors)
        except DecodeError:
            raise ValueError("the descriptor set is none; make it with protoc --descriptor_set_out") from None
        pool = DescriptorPool()
        for file in files.file:
            try:
                pool.Add(file) if hasattr(pool, "Add") else pool.AddSerializedFile(file.SerializeToString())
            except TypeError as error:
                raise ValueError(f"the descriptor set lacks imports ({error}); use protoc --include_imports") from None
        try:
            return pool.FindMessageTypeByName(self.message)
        except KeyError:
            names = sorted(f"{file.package}.{one.name}".lstrip(".") for file in files.file for one in file.message_type)
            raise ValueError(f"the descriptor set has no message {self.message!r}, but {', '.join(names)}") from None


def _message_type(descriptor: Any, parents: tuple[str, ...]) -> DataType:
    if descriptor.full_name == _TIMESTAMP:
        return TimestampType()
    if descriptor.full_name in _WRAPPERS:
        return _single_type(descriptor.fields_by_name["value"], parents)
    if descriptor.full_name in parents:
        raise ValueError(f"the message {descriptor.full_name} contains itself; Spark has no such columns")
    within = (*parents, descriptor.full_name)
    return StructType([StructField(field.name, _field_type(field, within)) for field in descriptor.fields])


def _field_type(field: Any, parents: tuple[str, ...]) -> DataType:
    if _is_map(field):
        key, value = field.message_type.fields_by_name["key"], field.message_type.fields_by_name["value"]
        return MapType(_single_type(key, parents), _single_type(value, parents))
    single = _single_type(field, parents)
    return ArrayType(single) if field.is_repeated else single


def _single_type(field: Any, parents: tuple[str, ...]) -> DataType:
    kind = field.cpp_type
    if kind == field.CPPTYPE_MESSAGE:
        return _message_type(field.message_type, parents)
    if kind == field.CPPTYPE_STRING:
        return BinaryType() if field.type == field.TYPE_BYTES else StringType()
    kinds: dict[int, DataType] = {
        field.CPPTYPE_INT32: IntegerType(),
        field.CPPTYPE_UINT32: LongType(),
        field.CPPTYPE_INT64: LongType(),
        field.CPPTYPE_UINT64: DecimalType(20, 0),
        field.CPPTYPE_FLOAT: FloatType(),
        field.CPPTYPE_DOUBLE: DoubleType(),
        field.CPPTYPE_BOOL: BooleanType(),
        field.CPPTYPE_ENUM: StringType(),
    }
    return kinds[kind]


def _is_map(field: Any) -> bool:
    return bool(field.message_type is not None and field.message_type.GetOptions().map_entry)


def _message_converter(descriptor: Any) -> Convert:
    if descriptor.full_name == _TIMESTAMP:
        return lambda stamp: _EPOCH + timedelta(seconds=stamp.seconds, microseconds=stamp.nanos // 1000)
    if descriptor.full_name in _WRAPPERS:
        single = _single_converter(descriptor.fields_by_name["value"])
        return lambda wrapper: single(wrapper.value)
    parts = [(field.name, field.has_presence, _field_converter(field)) for field in descriptor.fields]

    def convert(message: Any) -> dict[str, Any]:
        return {
            name: None if has_presence and not message.HasField(name) else turn(getattr(message, name))
            for name, has_presence, turn in parts
        }

    return convert


def _field_converter(field: Any) -> Convert:
    if _is_map(field):
        key = _single_converter(field.message_type.fields_by_name["key"])
        value = _single_converter(field.message_type.fields_by_name["value"])
        return lambda entries: [(key(one), value(other)) for one, other in entries.items()]
    single = _single_converter(field)
    if field.is_repeated:
        return lambda items: [single(item) for item in items]
    return single


def _single_converter(field: Any) -> Convert:
    if field.cpp_type == field.CPPTYPE_MESSAGE:
        return _message_converter(field.message_type)
    if field.cpp_type == field.CPPTYPE_ENUM:
        names = {number: value.name for number, value in field.enum_type.values_by_number.items()}
        return lambda number: names.get(number, str(number))
    if field.cpp_type == field.CPPTYPE_UINT64:
        return Decimal
    return _same


def _same(value: Any) -> Any:
    return value
