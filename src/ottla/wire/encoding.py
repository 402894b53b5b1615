"""Compiles a declaration into an encoder: one straight-line function for one version of one message.

The function appends pieces to a list that is joined once. Neighbouring fields of fixed width become one piece,
together with the length of whatever follows and the count of tagged fields. Records are never copied: a large
`records` value closes the pieces before it and stands in the result as its own buffer.
"""

import struct
from collections.abc import Callable
from typing import Any

from ottla.wire.emit import SMALL, Source, small_packers
from ottla.wire.schema import BYTES, RECORDS, STRING, Array, Field, Nested, Scalar, Schema, Type, Variable
from ottla.wire.varint import encode_uvarint

Encoder = Callable[[Any, list[Any], list[Any]], None]

COPIED_BELOW = 4096
"""Records shorter than this are joined with their surroundings: a copy is cheaper than one more buffer to send."""

_BUFFER_KINDS: dict[type, bool] = {bytes: True, bytearray: True, memoryview: True}
"""Which types of values are buffers, as far as has been seen."""

FAILURES = (struct.error, AttributeError, TypeError, ValueError, OverflowError, IndexError)


def compile_encoder(schema: Schema, version: int) -> Encoder:
    """A function (message, pieces, buffers) that appends to both. Raises one of `FAILURES` on a bad value."""
    source = _source()
    writer = _Writer(source, version, version in schema.flexible)
    with source.block("def encode(it, pieces, buffers):"):
        source.line("add = pieces.append")
        writer.struct(schema, "it")
        writer.flush()
    return source.compile("encode", f"encode {schema.cls.__name__} v{version}")


def byte_length(value: Any) -> int:
    """Bytes of a buffer, whatever its items are; the length of anything else that will be sent as it is."""
    if isinstance(value, bytes | bytearray):
        return len(value)
    if isinstance(value, str | list | tuple | dict):
        raise TypeError
    return memoryview(value).nbytes if _is_buffer(value) else len(value)


def place_records(value: Any, length: int, pieces: list[Any], buffers: list[Any]) -> None:
    """Put records among the pieces if they are few, as a buffer of their own if they are many or not in memory."""
    if not isinstance(value, bytes) and _is_buffer(value):
        # Whoever sends the buffers counts bytes, not items.
        value = memoryview(value).cast("B")
    if length < COPIED_BELOW and isinstance(value, bytes | memoryview):
        pieces.append(value)
    else:
        buffers.append(b"".join(pieces))
        buffers.append(value)
        pieces.clear()


def _is_buffer(value: Any) -> bool:
    kind = type(value)
    known = _BUFFER_KINDS.get(kind)
    if known is None:
        try:
            memoryview(value)
        except TypeError:
            known = False
        else:
            known = True
        # To be told no by an exception takes longer than all the rest.
        _BUFFER_KINDS[kind] = known
    return known


def _source() -> Source:
    source = Source()
    source.names.update(
        uvarint=encode_uvarint,
        pack=struct.pack,
        place_records=place_records,
        exact_uuid=_exact_uuid,
        byte_length=byte_length,
        memoryview=memoryview,
    )
    return source


def _exact_uuid(value: Any) -> bytes:
    # struct would pad a short one and cut a long one, without a word.
    if not isinstance(value, bytes) or len(value) != 16:
        raise ValueError
    return value


class _Writer:
    """Writes the statements that encode fields; `run` holds fixed-width fields that wait to become one piece."""

    def __init__(self, source: Source, version: int, flexible: bool) -> None:
        self.source = source
        self.version = version
        self.flexible = flexible
        self.run: list[tuple[str, str]] = []

    def pack(self, run: list[tuple[str, str]]) -> str:
        """An expression that packs these fields."""
        codes = "".join(code for code, _ in run)
        return f"{self.source.packer(codes)}({', '.join(value for _, value in run)})"

    def flush(self) -> None:
        """Add the fields that wait as one piece."""
        if self.run:
            self.source.line(f"add({self.pack(self.run)})")
            self.run.clear()

    def struct(self, schema: Schema, value: str) -> None:
        """Encode an instance's fields, and its tagged fields where the version has them."""
        for field in schema.body(self.version):
            self.field(field, f"{value}.{field.name}")
        if not self.flexible:
            return
        with self.source.block(f"if {self.untagged(schema, value)}:"):
            self.source.line(f"add({self.pack([*self.run, ('B', '0')])})")
        with self.source.block("else:"):
            if self.run:
                self.source.line(f"add({self.pack(self.run)})")
            tags = self.source.bind("write_tags", _tag_writer(schema, self.version))
            self.source.line(f"{tags}({value}, pieces)")
        self.run.clear()

    def untagged(self, schema: Schema, value: str) -> str:
        """A condition: the instance has no tagged field to write."""
        conditions = [f"{value}.unknown_tags is None"]
        for field in schema.tagged(self.version):
            if field.default is None:
                conditions.append(f"{value}.{field.name} is None")
            elif field.default is list:
                conditions.append(f"not {value}.{field.name}")
            else:
                conditions.append(f"{value}.{field.name} == {self.source.bind('default', field.default)}")
        return " and ".join(conditions)

    def field(self, field: Field, value: str) -> None:
        self.value(field.type, value, self.version in field.nullable, self.flexible and not field.plain)

    def value(self, kind: Type, value: str, nullable: bool, flexible: bool) -> None:
        if isinstance(kind, Scalar):
            self.run.append((kind.code, f"exact_uuid({value})" if kind.name == "uuid" else value))
        elif isinstance(kind, Variable):
            self.variable(kind, value, nullable, flexible)
        elif isinstance(kind, Array):
            self.array(kind.element, value, nullable)
        elif nullable:
            self.flush()
            local = self.source.fresh("it")
            self.source.line(f"{local} = {value}")
            with self.source.block(f"if {local} is None:"):
                self.source.line('add(b"\\xff")')
            with self.source.block("else:"):
                self.source.line('add(b"\\x01")')
                self.struct(kind.schema, local)
                self.flush()
        else:
            local = self.source.fresh("it")
            self.source.line(f"{local} = {value}")
            self.struct(kind.schema, local)

    def length(self, length: str, code: str, flexible: bool) -> None:
        """Add a length, with the fields that wait in front of it."""
        if not flexible:
            self.run.append((code, length))
            self.flush()
            return
        short = self.pack([*self.run, ("B", length)])
        long = f"{self.pack(self.run)} + uvarint({length})" if self.run else f"uvarint({length})"
        self.source.line(f"add({short} if {length} < 128 else {long})")
        self.run.clear()

    def sized(self, local: str, nullable: bool, flexible: bool, *, convert: str | None, measured: str = "len") -> str:
        """Put a value's encoded length in a local; null counts as -1, or 0 in flexible versions."""
        length = self.source.fresh("length")
        plus = " + 1" if flexible else ""

        def measure() -> None:
            if convert is not None:
                self.source.line(f"{local} = {convert}")
            self.source.line(f"{length} = {measured}({local}){plus}")

        if not nullable:
            measure()
            return length
        with self.source.block(f"if {local} is None:"):
            self.source.line(f"{length} = {0 if flexible else -1}")
        with self.source.block("else:"):
            measure()
        return length

    def variable(self, kind: Variable, value: str, nullable: bool, flexible: bool) -> None:
        local = self.source.fresh("value")
        self.source.line(f"{local} = {value}")
        convert = f"{local}.encode()" if kind is STRING else None
        measured = "len" if kind is STRING else "byte_length"
        length = self.sized(local, nullable, flexible, convert=convert, measured=measured)
        if kind is STRING and flexible:
            with self.source.block(f"if {length} > 32768:"):
                self.source.line("raise ValueError")
        self.length(length, "h" if kind is STRING else "i", flexible)
        guard = f"if {local} is not None:" if nullable else None
        statement = f"add({local})"
        if kind is RECORDS:
            statement = f"place_records({local}, {length}, pieces, buffers)"
        elif kind is BYTES:
            statement = f"add(memoryview({local}).cast('B'))"
        if guard:
            with self.source.block(guard):
                self.source.line(statement)
        else:
            self.source.line(statement)

    def array(self, element: Scalar | Variable | Nested, value: str, nullable: bool) -> None:
        local = self.source.fresh("items")
        self.source.line(f"{local} = {value}")
        length = self.sized(local, nullable, self.flexible, convert=None)
        self.length(length, "i", self.flexible)
        # An empty or null array is over after its count.
        with self.source.block(f"if {local}:"):
            if isinstance(element, Scalar):
                self.scalars(element, local)
            elif isinstance(element, Nested) and element.schema.is_fixed(self.version):
                self.fixed_structs(element.schema, local)
            else:
                self.elements(element, local)

    def scalars(self, element: Scalar, items: str) -> None:
        small = self.source.bind("small", small_packers(element.code))
        count = self.source.fresh("count")
        if element.name == "uuid":
            self.source.line(f"{items} = [exact_uuid(item) for item in {items}]")
        self.source.line(f"{count} = len({items})")
        self.source.line(
            f"add({small}[{count}](*{items}) if {count} < {SMALL} "
            f'else pack(">" + {element.code!r} * {count}, *{items}))'
        )

    def fixed_structs(self, schema: Schema, items: str) -> None:
        """Elements of one fixed width: one piece each, made in a comprehension."""
        item = self.source.fresh("it")
        outer, self.run = self.run, []
        for field in schema.body(self.version):
            self.field(field, f"{item}.{field.name}")
        run, self.run = self.run, outer
        if not self.flexible:
            self.source.line(f"pieces += [{self.pack(run)} for {item} in {items}]")
            return
        tags = self.source.bind("tag_bytes", _tag_bytes(schema, self.version))
        self.source.line(
            f"pieces += [{self.pack([*run, ('B', '0')])} if {self.untagged(schema, item)} "
            f"else {self.pack(run)} + {tags}({item}) for {item} in {items}]"
        )

    def elements(self, element: Variable | Nested, items: str) -> None:
        item = self.source.fresh("it")
        with self.source.block(f"for {item} in {items}:"):
            if isinstance(element, Nested):
                self.struct(element.schema, item)
            else:
                self.variable(element, item, nullable=False, flexible=self.flexible)
            self.flush()


def _tag_bytes(schema: Schema, version: int) -> Callable[[Any], bytes]:
    """A function that encodes an instance's tagged field section: known and unknown ones, in order of tag."""
    fields = schema.tagged(version)
    encoders: dict[str, Encoder] = {}

    def known(value: Any) -> dict[int, bytes]:
        found: dict[int, bytes] = {}
        for field in fields:
            item = getattr(value, field.name)
            if item == field.make_default():
                continue
            if isinstance(field.type, Nested) and version not in field.nullable and item == type(item)():
                continue
            if field.name not in encoders:
                encoders[field.name] = compile_value_encoder(field, version)
            pieces: list[Any] = []
            encoders[field.name](item, pieces, pieces)
            found[field.tag or 0] = b"".join(pieces)
        return found

    def tag_bytes(value: Any) -> bytes:
        tags = {**known(value), **(value.unknown_tags or {})}
        pieces = [encode_uvarint(len(tags))]
        for tag in sorted(tags):
            if not 0 <= tag <= 0xFFFFFFFF:
                raise OverflowError
            content = bytes(memoryview(tags[tag]))
            pieces += encode_uvarint(tag), encode_uvarint(len(content)), content
        return b"".join(pieces)

    return tag_bytes


def _tag_writer(schema: Schema, version: int) -> Callable[[Any, list[Any]], None]:
    tag_bytes = _tag_bytes(schema, version)

    def write_tags(value: Any, pieces: list[Any]) -> None:
        pieces.append(tag_bytes(value))

    return write_tags


def compile_value_encoder(field: Field, version: int) -> Encoder:
    """An encoder for the value of one tagged field."""
    source = _source()
    writer = _Writer(source, version, flexible=True)
    with source.block("def encode(value, pieces, buffers):"):
        source.line("add = pieces.append")
        writer.field(field, "value")
        writer.flush()
    return source.compile("encode", f"encode tagged {field.name} v{version}")
