"""`ottla pipeline`: run pipelines from files, and check the files."""

import logging
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.live import Live
from rich.table import Table

from ottla.cli.access import on_topics, refusal
from ottla.cli.ending import FAILED, INTERRUPTED, complain, fail
from ottla.cli.output import Json, make_table, parse_settings, print_json, say
from ottla.client.java_security import in_java_words
from ottla.cluster.acl import ACLOperation
from ottla.wire.errors import KafkaError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ottla.spark.pipeline.copying import Compared
    from ottla.spark.pipeline.run import Branch, Pipeline
    from ottla.spark.pipeline.spec import PipelineSpec

app = typer.Typer(help="Run pipelines: topics in, SQL or Python over them, tables or topics out.", no_args_is_help=True)

LOOK_S = 0.5
SILENCE = """\
rootLogger.level = off
rootLogger.appenderRef.none.ref = none
appender.none.type = Null
appender.none.name = none
"""
"""Settings of log4j. Where the root has no appender, Spark puts its own settings in their place."""

File = Annotated[Path, typer.Argument(help="The pipeline, in TOML.", exists=True, dir_okay=False)]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Another value for a key, as sink.0.topic; repeatable."),
]


@app.command()
def check(file: File, settings: Settings = None, json: Json = False) -> None:
    """See whether a file is right, without starting anything."""
    spec = _load(file, settings)
    if json:
        print_json({"name": spec.name, "checkpoint": spec.checkpoint, "sinks": [sink.name for sink in spec.sinks]})
    else:
        say(f"{file} is fine: {_describe(spec)}")


@app.command()
def run(
    file: File,
    master: Annotated[str | None, typer.Option(help="A Spark master; all cores of this machine by default.")] = None,
    available_now: Annotated[
        bool, typer.Option("--available-now", "--once", help="Take all records that are there, and end.")
    ] = False,
    settings: Settings = None,
    json: Json = False,
) -> None:
    """Run a pipeline until it is interrupted, or with --available-now until all records are taken.

    Run again it goes on where it was.
    """
    spec = _load(file, settings)
    from py4j.protocol import Py4JNetworkError

    from ottla.spark.pipeline.section import PipelineError

    try:
        _run(spec, master, available_now=available_now, as_json=json)
    except (KafkaError, PipelineError, ValueError) as error:
        fail(in_java_words(str(error), "kafka."))
    except (ConnectionError, Py4JNetworkError):
        fail(
            "Spark's Java process is gone: it was killed, or the machine had no memory left for it. "
            "Run the pipeline again: it goes on where it was"
        )


def _load(file: Path, settings: list[str] | None) -> "PipelineSpec":
    given = parse_settings(settings or [], "--set")
    try:
        from ottla.spark.pipeline.load import load
        from ottla.spark.pipeline.section import PipelineError
    except ImportError as error:
        fail(f"pipelines need Spark ({error}): pip install 'ottla[spark]'")
    try:
        return load(file, given)
    except PipelineError as error:
        fail(f"{file}: {error}")


def _refusal(spec: "PipelineSpec", error: KafkaError) -> str | None:
    """What to say to somebody who may not read the topics; None if it is something else."""
    from ottla.spark.options import SourceOptions

    security = SourceOptions.parse(spec.source.options, streaming=True).client.security
    topics = [name.strip() for name in spec.source.options.get("subscribe", "").split(",") if name.strip()]
    return refusal(error, [on_topics(ACLOperation.READ, topics)], security)


def _run(spec: "PipelineSpec", master: str | None, *, available_now: bool, as_json: bool) -> None:
    from ottla.spark.pipeline import run as running
    from ottla.spark.pipeline.spec import AVAILABLE_NOW

    try:
        partitions = running.check(spec)
    except KafkaError as error:
        fail(_refusal(spec, error) or in_java_words(str(error), "kafka."))
    # Spark's workers are to be this Python, with the packages that are here.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    if not as_json:
        say(f"starting Spark for {_describe(spec)}")
    spark = _start_quietly(spec, master)
    view = _View(as_json=as_json)
    ends_by_itself = available_now or spec.trigger == AVAILABLE_NOW
    try:
        pipeline = running.Pipeline(spec, spark, show=view.show, available_now=available_now)
        with _interruption() as interrupted:
            pipeline.start(partitions)
            try:
                with view.following(pipeline):
                    while pipeline.is_active and not interrupted.is_set():
                        view.update(pipeline)
                        interrupted.wait(LOOK_S)
                    view.update(pipeline)
            finally:
                pipeline.stop()
                view.summary(pipeline)
        if interrupted.is_set():
            if ends_by_itself:
                raise typer.Exit(INTERRUPTED)
        elif (compared := pipeline.compare_copies()) and not view.compared(compared):
            complain("the copy is not what was copied; records that expired since, or were written twice, show so too")
            raise typer.Exit(FAILED)
    finally:
        spark.stop()


def _start_quietly(spec: "PipelineSpec", master: str | None) -> "SparkSession":
    """Start Spark without what it and its libraries say on the way, which buries what matters.

    Why a query failed is said once, at the end. A file that sets spark.log.level has Spark say more.
    """
    from ottla.spark.pipeline.run import start_spark

    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    with NamedTemporaryFile("w", suffix=".properties") as file:
        file.write(SILENCE)
        file.flush()
        return start_spark(spec, master, {"spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={file.name}"})


@contextmanager
def _interruption() -> Iterator[threading.Event]:
    """An event that SIGINT and SIGTERM set."""
    interrupted = threading.Event()
    before = {number: signal.signal(number, lambda *_: interrupted.set()) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield interrupted
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _describe(spec: "PipelineSpec") -> str:
    options = spec.source.options
    topics = options.get("subscribe") or f"topics like {options['subscribePattern']}"
    sinks = ", ".join(f"{sink.kind} {sink.target}".strip() for sink in spec.sinks)
    return f"{spec.name}: {topics} at {spec.source.bootstrap_servers} -> {sinks}; checkpoint in {spec.checkpoint}"


class _View:
    """What people, or with --json programs, see of a pipeline."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self._console = Console(stderr=True, highlight=False)
        self._live: Live | None = None

    @contextmanager
    def following(self, pipeline: "Pipeline") -> Iterator[None]:
        """Keep a table on the terminal up to date."""
        if self._as_json or not self._console.is_terminal:
            yield
            return
        with Live(console=self._console, auto_refresh=False, transient=True) as self._live:
            yield
        self._live = None

    def update(self, pipeline: "Pipeline") -> None:
        """Take in what was done since."""
        for branch, progress in pipeline.poll():
            if self._as_json:
                print_json({"event": "batch", "batch": progress["batchId"], **_figures(branch)})
            elif self._live is None:
                tally = branch.tally
                say(
                    f"{branch.sink.name} batch {progress['batchId']}: {progress['numInputRows']:,} rows in "
                    f"{tally.batch_ms:,} ms, {tally.rows_per_second:,.0f}/s, lag {tally.lag or 0:,}"
                )
        if self._live is not None:
            self._live.update(_table(pipeline), refresh=True)

    def show(self, sink: str, batch_id: int, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """The rows of a console sink, on stdout."""
        if self._as_json:
            for row in rows:
                values = {name: _plain(value) for name, value in zip(columns, row, strict=True)}
                print_json({"event": "row", "sink": sink, "batch": batch_id, "row": values})
        else:
            table = make_table(columns, [[_plain(value) for value in row] for row in rows], title=f"batch {batch_id}")
            (self._live.console if self._live else Console(highlight=False, markup=False)).print(table)

    def summary(self, pipeline: "Pipeline") -> None:
        """What was done in all."""
        if self._as_json:
            for branch in pipeline.branches:
                print_json({"event": "summary", **_figures(branch)})
        elif pipeline.branches:
            self._console.print(_table(pipeline))

    def compared(self, partitions: "list[Compared]") -> bool:
        """Whether copies are what was copied, partition by partition."""
        if self._as_json:
            for one in partitions:
                print_json({"event": "compared", **one._asdict()})
        else:
            rows = [
                (*one[:2], f"{one.records:,}", f"{one.copied:,}", "yes" if one.is_same else "NO") for one in partitions
            ]
            self._console.print(make_table(["topic", "partition #", "records #", "copied #", "same"], rows))
        return all(one.is_same for one in partitions)


def _figures(branch: "Branch") -> dict[str, Any]:
    tally = branch.tally
    return {
        "sink": branch.sink.name,
        "batches": tally.batches,
        "rows_in": tally.rows_in,
        "rows_out": tally.rows_out,
        "rejected": _rejected(branch),
        "rows_per_second": tally.rows_per_second,
        "batch_ms": tally.batch_ms,
        "lag": tally.lag,
        "watermark": tally.watermark,
    }


def _rejected(branch: "Branch") -> dict[str, int]:
    """Rows that went elsewhere, by what they did not meet."""
    found = dict(branch.tally.observed)
    decoded = found.pop("decoded", None)
    return found if decoded is None else {"source.decode": branch.tally.rows_in - decoded, **found}


def _table(pipeline: "Pipeline") -> Table:
    rows = []
    for branch in pipeline.branches:
        tally = branch.tally
        rejected = ", ".join(f"{name} {count:,}" for name, count in _rejected(branch).items() if count)
        lag = "" if tally.lag is None else f"{tally.lag:,}"
        numbers = [tally.batches, tally.rows_in, tally.rows_out, round(tally.rows_per_second), tally.batch_ms]
        rows.append([branch.sink.name, *[f"{number:,}" for number in numbers], lag, rejected])
    columns = ["sink", "batches #", "rows in #", "rows out #", "rows/s #", "batch ms #", "lag #", "rejected"]
    return make_table(columns, rows)


def _plain(value: Any) -> Any:
    if isinstance(value, bytes | bytearray):
        return bytes(value).decode(errors="replace")
    return value if isinstance(value, str | int | float | bool | None) else str(value)
