"""Compiles a declaration into a decoder: one straight-line function for one version of one message.

Neighbouring fields of fixed width are read by a single `struct` call, together with the length of whatever follows
them and with the count of tagged fields, which is nearly always zero. Structs inside arrays are read in place, by
loops and not by calls. The generated code checks counts before it makes lists, and checks once, at the end, that
it did not run past the buffer: slices beyond the end come out short and `struct` refuses, so nothing is harmed by
then. What went wrong, and where, is found afterwards by `ottla.wire.walk`.
"""

import struct
from collections.abc import Callable
from typing import Any

from ottla.wire.emit import SMALL, Source, small_unpackers
from ottla.wire.errors import MalformedError
from ottla.wire.schema import BYTES, STRING, Array, Field, Nested, Scalar, Schema, Type, Variable
from ottla.wire.varint import decode_uvarint

Decoder = Callable[[Any, int], tuple[Any, int]]

MOST_TAGS = 1000
"""Tagged fields of one struct. No message has nearly as many, and those that are not known cost a look-up each."""

VIEWED_FROM = 1024
"""Records of this many bytes or more decode to a view of the frame; a copy of fewer is cheaper than a view."""


def compile_decoder(schema: Schema, version: int) -> Decoder:
    """A function (buffer, position) -> (message, position after it). Raises one of `FAILURES` on bad bytes."""
    source = _source()
    writer = _Reader(source, version, version in schema.flexible)
    with source.block("def decode(buffer, position):"):
        with source.block("if isinstance(buffer, memoryview):"):
            source.line("buffer = buffer.tobytes()")
        source.line("size = len(buffer)")
        writer.struct(schema, "it")
        writer.flush()
        with source.block("if position > size:"):
            source.line("raise MalformedError")
        source.line("return it, position")
    return source.compile("decode", f"decode {schema.cls.__name__} v{version}")


FAILURES = (struct.error, IndexError, UnicodeDecodeError, MalformedError, ValueError)


def _source() -> Source:
    source = Source()
    source.names.update(
        MalformedError=MalformedError, uvarint=decode_uvarint, unpack_from=struct.unpack_from, memoryview=memoryview
    )
    return source


class _Reader:
    """Writes the statements that read fields; `run` holds fixed-width fields that wait to be read as one."""

    def __init__(self, source: Source, version: int, flexible: bool) -> None:
        self.source = source
        self.version = version
        self.flexible = flexible
        self.run: list[tuple[str, str]] = []

    def flush(self) -> None:
        """Read the fixed-width fields that wait."""
        if not self.run:
            return
        codes = "".join(code for code, _ in self.run)
        if codes == "B":
            self.source.line(f"{self.run[0][1]} = buffer[position]; position += 1")
        else:
            targets = ", ".join(target for _, target in self.run)
            self.source.line(f"{targets}, = {self.source.unpacker(codes)}(buffer, position)")
            self.source.line(f"position += {struct.calcsize('>' + codes)}")
        self.run.clear()

    def struct(self, schema: Schema, target: str) -> None:
        """Make an instance and read its fields; leaves the last of them in `run`."""
        self.make(schema, target)
        for field in schema.body(self.version):
            self.field(field, f"{target}.{field.name}")
        if self.flexible:
            count = self.source.fresh("tags")
            self.run.append(("B", count))
            self.flush()
            with self.source.block(f"if {count}:"):
                tags = self.source.bind("read_tags", _tag_reader(schema, self.version))
                self.source.line(f"position = {tags}({target}, buffer, position - 1)")

    def make(self, schema: Schema, target: str) -> None:
        """Make an instance, with defaults in the fields that this version does not have in place."""
        cls = self.source.bind("cls", schema.cls)
        new = self.source.bind("new", object.__new__)
        self.source.line(f"{target} = {new}({cls})")
        self.source.line(f"{target}.unknown_tags = None")
        present = set(schema.body(self.version))
        for field in schema.fields:
            if field not in present:
                if field.default is list:
                    default = "[]"
                elif callable(field.default):
                    default = self.source.bind("default", field.default) + "()"
                else:
                    default = self.source.bind("default", field.default)
                self.source.line(f"{target}.{field.name} = {default}")

    def field(self, field: Field, target: str) -> None:
        """Read one field into an attribute."""
        nullable = self.version in field.nullable
        flexible = self.flexible and not field.plain
        self.value(field.type, target, nullable, flexible)

    def value(self, kind: Type, target: str, nullable: bool, flexible: bool) -> None:
        if isinstance(kind, Scalar):
            self.run.append((kind.code, target))
        elif isinstance(kind, Variable):
            self.variable(kind, target, nullable, flexible)
        elif isinstance(kind, Array):
            self.array(kind.element, target, nullable)
        else:
            self.nested(kind, target, nullable)

    def length(self, code: str, flexible: bool) -> str:
        """Read a length or count, with the fields that wait in front of it; null becomes -1."""
        length = self.source.fresh("length")
        self.run.append(("B" if flexible else code, length))
        self.flush()
        if flexible:
            with self.source.block(f"if {length} > 127:"):
                self.source.line(f"{length}, position = uvarint(buffer, position - 1)")
            self.source.line(f"{length} -= 1")
        return length

    def absent(self, length: str, target: str, nullable: bool) -> None:
        """The branch for a length below zero: null where that is allowed."""
        with self.source.block(f"if {length} < 0:"):
            if nullable:
                with self.source.block(f"if {length} < -1:"):
                    self.source.line("raise MalformedError")
                self.source.line(f"{target} = None")
            else:
                self.source.line("raise MalformedError")

    def variable(self, kind: Variable, target: str, nullable: bool, flexible: bool) -> None:
        length = self.length("h" if kind is STRING else "i", flexible)
        self.absent(length, target, nullable)
        with self.source.block("else:"):
            self.source.line(f"end = position + {length}")
            if kind is STRING:
                self.source.line(f"{target} = buffer[position:end].decode()")
            elif kind is BYTES:
                self.source.line(f"{target} = bytes(buffer[position:end])")
            else:
                self.source.line(
                    f"{target} = bytes(buffer[position:end]) if {length} < {VIEWED_FROM} "
                    f"else memoryview(buffer)[position:end]"
                )
            self.source.line("position = end")

    def nested(self, kind: Nested, target: str, nullable: bool) -> None:
        local = self.source.fresh("it")
        if not nullable:
            self.struct(kind.schema, local)
            self.source.line(f"{target} = {local}")
            return
        present = self.source.fresh("present")
        self.run.append(("b", present))
        self.flush()
        with self.source.block(f"if {present} < 0:"):
            self.source.line(f"{target} = None")
        with self.source.block("else:"):
            self.struct(kind.schema, local)
            self.flush()
            self.source.line(f"{target} = {local}")

    def array(self, element: Scalar | Variable | Nested, target: str, nullable: bool) -> None:
        length = self.length("i", self.flexible)
        self.absent(length, target, nullable)
        # No list is begun for elements that cannot be there, whatever count the bytes claim.
        with self.source.block(
            f"elif {length} * {minimum_size(element, self.version, self.flexible)} > size - position:"
        ):
            self.source.line("raise MalformedError")
        with self.source.block("else:"):
            if isinstance(element, Scalar):
                self.scalars(element, length, target)
            elif isinstance(element, Nested) and not self.flexible and element.schema.is_fixed(self.version):
                self.fixed_structs(element.schema, length, target)
            else:
                self.elements(element, length, target)

    def scalars(self, element: Scalar, length: str, target: str) -> None:
        small = self.source.bind("small", small_unpackers(element.code))
        repeated = f'f">{{{length}}}{element.code}"' if element.size != 16 else f'">" + "16s" * {length}'
        self.source.line(
            f"{target} = list({small}[{length}](buffer, position) if {length} < {SMALL} "
            f"else unpack_from({repeated}, buffer, position))"
        )
        self.source.line(f"position += {length} * {element.size}")

    def fixed_structs(self, schema: Schema, length: str, target: str) -> None:
        """Elements of one fixed width: a single pass of `iter_unpack` over their bytes."""
        body = schema.body(self.version)
        codes = "".join(field.type.code for field in body if isinstance(field.type, Scalar))
        item, items, end = self.source.fresh("it"), self.source.fresh("items"), self.source.fresh("end")
        row = self.source.fresh("row")
        each = self.source.iter_unpacker(codes)
        self.source.line(f"{target} = {items} = []")
        self.source.line(f"{end} = position + {length} * {struct.calcsize('>' + codes)}")
        with self.source.block(f"for {row} in {each}(buffer[position:{end}]):"):
            self.make(schema, item)
            self.source.line(", ".join(f"{item}.{field.name}" for field in body) + f", = {row}")
            self.source.line(f"{items}.append({item})")
        self.source.line(f"position = {end}")

    def elements(self, element: Variable | Nested, length: str, target: str) -> None:
        items, item = self.source.fresh("items"), self.source.fresh("it")
        self.source.line(f"{target} = {items} = []")
        with self.source.block(f"for _ in range({length}):"):
            if isinstance(element, Nested):
                self.struct(element.schema, item)
            else:
                self.variable(element, item, nullable=False, flexible=self.flexible)
            self.flush()
            self.source.line(f"{items}.append({item})")


def minimum_size(kind: Type, version: int, flexible: bool, nullable: bool = False) -> int:
    """The fewest bytes that a value of this type can take."""
    if isinstance(kind, Scalar):
        return kind.size
    if isinstance(kind, Variable):
        return 1 if flexible else 2 if kind is STRING else 4
    if isinstance(kind, Array):
        return 1 if flexible else 4
    if nullable:
        return 1
    fields = sum(
        minimum_size(field.type, version, flexible and not field.plain, version in field.nullable)
        for field in kind.schema.body(version)
    )
    return max(1, fields + flexible)


def _tag_reader(schema: Schema, version: int) -> Callable[[Any, Any, int], int]:
    """A function that reads a tagged field section, which begins with its count, into an instance."""
    known: dict[int, tuple[str, Decoder]] = {}
    pending = {field.tag: field for field in schema.tagged(version)}

    def read_tags(target: Any, buffer: Any, position: int) -> int:
        count, position = decode_uvarint(buffer, position)
        if count > MOST_TAGS or count * 2 > len(buffer) - position:
            raise MalformedError
        for _ in range(count):
            tag, position = decode_uvarint(buffer, position)
            length, position = decode_uvarint(buffer, position)
            end = position + length
            if end > len(buffer):
                raise MalformedError
            if tag in pending:
                if tag not in known:
                    known[tag] = pending[tag].name, compile_value_decoder(pending[tag], version)
                name, decode = known[tag]
                value, position = decode(buffer, position)
                if position != end:
                    raise MalformedError
                setattr(target, name, value)
            else:
                if target.unknown_tags is None:
                    target.unknown_tags = {}
                target.unknown_tags[tag] = bytes(buffer[position:end])
            position = end
        return position

    return read_tags


def compile_value_decoder(field: Field, version: int) -> Decoder:
    """A decoder for the value of one tagged field."""
    source = _source()
    reader = _Reader(source, version, flexible=True)
    with source.block("def decode(buffer, position):"):
        source.line("size = len(buffer)")
        reader.field(field, "value")
        reader.flush()
        source.line("return value, position")
    return source.compile("decode", f"decode tagged {field.name} v{version}")
