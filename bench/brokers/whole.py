"""What a broker's process costs as a whole: until it serves, what it holds, and until it serves again after a crash."""

import contextlib
import time

from crc32c import crc32c

from bench.caller import Caller

from . import librdkafka
from .frames import batch, check_produced, produce_frame
from .line import Figure, Line, Values
from .plain import Mode, Plain, plain_connections
from .raw import RECEIVE_BYTES, connected, one_by_one, pipeline
from .server import Server
from .small import one_record
from .throughput import PRODUCE_WINDOW, first_produced

MEMORY_RECORDS = 1_000_000
CRASH_BYTES = 10 * 10**9
CRASH_PARTITIONS = 10
CRASH_BATCH_BYTES = 256 * 1024
RETRY_SECONDS = 0.002
PATIENCE_SECONDS = 600.0

SECONDS = "seconds"


class Fresh(Line):
    """A line for brokers that are started for it."""

    fresh = True

    def suits(self, kind: type[Server]) -> bool:
        """Those whose data survives."""
        return kind.starts_again


class ColdStart(Fresh):
    """From the command to the first acknowledged record, in a folder that has the topic."""

    name = "start/cold"
    title = "start to the first acknowledged record"
    figures = (Figure(SECONDS, "s", more_is_better=False, aim=1 / 10),)
    limit_modes = (Mode.PROCESS,)

    def run(self, server: Server, scale: float) -> Values:
        """Started once before, so that folder and topic are there, and stopped cleanly."""
        server.prepare()
        server.start()
        topic = server.new_topic()
        await_acknowledgement(server, one_record(topic))
        server.stop()
        began = time.perf_counter()
        server.launch()
        await_acknowledgement(server, one_record(topic))
        return {SECONDS: time.perf_counter() - began}

    def limit(self, plain: Plain, mode: Mode, scale: float) -> Values:
        """From the command to the first answer of a Python process that knows sockets and little else."""
        fresh = Plain(plain.folder / "fresh")
        try:
            began = time.perf_counter()
            fresh.start()
            with plain_connections(fresh.address, 1, 1, Mode.SOCKETS) as (connection,):
                one_by_one(connection, bytes(1), count=1, reply_bytes=1)
            return {SECONDS: time.perf_counter() - began}
        finally:
            fresh.close()


class Memory(Fresh):
    """What a new broker has after a million records from librdkafka."""

    name = "memory"
    title = f"memory after {MEMORY_RECORDS:,} records of 100 B"
    figures = (Figure("resident", "MB", more_is_better=False, aim=1 / 8),)
    limit_modes = (Mode.PROCESS,)

    def run(self, server: Server, scale: float) -> Values:
        """All of them acknowledged."""
        server.prepare()
        server.start()
        topic = server.new_topic()
        count = max(1_000, int(MEMORY_RECORDS * scale))
        librdkafka.run(
            "produce", bootstrap=server.bootstrap, topic=topic, count=count, value_size=100, acks=-1, codec="none"
        )
        return {"resident": server.resident_bytes() / 1e6}

    def limit(self, plain: Plain, mode: Mode, scale: float) -> Values:
        """What a Python process has that knows sockets and little else."""
        return {"resident": plain.resident_bytes() / 1e6}


class Crash(Fresh):
    """From the command after SIGKILL until each of ten partitions has acknowledged a record."""

    name = "start/crash"
    title = f"restart after SIGKILL with {CRASH_BYTES // 10**9} GB of log in {CRASH_PARTITIONS} partitions"
    figures = (Figure(SECONDS, "s", more_is_better=False),)
    limit_modes = (Mode.CHECK,)
    most_rounds = 2

    def suits(self, kind: type[Server]) -> bool:
        """Those who write so much within a minute."""
        return super().suits(kind) and kind.share == 1.0

    def run(self, server: Server, scale: float) -> Values:
        """Nothing was synced on purpose: a broker may have to look through all of it."""
        server.prepare()
        server.start()
        topic = server.new_topic(CRASH_PARTITIONS)
        content = batch(1_024, CRASH_BATCH_BYTES)
        requests = [produce_frame(topic, [partition], content, acks=-1) for partition in range(CRASH_PARTITIONS)]
        count = max(CRASH_PARTITIONS, int(CRASH_BYTES * scale / len(content.data)))
        with connected(server.address) as (connection,):
            pipeline(connection, requests, count, first_produced(connection, requests), PRODUCE_WINDOW)
        server.kill()
        began = time.perf_counter()
        server.launch()
        for partition in range(CRASH_PARTITIONS):
            await_acknowledgement(server, produce_frame(topic, [partition], batch(100, 1), acks=-1))
        return {SECONDS: time.perf_counter() - began}

    def limit(self, plain: Plain, mode: Mode, scale: float) -> Values:
        """To read as many bytes from a file and to take their checksum."""
        piece, path = bytes(RECEIVE_BYTES), plain.folder / "log"
        with path.open("wb") as file:
            for _ in range(int(CRASH_BYTES * scale / RECEIVE_BYTES)):
                file.write(piece)
        buffer = memoryview(bytearray(RECEIVE_BYTES))
        began = time.perf_counter()
        with path.open("rb", buffering=0) as file:
            while size := file.readinto(buffer):
                crc32c(buffer[:size])
        seconds = time.perf_counter() - began
        path.unlink()
        return {SECONDS: seconds}


def await_acknowledgement(server: Server, request: bytes) -> None:
    """Try again and again, each time anew, until a record is acknowledged."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        server.check_alive()
        with contextlib.suppress(OSError, RuntimeError), Caller(server.address) as caller:
            check_produced(caller.call(request))
            return
        time.sleep(RETRY_SECONDS)
    raise TimeoutError(f"{server.title} acknowledged nothing in {PATIENCE_SECONDS:.0f} s")
