"""Replies with slices of files: few copies, bounded memory, cold reads away from the event loop."""

import asyncio
import gc
import os
import socket
import threading
import weakref
from pathlib import Path
from typing import Any

import pytest

from ottla.net import Reply, ServerConnection
from ottla.net.sending import CHUNK_BYTES
from ottla.ports import File, FileSlice, SystemDisk
from tests.waiting import eventually

from .loops import LoopFactory, each_loop, run
from .peers import Client, framed, listening

pytestmark = each_loop

CONTENT = os.urandom(3 * CHUNK_BYTES + 4321)


class ReadFile:
    """A file that has to be read before it is sent."""

    def __init__(self, file: File) -> None:
        self._file = file
        self.readers: list[threading.Thread] = []
        self.sizes: list[int] = []

    def send_cached(self, socket_descriptor: int, position: int, length: int) -> int | None:
        return None

    def read_cached(self, position: int, length: int) -> Any:
        return self._file.read_cached(position, length)

    def read_at(self, position: int, length: int) -> bytes:
        self.readers.append(threading.current_thread())
        self.sizes.append(length)
        return self._file.read_at(position, length)


class ColdFile(ReadFile):
    """A file that is in no cache, and remembers which threads read it."""

    def read_cached(self, position: int, length: int) -> Any:
        return None


class ShippedFile(ReadFile):
    """A file that the system sends by itself, and that must not be read."""

    def __init__(self, file: File) -> None:
        super().__init__(file)
        self.shipped = 0

    def send_cached(self, socket_descriptor: int, position: int, length: int) -> int | None:
        sent = self._file.send_cached(socket_descriptor, position, length)
        assert sent is not None, "it was written a moment ago, so it is cached"
        self.shipped += sent
        return sent

    def read_cached(self, position: int, length: int) -> Any:
        raise AssertionError("it was read")

    read_at = read_cached


each_kind = pytest.mark.parametrize("kind", [ShippedFile, ReadFile, ColdFile], ids=["shipped", "read", "cold"])


def open_descriptors() -> int:
    """How many files and sockets this process has open."""
    return len(os.listdir("/proc/self/fd"))


@pytest.fixture
def file(tmp_path: Path) -> File:
    made = SystemDisk(str(tmp_path)).open("segment", create=True)
    made.append(b"before", CONTENT)
    return made


def slices_of(file: Any) -> Any:
    """A handler whose reply has two slices among buffers of every kind."""

    def handler(connection: ServerConnection, frame: bytes | bytearray) -> Reply:
        size = len(CONTENT)
        head = (size + 6).to_bytes(4, "big") + b"<"
        first = FileSlice(file, 6, size - 100)
        second = FileSlice(file, 6 + size - 100, 100)
        return [head, bytearray(b"-"), first, memoryview(b"--"), FileSlice(file, 0, 0), second, b"->"]

    return handler


EXPECTED = b"<-" + CONTENT[:-100] + b"--" + CONTENT[-100:] + b"->"


def test_slices_arrive_between_the_buffers_around_them(loop_factory: LoopFactory, file: File) -> None:
    async def story() -> None:
        async with listening(slices_of(file)) as listener:
            client = await Client.connect(listener)
            client.send(b"a", b"b", b"c")
            for _ in range(3):
                assert await client.receive() == EXPECTED
            await client.close()

    run(loop_factory, story())


def test_what_is_not_cached_is_read_by_a_thread_in_chunks(loop_factory: LoopFactory, file: File) -> None:
    cold = ColdFile(file)

    async def story() -> None:
        async with listening(slices_of(cold)) as listener:
            client = await Client.connect(listener)
            client.send(b"a", b"b")
            assert await client.receive() == EXPECTED
            assert await client.receive() == EXPECTED
            await client.close()

    run(loop_factory, story())
    assert threading.main_thread() not in cold.readers
    assert max(cold.sizes) == CHUNK_BYTES


class SmallerSlices(ShippedFile):
    """Only large slices are shipped."""

    read_cached = ReadFile.read_cached


def test_large_slices_that_are_cached_are_sent_without_being_read(loop_factory: LoopFactory, file: File) -> None:
    shipped = SmallerSlices(file)

    async def story() -> None:
        async with listening(slices_of(shipped)) as listener:
            client = await Client.connect(listener)
            client.send(b"a", b"b", b"c")
            for _ in range(3):
                assert await client.receive() == EXPECTED
            await client.close()

    run(loop_factory, story())
    assert 0 < shipped.shipped <= 3 * (len(CONTENT) - 100)
    assert not shipped.readers


def test_a_small_reply_with_a_cached_slice_leaves_in_one_write(loop_factory: LoopFactory, file: File) -> None:
    writes: list[int] = []

    class Counting:
        def __init__(self, transport: asyncio.Transport) -> None:
            self._transport = transport

        def writelines(self, buffers: list[bytes]) -> None:
            writes.append(len(buffers))
            self._transport.writelines(buffers)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._transport, name)

    def handler(connection: ServerConnection, frame: bytes | bytearray) -> Reply:
        sender: Any = connection._sender
        if not isinstance(sender._transport, Counting):
            sender._transport = Counting(sender._transport)
        return [(108).to_bytes(4, "big") + b"head", FileSlice(file, 6, 100), b"tail"]

    async def story() -> None:
        async with listening(handler) as listener:
            client = await Client.connect(listener)
            client.send(b"a")
            assert await client.receive() == b"head" + CONTENT[:100] + b"tail"
            await client.close()

    run(loop_factory, story())
    assert writes == [3]


@each_kind
def test_a_reader_that_stalls_costs_little_memory_and_gets_everything_in_the_end(
    loop_factory: LoopFactory, tmp_path: Path, kind: type[ReadFile]
) -> None:
    size = 64 * 1024 * 1024
    big: Any = SystemDisk(str(tmp_path)).open("big", create=True)
    big.append(bytes(size))
    source: Any = kind(big)
    handled = 0
    connections: list[ServerConnection] = []

    def handler(connection: ServerConnection, frame: bytes | bytearray) -> Reply:
        nonlocal handled
        handled += 1
        connections.append(connection)
        return [size.to_bytes(4, "big"), FileSlice(source, 0, size)]

    async def story() -> None:
        async with listening(handler) as listener:
            sock = socket.socket()
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
            sock.connect(listener.address)
            sock.setblocking(False)
            loop = asyncio.get_running_loop()
            await loop.sock_sendall(sock, framed(b"a") + framed(b"b"))
            await eventually(lambda: bool(connections) and connections[0]._sender.stuck, "the reader stalls")
            await asyncio.sleep(0.05)
            assert listener.bytes_buffered < 4 * CHUNK_BYTES
            assert handled == 1, "the second request was handled before the first reply had left"
            received = 0
            while received < 2 * (size + 4):
                received += len(await loop.sock_recv(sock, 1 << 20))
            assert handled == 2
            sock.close()

    run(loop_factory, story())


def test_a_stalled_reader_of_plain_buffers_is_not_served_further(loop_factory: LoopFactory) -> None:
    handled = 0

    def handler(connection: ServerConnection, frame: bytes | bytearray) -> Reply:
        nonlocal handled
        handled += 1
        return [framed(bytes(8 << 20))]

    async def story() -> None:
        async with listening(handler) as listener:
            client = await Client.connect(listener, limit=1024)
            client.send(*[b"x"] * 20)
            await eventually(lambda: listener.bytes_buffered > 0, "the reader stalls")
            await asyncio.sleep(0.1)
            assert handled <= 2
            for _ in range(20):
                assert len(await client.receive()) == 8 << 20
            assert handled == 20
            await client.close()

    run(loop_factory, story())


@pytest.mark.parametrize("kind", [ReadFile, ColdFile, lambda file: file], ids=["read", "cold", "as it is"])
def test_a_file_that_got_shorter_closes_the_connection(
    loop_factory: LoopFactory, file: File, kind: Any, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        source: Any = kind(file)
        async with listening(slices_of(source)) as listener:
            file.truncate(CHUNK_BYTES)
            client = await Client.connect(listener)
            client.send(b"a")
            assert len(await client.left()) < len(EXPECTED)
            await client.close()

    run(loop_factory, story())
    assert "the file ends before byte" in caplog.text


@pytest.mark.parametrize("kind", [ShippedFile, ReadFile], ids=["shipped", "read"])
def test_a_file_and_the_socket_are_let_go_when_the_reader_goes_away(
    loop_factory: LoopFactory, tmp_path: Path, kind: type[ReadFile]
) -> None:
    references: list[Any] = []

    def handler(connection: ServerConnection, frame: bytes | bytearray) -> Reply:
        big = SystemDisk(str(tmp_path)).open("big", create=True)
        big.append(bytes(1 << 26))
        segment: Any = kind(big)
        references.append(weakref.ref(segment))
        return [(1 << 26).to_bytes(4, "big"), FileSlice(segment, 0, 1 << 26)]

    async def story() -> None:
        async with listening(handler) as listener:
            before = open_descriptors()
            client = await Client.connect(listener)
            client.send(b"a")
            await eventually(lambda: bool(references), "the request is there")
            assert references[0]() is not None
            if kind is ShippedFile:
                await eventually(lambda: any(one._sender.stuck for one in listener._connections), "the reader stalls")
            client.writer.transport.abort()
            await eventually(lambda: listener.connection_count == 0, "the connection is gone")
            gc.collect()
            assert references[0]() is None
            await eventually(lambda: open_descriptors() <= before, "all is closed")

    run(loop_factory, story())
