"""What counting costs: requests through a broker's dispatcher with its metrics, and with nobody who counts.

No sockets: what is measured is all that a broker does with a frame once it is there. `python -m bench.metrics`.
"""

import asyncio
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from types import CoroutineType
from typing import Any

from bench.caller import frame, produce_frame
from bench.timing import stay_on_one_core
from ottla.broker.apis import find_api
from ottla.broker.broker import Broker
from ottla.broker.dispatch import Dispatcher, Reply
from ottla.broker.request import Client, Request
from ottla.broker.server import Server
from ottla.config.broker import BrokerConfig
from ottla.metrics.clients import ClientCounters
from ottla.net.serving import ANONYMOUS
from ottla.wire.api.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.wire.frame import decode_request, encode_response, read_request_prefix
from ottla.wire.schema import Bytes

TOPIC = "bench"
FETCH_VERSION = 11
BLOCKS, BLOCK = 400, 50

Handle = Callable[[Client, Bytes], Reply | Awaitable[Reply]]


class _Client:
    peer, host, principal = "127.0.0.1:50000", "127.0.0.1", ANONYMOUS
    listener = security_protocol = "PLAINTEXT"
    stranger_since: float | None = None
    client_id: str | None = None
    client: ClientCounters | None = None
    context: Any = None
    interrupt: Callable[[], object] | None = None

    def mute(self, seconds: float) -> None:
        raise AssertionError("there are no quotas here")


class _Uncounted:
    """A dispatcher that does the same and counts nothing."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def handle(self, caller: Client, frame: Bytes) -> Reply | Awaitable[Reply]:
        prefix = read_request_prefix(frame)
        api = find_api(prefix.api_key)
        assert api is not None
        assert prefix.api_version in api.versions
        header, body = decode_request(api.request, prefix.api_version, frame)
        request = Request(prefix.api_key, prefix.api_version, header.client_id, caller, body)
        answer: Any = api.handler(self._broker, request)
        assert not isinstance(answer, CoroutineType)
        return encode_response(answer, prefix.api_version, correlation_id=prefix.correlation_id)


def _fetch_frame() -> bytes:
    # The first record each time: the broker has the same to do, however much was produced meanwhile.
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1)
    topics = [FetchTopic(topic=TOPIC, partitions=[partition])]
    return frame(FetchRequest(max_wait_ms=0, max_bytes=1, session_epoch=-1, topics=topics), FETCH_VERSION)


async def _measure(folder: str) -> None:
    settings = {"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": folder}
    async with Server(BrokerConfig(settings)) as server:
        assert server.broker is not None
        await server.broker.topics.create(TOPIC)
        counted, uncounted, client = Dispatcher(server.broker), _Uncounted(server.broker), _Client()
        for title, request in (
            ("Produce, one record of 100 bytes", produce_frame(TOPIC, 1, 100)[4:]),
            ("Fetch, one record of 100 bytes", _fetch_frame()[4:]),
        ):
            without, counting = _alternate((uncounted.handle, counted.handle), client, request)
            added = counting - without
            print(f"{title}: {without:.2f} us uncounted, counting adds {added:.2f} us ({added / without:.1%})")


def _alternate(handlers: Sequence[Handle], client: _Client, request: bytes) -> list[float]:
    """Microseconds of processor time per request, by handler: of many short blocks in turn, what a quick one took."""
    times: list[list[float]] = [[] for _ in handlers]
    for _ in range(BLOCKS):
        for handle, found in zip(handlers, times, strict=True):
            frames = [bytearray(request) for _ in range(BLOCK)]
            started = time.thread_time_ns()
            for each in frames:
                handle(client, each)
            found.append((time.thread_time_ns() - started) / BLOCK / 1000)
    return [statistics.quantiles(found, n=10)[0] for found in times]


if __name__ == "__main__":
    stay_on_one_core()
    with tempfile.TemporaryDirectory(prefix="ottla-bench-") as folder:
        asyncio.run(_measure(folder))
