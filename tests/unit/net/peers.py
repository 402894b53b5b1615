"""Both ends of a connection, for tests that care about bytes."""

import asyncio
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from ottla.net import Listener, Reply, ServerConnection


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
