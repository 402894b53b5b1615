"""Large frames wake a connection seldom, and every frame arrives: over real sockets, whatever pieces it comes in."""

import asyncio
import socket
import struct
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from ottla.net import waking
from ottla.net.receiving import Receiver, scratch
from ottla.net.waking import PORTION_BYTES, Alarm
from tests.unit.net.loops import LoopFactory, each_loop, run
from tests.waiting import eventually

needs_linux = pytest.mark.skipif(not waking._SUPPORTED, reason="the kernel cannot be told to wait for more")


class _Reader(asyncio.BufferedProtocol):
    """Receives frames as connections do."""

    def __init__(self) -> None:
        self.frames: asyncio.Queue[bytes] = asyncio.Queue()
        self.wake_ups = 0
        self.lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._receiver = Receiver(2**30, scratch(), 2**30)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.alarm = Alarm(transport)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._receiver.room()

    def buffer_updated(self, nbytes: int) -> None:
        self.wake_ups += 1
        frames = self._receiver.received(nbytes)
        if not frames or self.alarm.is_set:
            self.alarm.wait_for(self._receiver.missing)
        for frame in frames:
            self.frames.put_nowait(bytes(frame))

    def connection_lost(self, error: Exception | None) -> None:
        self.lost.set_result(None)


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        ours = socket.create_connection(server.getsockname())
        theirs, _ = server.accept()
    with ours, theirs:
        yield ours, theirs


@asynccontextmanager
async def _reading(ours: socket.socket) -> AsyncIterator[_Reader]:
    transport, reader = await asyncio.get_running_loop().create_connection(_Reader, sock=ours)
    yield reader
    # uvloop waits for its transports when it is closed.
    transport.close()
    await reader.lost


async def _send(theirs: socket.socket, data: bytes, piece: int) -> None:
    theirs.setblocking(False)
    for start in range(0, len(data), piece):
        await asyncio.get_running_loop().sock_sendall(theirs, data[start : start + piece])
        await asyncio.sleep(0)


async def _trickle(theirs: socket.socket, data: bytes, piece: int) -> None:
    """Send a piece, wait until the other side has had time for it, send the next."""
    theirs.setblocking(False)
    for start in range(0, len(data), piece):
        await asyncio.get_running_loop().sock_sendall(theirs, data[start : start + piece])
        await asyncio.sleep(0.002)


def _frame(size: int) -> bytes:
    return struct.pack(">i", size) + bytes(index * 31 % 251 for index in range(min(size, 4096))).ljust(size, b"x")


SIZES = [1, PORTION_BYTES // 4, PORTION_BYTES // 4 + 1, PORTION_BYTES, PORTION_BYTES + 1, 3 * PORTION_BYTES + 7, 5, 6]


@each_loop
@pytest.mark.parametrize("piece", [1000, 65_536, 10_000_000])
def test_frames_of_all_sizes_arrive_in_whatever_pieces(
    loop_factory: LoopFactory, ends: tuple[socket.socket, socket.socket], piece: int
) -> None:
    async def story() -> None:
        async with _reading(ends[0]) as reader:
            for frame in map(_frame, SIZES):
                await _send(ends[1], frame, piece)
                # Each arrives without what follows it.
                assert await reader.frames.get() == frame[4:]
            await _send(ends[1], b"".join(map(_frame, SIZES)), piece)
            for frame in map(_frame, SIZES):
                assert await reader.frames.get() == frame[4:]

    run(loop_factory, story())


@needs_linux
@each_loop
def test_a_large_frame_wakes_seldom_and_the_last_of_it_at_once(
    loop_factory: LoopFactory, ends: tuple[socket.socket, socket.socket]
) -> None:
    frame = _frame(8 * PORTION_BYTES)

    async def story() -> None:
        async with _reading(ends[0]) as reader:
            await _send(ends[1], frame, 16_384)
            assert await reader.frames.get() == frame[4:]
            # It took 256 pieces.
            assert reader.wake_ups < 40
            assert not reader.alarm.is_set
            await _send(ends[1], _frame(3), 1)
            assert await reader.frames.get() == _frame(3)[4:]

    run(loop_factory, story())


@needs_linux
@each_loop
@pytest.mark.parametrize("room", [65_536, 262_144])
def test_a_socket_with_room_for_less_is_woken_as_before(
    loop_factory: LoopFactory, ends: tuple[socket.socket, socket.socket], room: int
) -> None:
    ends[0].setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, room)
    frame = _frame(2 * PORTION_BYTES)

    async def story() -> None:
        async with _reading(ends[0]) as reader:
            for piece in (16_384, len(frame)):
                await _send(ends[1], frame, piece)
                assert await reader.frames.get() == frame[4:]
                assert not reader.alarm.is_set
            assert ends[0].getsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT) == 1

    run(loop_factory, story())


@needs_linux
@each_loop
def test_a_frame_that_trickles_in_arrives(loop_factory: LoopFactory, ends: tuple[socket.socket, socket.socket]) -> None:
    frame = _frame(3 * PORTION_BYTES // 2)

    async def story() -> None:
        async with _reading(ends[0]) as reader:
            await _trickle(ends[1], frame, 4099)
            assert await reader.frames.get() == frame[4:]

    run(loop_factory, story())


@needs_linux
@each_loop
def test_a_frame_that_stops_is_waited_for_and_the_end_of_the_connection_is_noticed(
    loop_factory: LoopFactory, ends: tuple[socket.socket, socket.socket]
) -> None:
    frame = _frame(2 * PORTION_BYTES)

    async def story() -> None:
        async with _reading(ends[0]) as reader:
            await _send(ends[1], frame[:100_000], 50_000)
            await eventually(lambda: reader.alarm.is_set, "waiting for more")
            before = reader.wake_ups
            await _send(ends[1], frame[100_000:101_000], 1000)
            await asyncio.sleep(0.05)
            assert (reader.wake_ups, reader.lost.done()) == (before, False)
            ends[1].close()
            await reader.lost

    run(loop_factory, story())


@each_loop
def test_where_the_kernel_cannot_frames_arrive_too(
    loop_factory: LoopFactory, ends: tuple[socket.socket, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waking, "_SUPPORTED", False)

    async def story() -> None:
        async with _reading(ends[0]) as reader:
            await _send(ends[1], frame := _frame(2 * PORTION_BYTES), 65_536)
            assert await reader.frames.get() == frame[4:]
            assert not reader.alarm.is_set

    run(loop_factory, story())


def test_with_tls_nothing_is_waited_for(ends: tuple[socket.socket, socket.socket]) -> None:
    class Transport(asyncio.Transport):
        def get_extra_info(self, name: str, default: Any = None) -> Any:
            return {"socket": ends[0], "ssl_object": object()}.get(name, default)

    alarm = Alarm(Transport())
    alarm.wait_for(10 * PORTION_BYTES)
    assert not alarm.is_set
    assert ends[0].getsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT) == 1
