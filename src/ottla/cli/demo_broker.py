"""The second part of `ottla demo`: a broker in a process of its own, orders produced to it and consumed again."""

import asyncio
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

from ottla.cli.demo_orders import NUMBER, PARTITIONS, TOPIC, Orders
from ottla.cli.demo_telling import Teller
from ottla.client.admin import Admin, NewTopic
from ottla.client.consumer import Consumer
from ottla.client.producer import Producer

LOOK_EVERY = 20_000
PATIENCE_S = 30
"""Records that have not come by then are lost."""


class Broker(NamedTuple):
    """A broker that runs."""

    address: str
    pid: int
    start_s: float


class Figures(NamedTuple):
    """What was seen."""

    records: int
    bytes: int
    start_s: float
    produce_s: float
    consume_s: float
    memory_mb: float
    in_order: bool


@contextmanager
def broker_in(folder: Path) -> Iterator[Broker]:
    """A broker with its data in a folder, until the block ends."""
    started = time.perf_counter()
    where = ["--listen", "127.0.0.1:0", "--data", str(folder)]
    # What is done to topics is told by the demo itself.
    command = [sys.executable, "-m", "ottla", "serve", *where, "--log-level", "warning"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            if " ready at " not in line:
                raise RuntimeError(f"the broker did not start: {line!r}")
            address = line.split(" ready at ")[1].split(",")[0]
            yield Broker(address, process.pid, time.perf_counter() - started)
        finally:
            process.terminate()


async def produce_and_consume(broker: Broker, orders: Orders, teller: Teller) -> Figures:
    """Send all orders, and see whether they come back as they went."""
    teller.did(broker.start_s, "the broker is up, in a process of its own")
    async with Admin(broker.address) as admin:
        await admin.create_topics([NewTopic(TOPIC, num_partitions=PARTITIONS)])
    produce_s = await _produce(broker.address, orders, teller)
    rate, size = orders.count / produce_s, orders.bytes / orders.count
    teller.did(produce_s, f"{orders.count:,} orders produced, {rate:,.0f}/s: JSON, {size:.0f} bytes each, acks=all")
    consume_s, in_order = await _consume(broker.address, orders, teller)
    verdict = "every one as it was sent, in order" if in_order else "[bold red]NOT as they were sent[/]"
    teller.did(consume_s, f"consumed, {orders.count / consume_s:,.0f}/s: {verdict}")
    memory_mb = _memory_mb(broker.pid)
    if memory_mb:
        teller.say(f"           the broker has {memory_mb:,.0f} MB of memory now")
    return Figures(orders.count, orders.bytes, broker.start_s, produce_s, consume_s, memory_mb, in_order)


async def _produce(address: str, orders: Orders, teller: Teller) -> float:
    began = time.perf_counter()
    with teller.bars() as bars:
        async with Producer(bootstrap_servers=address) as producer:
            for number, (key, value) in enumerate(orders):
                await producer.send(TOPIC, value, key)
                if number % LOOK_EVERY == 0:
                    sent = producer.records_sent
                    bars.show("produced", sent, orders.count, sent / (time.perf_counter() - began))
    return time.perf_counter() - began


async def _consume(address: str, orders: Orders, teller: Teller) -> tuple[float, bool]:
    began = time.perf_counter()
    check = Check(orders)
    with teller.bars() as bars, suppress(TimeoutError):
        async with (
            Consumer(TOPIC, bootstrap_servers=address, auto_offset_reset="earliest") as consumer,
            asyncio.timeout(PATIENCE_S) as patience,
        ):
            async for record in consumer:
                check.add(record.partition, record.value or b"")
                if check.count % LOOK_EVERY == 0:
                    patience.reschedule(asyncio.get_running_loop().time() + PATIENCE_S)
                    bars.show("consumed", check.count, orders.count, check.count / (time.perf_counter() - began))
                if check.count == orders.count:
                    break
    return time.perf_counter() - began, check.is_right


class Check:
    """Whether what came back is what went, in order within each partition.

    >>> orders = Orders(2)
    >>> (_, first), (_, second) = orders
    >>> check = Check(orders)
    >>> check.add(0, first)
    >>> check.is_right
    False
    >>> check.add(0, second)
    >>> check.is_right
    True
    """

    def __init__(self, orders: Orders) -> None:
        self._orders = orders
        self._checksum = 0
        self._last = [b""] * PARTITIONS
        self._in_order = True
        self.count = 0

    def add(self, partition: int, value: bytes) -> None:
        """One came back."""
        self.count += 1
        self._checksum += crc32(value)
        number = value[NUMBER]
        if number <= self._last[partition]:
            self._in_order = False
        self._last[partition] = number

    @property
    def is_right(self) -> bool:
        """Whether all came back."""
        return self._in_order and self.count == self._orders.count and self._checksum == self._orders.checksum


def _memory_mb(pid: int) -> float:
    """Resident memory of a process, where the system tells; 0 elsewhere."""
    try:
        with open(f"/proc/{pid}/status") as status:
            for line in status:
                if line.startswith("VmRSS:"):
                    return int(line.split()[1]) / 1024
    except OSError:
        pass
    return 0.0
