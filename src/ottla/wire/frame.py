"""Requests and responses with their headers, as frames.

A frame is an int32 size and that many bytes: a header and a body. The header's version follows from the API and the
version of its body.

>>> from ottla.wire.api.metadata import MetadataRequest
>>> buffers = encode_request(MetadataRequest(topics=None), 0, correlation_id=1, client_id="test")
>>> b"".join(buffers).hex(" ", -4)
'00000012 00030000 00000001 00047465 7374ffff ffff'
>>> read_request_prefix(b"".join(buffers)[4:])
RequestPrefix(api_key=3, api_version=0, correlation_id=1)
"""

import struct
from collections.abc import Callable
from functools import cache
from typing import Any, Final, NamedTuple

from ottla.wire.compile import Decoder, decoder, encoder
from ottla.wire.errors import EncodeError, ProtocolError
from ottla.wire.header import RequestHeader, ResponseHeader
from ottla.wire.schema import Bytes, Schema, schema_of

_SIZE: Final = struct.Struct(">i")
_PREFIX: Final = struct.Struct(">hhi")
_CORRELATION_ID: Final = struct.Struct(">i")
_TEXT_SIZE: Final = struct.Struct(">h")
_CONTROLLED_SHUTDOWN: Final = 7
_API_VERSIONS: Final = 18


class RequestPrefix(NamedTuple):
    """The part of a request header that is the same in all its versions."""

    api_key: int
    api_version: int
    correlation_id: int


def read_request_prefix(frame: Bytes) -> RequestPrefix:
    """Read which API and version a request is of; the rest of the header depends on that."""
    if len(frame) < _PREFIX.size:
        raise ProtocolError(f"request header needs {_PREFIX.size} bytes, the frame has {len(frame)}", offset=0)
    return RequestPrefix(*_PREFIX.unpack_from(frame))


def request_header_version(schema: Schema, version: int) -> int:
    """2 for flexible versions; 0, which has no client id, only for ControlledShutdown v0; 1 for all others."""
    if version in schema.flexible:
        return 2
    return 0 if schema.key == _CONTROLLED_SHUTDOWN and version == 0 else 1


def response_header_version(schema: Schema, version: int) -> int:
    """1 for flexible versions, 0 for others, and 0 for ApiVersions always: a client must be able to read that reply
    before it knows what the broker speaks."""
    return 1 if version in schema.flexible and schema.key != _API_VERSIONS else 0


def decode_request(cls: type[Any], version: int, frame: Bytes) -> tuple[RequestHeader, Any]:
    """Decode a request's header and body. `read_request_prefix` told which class and version to ask for."""
    return request_decoder(cls, version)(frame)  # type: ignore[arg-type] # classes have a hash


@cache
def request_decoder(cls: type[Any], version: int) -> Callable[[Bytes], tuple[RequestHeader, Any]]:
    """The same for many requests of a version."""
    read_header: Decoder[RequestHeader] = decoder(RequestHeader, request_header_version(schema_of(cls), version))
    read_body: Decoder[Any] = decoder(cls, version)

    def decode_frame(frame: Bytes) -> tuple[RequestHeader, Any]:
        header, position = read_header(frame, 0)
        return header, read_body(frame, position)[0]

    return decode_frame


def decode_response(cls: type[Any], version: int, frame: Bytes) -> tuple[ResponseHeader, Any]:
    """Decode a response's header and body."""
    header, position = decoder(ResponseHeader, response_header_version(schema_of(cls), version))(frame, 0)
    return header, decoder(cls, version)(frame, position)[0]


def encode_request(message: object, version: int, *, correlation_id: int, client_id: str | None) -> list[Any]:
    """Encode a request as a frame: a list of buffers, in which large records stand by themselves, uncopied."""
    schema = schema_of(type(message))
    assert schema.key is not None, f"{type(message).__name__} is no request"
    header = _request_header(schema, version, correlation_id, client_id)
    return _frame(header, message, version)


def _request_header(schema: Schema, version: int, correlation_id: int, client_id: str | None) -> bytes:
    """What the codec of `RequestHeader` makes, sooner: it is done for every request."""
    prefix = _PREFIX.pack(schema.key, version, correlation_id)
    header_version = request_header_version(schema, version)
    if header_version == 0:
        return prefix
    if client_id is None:
        name = b"\xff\xff"
    else:
        try:
            text = client_id.encode()
            name = _TEXT_SIZE.pack(len(text)) + text
        except (UnicodeEncodeError, struct.error) as error:
            raise EncodeError(f"client id {client_id!r} does not fit in a request: {error}") from error
    return prefix + name + (b"\0" if header_version == 2 else b"")


def encode_response(message: object, version: int, *, correlation_id: int) -> list[Any]:
    """Encode a response as a frame: a list of buffers, in which large records stand by themselves, uncopied."""
    return _frame(_CORRELATION_ID.pack(correlation_id) + _tags(type(message), version), message, version)  # type: ignore[arg-type]


@cache
def _tags(response: type[Any], version: int) -> bytes:
    """What a response's header ends in: where it may have tagged fields, that there are none."""
    return b"\0" if response_header_version(schema_of(response), version) else b""


def _frame(header: bytes, message: object, version: int) -> list[Any]:
    pieces: list[Any] = [header]
    buffers: list[Any] = []
    encoder(type(message), version)(message, pieces, buffers)
    if pieces:
        buffers.append(b"".join(pieces))
    size = len(buffers[0]) if len(buffers) == 1 else sum(map(len, buffers))
    buffers[0] = _SIZE.pack(size) + buffers[0]
    return buffers
