"""Kills a broker under load, again and again, and looks for what it had acknowledged."""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from confluent_kafka import Producer

from ottla.record import Batch, batches, records
from tests.interop.raw_client import RawClient

START_SECONDS = 30
TOPICS = ("kill-0", "kill-1", "kill-2")
CODECS = ("none", "lz4", "zstd")


class Outcome(NamedTuple):
    """What a run has shown."""

    kills: int
    acknowledged: int
    stored: int
    missing: int
    duplicated: int
    out_of_order: int

    @property
    def sound(self) -> bool:
        """Whether everything acknowledged is there, once and in order."""
        return not (self.missing or self.duplicated or self.out_of_order)


class Process:
    """A broker in a process of its own, which can be killed and started again on the same port and data."""

    def __init__(self, folder: Path, *settings: str) -> None:
        self._folder = folder
        self._settings = settings
        self._process: subprocess.Popen[str] | None = None
        self.port = 0

    def start(self) -> None:
        """Start it, and return when it is ready."""
        command = [sys.executable, "-m", "ottla", "serve", "--listen", f"127.0.0.1:{self.port}"]
        command += ["--data", str(self._folder)]
        for setting in self._settings:
            command += ["--set", setting]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if " ready at " not in line:
            raise RuntimeError(f"the broker did not start: {line!r}")
        self.port = int(line.split(" ready at ")[1].split(",")[0].rpartition(":")[2])

    def kill(self) -> None:
        """End it as the power button of the process does."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
            assert self._process.stdout is not None
            self._process.stdout.close()
            self._process = None

    @property
    def address(self) -> tuple[str, int]:
        """Where it listens."""
        return "127.0.0.1", self.port


class Writer(threading.Thread):
    """Writes numbers to a topic, idempotently, and remembers which were acknowledged."""

    def __init__(self, address: tuple[str, int], topic: str, codec: str) -> None:
        super().__init__(daemon=True)
        self._topic = topic
        self._stop_asked = threading.Event()
        self.acknowledged: set[int] = set()
        self._producer = Producer(
            {
                "bootstrap.servers": f"{address[0]}:{address[1]}",
                "enable.idempotence": True,
                "compression.type": codec,
                "linger.ms": 2,
                "reconnect.backoff.ms": 20,
                "reconnect.backoff.max.ms": 100,
                "retry.backoff.ms": 20,
                "message.timeout.ms": 120_000,
                "log_level": 0,
            }
        )

    def run(self) -> None:
        """Write until told to stop, then until everything is settled."""
        number = 0
        while not self._stop_asked.is_set():
            try:
                self._producer.produce(self._topic, value=str(number), on_delivery=self._delivered(number))
                number += 1
            except BufferError:
                self._producer.poll(0.01)
            if number % 50 == 0:
                self._producer.poll(0.002)
        self._producer.flush(60)

    def _delivered(self, number: int) -> Callable[[Any, Any], None]:
        def note(error: Any, _message: Any) -> None:
            if error is None:
                self.acknowledged.add(number)

        return note

    def finish(self) -> None:
        """Stop writing, and return when everything is settled."""
        self._stop_asked.set()
        self.join()


def run(folder: Path, kills: int, seed: int, on_kill: Callable[[int], None], *settings: str) -> Outcome:
    """Kill a broker so many times while three producers write to it, and check what is there in the end."""
    chance = random.Random(seed)
    process = Process(folder, *settings)
    process.start()
    try:
        writers = [Writer(process.address, topic, codec) for topic, codec in zip(TOPICS, CODECS, strict=True)]
        for writer in writers:
            writer.start()
        time.sleep(0.5)
        for number in range(kills):
            time.sleep(chance.uniform(0.05, 0.6))
            process.kill()
            process.start()
            on_kill(number + 1)
        time.sleep(0.3)
        for writer in writers:
            writer.finish()
        return _check(process, kills, writers)
    finally:
        process.kill()


def _check(process: Process, kills: int, writers: list[Writer]) -> Outcome:
    acknowledged = stored = missing = duplicated = out_of_order = 0
    with RawClient(process.address) as client:
        for writer, topic in zip(writers, TOPICS, strict=True):
            found: list[int] = []
            for batch in batches(client.read_log(topic)):
                assert isinstance(batch, Batch)
                batch.validate()
                found += [int(record.value or b"") for record in records(batch)]
            acknowledged += len(writer.acknowledged)
            stored += len(found)
            missing += len(writer.acknowledged - set(found))
            duplicated += len(found) - len(set(found))
            out_of_order += sum(later <= earlier for earlier, later in pairwise(found))
    return Outcome(kills, acknowledged, stored, missing, duplicated, out_of_order)


def free_seed() -> int:
    """A seed for a run that nobody chose one for."""
    return int.from_bytes(os.urandom(4), "big")
