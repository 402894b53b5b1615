"""What counting costs: requests to a broker with its metrics, and to the same broker with nobody who counts.

Processor time of the broker, by `python -m bench.metrics`: with the request in memory, which shows the cost of counting
alone, and over sockets from another process, which is what clients see: with one connection, where a broker sleeps
between two requests and finds its caches cold, and with many, where it does not. The two take turns in short blocks.
"""

import asyncio
import math
import os
import statistics
import sys
import tempfile
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import uvloop

from bench.caller import Caller, frame, produce_frame
from bench.timing import stay_on_one_core
from ottla.broker.dispatch import Dispatcher, Reply
from ottla.broker.request import Client
from ottla.broker.server import Server
from ottla.config.broker import BrokerConfig
from ottla.metrics.clients import ClientCounters
from ottla.net.listener import Listener
from ottla.net.serving import ANONYMOUS
from ottla.wire.api.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.wire.schema import Bytes

TOPIC = "bench"
FETCH_VERSION = 11
BLOCKS, BLOCK = 400, 50
BLOCKS_OVER_SOCKETS = 2000
"""There the noise is larger than the difference, unless it is averaged over this many."""
CONNECTIONS = (1, BLOCK)
LOAD = "load"

Handle = Callable[[Client, Bytes], Reply | Awaitable[Reply]]


class _Client:
    peer, host, principal = "127.0.0.1:50000", "127.0.0.1", ANONYMOUS
    listener = security_protocol = "PLAINTEXT"
    stranger_since: float | None = None
    client_id: str | None = None
    client: ClientCounters | None = None
    active_at = 0.0
    context: Any = None
    interrupt: Callable[[], object] | None = None

    @property
    def identity(self) -> dict[str, str | None]:
        return {"address": self.peer, "principal": self.principal, "client_id": self.client_id}

    def mute(self, seconds: float) -> None:
        raise AssertionError("there are no quotas here")


def _fetch_frame() -> bytes:
    # The first record each time: the broker has the same to do, however much was produced meanwhile.
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1)
    topics = [FetchTopic(topic=TOPIC, partitions=[partition])]
    return frame(FetchRequest(max_wait_ms=0, max_bytes=1, session_epoch=-1, topics=topics), FETCH_VERSION)


REQUESTS: dict[str, Callable[[], bytes]] = {
    "Produce, one record of 100 bytes": lambda: produce_frame(TOPIC, 1, 100),
    "Fetch, one record of 100 bytes": _fetch_frame,
    "Produce, 1,000 records of 100 bytes": lambda: produce_frame(TOPIC, 1_000, 100),
}


async def _measure(folder: str) -> None:
    settings = {"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": folder}
    async with Server(BrokerConfig(settings)) as server:
        assert server.broker is not None
        await server.broker.topics.create(TOPIC)
        handlers = [Dispatcher(server.broker, counting=counts).handle for counts in (False, True)]
        for title, make in REQUESTS.items():
            _tell(f"in memory: {title}", _in_memory(handlers, _Client(), make()[4:]))
        for connections in CONNECTIONS:
            for title in REQUESTS:
                named = f"over {connections} connection{'s' if connections > 1 else ''}: {title}"
                _tell(named, await _over_sockets(handlers, title, connections))


def _tell(title: str, times: Sequence[Sequence[float]]) -> None:
    without = statistics.median(times[0])
    # Blocks that follow each other find the machine in one mood; over minutes it changes by more than counting adds.
    added = sorted(counting - uncounted for uncounted, counting in zip(*times, strict=True))
    margin = math.sqrt(len(added))  # the places between which the median is, 19 times of 20
    low, high = (added[round(len(added) / 2 + side * margin)] for side in (-1, 1))
    print(
        f"{title}: {without:.2f} us uncounted, counting adds {statistics.median(added):.2f} us "
        f"({statistics.median(added) / without:.1%}; {low / without:.1%} to {high / without:.1%})",
        flush=True,
    )


def _in_memory(handlers: Sequence[Handle], client: _Client, request: bytes) -> list[list[float]]:
    """Microseconds of processor time per request, by handler: many short blocks in turn."""
    times: list[list[float]] = [[] for _ in handlers]
    for number in range(BLOCKS):
        for index in _order(number):
            frames = [bytearray(request) for _ in range(BLOCK)]
            client.active_at = time.monotonic()
            started = time.thread_time_ns()
            for each in frames:
                assert isinstance(handlers[index](client, each), list)
            times[index].append((time.thread_time_ns() - started) / BLOCK / 1000)
    return times


def _order(number: int) -> tuple[int, int]:
    """Whoever comes second finds the caches warm, so it is each in turn."""
    return (0, 1) if number % 2 else (1, 0)


async def _over_sockets(handlers: Sequence[Handle], title: str, connections: int) -> list[list[float]]:
    """The same with a listener for each handler, and a client in another process."""
    listeners = [Listener(handle, monotonic=time.monotonic) for handle in handlers]
    command = (sys.executable, "-m", "bench.metrics", LOAD, title, str(connections))
    load = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE)
    times: list[list[float]] = [[] for _ in handlers]
    try:
        ports = [(await listener.start("127.0.0.1", 0))[1] for listener in listeners]
        for number in range(-1, BLOCKS_OVER_SOCKETS):
            for index in _order(number):
                started = time.thread_time_ns()
                await _block(load, ports[index])
                if number >= 0:
                    times[index].append((time.thread_time_ns() - started) / BLOCK / 1000)
    finally:
        assert load.stdin is not None
        load.stdin.close()
        await load.wait()
        for listener in listeners:
            await listener.stop()
    return times


async def _block(load: Process, port: int) -> None:
    assert load.stdin is not None
    assert load.stdout is not None
    load.stdin.write(b"%d\n" % port)
    assert await load.stdout.readline() == b"done\n"


def _send_blocks(title: str, connections: int) -> None:
    """The client's part: as many requests as a block has to each port that is named, over connections that stay; one is
    under way on each of them."""
    if hasattr(os, "sched_setaffinity"):
        # Not where the broker is, whose core it was born on.
        os.sched_setaffinity(0, set(range(os.cpu_count() or 1)))
    request = REQUESTS[title]()
    known: dict[str, list[Caller]] = {}
    for port in sys.stdin:
        callers = known.get(port)
        if callers is None:
            callers = known[port] = [Caller(("127.0.0.1", int(port))) for _ in range(connections)]
        for _ in range(BLOCK // connections):
            for caller in callers:
                caller.send(request)
            for caller in callers:
                caller.receive()
        print("done", flush=True)
    for caller in (one for callers in known.values() for one in callers):
        caller.__exit__(None, None, None)


if __name__ == "__main__":
    if sys.argv[1:2] == [LOAD]:
        _send_blocks(sys.argv[2], int(sys.argv[3]))
    else:
        stay_on_one_core()
        with tempfile.TemporaryDirectory(prefix="ottla-bench-") as folder:
            uvloop.run(_measure(folder))
