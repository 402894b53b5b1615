"""`python -m bench.spark`: `format("ottla")` beside Spark's own connector for Kafka, on one broker, in one Spark.

Rows a second out of topics and into them, and what a micro-batch costs that has next to nothing to do. Both take turns,
round after round; what counts is the ratio within a round. On some lines a source in Python that reads nothing takes
its turn too, which shows what Spark leaves to gain there. Topics are filled by the official connector, so that batches
are those of the Java client. The jar of the official connector comes from Maven.
"""

import argparse
import json
import os
import platform
import signal
import statistics
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from rich.console import Console
from rich.progress import Progress
from tests.spark.official import official_jars

from ottla import NewTopic
from ottla.sync import Admin

from .network import leave_pacing
from .process import BrokerProcess, cpu_seconds_of_children
from .spark_report import Comparison, Overhead, Report, Result, Spread, markdown, show
from .spark_work import FLOOR, OFFICIAL, OURS, TINY_ROWS, Queries, Topic, new_session

LINES = ("count", "values", "columns", "parquet", "stream", "write")
MICRO_BATCH_LINE = "micro-batches"
FLOOR_LINES = ("columns", "stream")
"""Lines where a source that reads nothing takes its turn, as it does in micro-batches to nowhere."""
SIZES = (100, 1024)
PARTITIONS = (1, 8, 100)
ROWS = 1_000_000
MANY_PARTITIONS = 100
MANY_PARTITIONS_SCALE = 0.2
"""From so many partitions on there are fewer rows, since the official connector has a task for each partition."""
QUICK_SCALE = 0.1
QUICK_PARTITIONS = (8,)
TINY_BATCHES = 20
"""Micro-batches that are looked at in a query, after those that warm it up."""
TINY_WARM_UP = 5


@dataclass(frozen=True)
class Choice:
    """What is measured."""

    lines: tuple[str, ...]
    sizes: tuple[int, ...]
    partitions: tuple[int, ...]
    rounds: int
    scale: float
    most_rows: int | None = None

    def rows(self, partitions: int) -> int:
        """How many rows a topic has.

        >>> choice = Choice(lines=("count",), sizes=(1024,), partitions=(8, 100), rounds=1, scale=1.0)
        >>> [choice.rows(partitions) for partitions in choice.partitions]
        [1000000, 200000]
        """
        scale = self.scale * (MANY_PARTITIONS_SCALE if partitions >= MANY_PARTITIONS else 1.0)
        rows = int(ROWS * scale)
        return rows if self.most_rows is None else min(rows, self.most_rows)


class Bench:
    """One broker, one Spark, and topics to work on."""

    def __init__(self, broker: BrokerProcess, queries: Queries, admin: Admin) -> None:
        self._broker = broker
        self.queries = queries
        self._admin = admin
        self._number = 0

    @contextmanager
    def topic(self, partitions: int, rows: int = 0, size: int = 0) -> Iterator[Topic]:
        """An empty topic for so many rows, which goes afterwards."""
        self._number += 1
        name = f"bench-{self._number}"
        self._admin.create_topics([NewTopic(name, num_partitions=partitions)])
        yield Topic(name, partitions, rows, size)
        self._admin.delete_topics([name])

    @contextmanager
    def full_topic(self, partitions: int, rows: int, size: int) -> Iterator[Topic]:
        """A topic with so many rows, which goes afterwards."""
        with self.topic(partitions, rows, size) as topic:
            self.queries.write(OFFICIAL, topic)
            yield topic

    def cpu_seconds(self) -> tuple[dict[int, float], float]:
        """What Spark's processes and the broker have used: Java, and the Python that Java has started."""
        found = cpu_seconds_of_children(os.getpid())
        return found, found.pop(self._broker.pid)


@dataclass(frozen=True)
class Turn:
    """What one connector did once."""

    seconds: float
    spark_cpu: float
    broker_cpu: float


def take_turn(bench: Bench, line: str, connector: str, topic: Topic) -> Turn:
    """Run the query of a line."""
    spark_before, broker_before = bench.cpu_seconds()
    seconds: float = getattr(bench.queries, line)(connector, topic)
    spark_after, broker_after = bench.cpu_seconds()
    # Processes that ended meanwhile are left out, rather than counted as less than nothing.
    used = sum(found - spark_before.get(pid, 0.0) for pid, found in spark_after.items())
    return Turn(seconds, used, broker_after - broker_before)


def compare(bench: Bench, line: str, topic: Topic, rounds: int) -> Comparison:
    """The connectors in turn; the first round warms them up, and does not count."""
    has_floor = line in FLOOR_LINES
    turns: dict[str, list[Turn]] = defaultdict(list)
    for number in range(rounds + 1):
        for connector in in_turn(number, has_floor=has_floor):
            if line == "write":
                with bench.topic(topic.partitions, topic.rows, topic.size) as target:
                    turn = take_turn(bench, line, connector, target)
            else:
                turn = take_turn(bench, line, connector, topic)
            if number:
                turns[connector].append(turn)

    def result(connector: str) -> Result:
        done = turns[connector]
        return Result(
            topic.rows / statistics.median(turn.seconds for turn in done),
            statistics.median(turn.spark_cpu for turn in done) / topic.rows * 1e6,
            statistics.median(turn.broker_cpu for turn in done) / topic.rows * 1e6,
        )

    ratios = [theirs.seconds / ours.seconds for ours, theirs in zip(turns[OURS], turns[OFFICIAL], strict=True)]
    return Comparison(
        line,
        topic.size,
        topic.partitions,
        topic.rows,
        result(OURS),
        result(OFFICIAL),
        Spread.of(ratios),
        result(FLOOR) if has_floor else None,
    )


def compare_micro_batches(bench: Bench, partitions: int, sink: str, rounds: int) -> Overhead:
    """The milliseconds of micro-batches that have a few rows, and the seconds that a query takes besides them."""
    has_floor = sink == "nowhere"
    found: dict[str, list[float]] = defaultdict(list)
    besides: dict[str, list[float]] = defaultdict(list)
    with bench.full_topic(partitions, TINY_ROWS * (TINY_WARM_UP + TINY_BATCHES), 100) as topic:
        for number in range(rounds + 1):
            for connector in in_turn(number, has_floor=has_floor):
                with bench.topic(partitions) as target:
                    run = bench.queries.tiny_batches(connector, topic, target if sink == "topic" else None)
                if number:
                    found[connector].append(statistics.median(ms for _, ms in run.batches[TINY_WARM_UP:]))
                    besides[connector].append(run.besides)
    return Overhead(
        sink,
        partitions,
        statistics.median(found[OURS]),
        statistics.median(found[OFFICIAL]),
        Spread.of([theirs / ours for ours, theirs in zip(found[OURS], found[OFFICIAL], strict=True)]),
        statistics.median(besides[OURS]),
        statistics.median(besides[OFFICIAL]),
        statistics.median(found[FLOOR]) if has_floor else None,
    )


def in_turn(number: int, *, has_floor: bool) -> tuple[str, ...]:
    """Who comes first changes from round to round.

    >>> in_turn(0, has_floor=False), in_turn(1, has_floor=True)
    (('ottla', 'kafka'), ('kafka', 'floor', 'ottla'))
    """
    connectors = (OURS, FLOOR, OFFICIAL) if has_floor else (OURS, OFFICIAL)
    return connectors if number % 2 == 0 else connectors[::-1]


def measure(bench: Bench, choice: Choice, report: Report, progress: Progress) -> None:
    """All lines that were chosen, into the report one by one."""
    lines = [line for line in choice.lines if line != MICRO_BATCH_LINE]
    sinks = ("nowhere", "topic") if MICRO_BATCH_LINE in choice.lines else ()
    total = (len(lines) * len(choice.sizes) + len(sinks)) * len(choice.partitions)
    bar = progress.add_task("starting", total=total)
    new_topic = bench.topic if lines == ["write"] else bench.full_topic
    for partitions in choice.partitions:
        for size in choice.sizes if lines else ():
            with new_topic(partitions, choice.rows(partitions), size) as topic:
                for line in lines:
                    progress.update(bar, description=f"{line}, {size} B, {partitions} partitions")
                    report.lines.append(compare(bench, line, topic, choice.rounds))
                    progress.print(str(report.lines[-1]))
                    progress.advance(bar)
        for sink in sinks:
            progress.update(bar, description=f"micro-batches to {sink}, {partitions} partitions")
            report.overheads.append(compare_micro_batches(bench, partitions, sink, choice.rounds))
            progress.print(str(report.overheads[-1]))
            progress.advance(bar)


def circumstances(choice: Choice, jars: Sequence[str]) -> dict[str, str]:
    """What figures depend on."""
    connector = next(stem.rpartition("-")[2] for stem in (Path(jar).stem for jar in jars) if "sql-kafka" in stem)
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "cores": str(os.cpu_count()),
        "Python": platform.python_version(),
        "Spark": version("pyspark"),
        "official connector": connector,
        "Ottla": version("ottla"),
        "rounds": str(choice.rounds),
    }


def parse() -> tuple[Choice, argparse.Namespace]:
    """What the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m bench.spark", description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the tables to a file as well")
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows, one round, 8 partitions")
    parser.add_argument("--rounds", type=int, default=3, help="how often both take a turn, after the warm-up")
    parser.add_argument("--only", nargs="+", choices=[*LINES, MICRO_BATCH_LINE], help="these lines alone")
    parser.add_argument("--size", type=int, nargs="+", choices=SIZES, help="these sizes of values alone")
    parser.add_argument("--partitions", type=int, nargs="+", help="these numbers of partitions instead")
    parser.add_argument("--paced", action="store_true", help="stay on the machine's loopback even if that is paced")
    parser.add_argument("--rows", type=int, metavar="N", help="no topic has more rows than this, to try it out")
    options = parser.parse_args()
    choice = Choice(
        lines=tuple(options.only or (*LINES, MICRO_BATCH_LINE)),
        sizes=tuple(options.size or SIZES),
        partitions=tuple(options.partitions or (QUICK_PARTITIONS if options.quick else PARTITIONS)),
        rounds=1 if options.quick else options.rounds,
        scale=QUICK_SCALE if options.quick else 1.0,
        most_rows=options.rows,
    )
    return choice, options


def main() -> int:
    """Measure, and print."""
    choice, options = parse()
    # Whoever ends this early leaves no processes behind, and has what was measured.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    jars = official_jars()
    report = Report({**circumstances(choice, jars), "network": leave_pacing(wanted=not options.paced)})
    try:
        with (
            tempfile.TemporaryDirectory(prefix="ottla-bench-", ignore_cleanup_errors=True) as name,
            BrokerProcess(Path(name) / "broker") as broker,
            Admin(bootstrap_servers=f"127.0.0.1:{broker.port}") as admin,
        ):
            spark = new_session(Path(name), jars)
            try:
                with Progress(console=Console(stderr=True), transient=True) as progress:
                    bench = Bench(broker, Queries(spark, f"127.0.0.1:{broker.port}", Path(name)), admin)
                    measure(bench, choice, report, progress)
            finally:
                spark.stop()
    finally:
        if options.markdown:
            options.markdown.write_text(markdown(report), encoding="utf-8")
        if options.json:
            print(json.dumps(asdict(report)))
        else:
            show(report)
    return 0


if __name__ == "__main__":
    sys.exit(main())
