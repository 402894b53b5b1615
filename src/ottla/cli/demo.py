"""`ottla demo`: the record formats, a million orders through a broker and back, and a pipeline in Spark over them."""

import asyncio
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import typer

from ottla.cli.demo_broker import Broker, broker_in, produce_and_consume
from ottla.cli.demo_checks import check, comparison
from ottla.cli.demo_formats import show_formats
from ottla.cli.demo_orders import Orders
from ottla.cli.demo_spark import PIPELINE, PipelineFailedError, run_pipeline, why_not
from ottla.cli.demo_telling import Teller
from ottla.cli.ending import FAILED, complain
from ottla.native import PURE_PYTHON
from ottla.record.kernels import COMPILED


def show(*, as_json: bool, records: int) -> None:
    """Show all parts; exit code 1 if anything did not come back as it went."""
    began = time.perf_counter()
    teller = Teller(as_json=as_json)
    teller.heading("A record on the wire, in each format that there ever was")
    sound = show_formats(teller.console, as_json=as_json)
    with tempfile.TemporaryDirectory(prefix="ottla-demo-") as folder, broker_in(Path(folder, "data")) as broker:
        teller.heading(f"{records:,} orders through a broker")
        orders = Orders(records)
        figures = asyncio.run(produce_and_consume(broker, orders, teller))
        teller.result("broker", figures._asdict())
        teller.heading("The same orders through Spark, into a table and a second topic")
        agree = _spark(Path(folder), broker, orders, teller)
    engine = "compiled" if COMPILED else "pure Python, as asked" if PURE_PYTHON else "pure Python"
    teller.did(time.perf_counter() - began, f"in all; everything is stopped and removed. Codec in use: {engine}")
    if not (sound and figures.in_order and agree):
        complain("NO: not all is as it must be, see above")
        raise typer.Exit(FAILED)


def _spark(folder: Path, broker: Broker, orders: Orders, teller: Teller) -> bool:
    """Whether Spark made of the orders what it had to, or could not be asked."""
    if (reason := why_not()) is not None:
        teller.say(f"Left out, since {reason}")
        teller.result("spark", {"skipped": reason})
        return True
    teller.quote(PIPELINE)
    teller.say("[bold]ottla pipeline run orders.toml --available-now[/]")
    try:
        pipeline = run_pipeline(folder, broker.address, orders.count, teller)
    except PipelineFailedError as error:
        complain(f"the pipeline failed: {error}")
        teller.result("spark", {"failed": str(error), "agree": False})
        return False
    for name, sink in pipeline.sinks.items():
        teller.did(sink.seconds, f"{name}, all: {sink.rows_in:,} orders, {sink.rows_per_second:,.0f}/s")
    began = time.perf_counter()
    checks = check(folder, broker.address, orders)
    teller.did(time.perf_counter() - began, "read back without Spark, and compared with what was produced:")
    teller.say(comparison(checks))
    found: dict[str, Any] = {name: one._asdict() for name, one in checks._asdict().items()}
    teller.result("spark", {**asdict(pipeline), **found, "agree": checks.agree})
    return checks.agree
