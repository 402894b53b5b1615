"""kafka-python 3: one class per message, driven by Kafka's definitions, from version 0 on."""

import pkgutil
import uuid
from importlib import import_module
from typing import Any

import kafka.protocol
from kafka.protocol.api_data import ApiData
from kafka.protocol.api_header import ApiHeader
from kafka.protocol.api_message import ApiMessage
from kafka.protocol.schemas.fields.codecs import BitField

from ottla.wire.schema import Array, Nested, Scalar, schema_of

from .codecs import Codec
from .oracle import OracleError
from .plain import OLD_NAMES, Names
from .samples import Limits

NAMES = Names(
    {
        **OLD_NAMES,
        ("InitProducerIdRequest", "enable_2pc"): "enable2_pc",
        ("MetadataResponse", "cluster_authorized_operations"): "authorized_operations",
        ("MetadataResponseTopic", "topic_authorized_operations"): "authorized_operations",
        ("DescribeClusterResponse", "cluster_authorized_operations"): "authorized_operations",
    }
)


class KafkaPythonOracle:
    """Builds kafka-python's objects by field name."""

    name = "kafka-python 3"
    # Its encoder drops tagged fields that it does not know, and makes a null topic list of Metadata v0 an empty one.
    limits = Limits(unknown_tags=False, never_null=frozenset({("MetadataRequest", 0, "topics")}))

    def __init__(self) -> None:
        for module in pkgutil.walk_packages(kafka.protocol.__path__, "kafka.protocol."):
            if ".old" not in module.name and "generate_stubs" not in module.name:
                import_module(module.name)
        self._messages = {
            (found.type, found.API_KEY): found
            for found in ApiMessage.__subclasses__()
            if found._class_version is None  # the others are views of these, pinned to a version
        }
        self._others = {found.__name__: found for found in (*ApiData.__subclasses__(), *ApiHeader.__subclasses__())}

    def covers(self, codec: Codec) -> bool:
        """Whether there is a class, and the version lies in its range."""
        found = self._find(codec)
        if found is None:
            return False
        if codec.kind == "header":
            # Its headers have no version argument, only "flexible or not".
            return codec.version in (found._valid_versions[0], found._flexible_versions[0])
        return bool(codec.version <= found.max_version)

    def encode(self, codec: Codec, message: Any) -> bytes:
        """Encode through kafka-python's objects."""
        found = self._find(codec)
        item = _build(found, found._struct, message, codec.version)
        if codec.kind == "header":
            return bytes(item.encode(flexible=codec.flexible))
        if codec.kind == "data":
            return bytes(item.encode(version=codec.version, header=False))
        return bytes(item.encode(version=codec.version))

    def close(self) -> None:
        """Nothing is held."""

    def _find(self, codec: Codec) -> Any:
        if codec.kind in ("header", "data"):
            return self._others.get(codec.name)
        return self._messages.get((codec.kind, codec.key))


def _build(cls: Any, struct: Any, message: Any, version: int) -> Any:
    schema = schema_of(type(message))
    values = {}
    for field in schema.body(version) + schema.tagged(version):
        name = NAMES.spell(type(message).__name__, field.name)
        if name not in struct.fields:
            raise OracleError(f"{struct.name} has no field {name}")
        value = getattr(message, field.name)
        if field.tag is None or value != field.make_default():
            values[name] = _convert(field.type, struct.fields[name], value, version)
    return cls(version=version, **values)


def _convert(kind: Any, theirs: Any, value: Any, version: int) -> Any:
    if value is None:
        return None
    if isinstance(kind, Nested):
        return _build(theirs.data_class, theirs, value, version)
    if isinstance(kind, Array):
        inner = theirs.array_of if isinstance(kind.element, Nested) else theirs
        return [_convert(kind.element, inner, item, version) for item in value]
    if isinstance(kind, Scalar) and kind.name == "uuid":
        return uuid.UUID(bytes=value)
    if getattr(theirs, "_type", None) is BitField:
        return {bit for bit in range(32) if value >> bit & 1}
    return value
