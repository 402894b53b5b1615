"""Both ends of a connection, for tests that care about bytes."""

import asyncio
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from ottla.net import Listener, Reply, ServerConnection
from ottla.wire.api.api_versions import ApiVersion, ApiVersionsResponse
from ottla.wire.api.metadata import MetadataResponse
from ottla.wire.errors import ErrorCode
from ottla.wire.frame import encode_response, read_request_prefix


def framed(body: bytes | bytearray) -> bytes:
    return struct.pack(">i", len(body)) + body


def echo(connection: ServerConnection, frame: bytes | bytearray) -> Reply:
    return [framed(frame)]


@asynccontextmanager
async def listening(handler: Any, **options: Any) -> AsyncIterator[Listener]:
    listener = Listener(handler, **options)
    await listener.start("127.0.0.1", 0)
    try:
        yield listener
    finally:
        await listener.stop(timeout_ms=200)


class Client:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @classmethod
    async def connect(cls, listener: Listener, **options: Any) -> "Client":
        return cls(*await asyncio.open_connection(*listener.address, **options))

    def send(self, *bodies: bytes) -> None:
        self.writer.write(b"".join(map(framed, bodies)))

    async def receive(self) -> bytes:
        (size,) = struct.unpack(">i", await self.reader.readexactly(4))
        return await self.reader.readexactly(size)

    async def left(self) -> bytes:
        """What comes until the broker closes."""
        try:
            return await self.reader.read()
        except ConnectionResetError:
            return b""

    async def close(self) -> None:
        self.writer.close()
        try:
            await self.writer.wait_closed()
        except ConnectionError:
            return


def offering(versions: dict[int, int], then: Callable[[int, int, int], Reply] | None = None) -> Any:
    """A handler that negotiates as a broker does, and leaves all else to `then(key, version, correlation_id)`."""

    def handler(connection: ServerConnection, frame: bytes | bytearray) -> Reply:
        key, version, correlation_id = read_request_prefix(frame)
        if key == 18:
            response = ApiVersionsResponse(
                api_keys=[ApiVersion(api_key=known, max_version=last) for known, last in versions.items()]
            )
            if version > versions[18]:
                response.error_code = ErrorCode.UNSUPPORTED_VERSION
                return encode_response(response, 0, correlation_id=correlation_id)
            return encode_response(response, version, correlation_id=correlation_id)
        assert then is not None
        return then(key, version, correlation_id)

    return handler


def metadata(key: int, version: int, correlation_id: int) -> Reply:
    assert key == 3
    return encode_response(MetadataResponse(controller_id=correlation_id), version, correlation_id=correlation_id)
