"""Logs are opened when first used, by whichever thread comes first."""

import asyncio
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.broker.server import Server
from ottla.config.broker import BrokerConfig
from ottla.replica.partition import Partition

PARTITIONS = 300
THREADS = 4


@pytest.fixture
def threads_take_turns_often() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("threads_take_turns_often")
def test_threads_that_use_a_partition_first_at_the_same_moment_get_the_same_one(tmp_path: Path) -> None:
    config = BrokerConfig({"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": str(tmp_path)})
    found: list[list[Partition]] = [[] for _ in range(THREADS)]

    def use_all(server: Server, mine: list[Partition], together: threading.Barrier) -> None:
        assert server.broker is not None
        for index in range(PARTITIONS):
            together.wait()
            mine.append(server.broker.leader("topic", index))

    async def create() -> None:
        async with Server(config) as server:
            assert server.broker is not None
            await server.broker.topics.create("topic", partition_count=PARTITIONS)

    async def use() -> None:
        async with Server(config) as server:
            together = threading.Barrier(THREADS, timeout=10)
            await asyncio.gather(*(asyncio.to_thread(use_all, server, mine, together) for mine in found))

    asyncio.run(create())
    asyncio.run(use())
    for partitions in zip(*found, strict=True):
        assert len(set(map(id, partitions))) == 1
