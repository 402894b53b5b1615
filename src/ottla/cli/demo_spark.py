"""The third part of `ottla demo`: a pipeline in Spark over the orders, into a table and into topics.

It is run as users run theirs, by `ottla pipeline run`.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ottla.cli.demo_orders import PARTITIONS
from ottla.cli.demo_telling import Teller

JAVA = 17
"""The oldest Java that Spark 4 runs on."""
TABLE, BY_MINUTE, REJECTED = "table", "orders-by-minute", "orders-rejected"
BATCHES, BATCH_RECORDS = 5, 1_000
"""So many micro-batches, unless they would be smaller than this."""

PIPELINE = f"""\
dead_letters = "{REJECTED}"

[source]
topics = "orders"

[source.decode]
format = "json"
schema = "`order` STRING NOT NULL, user INT, country STRING, cents BIGINT, at_ms BIGINT"

[[step]]
name = "orders"
sql = "SELECT value.*, timestamp_millis(value.at_ms) AS at FROM input"
watermark = {{ column = "at", delay = "10 minutes" }}

[[step]]
name = "sums"
sql = \"\"\"
SELECT unix_millis(window.start) AS minute_ms, country, count(*) AS orders, sum(cents) AS cents
FROM orders GROUP BY window(at, '1 minute'), country
\"\"\"

[[sink]]
name = "table"
input = "orders"
parquet = "{TABLE}"
partition_by = "country"

[[sink]]
name = "sums"
input = "sums"
topic = "{BY_MINUTE}"
mode = "update"
key = "concat(minute_ms, ' ', country)"
"""


@dataclass(slots=True)
class SinkFigures:
    """What a sink did."""

    batches: int = 0
    rows_in: int = 0
    rows_out: int = 0
    seconds: float = 0.0
    """What its micro-batches took together; the two sinks share the machine."""

    rows_per_second: float = 0.0
    """Rows in, on average."""

    def add(self, event: dict[str, Any]) -> None:
        """A micro-batch is done."""
        self.batches, self.rows_in, self.rows_out = event["batches"], event["rows_in"], event["rows_out"]
        self.seconds += event["batch_ms"] / 1000
        self.rows_per_second = self.rows_in / self.seconds if self.seconds else 0.0


@dataclass(slots=True)
class PipelineFigures:
    """What the pipeline did."""

    start_s: float = 0.0
    """Until its queries ran."""
    seconds: float = 0.0
    """From the command to its end."""
    sinks: dict[str, SinkFigures] = field(default_factory=dict)


class PipelineFailedError(Exception):
    """The command ended with an error; this is what it said."""


def why_not() -> str | None:
    """What is missing for Spark, and how to get it; None if all is there."""
    for module in ("pyspark", "pyarrow"):
        if find_spec(module) is None:
            return f"{module} is not installed: pip install 'ottla[spark]'"
    home = os.environ.get("JAVA_HOME")
    java = f"{home}/bin/java" if home else "java"
    try:
        done = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    except OSError:
        done = None
    if done is None or done.returncode:
        return f"{java} does not run: install Java {JAVA} or later" + (", or set JAVA_HOME right" if home else "")
    version = re.search(r'version "(\d+)', done.stderr)
    if version and int(version[1]) < JAVA:
        return f"{java} is of version {version[1]}: install Java {JAVA} or later, or set JAVA_HOME to one"
    return None


def run_pipeline(folder: Path, address: str, records: int, teller: Teller) -> PipelineFigures:
    """Run the pipeline over all records that are there; its table is in the folder then."""
    file = folder / "orders.toml"
    file.write_text(PIPELINE)
    # What a micro-batch may have is shared out among partitions and rounded down; a few more, and none are left over.
    batch = max(BATCH_RECORDS, -(-records // BATCHES)) + PARTITIONS
    command = [sys.executable, "-m", "ottla", "pipeline", "run", str(file), "--available-now", "--json"]
    command += ["--set", f"source.bootstrap_servers={address}", "--set", f"source.max_records_per_batch={batch}"]
    figures = PipelineFigures()
    began = time.perf_counter()
    with teller.bars() as bars:
        bars.show("Spark starts", 0, None)
        for event in _batches(command):
            if not figures.sinks:
                figures.start_s = max(0.0, time.perf_counter() - began - event["batch_ms"] / 1000)
                teller.did(figures.start_s, "Spark is up, and the pipeline runs")
                bars.hide("Spark starts")
            name = event["sink"]
            rows = event["rows_in"] - figures.sinks[name].rows_in if name in figures.sinks else event["rows_in"]
            figures.sinks.setdefault(name, SinkFigures()).add(event)
            # The last may have none: it only takes the time of the orders before into account.
            if rows:
                bars.show(name, event["rows_in"], records, event["rows_per_second"])
                what = f"{name}, micro-batch {event['batch']}: {rows:,} orders, {event['rows_per_second']:,.0f}/s"
                teller.did(event["batch_ms"] / 1000, what)
    figures.seconds = time.perf_counter() - began
    return figures


def _batches(command: list[str]) -> Iterator[dict[str, Any]]:
    """What the command says of each micro-batch. What Java says is shown only if it fails."""
    with (
        tempfile.TemporaryFile("w+") as noise,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=noise, text=True) as process,
    ):
        try:
            assert process.stdout is not None
            for line in process.stdout:
                if line.startswith("{") and (event := json.loads(line))["event"] == "batch":
                    yield event
        except BaseException:
            process.terminate()
            raise
        if process.wait():
            noise.seek(0)
            said = noise.read().strip()
            # The command's own word comes last, behind what Java has to say.
            raise PipelineFailedError(said.rpartition("error: ")[2] or f"exit code {process.returncode}")
