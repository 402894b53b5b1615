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
        telling = Telling(log, "%d more", most=3, seconds=0.05)
        for number in range(1000):
            telling.tell("trouble %d", number)
        assert caplog.messages == ["trouble 0", "trouble 1", "trouble 2"]
        async with asyncio.timeout(10):
            while len(caplog.messages) < 4:
                await asyncio.sleep(0.005)
        assert caplog.messages[3] == "997 more"
        telling.tell("trouble again", level=logging.ERROR)
        await asyncio.sleep(0.1)
        assert caplog.messages[4:] == ["trouble again"]

    asyncio.run(story())


def test_a_thousand_bad_frames_are_few_lines_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
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
            async with asyncio.timeout(10):
                while "more connections were closed" not in caplog.text:
                    await asyncio.sleep(0.01)

    began = time.monotonic()
    asyncio.run(story())
    lines = sum(message.startswith("closing the connection") for message in caplog.messages)
    assert lines <= MOST_TOLD * (time.monotonic() - began + 1)
    told = sum(int(one.split()[0]) for one in caplog.messages if "more connections were closed" in one)
    assert lines + told == 60
