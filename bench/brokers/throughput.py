"""Batches in and out, as fast as they go: prepared bytes, so that the client is not what is measured."""

import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass

from bench.caller import TIMEOUT_S
from bench.memory import Reserve
from ottla.record.compression import Codec

from .frames import BATCHES_PER_FETCH, Batch, batch, check_fetched, check_produced, fetch_frame, produce_frame
from .line import Figure, Line, Values
from .plain import Mode, Plain, plain_connections
from .raw import call, connected, pipeline, read_all
from .server import POLL_SECONDS, Server

GIGABYTE = 10**9
WARM_UP_SHARE = 0.1
PRODUCE_WINDOW = 5
"""What clients have under way by default."""
FETCH_WINDOW = 2
PRODUCE_REPLY_BYTES = 64
SIZE_BYTES = 4
PARTITIONS_PER_REQUEST = 50
BATCH_BYTES = {1: 256 * 1024, 100: 16 * 1024}
"""By the number of partitions: what goes to many is in smaller pieces."""
VALUE_BYTES = {100: GIGABYTE // 2, 1_024: GIGABYTE}
"""What one run moves, by the size of a value."""

RATE = Figure("rate", "records/s", more_is_better=True, aim=1.2, limit_aim=0.6)
CPU = Figure("CPU per GB", "s/GB", more_is_better=False, aim=1.0)


@dataclass(frozen=True)
class Load:
    """What is moved: values of a size, compressed or not, over so many partitions."""

    value_size: int
    codec: Codec = Codec.NONE
    partitions: int = 1

    @property
    def batch(self) -> Batch:
        """The batch that is sent over and over."""
        return batch(self.value_size, BATCH_BYTES[self.partitions], self.codec)

    @property
    def title(self) -> str:
        """For people."""
        size = f"{self.value_size} B" if self.value_size < 1_024 else f"{self.value_size // 1_024} KB"
        codec = "" if self.codec is Codec.NONE else f", {self.codec.name.lower()}"
        return f"{size}{codec}, {self.partitions} partition{'s' if self.partitions > 1 else ''}"

    @property
    def name(self) -> str:
        """For the command line."""
        return f"{self.value_size}/{self.codec.name.lower()}/{self.partitions}"

    def produce_frames(self, topic: str, acks: int) -> list[bytes]:
        """Requests that together bring a batch to each partition."""
        groups = self._groups(PARTITIONS_PER_REQUEST)
        return [produce_frame(topic, group, self.batch, acks) for group in groups]

    def produce_count(self, scale: float) -> int:
        """How many such requests make a run: each partition gets as many whole fetches as any other."""
        per_step = len(self._groups(PARTITIONS_PER_REQUEST)) * BATCHES_PER_FETCH
        return per_step * self.steps(scale)

    def steps(self, scale: float) -> int:
        """How many fetches of all partitions there are in a run."""
        bytes_per_step = self.batch.value_bytes * BATCHES_PER_FETCH * self.partitions
        return max(2, int(VALUE_BYTES[self.value_size] * scale / bytes_per_step))

    def records(self, scale: float) -> int:
        """How many records a run has."""
        return self.steps(scale) * BATCHES_PER_FETCH * self.partitions * self.batch.records

    def fetch_frames(self, topic: str, scale: float) -> list[bytes]:
        """Requests that together read all of it."""
        step = BATCHES_PER_FETCH * self.batch.records
        everything = range(self.partitions)
        return [fetch_frame(topic, everything, number * step, self.batch) for number in range(self.steps(scale))]

    def fetch_reply_bytes(self) -> int:
        """About what a reply has."""
        return BATCHES_PER_FETCH * len(self.batch.data) * self.partitions

    def values(self, records: int, seconds: float, cpu_seconds: float) -> Values:
        """What is told of a run."""
        gigabytes = records * self.value_size / GIGABYTE
        return {RATE.name: records / seconds, CPU.name: cpu_seconds / gigabytes}

    def _groups(self, size: int) -> list[range]:
        return [range(first, min(first + size, self.partitions)) for first in range(0, self.partitions, size)]


class Produce(Line):
    """Prepared batches over one connection."""

    figures = (RATE, CPU)
    limit_modes = (Mode.SOCKETS, Mode.FILE)

    def __init__(self, load: Load, acks: int) -> None:
        self._load, self._acks = load, acks
        self.title = f"produce {load.title}, acks={'all' if acks < 0 else acks}"
        self.name = f"produce/{load.name}/{'all' if acks < 0 else acks}"

    def suits(self, kind: type[Server]) -> bool:
        """All who can have as many partitions."""
        return self._load.partitions <= kind.most_partitions

    def run(self, server: Server, scale: float) -> Values:
        """A first request whose reply is looked into, some more, and then those that count."""
        load, scale = self._load, scale * server.share
        topic = server.new_topic(load.partitions)
        requests = load.produce_frames(topic, self._acks)
        count = load.produce_count(scale)
        warm_up = max(1, int(count * WARM_UP_SHARE / len(requests))) * len(requests)
        with connected(server.address) as (connection,):
            reply_bytes = first_produced(connection, requests)
            pipeline(connection, requests, warm_up, reply_bytes, PRODUCE_WINDOW)
            reserve = memory_for(requests, count)
            before = server.cpu_seconds()
            reserve.release()
            seconds = pipeline(connection, requests, count, reply_bytes, PRODUCE_WINDOW)
            cpu = server.cpu_seconds() - before
        expected = (warm_up + count) // len(requests) * load.batch.records
        check_ends(server, topic, load.partitions, expected)
        server.delete_topic(topic)
        return load.values(load.records(scale), seconds, cpu)

    def limit(self, plain: Plain, mode: Mode, scale: float) -> Values:
        """The same requests, swallowed or kept."""
        load = self._load
        requests = [bytes(request) for request in load.produce_frames("bench-1", self._acks)]
        count = load.produce_count(scale)
        with plain_connections(plain.address, len(requests[0]), PRODUCE_REPLY_BYTES, mode) as (connection,):
            reserve = memory_for(requests, count)
            before = plain.cpu_seconds()
            reserve.release()
            seconds = pipeline(connection, requests, count, PRODUCE_REPLY_BYTES, PRODUCE_WINDOW)
            cpu = plain.cpu_seconds() - before
        return load.values(load.records(scale), seconds, cpu)


class Consume(Line):
    """Whole batches out again, by one reader or by many that each read everything."""

    figures = (RATE, CPU)
    limit_modes = (Mode.SOCKETS, Mode.FROM_FILE)

    def __init__(self, load: Load, readers: int = 1) -> None:
        self._load, self._readers = load, readers
        self.title = f"consume {load.title}" if readers == 1 else f"{readers} consumers, {load.title}, all together"
        self.name = f"consume/{load.name}" if readers == 1 else f"fan-out/{load.name}"

    def suits(self, kind: type[Server]) -> bool:
        """All who keep what they get, as they got it."""
        return kind.keeps_records and kind.keeps_batches and self._load.partitions <= kind.most_partitions

    def run(self, server: Server, scale: float) -> Values:
        """Fill a topic, look into a first reply, and read."""
        load, scale = self._load, scale * server.share / self._readers
        topic = server.new_topic(load.partitions)
        fill(server, load, topic, scale)
        requests = load.fetch_frames(topic, scale)
        with connected(server.address, self._readers) as connections:
            reply = call(connections[0], requests[0])
            check_fetched(reply, load.partitions, load.batch)
            reply_bytes = SIZE_BYTES + len(reply)
            warm_up = requests[: max(1, int(len(requests) * WARM_UP_SHARE))]
            read_all(connections, warm_up, reply_bytes, FETCH_WINDOW)
            before = server.cpu_seconds()
            seconds = read_all(connections, requests, reply_bytes, FETCH_WINDOW)
            cpu = server.cpu_seconds() - before
        server.delete_topic(topic)
        return load.values(load.records(scale) * self._readers, seconds, cpu)

    def limit(self, plain: Plain, mode: Mode, scale: float) -> Values:
        """As many bytes, from memory or from a file."""
        load, scale = self._load, scale / self._readers
        requests, reply_bytes = load.fetch_frames("bench-1", scale), load.fetch_reply_bytes()
        with plain_connections(plain.address, len(requests[0]), reply_bytes, mode, self._readers) as connections:
            before = plain.cpu_seconds()
            seconds = read_all(connections, requests, reply_bytes, FETCH_WINDOW)
            cpu = plain.cpu_seconds() - before
        return load.values(load.records(scale) * self._readers, seconds, cpu)


def fill(server: Server, load: Load, topic: str, scale: float) -> None:
    """Bring all records of a run into a topic."""
    requests = load.produce_frames(topic, acks=-1)
    with connected(server.address) as (connection,):
        reply_bytes = first_produced(connection, requests)
        pipeline(connection, requests, load.produce_count(scale), reply_bytes, PRODUCE_WINDOW)


def memory_for(requests: Sequence[bytes], count: int) -> Reserve:
    """Memory for the files that so many of these requests make, the given ones again and again."""
    reserve = Reserve()
    reserve.fill(count * sum(map(len, requests)) // len(requests))
    return reserve


def first_produced(connection: socket.socket, requests: list[bytes]) -> int:
    """Send each request once, until the new topic takes it; the size of a whole reply, the same for all."""
    sizes = set()
    for request in requests:
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            reply = call(connection, request)
            try:
                check_produced(reply)
                break
            except RuntimeError:
                # Kafka lists the leader of a new topic a moment before that leader knows.
                if time.monotonic() > deadline:
                    raise
                time.sleep(POLL_SECONDS)
        sizes.add(SIZE_BYTES + len(reply))
    (size,) = sizes
    return size


def check_ends(server: Server, topic: str, partitions: int, at_least: int) -> None:
    """RuntimeError unless every record that was acknowledged is there."""
    for partition, end in enumerate(server.end_offsets(topic, partitions)):
        if end < at_least:
            raise RuntimeError(f"{server.title} has {end} of {at_least} records in partition {partition} of {topic}")
