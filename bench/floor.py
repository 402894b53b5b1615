"""What reading a topic as Arrow costs, in processor time, and what it would cost whoever only received the same bytes.

`python -m bench.client --floor` prints it. A process that receives and does nothing else is the floor of all clients;
one that also computes checksums and copies each byte once, the floor of those that check what they read and give it
away as columns. Seconds on the clock depend on who else is at work on a machine, processor time much less.
"""

import json
import multiprocessing
import resource
import socket
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection as Pipe
from pathlib import Path
from typing import Any

from crc32c import crc32c
from rich.console import Console
from rich.table import Table

from . import client_work
from .process import BrokerProcess

PIECE_BYTES = 4 * 1024 * 1024
OURS = {"read_arrow": "Ottla, `read_arrow`", "read_views": "Ottla, `read_arrow(zero_copy=True)`"}
TASKS = {"receive": "recv_into", "check": "recv_into, CRC-32C, one copy", **OURS}
AIM_TIMES, AIM_SHARE = 10, 0.6
"""What columns aim at: so many times confluent-kafka's rate, or this share of what loopback carries."""


@dataclass(frozen=True)
class Cost:
    """What a process took for all records, in seconds."""

    wall: float
    user: float
    system: float

    @property
    def processor(self) -> float:
        return self.user + self.system


def measured(work: Any, *arguments: Any) -> Cost:
    """Do something, and say what it took."""
    before, started = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    work(*arguments)
    after, ended = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    return Cost(ended - started, after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime)


# ---- in a process of its own ----


def receive(port: int, total_bytes: int, *, check: bool) -> None:
    """Receive so many bytes; check and copy them too, piece by piece as they come."""
    buffer, copy = memoryview(bytearray(PIECE_BYTES)), bytearray(PIECE_BYTES)
    with socket.create_connection(("127.0.0.1", port)) as connection:
        received = 0
        while received < total_bytes:
            count = connection.recv_into(buffer)
            assert count, f"the sender stopped after {received} of {total_bytes} bytes"
            received += count
            if check:
                crc32c(buffer[:count])
                copy[:count] = buffer[:count]


def main() -> None:
    """Do the task that the arguments name; print what it took as JSON."""
    task, *arguments = sys.argv[2:]
    if task in OURS:
        work = getattr(client_work, f"ottla_{task}")
        address, topic, count, size = arguments
        # Codecs are made on first use, and memory is found.
        work(address, topic, 1, int(size))
        cost = measured(work, address, topic, int(count), int(size))
    else:
        port, total_bytes = map(int, arguments)
        cost = measured(lambda: receive(port, total_bytes, check=task == "check"))
    print(json.dumps([cost.wall, cost.user, cost.system]))


# ---- whoever looks on ----


def _send_files(pipe: Pipe, paths: list[str]) -> None:
    """Send files to whoever connects, as a broker does it, until the pipe is closed."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        pipe.send(server.getsockname()[1])
        while True:
            connection, _ = server.accept()
            with connection:
                for path in paths:
                    with open(path, "rb") as file:
                        connection.sendfile(file)


class Floor:
    """One topic, read over and over by those who do more and more with it."""

    def __init__(self, broker: BrokerProcess, folder: Path, topic: str, count: int, size: int) -> None:
        self._broker = broker
        self._topic, self._count, self._size = topic, count, size
        self._paths = [str(path) for path in sorted(folder.glob(f"{topic}-*/*.log"))]
        self._total_bytes = sum(Path(path).stat().st_size for path in self._paths)
        self.costs: dict[str, list[Cost]] = {task: [] for task in TASKS}
        self.broker_seconds: dict[str, list[float]] = {task: [] for task in OURS}
        self.confluent_seconds: list[float] = []

    def run(self, rounds: int) -> None:
        """Have everybody take turns."""
        ours, theirs = multiprocessing.Pipe()
        sender = multiprocessing.get_context("spawn").Process(target=_send_files, args=(theirs, self._paths))
        sender.start()
        try:
            port = ours.recv()
            arguments = [f"127.0.0.1:{self._broker.port}", self._topic, str(self._count), str(self._size)]
            for _ in range(rounds):
                for task in TASKS:
                    if task in OURS:
                        before = self._broker.cpu_seconds
                        self.costs[task].append(Cost(*_child("bench.floor", task, *arguments)))
                        self.broker_seconds[task].append(self._broker.cpu_seconds - before)
                    else:
                        self.costs[task].append(Cost(*_child("bench.floor", task, str(port), str(self._total_bytes))))
                self.confluent_seconds += _child("bench.client_work", "confluent", "consume", *arguments)
        finally:
            sender.terminate()
            sender.join()

    def show(self, loopback_bytes_per_second: float) -> None:
        """Tables for people: medians."""
        count, gigabytes = self._count, self._count * self._size / 1e9
        table = Table(
            *("", "user", "system", "ns a record", "s a GB", "the broker, ns", "on the clock, ns"),
            title=f"{self._size} B, processor time",
            min_width=60,
        )
        for task, name in TASKS.items():
            costs = sorted(self.costs[task], key=lambda cost: cost.processor)
            middle = costs[len(costs) // 2]
            seconds = [middle.user, middle.system, middle.processor]
            brokers = statistics.median(self.broker_seconds[task]) if task in OURS else None
            user, system, processor, broker, wall = (
                "" if found is None else f"{found / count * 1e9:.0f}" for found in (*seconds, brokers, middle.wall)
            )
            table.add_row(name, user, system, processor, f"{middle.processor / gigabytes:.2f}", broker, wall)
        console = Console()
        console.print(table)
        confluent = count / statistics.median(self.confluent_seconds)
        for aim, rate in (
            (f"{AIM_TIMES} times confluent-kafka", AIM_TIMES * confluent),
            (f"{AIM_SHARE:.0%} of loopback", AIM_SHARE * loopback_bytes_per_second / self._size),
        ):
            console.print(f"{aim} is {rate:,.0f} records a second, which leaves {1e9 / rate:.0f} ns for each")


def _child(module: str, *arguments: str) -> list[float]:
    command = [sys.executable, "-m", module, "uvloop", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr}")
    found = json.loads(done.stdout.splitlines()[-1])
    return found if isinstance(found, list) else [found]


if __name__ == "__main__":
    main()
