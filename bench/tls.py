"""What TLS costs: the same work through a broker's plain listener and through its secure one, taking turns.

`python -m bench.tls` has confluent-kafka, whose work is done in C, and Ottla's own client produce and consume, prints
megabytes a second and the ratio of the two within a round, and how many connections a second a broker can welcome.
"""

import argparse
import socket
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import confluent_kafka
from rich.console import Console
from rich.table import Table
from tests.certificates import Authority, written

import ottla

from .client_work import TIMEOUT_S, value_of

SIZE = 1024
COUNT = 200_000
HANDSHAKES = 300
READY_WORD = " ready at "

Security = dict[str, str]
Work = Callable[[str, Security, str, int], float]


class Broker:
    """`ottla serve` with two listeners."""

    def __init__(self, folder: Path) -> None:
        authority = Authority()
        self.ca = written(folder, "ca.pem", authority.pem)
        store = written(folder, "broker.pem", authority.issue("broker").store)
        words = ["--listen", "PLAINTEXT://127.0.0.1:0", "--listen", "SSL://127.0.0.1:0", "--data", str(folder / "data")]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "ottla", "serve", *words, "--set", f"ssl.keystore.location={store}"],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        plain, secure, *_ = line.partition(READY_WORD)[2].split(", ")
        self.plain, self.secure = plain, secure.removeprefix("SSL at ")

    def close(self) -> None:
        """Stop it."""
        self._process.terminate()
        self._process.wait(60)
        assert self._process.stdout is not None
        self._process.stdout.close()


def confluent_produce(address: str, tls: Security, topic: str, count: int) -> float:
    """Seconds that librdkafka takes to have records acknowledged."""
    config: dict[str, Any] = {"bootstrap.servers": address, "linger.ms": 5, "queue.buffering.max.messages": 1_000_000}
    producer = confluent_kafka.Producer({**config, **_librdkafka(tls)})
    producer.produce(topic, b"first")
    producer.flush(TIMEOUT_S)
    value = value_of(SIZE)
    began = time.perf_counter()
    for number in range(count):
        producer.produce(topic, value)
        if not number % 1000:
            producer.poll(0)
    assert producer.flush(TIMEOUT_S) == 0
    return time.perf_counter() - began


def confluent_consume(address: str, tls: Security, topic: str, count: int) -> float:
    """Seconds that librdkafka takes to have read them."""
    consumer = confluent_kafka.Consumer({"bootstrap.servers": address, "group.id": "bench", **_librdkafka(tls)})
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
    consumer.consume(1, TIMEOUT_S)
    began = time.perf_counter()
    seen = 1
    while seen < count:
        seen += len(consumer.consume(10_000, 1.0))
    seconds = time.perf_counter() - began
    consumer.close()
    return seconds


def _librdkafka(tls: Security) -> dict[str, Any]:
    security = {"security.protocol": "SSL", "ssl.ca.location": tls["ssl_cafile"]} if tls else {}
    return {"enable.metrics.push": False, **security}


def ottla_produce(address: str, tls: Security, topic: str, count: int) -> float:
    """Seconds that Ottla's client takes to have records acknowledged."""

    async def story() -> float:
        options: dict[str, Any] = {"bootstrap_servers": address, **tls}
        async with ottla.Producer(**options) as producer:
            await producer.send_and_wait(topic, b"first")
            value = value_of(SIZE)
            began = time.perf_counter()
            for _ in range(count):
                await producer.send(topic, value)
            await producer.flush()
            return time.perf_counter() - began

    return _run(story)


def ottla_consume(address: str, tls: Security, topic: str, count: int) -> float:
    """Seconds that Ottla's client takes to have read them."""

    async def story() -> float:
        options: dict[str, Any] = {"bootstrap_servers": address, "auto_offset_reset": "earliest", **tls}
        async with ottla.Consumer(topic, **options) as consumer:
            await consumer.getone()
            began = time.perf_counter()
            seen = 1
            while seen < count:
                seen += sum(map(len, (await consumer.getmany(timeout_ms=1000)).values()))
            return time.perf_counter() - began

    return _run(story)


def _run(story: Callable[[], Any]) -> float:
    import uvloop

    seconds: float = uvloop.run(story())
    return seconds


LINES: dict[str, tuple[Work, Work]] = {
    "confluent-kafka": (confluent_produce, confluent_consume),
    "ottla": (ottla_produce, ottla_consume),
}


def handshakes_per_second(broker: Broker) -> float:
    """Connections that one client after the other opens and closes."""
    host, _, port = broker.secure.rpartition(":")
    context = ssl.create_default_context(cafile=broker.ca)
    began = time.perf_counter()
    for _ in range(HANDSHAKES):
        with socket.create_connection((host, int(port))) as one, context.wrap_socket(one, server_hostname=host):
            pass
    return HANDSHAKES / (time.perf_counter() - began)


def main() -> None:
    """Print the comparison."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--records", type=int, default=COUNT)
    given = parser.parse_args()
    table = Table("client", "", "plain MB/s", "TLS MB/s", "TLS / plain", title=f"records of {SIZE} bytes")
    with tempfile.TemporaryDirectory(prefix="ottla-bench-") as name:
        broker = Broker(Path(name))
        try:
            for client, tasks in LINES.items():
                for task, work in zip(("produce", "consume"), tasks, strict=True):
                    table.add_row(client, task, *_compared(broker, client, work, given.rounds, given.records))
            shaken = handshakes_per_second(broker)
        finally:
            broker.close()
    console = Console()
    console.print(table)
    console.print(f"{shaken:.0f} TLS handshakes a second, one after the other")


def _compared(broker: Broker, client: str, work: Work, rounds: int, count: int) -> list[str]:
    tls = {"security_protocol": "SSL", "ssl_cafile": broker.ca}
    plain_rates, tls_rates = [], []
    for number in range(rounds):
        topic = f"{client}-{number}"
        plain_rates.append(count * SIZE / work(broker.plain, {}, topic, count) / 1e6)
        tls_rates.append(count * SIZE / work(broker.secure, tls, topic + "-tls", count) / 1e6)
    ratio = statistics.median(secure / plain for secure, plain in zip(tls_rates, plain_rates, strict=True))
    return [f"{statistics.median(plain_rates):.0f}", f"{statistics.median(tls_rates):.0f}", f"{ratio:.2f}"]


if __name__ == "__main__":
    main()
