"""Messages inside messages and records: each has an int16 in front that says how to read it.

>>> from ottla.wire.embedded.consumer_protocol import ConsumerProtocolSubscription
>>> data = encode_versioned(ConsumerProtocolSubscription(topics=["a"]), 0)
>>> data.hex()
'000000000001000161ffffffff'
>>> decode_versioned(ConsumerProtocolSubscription, data).topics
['a']
"""

import struct
from typing import TypeVar

from ottla.wire.compile import decoder, encode
from ottla.wire.errors import ProtocolError
from ottla.wire.schema import Bytes, schema_of

T = TypeVar("T")

_INT16 = struct.Struct(">h")


def encode_versioned(message: object, version: int) -> bytes:
    """An int16 version, then the message in that version."""
    return _INT16.pack(version) + encode(message, version)


def read_prefix(data: Bytes) -> int:
    """The int16 in front: a version, or the record type of an internal topic's key."""
    if len(data) < _INT16.size:
        raise ProtocolError(f"version needs 2 bytes, {len(data)} are left", offset=0)
    prefix: int = _INT16.unpack_from(data)[0]
    return prefix


def decode_versioned(cls: type[T], data: Bytes, *, from_the_future: bool = False) -> T:
    """Read what `encode_versioned` writes.

    `from_the_future` reads a newer version as the newest that is known. That is what every consumer does with a newer
    member's metadata, whose versions only ever add to the end; records of internal topics are not like that.
    """
    version = read_prefix(data)
    versions = schema_of(cls).versions
    if from_the_future and version > versions.last:
        version = versions.last
    if version not in versions:
        raise ProtocolError(f"{cls.__name__} has no version {version}", offset=0, where="version")
    return decoder(cls, version)(data, _INT16.size)[0]


def encode_key(message: object) -> bytes:
    """The key of an internal topic's record: its record type, then its fields."""
    key = schema_of(type(message)).key
    assert key is not None, f"{type(message).__name__} is no record key"
    return _INT16.pack(key) + encode(message, 0)


def decode_key(cls: type[T], data: Bytes) -> T:
    """Read what `encode_key` writes; `read_prefix` tells which class to ask for."""
    expected = schema_of(cls).key
    if read_prefix(data) != expected:
        raise ProtocolError(f"record type {read_prefix(data)} where {expected} was expected", offset=0)
    return decoder(cls, 0)(data, _INT16.size)[0]
