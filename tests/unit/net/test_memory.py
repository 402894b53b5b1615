"""Requests and unread replies of all connections together: bounded, without starving anybody."""

import asyncio
import socket
import struct
from typing import Any

import pytest

from ottla.net import Listener, Memory, Reply, ServerConnection
from ottla.net.memory import READ_BYTES, SMALL_BYTES
from tests.waiting import eventually

from .loops import LoopFactory, each_loop, run
from .peers import Client, echo, framed, listening

pytestmark = each_loop

MEGABYTE = 1 << 20
LIMIT = 4 * MEGABYTE
LARGE = 2 * MEGABYTE


def length(connection: ServerConnection, frame: bytes | bytearray) -> Reply:
    return [framed(b"%d" % len(frame))]


async def half_a_frame(listener: Listener) -> Client:
    client = await Client.connect(listener)
    client.writer.write(struct.pack(">i", LARGE) + bytes(LARGE // 2))
    return client


async def settled(memory: Memory) -> int:
    """What is held once nothing more is read."""
    before = -1
    while memory.used != before:
        before = memory.used
        await asyncio.sleep(0.05)
    return before


def test_many_halves_of_large_requests_are_bounded_and_all_get_through_in_the_end(loop_factory: LoopFactory) -> None:
    memory = Memory(LIMIT, patience_ms=10_000)

    async def story() -> None:
        async with listening(length, memory=memory) as listener:
            clients = [await half_a_frame(listener) for _ in range(20)]
            await eventually(lambda: memory.used >= LIMIT, "the room is taken")
            assert await settled(memory) <= LIMIT + LARGE + 20 * READ_BYTES
            assert memory.wanting
            for client in clients:
                client.writer.write(bytes(LARGE - LARGE // 2))
            for client in clients:
                assert await client.receive() == b"%d" % LARGE
                await client.close()
            assert memory.used == 0
            assert memory.turn is None
            assert not memory.wanting
            assert not memory.unfinished

    run(loop_factory, story())


def test_a_request_larger_than_all_the_room_gets_through(loop_factory: LoopFactory) -> None:
    async def story() -> None:
        async with listening(length, memory=Memory(100_000)) as listener:
            clients = [await Client.connect(listener) for _ in range(3)]
            for client in clients:
                client.send(bytes(LARGE), bytes(LARGE))
            for client in clients:
                assert [await client.receive(), await client.receive()] == [b"%d" % LARGE] * 2
                await client.close()

    run(loop_factory, story())


def test_small_requests_do_not_wait_behind_large_ones(loop_factory: LoopFactory) -> None:
    memory = Memory(LIMIT, patience_ms=60_000)

    async def story() -> None:
        async with listening(echo, memory=memory) as listener:
            stalled = [await half_a_frame(listener) for _ in range(10)]
            await eventually(lambda: bool(memory.wanting), "some have to wait")
            small = await Client.connect(listener)
            for _ in range(100):
                small.send(bytes(SMALL_BYTES // 2))
                assert len(await small.receive()) == SMALL_BYTES // 2
            assert memory.wanting
            for client in (*stalled, small):
                await client.close()
            await eventually(lambda: memory.used == 0, "all is given back")

    run(loop_factory, story())


def test_those_who_stall_make_room_for_those_who_send(
    loop_factory: LoopFactory, caplog: pytest.LogCaptureFixture
) -> None:
    memory = Memory(LIMIT, patience_ms=200)

    async def story() -> None:
        async with listening(length, memory=memory) as listener:
            stalled = [await half_a_frame(listener) for _ in range(10)]
            await eventually(lambda: bool(memory.wanting), "some have to wait")
            good = await Client.connect(listener)
            good.send(bytes(LARGE))
            assert await good.receive() == b"%d" % LARGE
            assert listener.connection_count < 11
            for client in (*stalled, good):
                await client.close()

    run(loop_factory, story())
    assert "it takes its time over a request, and others need the memory" in caplog.text


def test_nobody_is_closed_for_being_slow_while_there_is_room(loop_factory: LoopFactory) -> None:
    async def story() -> None:
        async with listening(length, memory=Memory(LIMIT, patience_ms=50)) as listener:
            slow = await half_a_frame(listener)
            for _ in range(5):
                await asyncio.sleep(0.05)
                slow.writer.write(b".")
            slow.writer.write(bytes(LARGE - LARGE // 2 - 5))
            assert await slow.receive() == b"%d" % LARGE
            await slow.close()

    run(loop_factory, story())


def test_a_request_counts_until_it_is_answered_also_if_its_client_is_gone(loop_factory: LoopFactory) -> None:
    gate = asyncio.Event()
    memory = Memory(LIMIT)

    async def later(frame: bytes | bytearray) -> list[Any]:
        await gate.wait()
        return [framed(b"%d" % len(frame))]

    async def story() -> None:
        async with listening(lambda connection, frame: later(frame), memory=memory) as listener:
            client = await Client.connect(listener)
            client.send(bytes(LARGE), bytes(10))
            await eventually(lambda: memory.used == LARGE + 4 + 14, "both have arrived")
            # Without a farewell: one who only sends no more is still answered.
            linger = struct.pack("ii", 1, 0)
            client.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            client.writer.transport.abort()
            await eventually(lambda: listener.connection_count == 0, "the client is gone")
            assert memory.used == LARGE + 4, "the second was dropped, the first is being handled"
            gate.set()
            await eventually(lambda: memory.used == 0, "the handler is done")

    run(loop_factory, story())


def test_a_request_that_fails_is_given_back(loop_factory: LoopFactory) -> None:
    memory = Memory(LIMIT)

    def handler(connection: ServerConnection, frame: bytes | bytearray) -> Reply:
        raise ValueError("on purpose")

    async def story() -> None:
        async with listening(handler, memory=memory) as listener:
            client = await Client.connect(listener)
            client.send(bytes(LARGE), bytes(LARGE))
            assert await client.left() == b""
            await eventually(lambda: memory.used == 0, "all is given back")
            await client.close()

    run(loop_factory, story())


def test_too_many_unread_replies_close_whoever_read_nothing_for_longest(
    loop_factory: LoopFactory, caplog: pytest.LogCaptureFixture
) -> None:
    def handler(connection: ServerConnection, frame: bytes | bytearray) -> Reply:
        return [framed(bytes(16 * MEGABYTE))]

    async def story() -> None:
        memory = Memory(40 * MEGABYTE, patience_ms=100)
        async with listening(handler, memory=memory) as listener:
            clients = []
            for _ in range(8):
                client = await Client.connect(listener, limit=1024)
                client.send(b"x")
                clients.append(client)
                await asyncio.sleep(0.12)
            await eventually(lambda: listener.bytes_buffered <= 40 * MEGABYTE, "the first ones are closed")
            assert 2 <= listener.connection_count <= 4
            assert len(await clients[-1].receive()) == 16 * MEGABYTE, "the last one is served"
            for client in clients:
                await client.close()

    run(loop_factory, story())
    assert "it does not read, and others need the memory" in caplog.text
