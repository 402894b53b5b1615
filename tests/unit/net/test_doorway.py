"""Strangers at the door of a listener with TLS: they cost little, and others come in meanwhile."""

import asyncio
import errno
import os
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from ottla.net import Admission, HandshakeCutError, Listener
from ottla.net import doorway as doorways
from tests.unit.net.loops import LoopFactory, each_loop, run
from tests.unit.net.tls_world import TlsWorld, broker, refused
from tests.waiting import eventually


@pytest.fixture
def world(tmp_path: Path) -> TlsWorld:
    return TlsWorld(tmp_path)


@asynccontextmanager
async def strangers(listener: Listener, count: int, said: bytes) -> AsyncIterator[list[socket.socket]]:
    """Clients that say something and then nothing more."""
    loop = asyncio.get_running_loop()
    sockets = []
    try:
        for _ in range(count):
            one = socket.socket()
            one.setblocking(False)
            sockets.append(one)
            await loop.sock_connect(one, listener.address)
            await loop.sock_sendall(one, said)
        yield sockets
    finally:
        for one in sockets:
            one.close()


async def _drained(one: socket.socket) -> None:
    try:
        while await asyncio.get_running_loop().sock_recv(one, 100):
            pass
    except ConnectionResetError:
        pass


@each_loop
def test_a_handshake_that_never_ends_is_given_up_and_others_are_served_meanwhile(
    loop_factory: LoopFactory, world: TlsWorld, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(doorways, "HANDSHAKE_SECONDS", 3.0)
    beginning = bytes([22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3])

    async def story() -> None:
        admission = Admission()
        async with world.listening(broker, admission=admission) as listener:
            async with strangers(listener, 3, beginning) as waiting:
                connection = await world.connect(listener)
                assert listener.handshake_count == 3
                for one in waiting:
                    assert await asyncio.get_running_loop().sock_recv(one, 100) == b""
                await eventually(lambda: listener.handshake_count == 0, "all are given up")
                assert not connection.closed
                await connection.close()
            await eventually(lambda: listener.connection_count == 0, "all are gone")
            admission.limit = 1
            await (await world.connect(listener)).close()

    run(loop_factory, story())
    assert "it did not finish the TLS handshake in time" in caplog.text


@each_loop
def test_beyond_so_many_handshakes_the_oldest_is_given_up(
    loop_factory: LoopFactory, world: TlsWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doorways, "MOST_HANDSHAKES", 5)

    async def story() -> None:
        async with world.listening(broker) as listener, strangers(listener, 20, b"\x16") as waiting:
            await eventually(lambda: listener.handshake_count <= 5, "only the last ones are left")
            assert await asyncio.get_running_loop().sock_recv(waiting[0], 100) == b""
            await (await world.connect(listener)).close()

    run(loop_factory, story())


@each_loop
def test_who_is_beyond_the_limit_is_turned_away_before_the_handshake(
    loop_factory: LoopFactory, world: TlsWorld
) -> None:
    async def story() -> None:
        async with (
            world.listening(broker, admission=Admission(limit=2)) as listener,
            strangers(listener, 2, b"\x16"),
        ):
            await eventually(lambda: listener.handshake_count == 2, "both are there")
            error = await refused(world.connect(listener))
            assert type(error) is HandshakeCutError

    run(loop_factory, story())


@each_loop
def test_garbage_costs_one_connection_and_few_lines_of_the_log(
    loop_factory: LoopFactory, world: TlsWorld, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        async with world.listening(broker) as listener:
            async with strangers(listener, 50, b"\xff" * 1000) as senders:
                for one in senders:
                    # Either a word of farewell, or the end at once.
                    await _drained(one)
            await eventually(lambda: listener.handshake_count == 0, "all are gone")
            await (await world.connect(listener)).close()

    run(loop_factory, story())
    assert sum("does not speak TLS" in line for line in caplog.text.splitlines()) == doorways.REPORTS


@each_loop
def test_a_listener_stops_while_handshakes_are_under_way(loop_factory: LoopFactory, world: TlsWorld) -> None:
    async def story() -> None:
        async with world.listening(broker) as listener, strangers(listener, 2, b"\x16") as waiting:
            await eventually(lambda: listener.handshake_count == 2, "both are there")
            # Less than handshakes may take.
            async with asyncio.timeout(8):
                await listener.stop()
            for one in waiting:
                await _drained(one)
            with pytest.raises(ConnectionRefusedError):
                await asyncio.open_connection(*listener.address)

    run(loop_factory, story())


@each_loop
@pytest.mark.parametrize("turns", range(6))
def test_whoever_comes_while_a_listener_stops_is_turned_away_and_not_forgotten(
    loop_factory: LoopFactory, world: TlsWorld, turns: int
) -> None:
    async def story() -> None:
        async with world.listening(broker) as listener:
            with socket.create_connection(listener.address, timeout=10) as late:
                # How far it has come by then: in the queue, accepted, about to shake hands.
                for _ in range(turns):
                    await asyncio.sleep(0)
                await listener.stop()
                late.setblocking(False)
                await _drained(late)

    run(loop_factory, story())


class _Failing:
    """A listening socket that fails so often before it accepts somebody."""

    def __init__(self, listening: socket.socket, failures: list[OSError]) -> None:
        self._socket = listening
        self._failures = failures

    def accept(self) -> Any:
        if self._failures:
            raise self._failures.pop()
        return self._socket.accept()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._socket, name)


@each_loop
@pytest.mark.parametrize(
    ("code", "pause_s", "message"),
    [
        (errno.ECONNABORTED, 3600.0, "cannot accept a connection: "),
        (errno.EMFILE, 0.01, "cannot accept connections for now: "),
    ],
)
def test_accepting_pauses_longer_for_lack_of_files_than_for_a_client_that_left(
    loop_factory: LoopFactory,
    world: TlsWorld,
    code: int,
    pause_s: float,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(doorways, "OUT_OF_FILES_SECONDS", pause_s)

    async def story() -> None:
        async with world.listening(broker) as listener:
            failures = [OSError(code, os.strerror(code)) for _ in range(3)]
            doorway = listener._doorways[0]
            doorway._socket = cast(socket.socket, _Failing(doorway._socket, failures))
            await (await world.connect(listener)).close()
            assert failures == []

    run(loop_factory, story())
    assert caplog.text.count(message + os.strerror(code)) == 3


@each_loop
def test_an_error_that_lasts_does_not_keep_the_event_loop_busy_and_counts_as_no_handshake(
    loop_factory: LoopFactory, world: TlsWorld, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(doorways, "REPORTS", 3)
    monkeypatch.setattr(doorways, "REPORT_SECONDS", 0.5)
    tries = 0

    class Broken:
        """A listening socket that accepts nobody any more."""

        def __init__(self, listening: socket.socket) -> None:
            self._socket = listening

        def accept(self) -> Any:
            nonlocal tries
            tries += 1
            raise OSError(errno.EPROTO, os.strerror(errno.EPROTO))

        def __getattr__(self, name: str) -> Any:
            return getattr(self._socket, name)

    async def story() -> None:
        async with world.listening(broker) as listener:
            doorway = listener._doorways[0]
            doorway._socket = cast(socket.socket, Broken(doorway._socket))
            _, writer = await asyncio.open_connection(*listener.address)
            began = time.monotonic()
            async with asyncio.timeout(10):
                while "more connections could not be accepted" not in caplog.text:
                    await asyncio.sleep(0.01)
            assert 3 < tries <= (time.monotonic() - began) / doorways.ERROR_SECONDS + 2
            assert listener.failed_count == 0
            writer.close()

    run(loop_factory, story())
    assert "handshake" not in caplog.text
