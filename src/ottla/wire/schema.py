"""How a message is declared: one class for all versions.

A class body lists the fields in wire order. A plain default means "in every version"; `v(...)` narrows a field to
some versions, to versions in which it may be null, or makes it a tagged field:

>>> @part
... class Partition:
...     partition: int32 = 0
...     leader_epoch: int32 = v("1+", -1)
>>> @message(key=99, versions="0-2", flexible="2+")
... class ExampleRequest:
...     name: str | None = v(nullable="1+")
...     partitions: list[Partition] = v()
>>> ExampleRequest(name="a", partitions=[Partition(partition=7)])
ExampleRequest(name='a', partitions=[Partition(partition=7)])
>>> schema_of(ExampleRequest).flexible
Versions(2+)

Nothing is compiled here. `ottla.wire.compile` makes a codec for (message, version) when it is first asked for.
"""

from collections.abc import Callable, Iterator
from typing import Annotated, Any, NamedTuple, TypeVar, Union, dataclass_transform, get_args, get_origin

T = TypeVar("T")

MAX_VERSION = 0x7FFF


class Versions(NamedTuple):
    """A range of versions, both ends included; empty if `last` lies before `first`."""

    first: int
    last: int

    @classmethod
    def parse(cls, text: str) -> "Versions":
        """Read `"3"`, `"0-4"`, `"2+"` or `"none"`.

        >>> 5 in Versions.parse("2+"), 5 in Versions.parse("0-4"), 0 in Versions.parse("none")
        (True, False, False)
        """
        if text == "none":
            return cls(0, -1)
        if text.endswith("+"):
            return cls(int(text[:-1]), MAX_VERSION)
        first, _, last = text.partition("-")
        return cls(int(first), int(last or first))

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.first <= version <= self.last

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.first, self.last + 1))

    def __repr__(self) -> str:
        if self.last < self.first:
            return "Versions(none)"
        if self.last == MAX_VERSION:
            return f"Versions({self.first}+)"
        return f"Versions({self.first}-{self.last})"


EVERY_VERSION = Versions(0, MAX_VERSION)
NO_VERSION = Versions(0, -1)


class Scalar(NamedTuple):
    """A type of fixed width: its name in the protocol, its letter in `struct`, its size and its zero."""

    name: str
    code: str
    size: int
    zero: object


class Variable(NamedTuple):
    """A type with a length in front: string, bytes or records."""

    name: str
    zero: object


class Array(NamedTuple):
    """A count, then that many elements."""

    element: "Scalar | Variable | Nested"


class Nested(NamedTuple):
    """The fields of another declared class, in place."""

    schema: "Schema"


Type = Scalar | Variable | Array | Nested

BOOL = Scalar("bool", "?", 1, False)
FLOAT64 = Scalar("float64", "d", 8, 0.0)
STRING = Variable("string", "")
BYTES = Variable("bytes", b"")
RECORDS = Variable("records", None)

Bytes = bytes | bytearray | memoryview

int8 = Annotated[int, Scalar("int8", "b", 1, 0)]
int16 = Annotated[int, Scalar("int16", "h", 2, 0)]
int32 = Annotated[int, Scalar("int32", "i", 4, 0)]
int64 = Annotated[int, Scalar("int64", "q", 8, 0)]
uint16 = Annotated[int, Scalar("uint16", "H", 2, 0)]
uuid = Annotated[bytes, Scalar("uuid", "16s", 16, bytes(16))]
"""Sixteen raw bytes: a dictionary key as it is, and no object to build for each."""
record_set = Annotated[Bytes, RECORDS]
"""Record batches or an old message set. Decodes to a view of the frame; encodes whatever has a length."""

_BUILTIN: dict[object, Type] = {str: STRING, bytes: BYTES, bool: BOOL, float: FLOAT64}


class Field(NamedTuple):
    """One field of a message over all its versions."""

    name: str
    type: Type
    versions: Versions
    nullable: Versions
    tag: int | None
    default: object
    plain: bool

    def make_default(self) -> Any:
        """The value of a field that is not on the wire; a new one each time where it can be changed."""
        return self.default() if callable(self.default) else self.default


class _Zero:
    """Stands for "the zero value of whatever type the field has"."""


_ZERO = _Zero()


class _Spec(NamedTuple):
    versions: Versions
    default: object
    nullable: Versions | None
    tag: int | None
    plain: bool


def v(
    versions: str = "0+",
    default: object = _ZERO,
    *,
    nullable: str | None = None,
    tag: int | None = None,
    plain: bool = False,
) -> Any:
    """Say more of a field than its type and default.

    `nullable` is the versions in which null can be written; a field whose type has `| None` is nullable wherever
    it exists unless told otherwise. A tagged struct that is not nullable is `None` when it has nothing but
    defaults, which is when it is not written. `plain` keeps a string's old encoding in flexible versions.
    """
    return _Spec(Versions.parse(versions), default, None if nullable is None else Versions.parse(nullable), tag, plain)


class Schema:
    """What was declared of one class. `fields` is worked out when first asked for."""

    __slots__ = ("_fields", "annotations", "cls", "defaults", "flexible", "key", "versions")

    def __init__(
        self,
        key: int | None,
        versions: Versions,
        flexible: Versions,
        annotations: dict[str, object],
        defaults: dict[str, object],
    ) -> None:
        self.key = key
        self.versions = versions
        self.flexible = flexible
        self.annotations = annotations
        self.defaults = defaults
        self.cls: type[Any] = object
        self._fields: tuple[Field, ...] | None = None

    @property
    def fields(self) -> tuple[Field, ...]:
        """The fields in wire order."""
        if self._fields is None:
            self._fields = tuple(
                _field(name, annotation, self.defaults[name]) for name, annotation in self.annotations.items()
            )
        return self._fields

    def body(self, version: int) -> list[Field]:
        """The fields that a version carries in place."""
        return [field for field in self.fields if field.tag is None and version in field.versions]

    def is_fixed(self, version: int) -> bool:
        """Whether every field that a version carries in place is of fixed width."""
        body = self.body(version)
        return bool(body) and all(isinstance(field.type, Scalar) for field in body)

    def tagged(self, version: int) -> list[Field]:
        """The fields that a version can carry as tagged fields, by tag."""
        found = [field for field in self.fields if field.tag is not None and version in field.versions]
        return sorted(found, key=lambda field: field.tag or 0)


def _type_of(annotation: object) -> tuple[Type, bool]:
    """The wire type of an annotation, and whether it admits None."""
    optional = False
    if get_origin(annotation) is Union or type(annotation).__name__ == "UnionType":
        (annotation,) = [arm for arm in get_args(annotation) if arm is not type(None)]
        optional = True
    if get_origin(annotation) is list:
        element, _ = _type_of(get_args(annotation)[0])
        assert not isinstance(element, Array), "the protocol has no arrays of arrays"
        return Array(element), optional
    if get_origin(annotation) is Annotated:
        marker = get_args(annotation)[1]
        assert isinstance(marker, Scalar | Variable)
        return marker, optional
    if annotation in _BUILTIN:
        return _BUILTIN[annotation], optional
    assert isinstance(annotation, type), f"{annotation!r} is no wire type"
    return Nested(schema_of(annotation)), optional


def _field(name: str, annotation: object, declared: object) -> Field:
    kind, optional = _type_of(annotation)
    spec = declared if isinstance(declared, _Spec) else _Spec(EVERY_VERSION, declared, None, None, False)
    nullable = spec.nullable
    if nullable is None:
        nullable = spec.versions if optional else NO_VERSION
    default = spec.default
    if isinstance(default, _Zero):
        if isinstance(kind, Array):
            default = list
        elif isinstance(kind, Nested):
            default = None if optional else kind.schema.cls
        else:
            default = kind.zero
    return Field(name, kind, spec.versions, nullable, spec.tag, default, spec.plain)


class Struct:
    """What every declared class can do: be made with keywords, compare, and print what differs from its defaults."""

    __slots__ = ("unknown_tags",)
    __hash__ = None  # type: ignore[assignment]
    schema: Schema
    unknown_tags: dict[int, bytes] | None

    def __init__(self, **values: object) -> None:
        # The first instance of a class compiles that class's own __init__: importing a module compiles nothing.
        _install_init(type(self))
        type(self).__init__(self, **values)

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return (self.unknown_tags or {}) == (other.unknown_tags or {}) and all(
            getattr(self, name) == getattr(other, name) for name in self.schema.annotations
        )

    def __repr__(self) -> str:
        shown = [
            f"{field.name}={value!r}"
            for field in self.schema.fields
            if (value := getattr(self, field.name)) != field.make_default()
        ]
        if self.unknown_tags:
            shown.append(f"unknown_tags={self.unknown_tags!r}")
        return f"{type(self).__name__}({', '.join(shown)})"


_ABSENT = object()


def _install_init(cls: type[Any]) -> None:
    names: dict[str, object] = {"_ABSENT": _ABSENT}
    parameters, lines = [], ["    self.unknown_tags = None"]
    for field in cls.schema.fields:
        names[f"_{field.name}"] = field.default
        if callable(field.default):
            parameters.append(f"{field.name}=_ABSENT")
            lines.append(f"    self.{field.name} = _{field.name}() if {field.name} is _ABSENT else {field.name}")
        else:
            parameters.append(f"{field.name}=_{field.name}")
            lines.append(f"    self.{field.name} = {field.name}")
    star = "*, " if parameters else ""
    exec(f"def __init__(self, {star}{', '.join(parameters)}):\n" + "\n".join(lines), names)  # noqa: S102
    cls.__init__ = names["__init__"]


def _declare(cls: type[T], key: int | None, versions: Versions, flexible: Versions) -> type[T]:
    annotations = dict(cls.__dict__.get("__annotations__", {}))
    schema = Schema(key, versions, flexible, annotations, {name: cls.__dict__[name] for name in annotations})
    namespace = {
        name: value
        for name, value in cls.__dict__.items()
        if name not in annotations and name not in ("__dict__", "__weakref__")
    }
    namespace.update(__slots__=tuple(annotations), schema=schema, __hash__=None)
    made: type[Any] = type(cls.__name__, (Struct,), namespace)
    schema.cls = made
    return made


@dataclass_transform(kw_only_default=True)
def part(cls: type[T]) -> type[T]:
    """Declare a struct that stands inside messages and takes their version."""
    return _declare(cls, None, EVERY_VERSION, NO_VERSION)


@dataclass_transform(kw_only_default=True)
def message(*, versions: str, flexible: str = "none", key: int | None = None) -> Callable[[type[T]], type[T]]:
    """Declare a message: the versions there are, and those that use compact lengths and tagged fields."""

    def declare(cls: type[T]) -> type[T]:
        return _declare(cls, key, Versions.parse(versions), Versions.parse(flexible))

    return declare


def schema_of(cls: type[Any]) -> Schema:
    """The declaration behind a class made by `part` or `message`."""
    schema = getattr(cls, "schema", None)
    if not isinstance(schema, Schema):
        raise TypeError(f"{cls!r} was not declared with @part or @message")
    return schema


def unknown_tags(struct: object) -> dict[int, bytes]:
    """Tagged fields that arrived with a struct and that its declaration does not know, by tag."""
    found: dict[int, bytes] | None = getattr(struct, "unknown_tags", None)
    return {} if found is None else found
