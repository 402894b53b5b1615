"""Loads from clients that nobody here wrote: librdkafka, and the tools that Kafka measures itself with."""

import re
import subprocess
from pathlib import Path

from tests.java.program import is_available as java_is_available
from tests.java.program import jars
from tests.peers.kafka import KAFKA_4

from . import librdkafka
from .line import Figure, Line, Values, microseconds, percentiles
from .plain import Mode, Plain
from .server import Server
from .throughput import CPU, Consume, Load, Produce, fill

RATE = Figure("rate", "records/s", more_is_better=True, aim=1.2)
COUNTS = {100: 1_000_000, 1_024: 500_000}
END_TO_END_RATE = 10_000
END_TO_END_SECONDS = 10.0
WARM_UP_S = 1.0
TOOL_OPTIONS = ("-Xmx512M", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20")
"""Those that Kafka's own scripts for its performance tools have."""
TOOL_SECONDS = 300


class Client(Line):
    """A client that produces into a new topic, or consumes one that was filled before."""

    figures = (RATE, CPU)
    client: str

    def __init__(self, task: str, load: Load) -> None:
        self._task, self._load = task, load
        self.title = f"{self.client}: {task} {load.title}{', acks=all' if task == 'produce' else ''}"
        self.name = f"{self.client.lower().replace(' ', '-')}/{task}/{load.name}"
        self._bytes: Line = Produce(load, acks=-1) if task == "produce" else Consume(load)
        # What the client itself costs is in the figures, so this is far away, and one limit does.
        self.limit_modes = self._bytes.limit_modes[-1:]

    def suits(self, kind: type[Server]) -> bool:
        """All who can have as many partitions, and keep records that are to be read."""
        return self._load.partitions <= kind.most_partitions and (kind.keeps_records or self._task == "produce")

    def run(self, server: Server, scale: float) -> Values:
        """Its own clock counts; the processor time is that of the whole run."""
        load = self._load
        count = max(1_000, int(COUNTS[load.value_size] * scale * server.share))
        topic = server.new_topic(load.partitions)
        if self._task == "consume":
            share = count / load.records(1.0)
            fill(server, load, topic, share)
            # Whole batches for each partition: not quite as many, or a few more.
            count = load.records(share)
        before = server.cpu_seconds()
        rate = self._rate(server.bootstrap, topic, count)
        cpu = server.cpu_seconds() - before
        server.delete_topic(topic)
        return load.values(count, count / rate, cpu)

    def limit(self, plain: Plain, mode: Mode, scale: float) -> Values:
        """What prepared bytes do."""
        return self._bytes.limit(plain, mode, scale)

    def _rate(self, bootstrap: str, topic: str, count: int) -> float:
        raise NotImplementedError


class Librdkafka(Client):
    """confluent-kafka in a process of its own."""

    client = "librdkafka"

    def _rate(self, bootstrap: str, topic: str, count: int) -> float:
        if self._task == "consume":
            return count / float(librdkafka.run("consume", bootstrap=bootstrap, topic=topic, count=count))
        seconds = librdkafka.run(
            "produce",
            bootstrap=bootstrap,
            topic=topic,
            count=count,
            value_size=self._load.value_size,
            acks=-1,
            codec=self._load.codec.name.lower(),
        )
        return count / float(seconds)


class PerfTool(Client):
    """kafka-producer-perf-test and kafka-consumer-perf-test, from Maven."""

    client = "Kafka perf tools"

    def suits(self, kind: type[Server]) -> bool:
        """Where there is Java, and it is listened to."""
        return java_is_available() and kind.serves_java and super().suits(kind)

    def fetch(self) -> None:
        """The tools."""
        if java_is_available():
            _tools()

    def _rate(self, bootstrap: str, topic: str, count: int) -> float:
        if self._task == "consume":
            output = _tool("ConsumerPerformance", f"--bootstrap-server {bootstrap} --topic {topic} --messages {count}")
            return consumer_rate(output)
        size, codec = self._load.value_size, self._load.codec.name.lower()
        settings = (
            f"bootstrap.servers={bootstrap} acks=all batch.size={256 * 1024} linger.ms=5 compression.type={codec}"
        )
        what = f"--topic {topic} --num-records {count} --record-size {size} --throughput -1"
        return producer_rate(_tool("ProducerPerformance", f"{what} --producer-props {settings}"))


def producer_rate(output: str) -> float:
    """Records a second, from the last line of the producer's tool.

    >>> producer_rate("1000 records sent, 2500.5 records/sec (0.24 MB/sec), 3.1 ms avg latency")
    2500.5
    """
    found = re.findall(r"records sent, ([0-9.]+) records/sec", output)
    if not found:
        raise RuntimeError(f"the tool told no rate:\n{output[-2_000:]}")
    return float(found[-1])


def consumer_rate(output: str) -> float:
    """Records a second while it fetched, from the consumer's tool: the last of its columns.

    >>> consumer_rate("start.time, fetch.nMsg.sec\\n2026-11-16, 81.5\\n")
    81.5
    """
    lines = [line for line in output.splitlines() if ", " in line]
    if len(lines) < 2 or not lines[0].endswith("fetch.nMsg.sec"):
        raise RuntimeError(f"the tool told no rate:\n{output[-2_000:]}")
    return float(lines[-1].rpartition(", ")[2])


def _tools() -> Path:
    return jars(KAFKA_4, "tools")


def _tool(name: str, arguments: str) -> str:
    done = subprocess.run(
        ["java", *TOOL_OPTIONS, "-cp", f"{_tools()}/*", f"org.apache.kafka.tools.{name}", *arguments.split()],
        capture_output=True,
        text=True,
        timeout=TOOL_SECONDS,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{name} failed:\n{done.stdout[-1_000:]}{done.stderr[-1_000:]}")
    return done.stdout


class EndToEnd(Line):
    """From when a record was due to be sent until a consumer has it, at a rate that tires nobody."""

    name = "latency/end-to-end"
    title = f"librdkafka: end to end at {END_TO_END_RATE:,} records/s"
    figures = (microseconds("p50"), microseconds("p99", aim=1 / 2), microseconds("p99.9"))

    def suits(self, kind: type[Server]) -> bool:
        """All; what was just produced is there everywhere."""
        return True

    def run(self, server: Server, scale: float) -> Values:
        """A consumer first, then a producer; both in processes of their own, which share the machine's clock."""
        topic = server.new_topic()
        seconds = WARM_UP_S + max(1.0, END_TO_END_SECONDS * scale)
        where = {"bootstrap": server.bootstrap, "topic": topic, "count": int(END_TO_END_RATE * seconds)}
        reader = librdkafka.start("receive_stamped", **where)
        try:
            assert reader.stdout is not None
            if reader.stdout.readline().strip() != librdkafka.READY:
                librdkafka.result(reader)
            librdkafka.run("send_at_rate", rate=END_TO_END_RATE, value_size=100, **where)
            found: list[float] = librdkafka.result(reader)
        finally:
            reader.kill()
        server.delete_topic(topic)
        return percentiles(found[int(END_TO_END_RATE * WARM_UP_S) :])
