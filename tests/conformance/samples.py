"""Random messages, repeatable from a seed, that set only what a version can carry."""

import string
from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

from ottla.wire.schema import BYTES, STRING, Array, Field, Nested, Scalar, Schema, Type, Variable, schema_of

from .codecs import Codec

ANYTHING = object()
"""What `narrow` answers for a field that takes any value of its type."""

TEXTS = ("", "a", "my-topic", "grüße-из-東京", "\u0000\n\"'\\", "🎈" * 3)


class Limits(NamedTuple):
    """What an oracle cannot express, so that samples for it leave it out.

    `narrow(field, random)` gives a value for a field of which the oracle takes only some. `never_null` has the
    fields, by message, version and name, that we may write as null and the oracle may not.
    """

    narrow: Callable[[Field, Random], object] = lambda _field, _random: ANYTHING
    never_null: frozenset[tuple[str, int, str]] = frozenset()
    tagged: bool = True
    unknown_tags: bool = False


def make_sample(codec: Codec, index: int, limits: Limits, seed: int = 0) -> Any:
    """The message with this index: 0 is all defaults, 1 leaves nothing empty or null, the others are random.

    >>> from ottla.wire.api.heartbeat import HeartbeatRequest
    >>> make_sample(Codec("request", 12, HeartbeatRequest, 4), 0, Limits())
    HeartbeatRequest()
    """
    random = Random(f"{seed}/{codec}/{index}")
    return _Sampler(codec, random, limits, full=index == 1, defaults=index == 0).struct(schema_of(codec.message), 0)


class _Sampler:
    def __init__(self, codec: Codec, random: Random, limits: Limits, *, full: bool, defaults: bool) -> None:
        self.name = codec.name
        self.version = codec.version
        self.flexible = codec.flexible
        self.random = random
        self.limits = limits
        self.full = full
        self.defaults = defaults

    def struct(self, schema: Schema, depth: int) -> Any:
        fields = schema.body(self.version)
        if self.limits.tagged:
            fields = fields + schema.tagged(self.version)
        made = schema.cls(**{} if self.defaults else {field.name: self.field(field, depth) for field in fields})
        if self.flexible and self.limits.unknown_tags and not self.defaults and (self.full or self.one_in(4)):
            # Far above any tag that a release has given out.
            made.unknown_tags = {tag: self.random.randbytes(self.random.choice((0, 3, 200))) for tag in (1000, 70_000)}
        return made

    def field(self, field: Field, depth: int) -> Any:
        optional = self.version in field.nullable or (field.tag is not None and field.default is None)
        never = (self.name, self.version, field.name) in self.limits.never_null
        if optional and not never and not self.full and self.one_in(4):
            return None
        if field.tag is not None and not self.full and self.one_in(4):
            return field.make_default()
        narrowed = self.limits.narrow(field, self.random)
        if narrowed is not ANYTHING:
            return narrowed
        value = self.value(field.type, depth)
        if field.tag is not None and isinstance(field.type, Nested) and value == type(value)():
            # A tagged struct with nothing but defaults is not on the wire, and reads as None.
            return value if self.version in field.nullable else None
        return value

    def value(self, kind: Type, depth: int) -> Any:
        if isinstance(kind, Scalar):
            return self.scalar(kind)
        if isinstance(kind, Variable):
            return self.text() if kind is STRING else self.bytes(kind)
        if isinstance(kind, Nested):
            return self.struct(kind.schema, depth + 1)
        return self.array(kind, depth)

    def scalar(self, kind: Scalar) -> Any:
        if kind.name == "bool":
            return self.full or self.one_in(2)
        if kind.name == "float64":
            return self.random.choice((0.0, -1.5, 1e300, self.random.uniform(-1e6, 1e6)))
        if kind.name == "uuid":
            return bytes(16) if not self.full and self.one_in(6) else self.random.randbytes(16)
        bits = kind.size * 8
        low, high = (0, 2**bits - 1) if kind.name.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        if self.full:
            return self.random.randint(1, 100)
        return self.random.choice((0, 1, low, high, self.random.randint(1, 100), self.random.randint(low, high)))

    def text(self) -> str:
        if self.full:
            return "".join(self.random.choices(string.ascii_letters, k=5))
        if self.one_in(12):
            # Past 126 bytes a compact length takes two bytes, past 16382 it takes three.
            return "ü" * self.random.choice((63, 64, 150, 8200))
        return self.random.choice((*TEXTS, "".join(self.random.choices(string.printable, k=12))))

    def bytes(self, kind: Variable) -> bytes:
        # Records from 4096 bytes on are not copied by our encoder but placed among its buffers.
        sizes = (0, 1, 30, 127, 200) if kind is BYTES else (0, 61, 200, 4095, 4096, 5000)
        return self.random.randbytes(20 if self.full else self.random.choice(sizes))

    def array(self, kind: Array, depth: int) -> list[Any]:
        most = 3 if depth < 2 else 2
        count = 2 if self.full else self.random.randint(0, most)
        if not self.full and self.one_in(25) and _is_flat(kind.element, self.version):
            count = 130
        return [self.value(kind.element, depth + 1) for _ in range(count)]

    def one_in(self, count: int) -> bool:
        return self.random.randrange(count) == 0


def _is_flat(kind: Type, version: int) -> bool:
    """Whether many of these stay small: no arrays or structs inside, and no text of any length."""
    if isinstance(kind, Nested):
        return all(isinstance(field.type, Scalar) for field in kind.schema.body(version))
    return isinstance(kind, Scalar)
