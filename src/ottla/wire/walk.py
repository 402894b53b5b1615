"""Walks a message field by field, slowly and in plain sight.

Two uses: to show people what is in some bytes, and to say where bytes went wrong after a compiled decoder, which
does not keep track, has refused them. It follows the declarations by itself and shares no code with the compiler,
so the two also check each other.
"""

import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

from ottla.wire.errors import EncodeError, ProtocolError
from ottla.wire.schema import STRING, Array, Bytes, Field, Nested, Scalar, Schema, Type, Variable, unknown_tags


class Step(NamedTuple):
    """One piece of a message: where it stands, what it is called, its type, and its value."""

    start: int
    end: int
    path: str
    type: str
    value: Any


def walk(schema: Schema, version: int, buffer: Bytes, position: int = 0) -> Iterator[Step]:
    """Yield every piece of a message in order; raise ProtocolError at the first that makes no sense.

    >>> from ottla.wire.api.metadata import MetadataRequest
    >>> from ottla.wire.schema import schema_of
    >>> for step in walk(schema_of(MetadataRequest), 0, bytes.fromhex("00000001 0001 61")):
    ...     print(step.start, step.path, step.type, step.value)
    0 topics array 1
    4 topics[0].name string a
    """
    walker = _Walker(bytes(buffer), position, version, version in schema.flexible)
    yield from walker.struct(schema, "")


class _Walker:
    def __init__(self, buffer: bytes, position: int, version: int, flexible: bool) -> None:
        self.buffer = buffer
        self.position = position
        self.version = version
        self.flexible = flexible

    def take(self, length: int, path: str, what: str) -> bytes:
        if length > len(self.buffer) - self.position:
            left = max(0, len(self.buffer) - self.position)
            raise ProtocolError(f"{what} needs {length} bytes, {left} are left", offset=self.position, where=path)
        self.position += length
        return self.buffer[self.position - length : self.position]

    def uvarint(self, path: str) -> int:
        value = 0
        for shift in range(0, 35, 7):
            (byte,) = self.take(1, path, "varint")
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                if value > 0xFFFFFFFF:
                    raise ProtocolError(f"varint {value} does not fit 32 bits", offset=self.position, where=path)
                return value
        raise ProtocolError("a varint runs over five bytes", offset=self.position, where=path)

    def length(self, code: str, path: str, what: str, *, flexible: bool, nullable: bool) -> int:
        start = self.position
        if flexible:
            length = self.uvarint(path) - 1
        else:
            (length,) = struct.unpack(">" + code, self.take(struct.calcsize(">" + code), path, what))
        if length == -1 and nullable:
            return -1
        if length == -1:
            raise ProtocolError(f"{what} is null where null is not allowed", offset=start, where=path)
        if length < -1:
            raise ProtocolError(f"{what} has length {length}", offset=start, where=path)
        return length

    def struct(self, schema: Schema, path: str) -> Iterator[Step]:
        prefix = f"{path}." if path else ""
        for field in schema.body(self.version):
            yield from self.field(field, prefix + field.name)
        if self.flexible:
            yield from self.tags(schema, prefix)

    def field(self, field: Field, path: str) -> Iterator[Step]:
        nullable = self.version in field.nullable
        yield from self.value(field.type, path, nullable, self.flexible and not field.plain)

    def value(self, kind: Type, path: str, nullable: bool, flexible: bool) -> Iterator[Step]:
        start = self.position
        if isinstance(kind, Scalar):
            (value,) = struct.unpack(">" + kind.code, self.take(kind.size, path, kind.name))
            yield Step(start, self.position, path, kind.name, value)
        elif isinstance(kind, Variable):
            yield self.variable(kind, path, nullable, flexible)
        elif isinstance(kind, Array):
            yield from self.array(kind, path, nullable)
        else:
            if nullable:
                (present,) = struct.unpack(">b", self.take(1, path, "null marker"))
                yield Step(start, self.position, path, "struct or null", None if present < 0 else "struct")
                if present < 0:
                    return
            yield from self.struct(kind.schema, path)

    def variable(self, kind: Variable, path: str, nullable: bool, flexible: bool) -> Step:
        start = self.position
        code = "h" if kind is STRING else "i"
        length = self.length(code, path, kind.name, flexible=flexible, nullable=nullable)
        name = f"compact {kind.name}" if flexible else kind.name
        if length < 0:
            return Step(start, self.position, path, name, None)
        raw = self.take(length, path, kind.name)
        value: Any = raw
        if kind is STRING:
            try:
                value = raw.decode()
            except UnicodeDecodeError as error:
                raise ProtocolError(f"{raw[:40]!r} is not UTF-8", offset=start, where=path) from error
        return Step(start, self.position, path, name, value)

    def array(self, kind: Array, path: str, nullable: bool) -> Iterator[Step]:
        start = self.position
        count = self.length("i", path, "array", flexible=self.flexible, nullable=nullable)
        yield Step(
            start,
            self.position,
            path,
            "compact array" if self.flexible else "array",
            None if count < 0 else count,
        )
        for index in range(count):
            if self.position >= len(self.buffer):
                raise ProtocolError(
                    f"array claims {count} elements, the bytes end after {index}", offset=start, where=path
                )
            item = f"{path}[{index}]"
            if isinstance(kind.element, Nested):
                yield from self.struct(kind.element.schema, item)
            else:
                yield from self.value(kind.element, item, nullable=False, flexible=self.flexible)

    def tags(self, schema: Schema, prefix: str) -> Iterator[Step]:
        start = self.position
        path = f"{prefix}tags"
        count = self.uvarint(path)
        yield Step(start, self.position, path, "tagged fields", count)
        known = {field.tag: field for field in schema.tagged(self.version)}
        for _ in range(count):
            start = self.position
            tag = self.uvarint(path)
            length = self.uvarint(path)
            name = f"{prefix}{known[tag].name}" if tag in known else f"{prefix}tag{tag}"
            end = self.position + length
            if end > len(self.buffer):
                self.take(length, name, "tagged field")
            yield Step(start, self.position, name, f"tag {tag}, length {length}", None)
            if tag not in known:
                start = self.position
                yield Step(start, end, name, "unknown", self.take(length, name, "tagged field"))
                continue
            yield from self.field(known[tag], name)
            if self.position != end:
                raise ProtocolError(
                    f"tagged field has length {length} but its value takes {self.position - end + length}",
                    offset=start,
                    where=name,
                )


def find_unencodable(schema: Schema, version: int, message: Any) -> EncodeError:
    """After an encoder has failed: an error that names the field and the value that it could not write."""
    for field in schema.body(version) + schema.tagged(version):
        problem = _problem(field.type, getattr(message, field.name, None), field.name, version, field)
        if problem is not None:
            return EncodeError(f"{schema.cls.__name__} v{version}: {problem}")
    for tag, content in unknown_tags(message).items():
        if not isinstance(tag, int) or not 0 <= tag <= 0xFFFFFFFF or not isinstance(content, bytes):
            return EncodeError(f"{schema.cls.__name__} v{version}: unknown tag {tag!r} = {_short(content)} is no bytes")
    return EncodeError(f"{schema.cls.__name__} v{version} cannot encode {_short(message)}")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _problem(kind: Type, value: Any, path: str, version: int, field: Field | None) -> str | None:
    if value is None:
        is_default = field is not None and field.tag is not None and field.default is None
        if field is not None and (version in field.nullable or is_default):
            return None
        return f"{path} is None, which this version cannot carry"
    if isinstance(kind, Scalar):
        if kind.name == "uuid" and (not isinstance(value, bytes) or len(value) != 16):
            return f"{path} = {_short(value)} is no uuid: that is 16 bytes"
        try:
            struct.pack(">" + kind.code, value)
        except (struct.error, TypeError, OverflowError):
            return f"{path} = {_short(value)} is no {kind.name}"
        return None
    if isinstance(kind, Variable):
        suits = isinstance(value, str) if kind is STRING else not isinstance(value, str | list | tuple | dict)
        if not suits or not hasattr(value, "__len__"):
            return f"{path} = {_short(value)} is no {kind.name}"
        if kind is STRING:
            try:
                length = len(value.encode())
            except UnicodeEncodeError:
                return f"{path} = {_short(value)} cannot be written as UTF-8"
            if length > 0x7FFF:
                return f"{path} has {length} bytes, a string holds 32767 at most"
        return None
    if isinstance(kind, Array):
        if not isinstance(value, list | tuple):
            return f"{path} = {_short(value)} is no list"
        for index, item in enumerate(value):
            problem = _problem(kind.element, item, f"{path}[{index}]", version, None)
            if problem is not None:
                return problem
        return None
    if not isinstance(value, kind.schema.cls):
        return f"{path} = {_short(value)} is no {kind.schema.cls.__name__}"
    for inner in kind.schema.body(version) + kind.schema.tagged(version):
        problem = _problem(inner.type, getattr(value, inner.name, None), f"{path}.{inner.name}", version, inner)
        if problem is not None:
            return problem
    return None
