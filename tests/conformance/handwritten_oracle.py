"""The protocol as people typed it in by hand: kafka-python's former modules, and aiokafka's.

They owe nothing to Kafka's generated definitions, which makes them the more independent oracles. Their field names
are their own, so values go in by position; that names and positions belong together is what the others check.
"""

import pkgutil
import uuid
from collections.abc import Callable, Iterator
from importlib import import_module
from types import ModuleType
from typing import Any

import aiokafka.protocol
import kafka.protocol.old

from ottla.wire.schema import Array, Field, Nested, Scalar, Type, schema_of

from .codecs import Codec
from .oracle import OracleError
from .samples import Limits


class HandwrittenOracle:
    """Classes with an API_KEY, an API_VERSION and a SCHEMA, found in the modules of a package."""

    # Tagged fields, known or not, can only be given as finished bytes there, and aiokafka leaves out their lengths.
    limits = Limits(tagged=False, unknown_tags=False)

    def __init__(self, name: str, package: ModuleType, faults: dict[tuple[str, int], str]) -> None:
        self.name = name
        self.faults = faults
        self._classes = {(kind, found.API_KEY, found.API_VERSION): found for kind, found in _classes(package)}

    def covers(self, codec: Codec) -> bool:
        """Whether somebody wrote this version, and wrote it right."""
        known = (codec.kind, codec.key, codec.version) in self._classes
        return known and (codec.name, codec.version) not in self.faults

    def encode(self, codec: Codec, message: Any) -> bytes:
        """Encode by the hand-written schema."""
        schema = self._classes[codec.kind, codec.key, codec.version].SCHEMA
        return bytes(schema.encode(_struct(schema, message, codec.version)))

    def close(self) -> None:
        """Nothing is held."""


def open_kafka_python_old() -> HandwrittenOracle:
    """kafka-python before version 3."""
    faults = {
        ("DescribeAclsRequest", 2): "flexible since v2, written without compact lengths",
        ("DescribeAclsResponse", 2): "flexible since v2, written without compact lengths",
        ("DescribeLogDirsRequest", 0): "the partitions of a topic are an array, written as a single int32",
    }
    return HandwrittenOracle("kafka-python old", kafka.protocol.old, faults)


def open_aiokafka() -> HandwrittenOracle:
    """aiokafka."""
    faults = {
        ("DescribeAclsRequest", 2): "flexible since v2, written without compact lengths",
        ("DescribeAclsResponse", 2): "flexible since v2, written without compact lengths",
        ("ListOffsetsRequest", 4): "the leader epoch is an int32, written as an int64",
        ("ListOffsetsRequest", 5): "the leader epoch is an int32, written as an int64",
    }
    return HandwrittenOracle("aiokafka", aiokafka.protocol, faults)


def _classes(package: ModuleType) -> Iterator[tuple[str, Any]]:
    for info in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
        for found in vars(import_module(info.name)).values():
            if isinstance(found, type) and isinstance(getattr(found, "API_VERSION", None), int):
                yield "response" if "Response" in found.__name__ else "request", found


def _struct(schema: Any, message: Any, version: int) -> list[Any]:
    """A struct's values as nested lists in the shape of a hand-written schema."""
    fields = schema_of(type(message)).body(version)
    row = _row(schema, fields, message, version)
    if fields:
        raise OracleError(f"{type(message).__name__}: {', '.join(field.name for field in fields)} not written there")
    return row


def _row(schema: Any, fields: list[Field], message: Any, version: int) -> list[Any]:
    """Values for one schema, taken from the front of the fields that are left."""
    row: list[Any] = []
    for theirs in schema.fields:
        if getattr(theirs, "__name__", "") == "TaggedFields":
            row.append({})
        elif not fields:
            raise OracleError(f"{type(message).__name__}: more fields there than here")
        elif hasattr(theirs, "fields") and not isinstance(fields[0].type, Nested):
            # A group of fields that only the author of the schema saw as one.
            row.append(_row(theirs, fields, message, version))
        else:
            field = fields.pop(0)
            row.append(_convert(field.type, theirs, getattr(message, field.name), version))
    return row


def _convert(kind: Type, theirs: Any, value: Any, version: int) -> Any:
    if value is None:
        return None
    if isinstance(kind, Nested):
        fields = kind.schema.body(version)
        if len(fields) == 1 and not hasattr(theirs, "fields"):
            # A struct with a single field is written there as that field.
            return _convert(fields[0].type, theirs, getattr(value, fields[0].name), version)
        return _struct(theirs, value, version)
    if isinstance(kind, Array):
        return [_convert(kind.element, theirs.array_of, item, version) for item in value]
    if isinstance(kind, Scalar):
        return _SCALARS.get((kind.name, getattr(theirs, "__name__", "")), _same)(value)
    return value


def _same(value: Any) -> Any:
    return value


def _bits(value: int) -> set[int]:
    return {bit for bit in range(32) if value >> bit & 1}


_SCALARS: dict[tuple[str, str], Callable[[Any], Any]] = {
    ("uuid", "UUID"): lambda value: uuid.UUID(bytes=value),
    ("int32", "BitField"): _bits,
}
