"""Kills drivers, executors, their Python and the broker while a pipeline runs, and looks at what has arrived."""

import json
import logging
import os
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from confluent_kafka import Producer
from deltalake import DeltaTable

from ottla import sync
from ottla.client.admin import NewTopic
from tests.crash.run import Process
from tests.spark_crash import points as at
from tests.spark_crash.cluster import SparkCluster
from tests.spark_crash.pipeline import COPIES, PARTS, SOURCE, PipelineProcess
from tests.spark_crash.processes import PAUSE_SECONDS, kill

PARTITIONS = 4
ROWS_PER_SECOND = 500
PATIENCE_SECONDS = 600.0
FINISHES = 10
"""Tries to get to the end: on a machine that is busy, Spark does not wait long enough for its Python to start."""

Victim = Literal["whole driver", "driver's Python", "driver's Java", "Python worker", "executor", "broker"]

Place = tuple[int, int]
"""A partition and an offset in it."""


log = logging.getLogger(__name__)


@dataclass(slots=True)
class Outcome:
    """What a run has shown."""

    kills: Counter[str] = field(default_factory=Counter)
    points: list[str] = field(default_factory=list)
    """Those that were reached, with who was killed there."""
    starts: int = 0
    failures: list[str] = field(default_factory=list)
    """What drivers said that ended by themselves."""
    left_behind: list[str] = field(default_factory=list)
    acknowledged: int = 0
    produced: int = 0
    lost_by_broker: int = 0
    table_missing: int = 0
    table_doubled: int = 0
    table_wrong: int = 0
    topic_missing: int = 0
    topic_doubled: int = 0
    topic_wrong: int = 0

    @property
    def sound(self) -> bool:
        """Whether the table has each record once and the topic has each at least once."""
        table = self.table_missing or self.table_doubled or self.table_wrong
        return not (table or self.topic_missing or self.topic_wrong or self.lost_by_broker or self.left_behind)

    def __str__(self) -> str:
        killed = ", ".join(f"{count} x {name}" for name, count in sorted(self.kills.items()))
        return (
            f"{self.kills.total()} kills ({killed}), {len(self.points)} at named points; "
            f"{self.starts} drivers, {len(self.failures)} ended by themselves; {self.produced:,} records; "
            f"table: {self.table_missing} missing, {self.table_doubled} doubled, {self.table_wrong} wrong; "
            f"topic: {self.topic_missing} missing, {self.topic_doubled:,} doubled, {self.topic_wrong} wrong; "
            f"{self.lost_by_broker} lost by the broker; {len(self.left_behind)} processes left behind"
        )


class Numbers(threading.Thread):
    """Writes numbers to all partitions of the topic, idempotently, and remembers which were acknowledged."""

    def __init__(self, servers: str) -> None:
        super().__init__(daemon=True)
        self._stop_asked = threading.Event()
        self.acknowledged: set[int] = set()
        self._producer = Producer(
            {
                "bootstrap.servers": servers,
                "enable.idempotence": True,
                "linger.ms": 5,
                "reconnect.backoff.ms": 20,
                "reconnect.backoff.max.ms": 100,
                "retry.backoff.ms": 20,
                "message.timeout.ms": 120_000,
                "log_level": 0,
            }
        )

    def run(self) -> None:
        number = 0
        started = time.monotonic()
        while not self._stop_asked.is_set():
            if number > (time.monotonic() - started) * ROWS_PER_SECOND:
                self._producer.poll(0.02)
                continue
            self._producer.produce(
                SOURCE, value=str(number), partition=number % PARTITIONS, on_delivery=self._delivered(number)
            )
            number += 1
        self._producer.flush(120)

    def _delivered(self, number: int) -> Callable[[Any, Any], None]:
        def note(error: Any, _message: Any) -> None:
            if error is None:
                self.acknowledged.add(number)

        return note

    def finish(self) -> None:
        """Stop writing, and return when everything is settled."""
        self._stop_asked.set()
        self.join()


class CrashRun:
    """A broker, a producer and a pipeline, of which parts are killed."""

    def __init__(self, folder: Path, cluster: SparkCluster | None = None, master: str = "local[2,4]") -> None:
        self.outcome = Outcome()
        self._cluster = cluster
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._broker = Process(folder / "broker")
        self._master = cluster.master if cluster else master

    @contextmanager
    def running(self) -> Iterator[None]:
        """With all that there is, which is finished and looked at in the end."""
        self._broker.start()
        try:
            self.servers = f"127.0.0.1:{self._broker.port}"
            with sync.Admin(self.servers) as admin:
                admin.create_topics([NewTopic(SOURCE, num_partitions=PARTITIONS), NewTopic(COPIES, num_partitions=3)])
            self.pipeline = PipelineProcess(self._folder, self.servers, self._master)
            self._numbers = Numbers(self.servers)
            self._numbers.start()
            try:
                yield
                self._finish()
                self._check()
            finally:
                self._numbers.finish()
                self.outcome.left_behind = self.pipeline.end()
        finally:
            self._broker.kill()

    def wait_for_batch(self) -> None:
        """Return when both queries have done a micro-batch since now, with drivers started as they are needed."""
        self.pipeline.tend()
        starts, batches = self.pipeline.starts, self.pipeline.batches
        self._wait(lambda: self.pipeline.batches > (batches if self.pipeline.starts == starts else 0), "a micro-batch")

    def kill(self, victim: Victim, chance: random.Random) -> None:
        """Kill something, wherever it is."""
        self.pipeline.tend()
        if victim == "broker":
            self._broker.kill()
            time.sleep(chance.uniform(0, 1))
            self._broker.start()
        elif victim == "Python worker":
            workers = self.pipeline.python_workers()
            if not workers:
                return
            kill([chance.choice(workers)])
        elif victim == "executor":
            executors = self._cluster.executors() if self._cluster else []
            if not executors:
                return
            kill([chance.choice(executors).pid])
        else:
            self.pipeline.kill(victim)
        self._note(victim)

    def kill_at(self, point: str, victim: Victim) -> None:
        """Wait until the pipeline is at a point, and kill something there."""
        points = self.pipeline.points
        points.ask(point)
        self._wait(lambda: points.who_is_at(point) is not None, point)
        who = points.who_is_at(point)
        assert who is not None
        if victim == "broker":
            self._broker.kill()
            points.let_go(point)
            self._broker.start()
        elif victim == "Python worker":
            kill([who])
        elif victim == "executor":
            kill([self.pipeline.executor_of(who)])
        else:
            self.pipeline.kill(victim)
        points.let_go(point)
        self._note(victim, point)

    def overtake_at(self, point: str) -> None:
        """Have the driver stand still at a point while another does its work, and then go on as if nothing was."""
        points = self.pipeline.points
        points.ask(point)
        self._wait(lambda: points.who_is_at(point) is not None, point)
        sleeper = self.pipeline.put_to_sleep()
        self.wait_for_batch()
        points.let_go(point)
        sleeper.wake()
        # It finds that the micro-batch is done already, and ends.
        self._wait(sleeper.has_ended, f"the end of a driver that was overtaken at {point}")
        self.wait_for_batch()
        self.outcome.points.append(f"{point}: overtaken")

    def _note(self, victim: Victim, point: str | None = None) -> None:
        self.outcome.kills[victim] += 1
        if point is not None:
            self.outcome.points.append(f"{point}: {victim}")
        log.info("%s killed %s; driver %d", victim, f"at {point}" if point else "at random", self.pipeline.starts)

    def _wait(self, is_so: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not is_so():
            if time.monotonic() > deadline:
                raise TimeoutError(f"{what}: not within {PATIENCE_SECONDS:g} s; drivers said {self.pipeline.failures}")
            self.pipeline.tend()
            time.sleep(PAUSE_SECONDS)

    def _finish(self) -> None:
        """Stop writing, and have the pipeline take what there is."""
        self._numbers.finish()
        self.pipeline.kill()
        for _ in range(FINISHES):
            if self.pipeline.finish(PATIENCE_SECONDS) == 0:
                return
        raise RuntimeError(f"the pipeline does not get to the end: {self.pipeline.failures}")

    def _check(self) -> None:
        found = self.outcome
        found.starts = self.pipeline.starts
        found.failures = self.pipeline.failures
        produced = {
            (row["partition"], row["offset"]): int(row["value"])
            for row in sync.read_table(SOURCE, bootstrap_servers=self.servers).to_pylist()
        }
        stored = Counter(produced.values())
        found.produced = len(produced)
        found.acknowledged = len(self._numbers.acknowledged)
        found.lost_by_broker = len(self._numbers.acknowledged - stored.keys()) + stored.total() - len(stored)
        table = DeltaTable(str(self._folder / "table")).to_pyarrow_table().to_pylist()
        found.table_missing, found.table_doubled, found.table_wrong = _compare(produced, table)
        copies = sync.read_table(COPIES, bootstrap_servers=self.servers).column("value").to_pylist()
        found.topic_missing, found.topic_doubled, found.topic_wrong = _compare(produced, map(json.loads, copies))


def _compare(produced: dict[Place, int], rows: Any) -> tuple[int, int, int]:
    """How many records are missing, how many are there too often, and how many rows are no such records."""
    counts = Counter(((row["partition"], row["offset"]), row["number"]) for row in rows)
    right = Counter({record: counts[record] for record in produced.items()})
    present = sum(count > 0 for count in right.values())
    return len(produced) - present, right.total() - present, counts.total() - right.total()


def run_at_points(folder: Path, cluster: SparkCluster | None = None) -> Outcome:
    """Kill at every named point everybody who can be killed there."""
    run = CrashRun(folder, cluster)
    with run.running():
        for point, victim in named_kills(on_cluster=cluster is not None):
            run.kill_at(point, victim)
            run.wait_for_batch()
    return run.outcome


def run_with_overtaking(folder: Path) -> Outcome:
    """Have a second driver go on while the first stands still, as one that was given up too early does."""
    run = CrashRun(folder)
    with run.running():
        for point in (at.BEFORE_TABLE_COMMIT, at.AFTER_TABLE_COMMIT, at.OFFSETS_FOUND):
            run.overtake_at(point)
    return run.outcome


def named_kills(*, on_cluster: bool) -> list[tuple[str, Victim]]:
    """The points, with who is killed there."""
    kills: list[tuple[str, Victim]] = []
    for point in at.ON_EXECUTORS:
        kills += [(point, "Python worker"), (point, "whole driver"), (point, "broker")]
        if on_cluster:
            kills.append((point, "executor"))
    for point in at.ON_THE_DRIVER:
        kills.append((point, "whole driver"))
    kills += [
        (point, "driver's Java") for point in (at.AFTER_SINK_COMMIT, at.BEFORE_TABLE_COMMIT, at.AFTER_TABLE_COMMIT)
    ]
    kills += [(point, "driver's Python") for point in (at.AFTER_SINK_COMMIT, at.AFTER_TABLE_COMMIT)]
    kills += [(point, "broker") for point in (at.BATCH_PLANNED, at.BEFORE_TABLE_COMMIT)]
    return kills


def run_at_random(folder: Path, kills: int, seed: int, cluster: SparkCluster | None = None) -> Outcome:
    """Kill so often, at random times and sometimes at points."""
    chance = random.Random(seed)
    # A driver takes long to start: most kills are of what it goes on without.
    weights: dict[Victim, int] = {**dict.fromkeys(PARTS, 1), "Python worker": 5, "broker": 4}
    if cluster:
        weights["executor"] = 5
    named = named_kills(on_cluster=cluster is not None)
    # Where a task may not be done again, one that fails ends the query, and the next driver goes on.
    run = CrashRun(folder, cluster, chance.choice(["local[2]", *["local[2,4]"] * 3]))
    with run.running():
        for _ in range(kills):
            # Mostly in the midst of work, but a driver that is just starting can be killed as well.
            if chance.random() < 0.85:
                run.wait_for_batch()
            time.sleep(chance.uniform(0, 1.5))
            if chance.random() < 0.25:
                run.kill_at(*chance.choice(named))
            else:
                run.kill(chance.choices(list(weights), list(weights.values()))[0], chance)
    return run.outcome


def free_seed() -> int:
    """A seed for runs that nobody chose one for."""
    return int.from_bytes(os.urandom(4), "big")
