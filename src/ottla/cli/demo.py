"""`ottla demo`: the record formats on the wire, then a broker that takes a million records and gives them back."""

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import NamedTuple

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

from ottla.cli.demo_formats import show_formats
from ottla.client import Producer
from ottla.client.consumer import Consumer
from ottla.native import PURE_PYTHON
from ottla.record.kernels import COMPILED

TOPIC = "demo"
VALUE_BYTES = 100


class Figures(NamedTuple):
    """What was seen."""

    records: int
    start_s: float
    produce_s: float
    consume_s: float
    memory_mb: float
    in_order: bool


def show(*, as_json: bool, records: int) -> None:
    """Show both parts; exit code 1 if anything did not come back as it went."""
    console = Console()
    sound = show_formats(console, as_json=as_json)
    figures = asyncio.run(_run(records, Console(stderr=True)))
    if as_json:
        console.out(json.dumps({"broker": figures._asdict()}), highlight=False)
    else:
        _print(console, figures)
    if not sound or not figures.in_order:
        raise typer.Exit(1)


async def _run(records: int, progress_console: Console) -> Figures:
    with tempfile.TemporaryDirectory(prefix="ottla-demo-") as folder:
        started = time.perf_counter()
        command = [sys.executable, "-m", "ottla", "serve", "--listen", "127.0.0.1:0", "--data", folder]
        broker = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            assert broker.stdout is not None
            line = await asyncio.to_thread(broker.stdout.readline)
            if " ready at " not in line:
                raise RuntimeError(f"the broker did not start: {line!r}")
            start_s = time.perf_counter() - started
            address = line.split(" ready at ")[1].split(",")[0]
            return await _write_and_read(address, records, start_s, broker.pid, progress_console)
        finally:
            broker.terminate()
            await asyncio.to_thread(broker.wait)
            assert broker.stdout is not None
            broker.stdout.close()


async def _write_and_read(address: str, records: int, start_s: float, pid: int, console: Console) -> Figures:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("produced", total=records)
        began = time.perf_counter()
        async with Producer(bootstrap_servers=address) as producer:
            for number in range(records):
                await producer.send(TOPIC, b"%0*d" % (VALUE_BYTES, number))
                if number % 20_000 == 0:
                    progress.update(task, completed=producer.records_sent)
        produce_s = time.perf_counter() - began
        task = progress.add_task("consumed", total=records)
        consume_s, in_order = await _read(address, records, lambda count: progress.update(task, completed=count))
    return Figures(records, start_s, produce_s, consume_s, _memory_mb(pid), in_order)


async def _read(address: str, records: int, on_progress: Callable[[int], None]) -> tuple[float, bool]:
    began = time.perf_counter()
    count, in_order = 0, True
    async with Consumer(TOPIC, bootstrap_servers=address, auto_offset_reset="earliest") as consumer:
        async for record in consumer:
            in_order = in_order and record.value == b"%0*d" % (VALUE_BYTES, count)
            count += 1
            if count % 20_000 == 0:
                on_progress(count)
            if count == records:
                break
    return time.perf_counter() - began, in_order


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


def _print(console: Console, figures: Figures) -> None:
    table = Table(title="A broker in a process of its own, and a client in pure asyncio", title_justify="left")
    table.add_column("what")
    table.add_column("figure", justify="right")
    table.add_row("from nothing to ready", f"{figures.start_s * 1000:,.0f} ms")
    table.add_row(f"records produced, {VALUE_BYTES} bytes each", f"{figures.records:,}")
    table.add_row("produced per second, acks=all", f"{figures.records / figures.produce_s:,.0f}")
    table.add_row("consumed per second", f"{figures.records / figures.consume_s:,.0f}")
    table.add_row("all back, in order", "yes" if figures.in_order else "NO")
    if figures.memory_mb:
        table.add_row("memory of the broker afterwards", f"{figures.memory_mb:,.0f} MB")
    console.print(table)
    engine = "compiled" if COMPILED else "pure Python, as asked" if PURE_PYTHON else "pure Python"
    console.print(f"Codec in use: {engine}. `ottla demo --json` prints this for programs.", highlight=False)
