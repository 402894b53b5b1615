"""`python -m bench.client`: this client beside confluent-kafka, aiokafka and kafka-python, on one broker, in one run.

Records a second, produced and consumed, as objects and as Arrow columns, and what a single send takes. Contenders take
turns, round after round, each in a process of its own; what counts is the ratio within a round. Settings are the same
for all: acks=all, idempotent, no compression, batches of up to 256 KB, a topic with four partitions. Those that run in
an event loop, this client and aiokafka, have uvloop's; a single send is shown with asyncio's own as well.
"""

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

import ottla

from .client_work import LIBRARIES
from .floor import Floor
from .loopback import kept_bytes_per_second, loopback_bytes_per_second
from .network import leave_pacing
from .process import BrokerProcess
from .timing import Ratio

PARTITIONS = 4
SIZES = (100, 1024)
COUNTS = {100: 1_000_000, 1024: 300_000}
SLOW = {"kafka_python": 10, "aiokafka": 3}
"""By how much less some get to do: rates count, and nobody waits for minutes."""
ARROW_TIMES = {100: 6, 1024: 4}
"""By how much more the columns get to do, for they would be done before the clock has ticked much."""
LATENCIES = 2_000
LATENCY_ROUNDS = 4
"""So many rounds of single sends for each round of the rest: they are short, and their tails restless."""
TIMEOUT_S = 600
AT_ONCE = "log.segment.delete.delay.ms=100"
"""Topics that were deleted are gone at once, so that the system does not write them to the disk while others work."""

OBJECT_TASKS = ("produce", "consume")
ARROW_TASKS = {
    "produce": {"ottla, Arrow": "send_arrow"},
    "consume": {
        "ottla, Arrow": "read_arrow",
        "ottla, Arrow, zero_copy": "read_views",
        "ottla, one Arrow table": "read_table",
    },
}
"""Records are dropped once they were looked at, as all others do it; the table has all of them in memory at the end."""


@dataclass(frozen=True)
class Rate:
    """What one contender did in one line: records a second, the median of the rounds."""

    line: str
    size: int
    contender: str
    records_per_second: float
    ratio_to_confluent: float
    """The median of the ratios within rounds, confluent-kafka's being 1."""
    share_of_loopback: float
    share_of_kept: float | None
    """Of what a process that receives the same bytes, checks them and keeps them in a file does; None for readers."""


@dataclass(frozen=True)
class Latency:
    """What a single send takes, from the call to the acknowledgement, in microseconds: medians of the rounds."""

    contender: str
    p50_us: float
    p99_us: float
    p50_ratio: Ratio
    """Within rounds, to what confluent-kafka took: less than 1 is faster."""
    p99_ratio: Ratio


class Bench:
    """One broker, and topics to work on."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._number = 0

    def new_topic(self) -> str:
        self._number += 1
        name = f"bench-{self._number}"

        async def create() -> None:
            async with ottla.Admin(bootstrap_servers=self._address) as admin:
                await admin.create_topics([ottla.NewTopic(name, num_partitions=PARTITIONS)])

        asyncio.run(create())
        return name

    def delete_topic(self, name: str) -> None:
        async def delete() -> None:
            async with ottla.Admin(bootstrap_servers=self._address) as admin:
                await admin.delete_topics([name])

        asyncio.run(delete())

    def filled_topic(self, count: int, size: int) -> str:
        """A topic to read, filled by librdkafka so that its batches are what most people have."""
        name = self.new_topic()
        self.work("confluent", "produce", name, count, size)
        return name

    def work(self, library: str, task: str, topic: str, count: int, size: int, loop: str = "uvloop") -> list[float]:
        """Have a contender do something in a process of its own; seconds, one or many."""
        command = [sys.executable, "-m", "bench.client_work", loop, library, task, self._address, topic]
        done = subprocess.run(
            [*command, str(count), str(size)], capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr}")
        found = json.loads(done.stdout.splitlines()[-1])
        return found if isinstance(found, list) else [found]


def contenders_of(task: str) -> list[tuple[str, str, str]]:
    """Name, library and task of those who take part in a line."""
    found = [(library, library, task) for library in LIBRARIES]
    if task == "consume":
        found.insert(1, ("ottla, async for", "ottla", "iterate"))
    return [*found, *((name, "ottla", what) for name, what in ARROW_TASKS[task].items())]


def measure_rates(bench: Bench, task: str, size: int, rounds: int, scale: float, progress: Progress) -> list[Rate]:
    """All contenders, in turn, round after round."""
    count = int(COUNTS[size] * scale)
    contenders = contenders_of(task)
    rates: dict[str, list[float]] = {name: [] for name, _, _ in contenders}
    limits: list[float] = []
    kept_limits: list[float] = []
    times = ARROW_TIMES[size]
    filled = bench.filled_topic(count * times, size) if task == "consume" else ""
    bar = progress.add_task(f"{task}, {size} B", total=rounds * len(contenders))
    for number in range(rounds):
        limits.append(loopback_bytes_per_second())
        if task == "produce":
            kept_limits.append(kept_bytes_per_second())
        for name, library, what in contenders if number % 2 == 0 else contenders[::-1]:
            amount = count * times if name in ARROW_TASKS[task] else count // SLOW.get(library, 1)
            topic = filled or bench.new_topic()
            (seconds,) = bench.work(library, what, topic, amount, size)
            rates[name].append(amount / seconds)
            if not filled:
                bench.delete_topic(topic)
            progress.advance(bar)
    if filled:
        bench.delete_topic(filled)
    limit = statistics.median(limits)
    kept_limit = statistics.median(kept_limits) if kept_limits else None
    return [
        Rate(
            task,
            size,
            name,
            rate := statistics.median(found),
            statistics.median(ours / theirs for ours, theirs in zip(found, rates["confluent"], strict=True)),
            rate * size / limit,
            None if kept_limit is None else rate * size / kept_limit,
        )
        for name, found in rates.items()
    ]


def measure_latencies(bench: Bench, rounds: int, progress: Progress) -> list[Latency]:
    """One record at a time, waited for."""
    contenders = [(library, library, "uvloop") for library in LIBRARIES]
    contenders += [(f"{library}, asyncio's loop", library, "asyncio") for library in ("ottla", "aiokafka")]
    rounds *= LATENCY_ROUNDS
    found: dict[str, list[list[float]]] = {name: [] for name, _, _ in contenders}
    bar = progress.add_task("latency", total=rounds * len(contenders))
    topic = bench.new_topic()
    for number in range(rounds):
        for name, library, loop in contenders if number % 2 == 0 else contenders[::-1]:
            found[name].append(sorted(bench.work(library, "latency", topic, LATENCIES, 100, loop)))
            progress.advance(bar)

    def percentiles(name: str, share: float) -> list[float]:
        return [run[int(len(run) * share)] * 1e6 for run in found[name]]

    def ratio(name: str, share: float) -> Ratio:
        pairs = zip(percentiles(name, share), percentiles("confluent", share), strict=True)
        return Ratio.of([ours / theirs for ours, theirs in pairs])

    return [
        Latency(
            name,
            statistics.median(percentiles(name, 0.5)),
            statistics.median(percentiles(name, 0.99)),
            ratio(name, 0.5),
            ratio(name, 0.99),
        )
        for name in found
    ]


def show_floor(rounds: int, scale: float) -> None:
    """What columns cost, beside what receiving the same bytes does."""
    for size in SIZES:
        count = int(COUNTS[size] * ARROW_TIMES[size] * scale)
        with tempfile.TemporaryDirectory(prefix="ottla-bench-") as folder, BrokerProcess(Path(folder)) as broker:
            topic = Bench(f"127.0.0.1:{broker.port}").filled_topic(count, size)
            floor = Floor(broker, Path(folder), topic, count, size)
            floor.run(rounds)
            floor.show(loopback_bytes_per_second())


def show(rates: list[Rate], latencies: list[Latency]) -> None:
    """Tables for people."""
    console = Console()
    for line in dict.fromkeys((rate.line, rate.size) for rate in rates):
        names = ("client", "records/s", "to confluent-kafka", "of loopback", "of that into a file, checked")
        table = Table(*names, title=f"{line[0]}, {line[1]} B", min_width=60)
        for rate in rates:
            if (rate.line, rate.size) == line:
                name = rate.contender.replace("confluent", "confluent-kafka").replace("kafka_", "kafka-")
                table.add_row(
                    name,
                    f"{rate.records_per_second:,.0f}",
                    f"{rate.ratio_to_confluent:.2f}",
                    f"{rate.share_of_loopback:.0%}",
                    "-" if rate.share_of_kept is None else f"{rate.share_of_kept:.0%}",
                )
        console.print(table)
    if not latencies:
        return
    ratio = "to confluent-kafka, middle half"
    table = Table("client", "p50", ratio, "p99", ratio, title="a single send, acknowledged", min_width=60)
    for latency in latencies:
        name = latency.contender.replace("confluent", "confluent-kafka").replace("kafka_", "kafka-")
        p50, p99 = f"{latency.p50_us:.0f} us", f"{latency.p99_us:.0f} us"
        table.add_row(name, p50, str(latency.p50_ratio), p99, str(latency.p99_ratio))
    console.print(table)


def main() -> int:
    """Measure, and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.client", description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.add_argument("--quick", action="store_true", help="a tenth of the records, one round")
    parser.add_argument("--rounds", type=int, default=5, help="how often everybody takes a turn")
    parser.add_argument("--only", choices=["produce", "consume", "latency"], help="these lines alone")
    parser.add_argument("--floor", action="store_true", help="what columns cost, and what receiving them does")
    parser.add_argument("--paced", action="store_true", help="stay on the machine's loopback even if that is paced")
    options = parser.parse_args()
    network = leave_pacing(wanted=not options.paced)
    rounds, scale = (1, 0.1) if options.quick else (options.rounds, 1.0)
    if options.floor:
        show_floor(rounds, scale)
        return 0
    rates: list[Rate] = []
    latencies: list[Latency] = []
    with (
        tempfile.TemporaryDirectory(prefix="ottla-bench-") as folder,
        BrokerProcess(Path(folder), AT_ONCE) as broker,
        Progress(console=Console(stderr=True), transient=True) as progress,
    ):
        bench = Bench(f"127.0.0.1:{broker.port}")
        for task in OBJECT_TASKS:
            if options.only in (None, task):
                for size in SIZES:
                    rates += measure_rates(bench, task, size, rounds, scale, progress)
        if options.only in (None, "latency"):
            latencies = measure_latencies(bench, rounds, progress)
    if options.json:
        found = {"rates": [asdict(rate) for rate in rates], "latencies": [asdict(one) for one in latencies]}
        print(json.dumps({"network": network, **found}))
    else:
        print(f"network: {network}")
        show(rates, latencies)
    return 0


if __name__ == "__main__":
    sys.exit(main())
