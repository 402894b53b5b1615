"""Codecs by (message, version), made on first use and kept.

>>> from ottla.wire.api.metadata import MetadataRequest, MetadataRequestTopic
>>> data = encode(MetadataRequest(topics=[MetadataRequestTopic(name="a")]), 0)
>>> data.hex()
'00000001000161'
>>> decode(MetadataRequest, 0, data)
MetadataRequest(topics=[MetadataRequestTopic(name='a')])

Two engines do the same: the compiled `_codec`, which walks a plan, and Python source generated for each version by
`decoding` and `encoding`, for installs without a compiler.
"""

from collections.abc import Callable
from functools import partial
from itertools import islice
from typing import Any, Final, NamedTuple, TypeVar

from ottla.native import load_compiled
from ottla.wire import decoding, encoding
from ottla.wire.errors import MalformedError, ProtocolError
from ottla.wire.schema import Bytes, Schema, schema_of
from ottla.wire.walk import find_unencodable, walk

T = TypeVar("T")

Decoder = Callable[[Bytes, int], tuple[T, int]]
Encoder = Callable[[Any, list[Any], list[Any]], None]


class Engine(NamedTuple):
    """A way to make codecs. They raise `decoding.FAILURES` and `encoding.FAILURES`, and do not say where."""

    make_decoder: Callable[[Schema, int], Decoder[Any]]
    make_encoder: Callable[[Schema, int], Encoder]


PYTHON: Final = Engine(decoding.compile_decoder, encoding.compile_encoder)


def compiled_engine() -> Engine | None:
    """The compiled engine, where it is installed and wanted."""
    codec = load_compiled("ottla.wire._codec")
    if codec is None:
        return None
    plans: dict[tuple[type[Any], int], Any] = {}

    def plan(schema: Schema, version: int) -> Any:
        found = plans.get((schema.cls, version))
        if found is None:
            flexible = version in schema.flexible
            found = codec.Plan(schema, version, flexible)
            plans[schema.cls, version] = found
        return found

    return Engine(
        lambda schema, version: partial(codec.decode, plan(schema, version)),
        lambda schema, version: partial(codec.encode, plan(schema, version)),
    )


_engine = compiled_engine() or PYTHON
_decoders: dict[tuple[type[Any], int], Decoder[Any]] = {}
_encoders: dict[tuple[type[Any], int], Encoder] = {}


def decoder(cls: type[T], version: int) -> Decoder[T]:
    """The decoder of one version: (bytes, position) -> (message, position after it).

    Bytes that make no sense raise ProtocolError, which says where. Bytes after the message are left alone.
    """
    found = _decoders.get((cls, version))
    if found is None:
        found = _decoders[cls, version] = make_decoder(_engine, cls, version)
    return found


def encoder(cls: type[Any], version: int) -> Encoder:
    """The encoder of one version: appends to a list of pieces, and to a list of finished buffers before records.

    Fields that the version does not have are left out, whatever their value.
    """
    found = _encoders.get((cls, version))
    if found is None:
        found = _encoders[cls, version] = make_encoder(_engine, cls, version)
    return found


def make_decoder(engine: Engine, cls: type[T], version: int) -> Decoder[T]:
    """A decoder by a given engine, whose errors say where; `decoder` keeps those of the engine in use."""
    schema = _checked_schema(cls, version)
    read = engine.make_decoder(schema, version)

    def decode_message(buffer: Bytes, position: int = 0) -> tuple[T, int]:
        try:
            return read(buffer, position)
        except decoding.FAILURES as failure:
            raise _explain(schema, version, buffer, position, failure) from failure

    return decode_message


def make_encoder(engine: Engine, cls: type[Any], version: int) -> Encoder:
    """An encoder by a given engine, whose errors name the field; `encoder` keeps those of the engine in use."""
    schema = _checked_schema(cls, version)
    write = engine.make_encoder(schema, version)

    def encode_message(message: Any, pieces: list[Any], buffers: list[Any]) -> None:
        try:
            write(message, pieces, buffers)
        except encoding.FAILURES as failure:
            raise find_unencodable(schema, version, message) from failure

    return encode_message


def _checked_schema(cls: type[Any], version: int) -> Schema:
    schema = schema_of(cls)
    if version not in schema.versions:
        raise ValueError(f"{cls.__name__} has versions {schema.versions.first}-{schema.versions.last}, not {version!r}")
    return schema


MOST_STEPS_EXPLAINED: Final = 10_000
"""How far the slow walk follows a message to say where it is malformed: a peer's bad bytes must not cost much."""


def _explain(schema: Schema, version: int, buffer: Bytes, position: int, failure: Exception) -> ProtocolError:
    title = f"{schema.cls.__name__} v{version}"
    place = position
    try:
        for step in islice(walk(schema, version, buffer, position), MOST_STEPS_EXPLAINED):
            place = step.end
    except ProtocolError as error:
        return ProtocolError(f"{title}: {error.reason}", offset=error.offset, where=error.where)
    if isinstance(failure, MalformedError) and failure.args:
        return ProtocolError(f"{title}: malformed before or at", offset=failure.args[0])
    return ProtocolError(f"{title}: malformed after", offset=place)


def decode(cls: type[T], version: int, buffer: Bytes) -> T:
    """Decode a whole message; trailing bytes are ignored, as brokers do."""
    return decoder(cls, version)(buffer, 0)[0]


def encode(message: object, version: int) -> bytes:
    """Encode a message as one piece of bytes. Records are copied; `encode_buffers` leaves them where they are."""
    return b"".join(encode_buffers(message, version))


def encode_buffers(message: object, version: int) -> list[Any]:
    """Encode a message as a list of buffers in which large records stand by themselves, uncopied."""
    pieces: list[Any] = []
    buffers: list[Any] = []
    encoder(type(message), version)(message, pieces, buffers)
    if pieces:
        buffers.append(b"".join(pieces))
    return buffers
