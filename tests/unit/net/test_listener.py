"""What the listener does for all its connections: limits, idle clients, a graceful stop."""

import asyncio
import socket
import struct
import subprocess
import sys
import time
from typing import Any

import pytest

from ottla.net import Admission, Listener, Reply, ServerConnection
from tests.waiting import eventually

from .loops import LoopFactory, each_loop, run
from .peers import Client, echo, framed, listening

pytestmark = each_loop


def test_a_name_with_several_addresses_gets_one_port_on_all_of_them(loop_factory: LoopFactory) -> None:
    async def story() -> None:
        listener = Listener(echo)
        host, port = await listener.start("localhost", 0)
        assert (host, port) == listener.address
        assert port > 0
        ports = {server.sockets[0].getsockname()[1] for server in listener._servers}
        assert ports == {port}
        await listener.stop()

    run(loop_factory, story())


def test_an_address_in_use_is_named(loop_factory: LoopFactory) -> None:
    async def story() -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            with pytest.raises(OSError, match=rf"cannot listen on 127\.0\.0\.1:{port}: address already in use"):
                await Listener(echo).start("127.0.0.1", port)

    run(loop_factory, story())


def test_a_host_that_does_not_exist_is_named(loop_factory: LoopFactory) -> None:
    async def story() -> None:
        with pytest.raises(OSError, match=r"cannot listen on no\.such\.host\.invalid:9092: "):
            await Listener(echo).start("no.such.host.invalid", 9092)

    run(loop_factory, story())


def test_clients_beyond_the_limit_are_turned_away(loop_factory: LoopFactory, caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        async with listening(echo, admission=Admission(2)) as listener:
            kept = [await Client.connect(listener) for _ in range(2)]
            await eventually(lambda: listener.connection_count == 2, "two are connected")
            for _ in range(3):
                refused = await Client.connect(listener)
                assert await refused.left() == b""
                await refused.close()
            assert listener.connection_count == 2
            await kept.pop().close()
            await eventually(lambda: listener.connection_count == 1, "one left")
            kept.append(await Client.connect(listener))
            for client in kept:
                client.send(b"still here")
                assert await client.receive() == b"still here"
                await client.close()

    run(loop_factory, story())
    assert "2 clients are connected" in caplog.text


def test_clients_of_one_address_are_counted_by_themselves(
    loop_factory: LoopFactory, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        admission = Admission(limit_per_host=1)
        async with listening(echo, admission=admission) as listener, listening(echo, admission=admission) as other:
            kept = await Client.connect(listener)
            await eventually(lambda: listener.connection_count == 1, "one is connected")
            elsewhere = await Client.connect(listener, local_addr=("127.0.0.2", 0))
            elsewhere.send(b"from elsewhere")
            assert await elsewhere.receive() == b"from elsewhere"
            refused = await Client.connect(other)
            assert await refused.left() == b"", "listeners with one admission count together"
            admission.limit_per_host = 2
            admitted = await Client.connect(other)
            admitted.send(b"the limit was raised")
            assert await admitted.receive() == b"the limit was raised"
            for client in (kept, elsewhere, refused, admitted):
                await client.close()

    run(loop_factory, story())
    assert "1 clients are connected from there" in caplog.text


def test_an_idle_client_is_closed_and_a_busy_one_is_not(loop_factory: LoopFactory) -> None:
    async def story() -> None:
        async with listening(echo, idle_ms=1500) as listener:
            idle, busy = await Client.connect(listener), await Client.connect(listener)
            started = time.monotonic()
            reading = asyncio.ensure_future(idle.left())
            while not reading.done():
                busy.send(b"x")
                assert await busy.receive() == b"x"
                await asyncio.sleep(0.02)
                assert time.monotonic() - started < 15
            assert time.monotonic() - started > 1.4
            assert listener.connection_count == 1
            await idle.close()
            await busy.close()

    run(loop_factory, story())


def test_a_client_that_waits_for_its_reply_is_not_idle(loop_factory: LoopFactory) -> None:
    async def later(frame: bytes | bytearray) -> list[Any]:
        await asyncio.sleep(0.5)
        return [framed(frame)]

    async def story() -> None:
        async with listening(lambda connection, frame: later(frame), idle_ms=100) as listener:
            client = await Client.connect(listener)
            client.send(b"long poll")
            assert await client.receive() == b"long poll"
            await client.close()

    run(loop_factory, story())


def test_a_client_that_dribbles_one_request_is_closed(
    loop_factory: LoopFactory, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "ottla.net")

    async def story() -> None:
        async with listening(echo, idle_ms=300) as listener:
            client = await Client.connect(listener)
            client.writer.write(struct.pack(">i", 1000))
            reading = asyncio.ensure_future(client.left())
            for _ in range(200):
                if reading.done():
                    break
                client.writer.write(b".")
                await asyncio.sleep(0.02)
            assert reading.done()
            await client.close()

    run(loop_factory, story())
    assert "it takes too long over one request" in caplog.text


def test_a_client_that_never_reads_is_closed(loop_factory: LoopFactory, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "ottla.net")

    async def story() -> None:
        async with listening(lambda connection, frame: [framed(bytes(8 << 20))], idle_ms=300) as listener:
            client = await Client.connect(listener, limit=1024)
            client.send(*[b"x"] * 10)
            await eventually(lambda: listener.connection_count == 1, "it is connected")
            await eventually(lambda: listener.connection_count == 0, "it is closed")
            assert listener.bytes_buffered == 0
            await client.close()

    run(loop_factory, story())
    assert "it does not read its replies" in caplog.text


def test_stopping_finishes_what_is_in_flight_and_accepts_nobody(loop_factory: LoopFactory) -> None:
    started, gate = asyncio.Event(), asyncio.Event()

    async def later(frame: bytes | bytearray) -> list[Any]:
        started.set()
        await gate.wait()
        return [framed(frame)]

    async def story() -> None:
        listener = Listener(lambda connection, frame: later(frame))
        await listener.start("127.0.0.1", 0)
        busy, idle = await Client.connect(listener), await Client.connect(listener)
        busy.send(b"first", b"second")
        await started.wait()
        stopping = asyncio.ensure_future(listener.stop(timeout_ms=5000))
        assert await idle.left() == b""
        with pytest.raises(OSError):
            await Client.connect(listener)
        assert not stopping.done()
        gate.set()
        assert await busy.left() == framed(b"first") + framed(b"second")
        await stopping
        assert listener.connection_count == 0
        await busy.close()
        await idle.close()

    run(loop_factory, story())


def test_stopping_cuts_what_does_not_finish_in_time(
    loop_factory: LoopFactory, caplog: pytest.LogCaptureFixture
) -> None:
    cancelled: list[bytes | bytearray] = []

    async def never(frame: bytes | bytearray) -> list[Any]:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(frame)
            raise
        return []

    async def story() -> None:
        listener = Listener(lambda connection, frame: never(frame))
        await listener.start("127.0.0.1", 0)
        client = await Client.connect(listener)
        client.send(b"x")
        await eventually(lambda: listener.connection_count == 1, "it is connected")
        await asyncio.sleep(0.02)
        before = time.monotonic()
        await listener.stop(timeout_ms=100)
        assert 0.09 < time.monotonic() - before < 10
        assert await client.left() == b""
        await client.close()
        await asyncio.sleep(0)

    run(loop_factory, story())
    assert cancelled == [b"x"]
    assert "1 connections did not finish in 100 ms" in caplog.text


@pytest.mark.parametrize("turns", range(5))
def test_whoever_comes_while_it_stops_is_turned_away_and_not_forgotten(loop_factory: LoopFactory, turns: int) -> None:
    async def story() -> None:
        listener = Listener(echo)
        address = await listener.start("127.0.0.1", 0)
        with socket.create_connection(address, timeout=10) as late:
            # How far it has come by then: in the queue, accepted, served.
            for _ in range(turns):
                await asyncio.sleep(0)
            await listener.stop()
            try:
                assert late.recv(1) == b""
            except ConnectionResetError:
                return

    run(loop_factory, story())


IDLE_CLIENTS = """
import asyncio, socket, sys
port, count = int(sys.argv[1]), int(sys.argv[2])
sockets = []
for _ in range(count):
    sockets.append(socket.create_connection(("127.0.0.1", port)))
print("connected", flush=True)
sys.stdin.read()
"""


def test_thousands_of_idle_connections_cost_no_task_no_timer_and_little_memory(loop_factory: LoopFactory) -> None:
    count = 3000

    def memory() -> int:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * 4096

    async def story() -> None:
        async with listening(echo) as listener:
            before, tasks = memory(), len(asyncio.all_tasks())
            clients = await asyncio.create_subprocess_exec(
                sys.executable,
                "-c",
                IDLE_CLIENTS,
                str(listener.address[1]),
                str(count),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
            assert clients.stdin is not None
            assert clients.stdout is not None
            assert await clients.stdout.readline() == b"connected\n"
            await eventually(lambda: listener.connection_count == count, "all are connected")
            assert (memory() - before) / count < 10_000
            await eventually(lambda: len(asyncio.all_tasks()) == tasks, "no task is left")
            busy = await Client.connect(listener)
            # Not the time that passes, which others on the machine may take.
            started = time.process_time()
            for _ in range(200):
                busy.send(b"x")
                assert await busy.receive() == b"x"
            assert (time.process_time() - started) / 200 < 0.005
            await busy.close()
            clients.stdin.close()
            await clients.wait()
            await eventually(lambda: listener.connection_count == 0, "all are gone")

    run(loop_factory, story())


def test_a_connection_keeps_what_its_handler_has_to_remember(loop_factory: LoopFactory) -> None:
    def handler(connection: ServerConnection, frame: bytes | bytearray) -> Reply:
        connection.context = (connection.context or 0) + 1
        return [framed(f"{connection.peer} {connection.context}".encode())]

    async def story() -> None:
        async with listening(handler) as listener:
            client = await Client.connect(listener)
            host, port = client.writer.get_extra_info("sockname")
            client.send(b"x", b"x")
            assert await client.receive() == f"{host}:{port} 1".encode()
            assert await client.receive() == f"{host}:{port} 2".encode()
            await client.close()

    run(loop_factory, story())


@pytest.mark.parametrize("trusted", [True, False], ids=["trusted", "a stranger"])
def test_a_stranger_may_not_stay_one_however_busy_it_is(
    loop_factory: LoopFactory, trusted: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")

    def handler(connection: ServerConnection, frame: bytes | bytearray) -> Reply:
        if trusted:
            connection.trust()
        return [framed(bytes(frame))]

    async def story() -> None:
        async with listening(handler, stranger_request_bytes=100, login_ms=200, idle_ms=5_000) as listener:
            client = await Client.connect(listener)
            loop = asyncio.get_running_loop()
            end = loop.time() + 1
            while loop.time() < end and not client.reader.at_eof():
                client.send(b"a")
                try:
                    await client.receive()
                except (asyncio.IncompleteReadError, ConnectionError):
                    break
                await asyncio.sleep(0.02)
            assert (listener.connection_count == 1) == trusted
            await client.close()

    run(loop_factory, story())
    assert ("it does not log in" in caplog.text) == (not trusted)
