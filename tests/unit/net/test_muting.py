"""A client that is muted: nothing more is taken of it for a while, and nothing of what it sent is lost."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from ottla.net import Listener
from ottla.net.serving import Frame, Reply, ServerConnection

PAUSE_S = 0.3
IDLE_MS = 2000


class _World:
    """A listener that mutes whoever sends `mute`, and writes down when each frame was handled."""

    def __init__(self) -> None:
        self.handled: list[tuple[bytes, float]] = []
        self.connections: list[ServerConnection] = []
        self.listener = Listener(self._handle, idle_ms=IDLE_MS)

    def _handle(self, connection: ServerConnection, frame: Frame) -> Reply:
        self.handled.append((bytes(frame), asyncio.get_running_loop().time()))
        self.connections.append(connection)
        if frame == b"mute":
            connection.mute(PAUSE_S)
        return [bytes(frame)]

    def time_of(self, frame: bytes) -> float:
        return next(at for name, at in self.handled if name == frame)


def _frame(text: bytes) -> bytes:
    return len(text).to_bytes(4, "big") + text


def _run(story: Callable[[_World, asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]) -> None:
    async def main() -> None:
        world = _World()
        host, port = await world.listener.start("127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(host, port)
        try:
            async with asyncio.timeout(30):
                await story(world, reader, writer)
        finally:
            writer.close()
            await world.listener.stop()

    asyncio.run(main())


def test_the_reply_leaves_at_once_and_what_follows_waits() -> None:
    async def story(world: _World, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(_frame(b"mute") + _frame(b"next"))
        assert await reader.readexactly(4) == b"mute"
        assert [name for name, _ in world.handled] == [b"mute"]
        writer.write(_frame(b"last"))
        assert await reader.readexactly(8) == b"nextlast"
        assert world.time_of(b"next") - world.time_of(b"mute") >= PAUSE_S * 0.9

    _run(story)


def test_whoever_is_muted_twice_waits_for_the_later_end() -> None:
    async def story(world: _World, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(_frame(b"mute"))
        await reader.readexactly(4)
        world.connections[0].mute(2 * PAUSE_S)
        writer.write(_frame(b"next"))
        assert await reader.readexactly(4) == b"next"
        assert world.time_of(b"next") - world.time_of(b"mute") >= 2 * PAUSE_S * 0.9

    _run(story)


def test_others_are_served_meanwhile() -> None:
    async def story(world: _World, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(_frame(b"mute") + _frame(b"next"))
        await reader.readexactly(4)
        other_reader, other_writer = await asyncio.open_connection(*world.listener.address)
        other_writer.write(_frame(b"else"))
        assert await other_reader.readexactly(4) == b"else"
        other_writer.close()
        assert b"next" not in [name for name, _ in world.handled]
        await reader.readexactly(4)

    _run(story)


def test_a_listener_that_stops_answers_what_had_arrived_without_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{__name__}.PAUSE_S", 1000.0)

    async def story(world: _World, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(_frame(b"mute") + _frame(b"next"))
        await reader.readexactly(4)
        await world.listener.stop()
        assert await reader.read() == b"next"

    _run(story)


def test_a_client_that_sends_its_last_request_and_closes_is_answered_in_the_end() -> None:
    async def story(world: _World, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(_frame(b"mute") + _frame(b"next"))
        writer.write_eof()
        assert await reader.read() == b"mutenext"

    _run(story)


def test_a_client_that_goes_away_while_it_is_muted_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{__name__}.PAUSE_S", 1000.0)

    async def story(world: _World, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(_frame(b"mute") + _frame(b"next"))
        await reader.readexactly(4)
        world.connections[0].abort()
        assert await reader.read() == b""
        assert world.listener.connection_count == 0
        assert world.listener.memory.used == 0

    _run(story)


def test_a_client_that_is_muted_for_longer_than_it_may_be_idle_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{__name__}.PAUSE_S", 1000.0)

    async def story(world: _World, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(_frame(b"mute"))
        assert await reader.read() == b"mute"
        assert world.listener.connection_count == 0

    _run(story)
