"""Requests of one connection, over real sockets: order, back-pressure, bad bytes."""

import asyncio
import logging
import socket
import struct
from typing import Any

import pytest

from ottla.net import Reply, ServerConnection
from ottla.net.serving import MOST_FRAMES_WAITING
from ottla.wire.errors import ProtocolError
from tests.waiting import eventually

from .loops import LoopFactory, each_loop, run
from .peers import Client, echo, framed, listening

pytestmark = each_loop


def test_a_request_gets_its_reply_without_a_task(loop_factory: LoopFactory) -> None:
    tasks: list[int] = []

    def handler(connection: ServerConnection, frame: bytes | bytearray) -> Reply:
        tasks.append(len(asyncio.all_tasks()))
        return [framed(frame)]

    async def story() -> None:
        async with listening(handler) as listener:
            client = await Client.connect(listener)
            before = len(asyncio.all_tasks())
            for body in (b"one", b"", b"two" * 100_000):
                client.send(body)
                assert await client.receive() == body
            assert max(tasks) <= before
            await client.close()

    run(loop_factory, story())


def test_pipelined_requests_are_handled_one_at_a_time_and_answered_in_order(loop_factory: LoopFactory) -> None:
    running: list[bytes | bytearray] = []
    most = 0

    async def later(frame: bytes | bytearray) -> list[Any]:
        nonlocal most
        running.append(frame)
        most = max(most, len(running))
        # The earlier ones take longer.
        await asyncio.sleep(0.05 / (1 + frame[0]))
        running.remove(frame)
        return [framed(frame)]

    def handler(connection: ServerConnection, frame: bytes | bytearray) -> Reply:
        assert not running, "a request was handled before the reply to the one before it"
        return later(frame) if frame[0] % 2 == 0 else [framed(frame)]

    async def story() -> None:
        async with listening(handler) as listener:
            client = await Client.connect(listener)
            bodies = [bytes([number]) for number in range(30)]
            client.send(*bodies)
            assert [await client.receive() for _ in bodies] == bodies
            assert most == 1
            await client.close()

    run(loop_factory, story())


def test_a_reply_may_be_a_future_and_may_be_none(loop_factory: LoopFactory) -> None:
    async def nothing() -> None:
        return None

    def handler(connection: ServerConnection, frame: bytes | bytearray) -> Reply:
        if frame == b"no reply":
            return None
        if frame == b"no reply, later":
            return nothing()
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_later(0.01, future.set_result, [framed(frame)])
        return future

    async def story() -> None:
        async with listening(handler) as listener:
            client = await Client.connect(listener)
            client.send(b"no reply", b"a", b"no reply, later", b"b")
            assert [await client.receive(), await client.receive()] == [b"a", b"b"]
            await client.close()

    run(loop_factory, story())


def test_reading_stops_while_requests_wait_and_goes_on_after(loop_factory: LoopFactory) -> None:
    gate = asyncio.Event()
    handled = 0

    async def later(frame: bytes | bytearray) -> list[Any]:
        nonlocal handled
        await gate.wait()
        handled += 1
        return [framed(frame[:4])]

    async def story() -> None:
        async with listening(lambda connection, frame: later(frame)) as listener:
            client = await Client.connect(listener)
            body, count = bytes(300_000), 200
            client.send(*[body] * count)
            await eventually(lambda: listener.bytes_buffered > 0, "some arrived")
            await asyncio.sleep(0.1)
            # What waits is bounded, not the 60 MB that the client wants to get rid of.
            assert listener.bytes_buffered < 6_000_000
            gate.set()
            assert [await client.receive() for _ in range(count)] == [body[:4]] * count
            assert handled == count
            await client.close()

    run(loop_factory, story())


def test_many_small_requests_wait_in_a_bounded_queue(loop_factory: LoopFactory) -> None:
    gate = asyncio.Event()

    async def later(frame: bytes | bytearray) -> list[Any]:
        await gate.wait()
        return [framed(frame)]

    async def story() -> None:
        async with listening(lambda connection, frame: later(frame)) as listener:
            client = await Client.connect(listener)
            bodies = [b"%d" % number for number in range(MOST_FRAMES_WAITING * 4)]
            for body in bodies:
                client.send(body)
                await asyncio.sleep(0.002)
            waiting = listener.bytes_buffered
            assert 0 < waiting < 4 * len(bodies)
            gate.set()
            assert [await client.receive() for _ in bodies] == bodies
            await client.close()

    run(loop_factory, story())


def test_a_flood_of_requests_in_one_piece_leaves_room_for_other_connections(loop_factory: LoopFactory) -> None:
    order: list[bytes | bytearray] = []

    def handler(connection: ServerConnection, frame: bytes | bytearray) -> Reply:
        order.append(frame)
        return [framed(frame)]

    async def story() -> None:
        async with listening(handler) as listener:
            flood, other = await Client.connect(listener), await Client.connect(listener)
            await eventually(lambda: listener.connection_count == 2, "two connections")
            flood.send(*[b"f"] * 5000)
            other.send(b"other")
            assert await other.receive() == b"other"
            assert order.index(b"other") < 4000
            assert [await flood.receive() for _ in range(5000)] == [b"f"] * 5000
            await flood.close()
            await other.close()

    run(loop_factory, story())


def test_a_request_that_is_too_large_closes_at_once(
    loop_factory: LoopFactory, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        async with listening(echo, max_request_bytes=100) as listener:
            client = await Client.connect(listener)
            client.send(bytes(100))
            assert await client.receive() == bytes(100)
            client.writer.write(struct.pack(">i", 101))
            assert await client.left() == b""
            await client.close()

    run(loop_factory, story())
    assert "a frame of 101 bytes" in caplog.text
    assert "127.0.0.1:" in caplog.text


@pytest.mark.parametrize("later", [False, True], ids=["at once", "later"])
def test_a_malformed_request_closes_with_one_line_in_the_log(
    loop_factory: LoopFactory, caplog: pytest.LogCaptureFixture, later: bool
) -> None:
    async def fail() -> list[Any]:
        await asyncio.sleep(0)
        raise ProtocolError("length -5 is negative")

    def handler(connection: ServerConnection, frame: bytes | bytearray) -> Reply:
        if frame == b"good":
            return [framed(frame)]
        if later:
            return fail()
        raise ProtocolError("length -5 is negative")

    async def story() -> None:
        async with listening(handler) as listener:
            client, other = await Client.connect(listener), await Client.connect(listener)
            client.send(b"good", b"bad", b"good")
            assert await client.left() == framed(b"good")
            other.send(b"good")
            assert await other.receive() == b"good"
            await client.close()
            await other.close()

    run(loop_factory, story())
    (record,) = [entry for entry in caplog.records if entry.name.startswith("ottla")]
    assert "length -5 is negative" in record.getMessage()
    assert record.exc_info is None


@pytest.mark.parametrize("later", [False, True], ids=["at once", "later"])
def test_a_handler_that_fails_closes_its_connection_and_leaves_a_traceback(
    loop_factory: LoopFactory, caplog: pytest.LogCaptureFixture, later: bool
) -> None:
    async def fail() -> list[Any]:
        raise ZeroDivisionError("in the handler")

    def handler(connection: ServerConnection, frame: bytes | bytearray) -> Reply:
        if later:
            return fail()
        raise ZeroDivisionError("in the handler")

    async def story() -> None:
        async with listening(handler) as listener:
            client = await Client.connect(listener)
            client.send(b"x")
            assert await client.left() == b""
            await eventually(lambda: listener.connection_count == 0, "the connection is gone")
            await client.close()

    run(loop_factory, story())
    (record,) = [entry for entry in caplog.records if entry.levelno == logging.ERROR]
    assert record.exc_info is not None
    assert record.exc_info[0] is ZeroDivisionError


def test_a_handler_that_waits_is_interrupted_when_its_client_goes(loop_factory: LoopFactory) -> None:
    waiters: list[asyncio.Future[Any]] = []

    def handler(connection: ServerConnection, frame: bytes | bytearray) -> Reply:
        waiter: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        waiters.append(waiter)
        connection.interrupt = waiter.cancel
        return waiter

    async def story() -> None:
        async with listening(handler) as listener:
            client = await Client.connect(listener)
            client.send(b"wait")
            await eventually(lambda: bool(waiters), "the request is there")
            await client.close()
            await eventually(lambda: listener.connection_count == 0, "the connection is gone")
            assert waiters[0].cancelled()

    run(loop_factory, story())


def test_a_handler_that_changes_something_runs_to_its_end_when_its_client_goes(loop_factory: LoopFactory) -> None:
    gate, done = asyncio.Event(), asyncio.Event()

    async def change() -> list[Any]:
        await gate.wait()
        done.set()
        return [framed(b"late")]

    async def story() -> None:
        async with listening(lambda connection, frame: change()) as listener:
            client = await Client.connect(listener)
            client.send(b"change")
            await eventually(lambda: listener.connection_count == 1, "the connection is there")
            client.writer.transport.abort()
            await asyncio.sleep(0.05)
            gate.set()
            await done.wait()

    run(loop_factory, story())


def test_what_a_client_sent_before_it_left_is_handled(loop_factory: LoopFactory) -> None:
    """A producer with acks=0 sends and goes."""
    gate = asyncio.Event()
    handled: list[bytes | bytearray] = []

    async def slowly(frame: bytes | bytearray) -> None:
        await gate.wait()
        handled.append(frame)

    async def story() -> None:
        async with listening(lambda connection, frame: slowly(frame)) as listener:
            client = await Client.connect(listener)
            client.send(b"1", b"2", b"3")
            await client.close()
            await asyncio.sleep(0.05)
            gate.set()
            await eventually(lambda: listener.connection_count == 0, "the connection is gone")
            assert handled == [b"1", b"2", b"3"]

    run(loop_factory, story())


def test_every_cut_of_the_stream_gives_the_same_replies(loop_factory: LoopFactory) -> None:
    async def story() -> None:
        async with listening(echo) as listener:
            client = await Client.connect(listener)
            sock = client.writer.get_extra_info("socket")
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for byte in framed(b"byte by byte") + framed(b"") + framed(b"end"):
                client.writer.write(bytes([byte]))
                await asyncio.sleep(0)
            assert [await client.receive() for _ in range(3)] == [b"byte by byte", b"", b"end"]
            await client.close()

    run(loop_factory, story())


def test_small_replies_are_not_held_back_by_nagle(loop_factory: LoopFactory) -> None:
    seen: list[int] = []

    def handler(connection: ServerConnection, frame: bytes | bytearray) -> Reply:
        sock = connection._transport.get_extra_info("socket")
        seen.append(sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        return [framed(frame)]

    async def story() -> None:
        async with listening(handler) as listener:
            client = await Client.connect(listener)
            client.send(b"x")
            await client.receive()
            await client.close()

    run(loop_factory, story())
    assert seen
    assert all(seen)
