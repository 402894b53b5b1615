"""Replies to a crowd, which a second thread sends: all of them, in order, to whom they belong."""

import asyncio
import errno
import os
import random
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from ottla.native import load_compiled
from ottla.net import Listener, Reply, ServerConnection
from ottla.net import porter as module
from ottla.net.porter import MOST_BYTES, STREAK, Porter
from ottla.ports import FileSlice, SystemDisk
from ottla.wire.errors import ProtocolError
from tests.waiting import eventually

from .loops import LoopFactory, each_loop, run
from .peers import Client, echo, framed, listening

_compiled = load_compiled("ottla.net._carrier")

pytestmark = [each_loop, pytest.mark.skipif(_compiled is None, reason="NOT RUN: the thread of the porter is compiled")]

CROWD = 40


def new_porter() -> Porter:
    """One that believes that no time passes, so that as many replies as make a streak are a crowd."""
    return Porter(asyncio.get_running_loop(), lambda: 0.0, _compiled)


async def crowd_of(listener: Any, count: int = CROWD) -> list[Client]:
    return [await Client.connect(listener) for _ in range(count)]


@asynccontextmanager
async def crowded(handler: Any, count: int = CROWD) -> AsyncIterator[tuple[Porter, Listener, list[Client]]]:
    """A listener with a porter, and clients of it."""
    porter = new_porter()
    async with listening(handler, porter=porter) as listener:
        clients = await crowd_of(listener, count)
        yield porter, listener, clients
        await close_all(clients)
    porter.stop()


async def close_all(clients: list[Client]) -> None:
    await asyncio.gather(*[client.close() for client in clients])


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


async def descriptors_at_rest() -> int:
    """Those of an event loop that has had a connection once: it keeps some for itself then."""
    async with listening(echo) as listener:
        await (await Client.connect(listener)).close()
    return descriptors()


def test_everybody_in_a_crowd_gets_his_own_replies_in_order(loop_factory: LoopFactory) -> None:
    async def story() -> None:
        async with crowded(echo) as (porter, _, clients):
            for turn in range(20):
                for number, client in enumerate(clients):
                    client.send(*[f"{number} {turn} {part}".encode() for part in range(1 + number % 3)])
                for number, client in enumerate(clients):
                    for part in range(1 + number % 3):
                        assert await client.receive() == f"{number} {turn} {part}".encode()
            assert porter.crowded

    run(loop_factory, story())


def test_a_client_that_is_alone_is_no_crowd(loop_factory: LoopFactory) -> None:
    async def story() -> None:
        porter = new_porter()
        async with listening(echo, porter=porter) as listener:
            client = await Client.connect(listener)
            for _ in range(5 * STREAK):
                client.send(b"hello")
                assert await client.receive() == b"hello"
            assert not porter.crowded
            await client.close()
        porter.stop()

    run(loop_factory, story())


def test_a_crowd_that_takes_its_time_is_none(loop_factory: LoopFactory) -> None:
    async def story() -> None:
        ticks = iter(range(10_000))
        porter = Porter(asyncio.get_running_loop(), lambda: float(next(ticks)), _compiled)
        async with listening(echo, porter=porter) as listener:
            clients = await crowd_of(listener)
            for client in clients:
                client.send(b"hello")
            assert [await client.receive() for client in clients] == [b"hello"] * CROWD
            assert not porter.crowded
            await close_all(clients)
        porter.stop()

    run(loop_factory, story())


def test_a_crowd_is_over_when_few_are_left(loop_factory: LoopFactory) -> None:
    async def story() -> None:
        async with crowded(echo) as (porter, _, clients):
            for client in clients:
                client.send(b"hello")
            for client in clients:
                assert await client.receive() == b"hello"
            for _ in range(2 * module.QUIET_TURNS):
                clients[0].send(b"and I")
                assert await clients[0].receive() == b"and I"
            assert not porter.crowded

    run(loop_factory, story())


def test_what_sockets_do_not_take_follows_in_order(loop_factory: LoopFactory) -> None:
    """Clients that do not read, until neither the thread nor the event loop can send any more."""
    replies = 600

    def answer(connection: ServerConnection, frame: bytes | bytearray) -> Reply:
        # Small and large ones, which go different ways, and some that come later.
        reply: Reply = [framed(bytes(frame) * (2 * MOST_BYTES // 8 if frame[-1] % 7 == 0 else 1_000))]
        if frame[-1] % 11:
            return reply

        async def later() -> Any:
            await asyncio.sleep(0)
            return reply

        return later()

    async def story() -> None:
        porter = new_porter()
        async with listening(answer, porter=porter) as listener:
            clients = []
            for _ in range(CROWD // 4):
                own = socket.socket()
                own.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                own.setblocking(False)
                await asyncio.get_running_loop().sock_connect(own, listener.address)
                clients.append(Client(*await asyncio.open_connection(sock=own, limit=4096)))
            names = [number.to_bytes(8, "big") for number in range(replies)]
            for name in names:
                for client in clients:
                    client.send(name)
            await asyncio.sleep(0.2)
            for client in clients:
                for name in names:
                    got = await client.receive()
                    assert got[:8] == name
                    assert got == name * (len(got) // 8)
            assert porter.crowded
            await close_all(clients)
        porter.stop()

    run(loop_factory, story())


def test_a_client_that_says_no_more_gets_what_it_asked_for(loop_factory: LoopFactory) -> None:
    async def story() -> None:
        before = await descriptors_at_rest()
        porter = new_porter()
        async with listening(echo, porter=porter) as listener:
            for _ in range(5):
                clients = await crowd_of(listener)
                for client in clients:
                    client.send(b"one", b"two")
                    client.writer.write_eof()
                for client in clients:
                    assert await client.left() == framed(b"one") + framed(b"two")
                await close_all(clients)
            assert porter.crowded
        porter.stop()
        await eventually(lambda: descriptors() <= before)

    run(loop_factory, story())


def test_a_stop_sends_what_is_still_with_the_thread(loop_factory: LoopFactory) -> None:
    async def story() -> None:
        porter = new_porter()
        async with listening(echo, porter=porter) as listener:
            clients = await crowd_of(listener)
            for turn in (b"one", b"two"):
                for client in clients:
                    client.send(turn)
            while not porter.crowded:
                await asyncio.sleep(0)
        porter.stop()
        for client in clients:
            # Whatever had arrived is answered whole.
            assert (framed(b"one") + framed(b"two")).startswith(await client.left())
            await client.close()

    run(loop_factory, story())


def test_clients_that_vanish_leave_no_socket_open(loop_factory: LoopFactory) -> None:
    async def story() -> None:
        before = await descriptors_at_rest()
        porter = new_porter()
        async with listening(echo, porter=porter) as listener:
            for _ in range(10):
                clients = await crowd_of(listener)
                for client in clients:
                    client.send(b"hello")
                assert await clients[0].receive() == b"hello"
                for client in clients:
                    client.writer.transport.abort()
            await eventually(lambda: listener.connection_count == 0)
        porter.stop()
        await eventually(lambda: descriptors() <= before)

    run(loop_factory, story())


def test_where_descriptors_are_few_nobody_gets_a_second_one(loop_factory: LoopFactory) -> None:
    async def story() -> None:
        porter = new_porter()
        porter.most_descriptor = 0
        async with listening(echo, porter=porter) as listener:
            clients = await crowd_of(listener)
            before = descriptors()
            for _ in range(3):
                for client in clients:
                    client.send(b"hello")
                assert [await client.receive() for client in clients] == [b"hello"] * CROWD
            assert porter.crowded
            assert descriptors() == before
            await close_all(clients)
        porter.stop()

    run(loop_factory, story())


def test_without_any_descriptor_left_all_goes_as_it_always_went(
    loop_factory: LoopFactory, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    def refuse(*_: object) -> int:
        raise OSError(errno.EMFILE, "too many open files")

    async def story() -> None:
        handler = Slices(tmp_path)
        async with crowded(handler) as (_, _, clients):
            for missing in ("pipe", "dup", None):
                if missing is not None:
                    monkeypatch.setattr(os, missing, refuse)
                for wanted in (b"0 0", b"0 0", LONG, b"0 0"):
                    for client in clients:
                        client.send(wanted)
                    for client in clients:
                        await handler.check(client, wanted)
                monkeypatch.undo()

    run(loop_factory, story())


def test_what_was_asked_before_a_mistake_is_answered_whole(loop_factory: LoopFactory, tmp_path: Any) -> None:
    async def story() -> None:
        porter = new_porter()
        handler = Slices(tmp_path)

        def strict(connection: ServerConnection, frame: bytes | bytearray) -> Reply:
            if frame == b"mistake":
                raise ProtocolError("that makes no sense")
            return handler(connection, frame)

        async with listening(strict, porter=porter) as listener:
            for wanted in ([LONG], [b"0 0"], [b"100 200000"]):
                clients = await crowd_of(listener, 10)
                for client in clients:
                    client.send(*wanted, b"mistake", b"0 0")
                for client in clients:
                    for one in wanted:
                        await handler.check(client, one)
                    assert await client.left() == b""
                await close_all(clients)
        porter.stop()

    run(loop_factory, story())


def test_slices_of_files_and_small_replies_keep_their_order(loop_factory: LoopFactory, tmp_path: Any) -> None:
    content = os.urandom(200_000)
    file = SystemDisk(str(tmp_path)).open("content", create=True)
    file.append(content)

    def answer(connection: ServerConnection, frame: bytes | bytearray) -> Reply:
        size = {b"s": 1_000, b"m": 9_000, b"l": 150_000}.get(bytes(frame[:1]))
        return [framed(frame)] if size is None else [b"\0\0\0\0", FileSlice(file, 0, size), framed(frame)]

    async def story() -> None:
        async with crowded(answer) as (porter, _, clients):
            for turn in range(10):
                wanted = [bytes([kind]) + b"%d" % turn for kind in b"xsylmxxs"]
                for client in clients:
                    client.send(*wanted)
                for client in clients:
                    for one in wanted:
                        size = {b"s": 1_000, b"m": 9_000, b"l": 150_000}.get(one[:1])
                        if size is not None:
                            assert await client.reader.readexactly(4) == b"\0\0\0\0"
                            assert await client.reader.readexactly(size) == content[:size]
                        assert await client.receive() == one
            assert porter.crowded

    run(loop_factory, story())


class Slices:
    """A handler that answers with slices of a file, as many and as long as the request says, and with what it says."""

    def __init__(self, folder: Any, make: Any = None) -> None:
        self.content = os.urandom(300_000)
        file = SystemDisk(str(folder)).open("content", create=True)
        file.append(self.content)
        self.file: Any = file if make is None else make(file)
        self.handled = 0

    def __call__(self, connection: ServerConnection, frame: bytes | bytearray) -> Reply:
        self.handled += 1
        return list(self._parts(bytes(frame)))

    def _parts(self, frame: bytes) -> Any:
        count, size = map(int, frame.split())
        for number in range(count):
            yield b"<%d>" % number
            yield FileSlice(self.file, number * 10, size)
        yield framed(frame)

    async def check(self, client: Client, frame: bytes) -> None:
        """Receive the answer to a request."""
        for part in self._parts(frame):
            wanted = part
            if isinstance(part, FileSlice):
                wanted = self.content[part.position : part.position + part.length]
            assert await client.reader.readexactly(len(wanted)) == wanted


LONG = b"40 20000"


def test_long_replies_and_all_others_come_in_order(loop_factory: LoopFactory, tmp_path: Any) -> None:
    async def story() -> None:
        handler = Slices(tmp_path)
        async with crowded(handler, 6) as (_, _, clients):
            wanted = [LONG, LONG, LONG, b"0 0", b"1 9000", LONG, b"2 200000", b"0 0", b"5 100000", b"0 0", LONG] * 3
            for client in clients:
                client.send(*wanted)
            for one in wanted:
                for client in clients:
                    await handler.check(client, one)
            assert handler.handled == len(wanted) * len(clients)

    run(loop_factory, story())


class Given:
    """A file that remembers how its bytes left."""

    def __init__(self, file: Any, *, is_cached: bool = True) -> None:
        self._file = file
        self.is_cached = is_cached
        self.asked = self.read = 0

    def sendable(self, position: int, length: int) -> int | None:
        self.asked += 1
        return self._file.sendable(position, length) if self.is_cached else None

    def send_cached(self, socket_descriptor: int, position: int, length: int) -> int | None:
        return None

    def read_cached(self, position: int, length: int) -> Any:
        return None

    def read_at(self, position: int, length: int) -> bytes:
        self.read += length
        return bytes(self._file.read_at(position, length))


def test_the_event_loop_reads_nothing_of_what_the_thread_sends(loop_factory: LoopFactory, tmp_path: Any) -> None:
    async def story() -> None:
        porter = new_porter()
        handler = Slices(tmp_path, Given)
        async with listening(handler, porter=porter) as listener:
            client = await Client.connect(listener)
            for _ in range(3):
                # Less than what a socket takes at once, so that all goes by the thread.
                client.send(b"20 15000")
                await handler.check(client, b"20 15000")
            assert (handler.file.asked, handler.file.read) == (60, 0)
            await client.close()
        porter.stop()

    run(loop_factory, story())


def test_what_is_not_in_memory_is_read_in_between(loop_factory: LoopFactory, tmp_path: Any) -> None:
    async def story() -> None:
        porter = new_porter()
        handler = Slices(tmp_path, Given)
        async with listening(handler, porter=porter) as listener:
            client = await Client.connect(listener)
            for turn in range(12):
                handler.file.is_cached = turn % 3 != 1
                client.send(LONG, b"0 0", LONG)
                for one in (LONG, b"0 0", LONG):
                    await handler.check(client, one)
            assert handler.file.read
            await client.close()
        porter.stop()

    run(loop_factory, story())


def test_a_client_that_does_not_read_holds_up_nobody(loop_factory: LoopFactory, tmp_path: Any) -> None:
    async def story() -> None:
        porter = new_porter()
        handler = Slices(tmp_path)
        async with listening(handler, porter=porter) as listener:
            stuck = await crowd_of(listener, 3)
            for client in stuck:
                client.writer.transport.pause_reading()  # type: ignore[attr-defined]
                client.send(*[b"100 200000"] * 4)
            other = await Client.connect(listener)
            for _ in range(20):
                other.send(LONG, b"0 0")
                await handler.check(other, LONG)
                await handler.check(other, b"0 0")
            # Two are with the porter or in line, and nothing beyond them is handled.
            assert handler.handled <= 3 * 2 + 40
            for client in stuck:
                client.writer.transport.resume_reading()  # type: ignore[attr-defined]
                for _ in range(4):
                    await handler.check(client, b"100 200000")
            await close_all([*stuck, other])
        porter.stop()

    run(loop_factory, story())


def test_whoever_says_no_more_gets_the_rest_of_a_long_reply(loop_factory: LoopFactory, tmp_path: Any) -> None:
    async def story() -> None:
        before = await descriptors_at_rest()
        porter = new_porter()
        handler = Slices(tmp_path)
        async with listening(handler, porter=porter) as listener:
            for _ in range(5):
                client = await Client.connect(listener)
                client.send(b"100 200000")
                client.writer.write_eof()
                await asyncio.sleep(0.01)
                await handler.check(client, b"100 200000")
                assert await client.left() == b""
                await client.close()
        porter.stop()
        await eventually(lambda: descriptors() <= before + 1)

    run(loop_factory, story())


def test_clients_that_vanish_in_the_middle_of_a_long_reply_leave_nothing(
    loop_factory: LoopFactory, tmp_path: Any
) -> None:
    async def story() -> None:
        before = await descriptors_at_rest()
        porter = new_porter()
        handler = Slices(tmp_path)
        async with listening(handler, porter=porter) as listener:
            for _ in range(5):
                clients = await crowd_of(listener, 5)
                for client in clients:
                    client.send(*[b"100 200000"] * 3)
                await clients[0].reader.readexactly(100_000)
                for client in clients:
                    client.writer.transport.abort()
            await eventually(lambda: listener.connection_count == 0)
        porter.stop()
        await eventually(lambda: descriptors() <= before + 1)

    run(loop_factory, story())


@pytest.mark.parametrize("seed", range(6))
def test_whatever_is_asked_for_and_however_it_is_read_the_order_is_kept(
    loop_factory: LoopFactory, tmp_path: Any, seed: int
) -> None:
    chance = random.Random(seed)
    kinds = [b"0 0", b"0 0", b"0 0", b"1 500", b"2 9000", b"3 40000", b"6 60000", LONG, b"100 60000"]

    async def story() -> None:
        porter = new_porter()
        handler = Slices(tmp_path, Given)
        handler.file.sendable = lambda position, length: (
            None if chance.random() < 0.005 else handler.file._file.sendable(position, length)
        )

        async def read(client: Client, wanted: list[bytes], is_slow: bool) -> None:
            for one in wanted:
                if is_slow and chance.random() < 0.2:
                    await asyncio.sleep(chance.random() / 100)
                await handler.check(client, one)

        async with listening(handler, porter=porter) as listener:
            readers, clients = [], []
            for number in range(24):
                own = socket.socket()
                if number % 3 == 0:
                    own.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
                own.setblocking(False)
                await asyncio.get_running_loop().sock_connect(own, listener.address)
                client = Client(*await asyncio.open_connection(sock=own, limit=chance.choice([4096, 2**20])))
                clients.append(client)
                wanted = [chance.choice(kinds) for _ in range(25)]
                readers.append(asyncio.create_task(read(client, wanted, number % 3 == 1)))
                client.send(*wanted)
            await asyncio.gather(*readers)
            await close_all(clients)
        porter.stop()

    run(loop_factory, story())
