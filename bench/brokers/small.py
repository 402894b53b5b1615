"""Requests with next to nothing in them: how many a second, over few and many connections, and how long one takes."""

import resource
import socket
from collections.abc import Sequence

from bench.caller import frame
from ottla.wire.api.api_versions import ApiVersionsRequest
from ottla.wire.api.metadata import MetadataRequest, MetadataRequestTopic

from .frames import batch, produce_frame
from .line import Figure, Line, Values, microseconds, percentiles
from .plain import Mode, Plain, plain_connections
from .raw import call, connected, flood, one_by_one
from .server import METADATA_VERSION, Server
from .throughput import PRODUCE_REPLY_BYTES, SIZE_BYTES, check_ends, first_produced

VALUE_SIZE = 100
WARM_UP_COUNT = 10_000
RUN_SECONDS = 3.0
"""How long a run takes, which is what says how many requests it has: some brokers take fifty times as long over one."""
MOST_REQUESTS = 1_000_000
WARM_UP_SHARE = 0.2
WINDOWS = {1: 64}
"""How many are under way on a connection, by the number of connections; one where there are many."""
LATENCY_COUNT = 20_000

RATE = Figure("rate", "requests/s", more_is_better=True, aim=1.0)
CPU = microseconds("CPU per request")


class Flood(Line):
    """The same request over and over: Metadata of one topic, or Produce of one record."""

    figures = (RATE, CPU)
    limit_modes = (Mode.SOCKETS,)

    def __init__(self, api: str, connections: int) -> None:
        self._api, self._connections = api, connections
        self._window = WINDOWS.get(connections, 1)
        pipelined = f", {self._window} under way" if self._window > 1 else ""
        over = f"{connections:,} connection{'s' if connections > 1 else ''}"
        self.title = f"{'one-record ' if api == 'Produce' else ''}{api} requests over {over}{pipelined}"
        self.name = f"requests/{api.lower()}/{connections}"

    def run(self, server: Server, scale: float) -> Values:
        """A first reply that is looked into, some more, and then those that count."""
        allow_connections(self._connections)
        topic = server.new_topic()
        request, greeting = self._request(topic), frame(ApiVersionsRequest(), version=0)
        with connected(server.address, self._connections, greeting) as connections:
            if self._api == "Produce":
                reply_bytes = first_produced(connections[0], [request])
            else:
                reply_bytes = SIZE_BYTES + len(call(connections[0], request))
            count, values = self._flood(server, connections, request, reply_bytes, scale)
        if self._api == "Produce":
            check_ends(server, topic, 1, count)
        server.delete_topic(topic)
        return values

    def limit(self, plain: Plain, mode: Mode, scale: float) -> Values:
        """As many bytes back and forth."""
        allow_connections(self._connections)
        request = self._request("bench-1")
        with plain_connections(
            plain.address, len(request), PRODUCE_REPLY_BYTES, mode, self._connections
        ) as connections:
            return self._flood(plain, connections, request, PRODUCE_REPLY_BYTES, scale)[1]

    def _flood(
        self, server: Server, connections: Sequence[socket.socket], request: bytes, reply_bytes: int, scale: float
    ) -> tuple[int, Values]:
        """How many requests there were in all, and the figures of those that count."""
        least = self._connections * 2
        warm_up = max(least, int(WARM_UP_COUNT * scale))
        rate = warm_up / flood(connections, request, warm_up, reply_bytes, self._window)
        count = max(least, min(MOST_REQUESTS, int(rate * RUN_SECONDS * scale)))
        before = server.cpu_seconds()
        seconds = flood(connections, request, count, reply_bytes, self._window)
        cpu = server.cpu_seconds() - before
        return warm_up + count, {RATE.name: count / seconds, CPU.name: cpu / count * 1e6}

    def _request(self, topic: str) -> bytes:
        if self._api == "Produce":
            return one_record(topic)
        return frame(MetadataRequest(topics=[MetadataRequestTopic(name=topic)]), METADATA_VERSION)


class Acknowledgement(Line):
    """One record, acknowledged, and then the next."""

    name = "latency/acknowledgement"
    title = "acknowledgement of one record, one in flight"
    figures = (microseconds("p50", aim=1 / 5), microseconds("p99", aim=1 / 3), microseconds("p99.9"))
    limit_modes = (Mode.SOCKETS, Mode.FILE)

    def run(self, server: Server, scale: float) -> Values:
        """From the first byte of the request to the last of its reply."""
        topic = server.new_topic()
        request, count = one_record(topic), self._count(scale)
        with connected(server.address) as (connection,):
            reply_bytes = first_produced(connection, [request])
            one_by_one(connection, request, max(100, int(count * WARM_UP_SHARE)), reply_bytes)
            seconds = one_by_one(connection, request, count, reply_bytes)
        check_ends(server, topic, 1, count)
        server.delete_topic(topic)
        return percentiles(seconds)

    def limit(self, plain: Plain, mode: Mode, scale: float) -> Values:
        """As many bytes back and forth."""
        request = one_record("bench-1")
        with plain_connections(plain.address, len(request), PRODUCE_REPLY_BYTES, mode) as (connection,):
            return percentiles(one_by_one(connection, request, self._count(scale), PRODUCE_REPLY_BYTES))

    @staticmethod
    def _count(scale: float) -> int:
        return max(1_000, int(LATENCY_COUNT * scale))


def one_record(topic: str) -> bytes:
    """A request with one record, to be acknowledged by all."""
    return produce_frame(topic, [0], batch(VALUE_SIZE, 1), acks=-1)


def allow_connections(count: int) -> None:
    """Have the system allow this process, and those it starts later, so many files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = count + 500
    if soft != resource.RLIM_INFINITY and soft < wanted:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
