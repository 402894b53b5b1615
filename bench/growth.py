"""`python -m bench.growth`: what a broker costs as it grows, in partitions and in bytes.

Start time, memory and open files after a clean stop, against the number of partitions; a small produce and a fetch,
at the head and at random old offsets, against the size of a log. Each request to the log that grows takes turns with
one to a log that stays small, so that what else the machine does hits both alike: what counts is their ratio.
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
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.progress import Progress, TaskID
from rich.table import Table

from ottla.client.admin import Admin, NewTopic

from .caller import Caller, fetch_frame, fetched_bytes, produce_frame, produced_offset
from .process import BrokerProcess

GROWING, SMALL = "growing", "small"
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
    """The median time to a reply in microseconds, and how many times as long that is as with the small log."""

    reply_us: float
    ratio: float


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
    async with Admin(f"127.0.0.1:{port}", request_timeout_ms=120_000) as admin:
        for first in range(0, len(topics), TOPICS_PER_REQUEST):
            await admin.create_topics(topics[first : first + TOPICS_PER_REQUEST])


def size_costs(parent: Path, sizes: Sequence[int], calls: int, progress: Progress, task: TaskID) -> Iterator[SizeCost]:
    """Fill one log further and further, and measure requests at each size."""
    folder = parent / "log"
    with BrokerProcess(folder) as broker, Caller(broker.address) as caller:
        asyncio.run(_create_logs(broker.port))
        large = produce_frame(GROWING, FILL_RECORDS, FILL_VALUE_BYTES)
        ends = {SMALL: _fill(caller, produce_frame(SMALL, FILL_RECORDS, FILL_VALUE_BYTES), sizes[0] // len(large))}
        filled = 0
        for size in sizes:
            began = time.perf_counter()
            advance = partial(progress.advance, task, len(large))
            ends[GROWING] = _fill(caller, large, (size - filled) // len(large), advance)
            rate = (size - filled) / (time.perf_counter() - began)
            filled = size
            _settle(folder)
            yield SizeCost(size, rate, *_request_costs(caller, ends, calls), broker.resident_bytes)
    shutil.rmtree(folder)


def _request_costs(caller: Caller, ends: Mapping[str, int], calls: int) -> tuple[RequestCost, RequestCost, RequestCost]:
    """Small produces, fetches of the last record, and fetches of what is anywhere before the given ends."""
    chance = random.Random(1)
    small = [produce_frame(topic, 1, SMALL_VALUE_BYTES) for topic in (GROWING, SMALL)]
    produced = _timed(caller, [[request] * calls for request in small], produced_offset)
    last = [
        fetch_frame(topic, produced_offset(caller.call(request)), 1)
        for topic, request in zip((GROWING, SMALL), small, strict=True)
    ]
    head = _timed(caller, [[request] * calls for request in last], _check_fetched)
    old = [[fetch_frame(topic, chance.randrange(ends[topic]), 1) for _ in range(calls)] for topic in (GROWING, SMALL)]
    return produced, head, _timed(caller, old, _check_fetched)


async def _create_logs(port: int) -> None:
    async with Admin(f"127.0.0.1:{port}") as admin:
        await admin.create_topics([NewTopic(GROWING, 1), NewTopic(SMALL, 1)])


def _fill(caller: Caller, request: bytes, count: int, advance: Callable[[], object] = lambda: None) -> int:
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


def _check_fetched(reply: bytes) -> None:
    if not fetched_bytes(reply):
        raise RuntimeError("a fetch came back empty")


def _timed(caller: Caller, requests: Sequence[Sequence[bytes]], check: Callable[[bytes], object]) -> RequestCost:
    """Requests to the log that grows and to the small one in turn; replies are checked outside of what is timed."""
    took: tuple[list[float], list[float]] = ([], [])
    for turn in zip(*requests, strict=True):
        for request, times in zip(turn, took, strict=True):
            began = time.perf_counter()
            reply = caller.call(request)
            times.append(time.perf_counter() - began)
            check(reply)
    growing, small = map(statistics.median, took)
    return RequestCost(growing * 1e6, growing / small)


def show(partitions: Sequence[PartitionCost], log: Sequence[SizeCost]) -> None:
    """Print tables."""
    console = Console()
    none = partitions[0]
    table = Table(title="Partitions: the broker after a clean stop, and as they were created")
    for title in ("count", "start ms", "us each", "run ms", "MB", "KB each", "files"):
        table.add_column(title, justify="right", no_wrap=title == "count")
    for title in ("make s", "KB each", "stop ms"):
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
    table = Table(title=f"One log: us to a reply, and times that of a log of {log[0].log_bytes / 1e9:g} GB beside it")
    for title in ("GB", "produce", "x", "fetch head", "x", "fetch old", "x", "MB", "fill MB/s"):
        table.add_column(title, justify="right")
    for size in log:
        cells = [f"{size.log_bytes / 1e9:.1f}"]
        for request in (size.produce, size.fetch_head, size.fetch_old):
            cells += [f"{request.reply_us:.0f}", f"{request.ratio:.2f}"]
        table.add_row(*cells, f"{size.resident_bytes / 1e6:.0f}", f"{size.fill_bytes_per_second / 1e6:.0f}")
    console.print(table)
    batch_kilobytes = FILL_RECORDS * FILL_VALUE_BYTES // 1000
    console.print(
        f"Medians. produce: one record of {SMALL_VALUE_BYTES} B; fetch head: that record; fetch old: one batch of "
        f"{batch_kilobytes} KB at a random offset of what fills the log.",
        style="dim",
    )


if __name__ == "__main__":
    sys.exit(main())
