"""Whole frames out of a byte stream, and requests and responses with their headers.

A frame is an int32 size and that many bytes: a header and a body. The header's version follows from the API and the
version of its body.

>>> from ottla.wire.api.metadata import MetadataRequest
>>> buffers = encode_request(MetadataRequest(topics=None), 0, correlation_id=1, client_id="test")
>>> b"".join(buffers).hex(" ", -4)
'00000012 00030000 00000001 00047465 7374ffff ffff'
>>> reader = FrameReader(max_size=100)
>>> frame, = reader.feed(b"".join(buffers))
>>> read_request_prefix(frame)
RequestPrefix(api_key=3, api_version=0, correlation_id=1)
"""

import struct
from typing import Any, NamedTuple

from ottla.wire.compile import decoder, encoder
from ottla.wire.errors import EncodeError, ProtocolError
from ottla.wire.header import RequestHeader, ResponseHeader
from ottla.wire.schema import Bytes, Schema, schema_of

_SIZE = struct.Struct(">i")
_PREFIX = struct.Struct(">hhi")
_CORRELATION_ID = struct.Struct(">i")
_TEXT_SIZE = struct.Struct(">h")
_CONTROLLED_SHUTDOWN = 7
_API_VERSIONS = 18


SMALL_PIECE = 4096
LARGE_PIECE = 65536


class FrameTooLargeError(ProtocolError):
    """A frame announces more bytes than are allowed, or fewer than none. The connection has to close."""


class FrameReader:
    """Takes bytes in any cut and gives whole frames back.

    The size is checked as soon as its four bytes are there, before anything more is kept. What is kept is what has
    arrived, never what a peer says will come.
    """

    __slots__ = ("_held", "_max_size", "_missing", "_position", "failure")

    def __init__(self, max_size: int) -> None:
        self._max_size = max_size
        self._held: list[bytes | bytearray] = []
        self._missing = 0
        self._position = 0
        self.failure: FrameTooLargeError | None = None
        """Why nothing more can be read, once that is so. Frames that came before it are good."""

    @property
    def mid_frame(self) -> bool:
        """Whether part of a frame is kept: a stream that ends now was cut."""
        return bool(self._missing or self._held)

    @property
    def missing(self) -> int:
        """Bytes that the frame which is being read lacks; 0 between frames, and before its size is known."""
        return self._missing

    def feed(self, data: bytes) -> list[bytes]:
        """Take some bytes; return the frames they complete, without their sizes.

        A size out of bounds is raised, unless good frames come before it in the same bytes: then those are returned,
        `failure` says what follows them, and the next call raises it.
        """
        if self.failure is not None:
            raise self.failure
        frames: list[bytes] = []
        position, end = 0, len(data)
        if self._missing:
            if end < self._missing:
                self._hold(data)
                self._missing -= end
                return frames
            position = self._missing
            self._held.append(data[:position])
            frames.append(b"".join(self._held))
            self._held, self._missing = [], 0
        elif self._held:
            data = bytes(self._held.pop()) + data
            end = len(data)
        while end - position >= _SIZE.size:
            size: int = _SIZE.unpack_from(data, position)[0]
            if not 0 <= size <= self._max_size:
                self._fail(size)
                if frames:
                    return frames
                raise self.failure  # type: ignore[misc]
            self._position += _SIZE.size + size
            after = position + _SIZE.size + size
            body = data[position + _SIZE.size : after]
            if after > end:
                self._missing = after - end
                self._held = [body]
                return frames
            frames.append(body)
            position = after
        if position < end:
            self._held = [data[position:]]
        return frames

    def _hold(self, data: bytes) -> None:
        # Small pieces are put together as they come: an object for each would weigh more than the bytes.
        if len(data) >= SMALL_PIECE:
            self._held.append(data)
        elif isinstance(self._held[-1], bytearray) and len(self._held[-1]) < LARGE_PIECE:
            self._held[-1] += data
        else:
            self._held.append(bytearray(data))

    def _fail(self, size: int) -> None:
        self._held = []
        self.failure = FrameTooLargeError(
            f"a frame of {size} bytes; {self._max_size} is the most that is allowed",
            offset=self._position,
            where="frame size",
        )


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
    header, position = decoder(RequestHeader, request_header_version(schema_of(cls), version))(frame, 0)
    return header, decoder(cls, version)(frame, position)[0]


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
    header_version = response_header_version(schema_of(type(message)), version)
    header = _CORRELATION_ID.pack(correlation_id)
    return _frame(header + b"\0" if header_version else header, message, version)


def _frame(header: bytes, message: object, version: int) -> list[Any]:
    pieces: list[Any] = [header]
    buffers: list[Any] = []
    encoder(type(message), version)(message, pieces, buffers)
    if pieces:
        buffers.append(b"".join(pieces))
    buffers[0] = _SIZE.pack(sum(map(len, buffers))) + buffers[0]
    return buffers
