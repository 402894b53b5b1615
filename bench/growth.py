"""`python -m bench.growth`: what a broker costs as it grows, in partitions and in bytes.

Start time, memory and open files after a clean stop, against the number of partitions; a small produce and a fetch,
at the head and at random old offsets, against the size of a log.
"""

import argparse
import asyncio
import json
import os
import random
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import Progress, TaskID
from rich.table import Table

from ottla.client.admin import AdminClient, NewTopic
from ottla.client.cluster import Cluster

from .caller import Caller, fetch_frame, fetched_bytes, produce_frame, produced_offset
from .process import BrokerProcess

TOPIC = "growth"
TOPICS_PER_REQUEST = 50
FILL_RECORDS, FILL_VALUE_BYTES = 64, 1_000
SMALL_VALUE_BYTES = 100
IN_FLIGHT = 8
SPARE_BYTES = 5 * 10**9
"""What must stay free on the disk beside the log."""


@dataclass(frozen=True)
class PartitionCost:
    """A broker with so many partitions, started after a clean stop. Medians over the starts."""

    partitions: int
    create_seconds: float
    created_bytes: int
    """Memory right after they were created."""
    stop_seconds: float
    start_seconds: float
    process_seconds: float
    resident_bytes: int
    open_files: int


@dataclass(frozen=True)
class RequestCost:
    """Medians of the time to a reply, and the broker's mean time on a core, in microseconds."""

    reply_us: float
    broker_us: float


@dataclass(frozen=True)
class SizeCost:
    """Requests to a log of a certain size."""

    log_bytes: int
    fill_bytes_per_second: float
    produce: RequestCost
    fetch_head: RequestCost
    fetch_old: RequestCost
    resident_bytes: int


def main() -> int:
    """Measure, and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.growth", description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.add_argument("--quick", action="store_true", help="1,000 partitions and 1 GB at most")
    parser.add_argument("--full", action="store_true", help="up to 10 GB instead of 4")
    parser.add_argument("--per-topic", type=int, default=10, help="partitions of each topic (%(default)s)")
    parser.add_argument("--starts", type=int, default=5, help="starts to take the median of (%(default)s)")
    parser.add_argument("--calls", type=int, default=2_000, help="requests of each kind and size (%(default)s)")
    parser.add_argument("--data", type=Path, help="where the data goes for the time being (the temporary folder)")
    options = parser.parse_args()
    counts = [0, 1_000] if options.quick else [0, 1_000, 10_000]
    gigabytes = [0.1, 1.0] if options.quick else [0.1, 1.0, 4.0] + ([10.0] if options.full else [])
    sizes = [int(size * 10**9) for size in gigabytes]
    with Progress(console=Console(stderr=True), transient=True) as progress, _folder(options.data) as folder:
        free = shutil.disk_usage(folder).free
        if free < sizes[-1] + SPARE_BYTES:
            print(f"{folder} has {free / 1e9:.1f} GB free; {(sizes[-1] + SPARE_BYTES) / 1e9:.0f} GB are needed, "
                  "so make room, give another --data, or ask for --quick", file=sys.stderr)  # fmt: skip
            return 1
        task = progress.add_task("partitions", total=len(counts))
        partitions = []
        for count in counts:
            partitions.append(partition_cost(folder, count, options.per_topic, options.starts))
            progress.advance(task)
        filling = progress.add_task("log", total=sizes[-1])
        log = list(size_costs(folder, sizes, options.calls, progress, filling))
    if options.json:
        print(json.dumps({"partitions": [asdict(one) for one in partitions], "log": [asdict(one) for one in log]}))
    else:
        show(partitions, log)
    return 0


@contextmanager
def _folder(parent: Path | None) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="ottla-growth-", dir=parent) as folder:
        yield Path(folder)


def partition_cost(parent: Path, count: int, per_topic: int, starts: int) -> PartitionCost:
    """Create so many partitions, stop, and start again a few times."""
    folder = parent / f"partitions-{count}"
    with BrokerProcess(folder) as broker:
        began = time.perf_counter()
        asyncio.run(_create(broker.port, count, per_topic))
        create_seconds = time.perf_counter() - began
        created_bytes = broker.resident_bytes
        stop_seconds = broker.stop()
    found: list[tuple[float, float, int, int]] = []
    for _ in range(starts):
        with BrokerProcess(folder) as broker:
            found.append((broker.start_seconds, broker.process_seconds, broker.resident_bytes, broker.open_data_files))
    shutil.rmtree(folder)
    start, process, resident, files = (list(column) for column in zip(*found, strict=True))
    return PartitionCost(
        count,
        create_seconds,
        created_bytes,
        stop_seconds,
        statistics.median(start),
        statistics.median(process),
        int(statistics.median(resident)),
        int(max(files)),
    )


async def _create(port: int, count: int, per_topic: int) -> None:
    topics = [NewTopic(f"topic-{first}", min(per_topic, count - first)) for first in range(0, count, per_topic)]
    async with Cluster(f"127.0.0.1:{port}", request_timeout_ms=120_000) as cluster:
        admin = AdminClient(cluster)
        for first in range(0, len(topics), TOPICS_PER_REQUEST):
            await admin.create_topics(topics[first : first + TOPICS_PER_REQUEST])


def size_costs(parent: Path, sizes: Sequence[int], calls: int, progress: Progress, task: TaskID) -> Iterator[SizeCost]:
    """Fill one log further and further, and measure requests at each size."""
    folder = parent / "log"
    chance = random.Random(1)
    with BrokerProcess(folder) as broker, Caller(broker.address) as caller:
        asyncio.run(_create_log(broker.port))
        small = produce_frame(TOPIC, 1, SMALL_VALUE_BYTES)
        large = produce_frame(TOPIC, FILL_RECORDS, FILL_VALUE_BYTES)
        filled = 0
        for size in sizes:
            began = time.perf_counter()
            end = _fill(caller, large, (size - filled) // len(large), lambda: progress.advance(task, len(large)))
            rate = (size - filled) / (time.perf_counter() - began)
            filled = size
            _settle(folder)
            produced = _timed(broker, caller, (small for _ in range(calls)), _check_produced)
            last = produced_offset(caller.call(small))
            head = fetch_frame(TOPIC, last, 1)
            old = [fetch_frame(TOPIC, chance.randrange(end), 1) for _ in range(calls)]
            yield SizeCost(
                size,
                rate,
                produced,
                _timed(broker, caller, (head for _ in range(calls)), _check_fetched),
                _timed(broker, caller, old, _check_fetched),
                broker.resident_bytes,
            )
    shutil.rmtree(folder)


async def _create_log(port: int) -> None:
    async with Cluster(f"127.0.0.1:{port}") as cluster:
        await AdminClient(cluster).create_topics([NewTopic(TOPIC, 1)])


def _fill(caller: Caller, request: bytes, count: int, advance: Callable[[], None]) -> int:
    """Append batches, some of them in flight at a time; the offset after the last."""
    reply = b""
    for number in range(count + IN_FLIGHT):
        if number < count:
            caller.send(request)
        if number >= IN_FLIGHT:
            reply = caller.receive()
            advance()
    return produced_offset(reply) + FILL_RECORDS


def _settle(folder: Path) -> None:
    """Bring the log to the disk, so that what was written before is not written back beside what is timed."""
    for file in folder.glob("*/*.log"):
        with file.open("rb") as opened:
            os.fsync(opened.fileno())


def _check_produced(reply: bytes) -> None:
    produced_offset(reply)


def _check_fetched(reply: bytes) -> None:
    if not fetched_bytes(reply):
        raise RuntimeError("a fetch came back empty")


def _timed(
    broker: BrokerProcess, caller: Caller, requests: Iterator[bytes] | Sequence[bytes], check: Callable[[bytes], None]
) -> RequestCost:
    """One request after the other; the replies are checked outside of what is timed."""
    took: list[float] = []
    cpu = broker.cpu_seconds
    for request in requests:
        began = time.perf_counter()
        reply = caller.call(request)
        took.append(time.perf_counter() - began)
        check(reply)
    return RequestCost(statistics.median(took) * 1e6, (broker.cpu_seconds - cpu) / len(took) * 1e6)


def show(partitions: Sequence[PartitionCost], log: Sequence[SizeCost]) -> None:
    """Print tables."""
    console = Console()
    none = partitions[0]
    table = Table(title="Partitions: the broker after a clean stop, and as they were created")
    for title in ("count", "start ms", "us each", "process ms", "MB", "KB each", "files"):
        table.add_column(title, justify="right")
    for title in ("create s", "KB each", "stop ms"):
        table.add_column(title, justify="right", style="dim")
    for cost in partitions:
        count = cost.partitions or 1
        each = [""] * 3 if not cost.partitions else [
            f"{(cost.start_seconds - none.start_seconds) / count * 1e6:.0f}",
            f"{(cost.resident_bytes - none.resident_bytes) / count / 1024:.1f}",
            f"{(cost.created_bytes - none.created_bytes) / count / 1024:.1f}",
        ]  # fmt: skip
        table.add_row(
            f"{cost.partitions:,}", f"{cost.start_seconds * 1e3:.0f}", each[0], f"{cost.process_seconds * 1e3:.0f}",
            f"{cost.resident_bytes / 1e6:.1f}", each[1], str(cost.open_files),
            f"{cost.create_seconds:.1f}", each[2], f"{cost.stop_seconds * 1e3:.0f}",
        )  # fmt: skip
    console.print(table)
    table = Table(title="One log: microseconds to a reply, and of the broker's time on a core")
    for title in ("GB", "produce", "core", "fetch head", "core", "fetch old", "core", "MB", "fill MB/s"):
        table.add_column(title, justify="right", style="dim" if title == "core" else None)
    for size in log:
        cells = [f"{size.log_bytes / 1e9:.1f}"]
        for request in (size.produce, size.fetch_head, size.fetch_old):
            cells += [f"{request.reply_us:.0f}", f"{request.broker_us:.0f}"]
        table.add_row(*cells, f"{size.resident_bytes / 1e6:.0f}", f"{size.fill_bytes_per_second / 1e6:.0f}")
    console.print(table)
    console.print(
        f"Medians, of core time means. produce: one record of {SMALL_VALUE_BYTES} B; fetch head: that record; fetch old: one batch of "
        f"{FILL_RECORDS * FILL_VALUE_BYTES // 1000} KB at a random offset of what fills the log.",
        style="dim",
    )


if __name__ == "__main__":
    sys.exit(main())
