"""Warnings that others can provoke: so many of them, and then their number."""

import asyncio
import logging
import time
from contextlib import suppress

import pytest

from ottla.net import Reply, ServerConnection
from ottla.net.telling import MOST_TOLD, Telling
from ottla.wire.errors import ProtocolError

from .peers import listening

log = logging.getLogger("ottla.tests")


def test_so_many_are_told_and_then_how_many_more_there_were(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        telling = Telling(log, "%d more", most=3, seconds=0.5)
        for number in range(1000):
            telling.tell("trouble %d", number)
        assert caplog.messages == ["trouble 0", "trouble 1", "trouble 2"]
        async with asyncio.timeout(10):
            while len(caplog.messages) < 4:
                await asyncio.sleep(0.005)
        assert caplog.messages[3] == "997 more"
        telling.tell("trouble again", level=logging.ERROR)
        await asyncio.sleep(0.6)
        assert caplog.messages[4:] == ["trouble again"]

    asyncio.run(story())


def test_of_sixty_bad_frames_few_are_told_and_all_are_counted(caplog: pytest.LogCaptureFixture) -> None:
    def refuse(connection: ServerConnection, frame: bytes | bytearray) -> Reply:
        raise ProtocolError("no request")

    async def story() -> None:
        async with listening(refuse) as listener:
            for data in (b"\xff" * 8, b"\0\0\0\1x") * 30:
                reader, writer = await asyncio.open_connection(*listener.address)
                writer.write(data)
                with suppress(ConnectionResetError):
                    assert await reader.read() == b""
                writer.close()
            count = listener.failed_count
            assert count >= 30
            # A slow machine takes more than one second over them, each of which ends with a number of its own.
            async with asyncio.timeout(10):
                while lines() + left_out() < 60:
                    await asyncio.sleep(0.01)

    def lines() -> int:
        return sum(message.startswith("closing the connection") for message in caplog.messages)

    def left_out() -> int:
        return sum(int(one.split()[0]) for one in caplog.messages if "more connections were closed" in one)

    began = time.monotonic()
    asyncio.run(story())
    assert lines() <= MOST_TOLD * (time.monotonic() - began + 1)
    assert lines() + left_out() == 60
