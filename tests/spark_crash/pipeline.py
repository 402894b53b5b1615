"""A pipeline in a process of its own, which is started again whenever it ends, as a supervisor would do."""

import json
import logging
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Literal

from tests.spark_crash.cluster import SETTINGS, environment
from tests.spark_crash.points import VARIABLE, Points
from tests.spark_crash.processes import Running, ancestors, descendants, end_family, kill, processes

SOURCE, COPIES = "numbers", "copies"
TABLE_SINK, TOPIC_SINK = "table", "copies"
BATCH_ROWS = 1000
GOODBYE_SECONDS = 60.0
JAVA_DRIVER = "org.apache.spark.deploy.SparkSubmit"

Part = Literal["whole driver", "driver's Python", "driver's Java"]
PARTS: tuple[Part, ...] = ("whole driver", "driver's Python", "driver's Java")

FILE = """
checkpoint = "checkpoint"

[spark]
{settings}

[source]
bootstrap_servers = "{servers}"
topics = "{source}"
group = "crash"
max_records_per_batch = {rows}

[[step]]
sql = "SELECT partition, offset, CAST(CAST(value AS STRING) AS BIGINT) AS number FROM input"

[[sink]]
name = "{table_sink}"
delta = "table"

[[sink]]
name = "{topic_sink}"
topic = "{copies}"
"""


log = logging.getLogger(__name__)


class Sleeper:
    """A driver that stands still."""

    def __init__(self, process: subprocess.Popen[str], java: list[int]) -> None:
        self._process = process
        self._pids = [process.pid, *java]
        for pid in self._pids:
            os.kill(pid, signal.SIGSTOP)

    def wake(self) -> None:
        """Have it go on."""
        for pid in self._pids:
            os.kill(pid, signal.SIGCONT)

    def has_ended(self) -> bool:
        """Whether it is gone."""
        return self._process.poll() is not None


class PipelineProcess:
    """`ottla pipeline run` over the topic of numbers, into a table and into a second topic."""

    def __init__(self, folder: Path, servers: str, master: str) -> None:
        self.folder = folder
        self.points = Points(folder / "points")
        self.points.folder.mkdir()
        self.starts = 0
        self.failures: list[str] = []
        """What it said when it ended by itself."""
        self._master = master
        self._process: subprocess.Popen[str] | None = None
        self._batches: dict[str, int] = {}
        self._left: dict[int, Running] = {}
        """What drivers that were killed had started."""
        settings = "\n".join(f'"{name}" = "{value}"' for name, value in SETTINGS.items())
        self._file = folder / "numbers.toml"
        self._file.write_text(
            FILE.format(
                settings=settings,
                servers=servers,
                source=SOURCE,
                copies=COPIES,
                rows=BATCH_ROWS,
                table_sink=TABLE_SINK,
                topic_sink=TOPIC_SINK,
            )
        )

    def start(self, *words: str) -> None:
        """Start it."""
        self.starts += 1
        self._batches = {}
        command = [sys.executable, "-m", "tests.spark_crash.driver", "pipeline", "run", str(self._file), "--json"]
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                [*command, "--master", self._master, *words],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env={**environment(), VARIABLE: str(self.points.folder)},
            )
        threading.Thread(target=self._follow, args=(self._process, self._batches), daemon=True).start()

    @property
    def _log(self) -> Path:
        return self.folder / f"pipeline-{self.starts}.log"

    @staticmethod
    def _follow(process: subprocess.Popen[str], batches: dict[str, int]) -> None:
        assert process.stdout is not None
        with process.stdout:
            for line in process.stdout:
                # The last line of one that was killed may be cut.
                with suppress(json.JSONDecodeError):
                    if line.startswith("{") and (event := json.loads(line))["event"] == "batch":
                        batches[event["sink"]] = event["batches"]

    def tend(self) -> None:
        """Start it again if it has ended."""
        if self._process is None or self._process.poll() is not None:
            if self._process is not None and self._process.returncode >= 0:
                self.failures.append(self._log.read_text()[-500:])
                log.info("a driver has ended by itself: %s", self.failures[-1].strip().rpartition("\n")[2])
            self.start()

    @property
    def batches(self) -> int:
        """How many micro-batches each of its queries has done since it was started."""
        return min(self._batches.get(TABLE_SINK, 0), self._batches.get(TOPIC_SINK, 0))

    def python_workers(self) -> list[int]:
        """Processes of Python below the driver's Java: tasks, and what plans and commits for it."""
        assert self._process is not None
        return [one.pid for one in descendants(self._process.pid) if "pyspark" in one.command and "-m" in one.command]

    def executor_of(self, pid: int) -> int:
        """The Java process that a worker of Python belongs to: the executor's, or the driver's where that has none."""
        return next(one.pid for one in ancestors(pid) if "java" in one.command.split()[0])

    def kill(self, part: Part = "whole driver") -> None:
        """Kill the driver or a part of it.

        Its workers are left to notice, and so is Java where only Python is killed: the next driver starts beside them.
        """
        assert self._process is not None
        family = descendants(self._process.pid)
        self._left |= {one.pid: one for one in family}
        if part != "driver's Java":
            kill([self._process.pid])
        if part != "driver's Python":
            kill(one.pid for one in family if JAVA_DRIVER in one.command)
        self._process.wait(GOODBYE_SECONDS)

    def put_to_sleep(self) -> Sleeper:
        """Have the driver stand still, and another one take its place."""
        assert self._process is not None
        family = descendants(self._process.pid)
        self._left |= {one.pid: one for one in [*family, *ancestors(self._process.pid)[:1]]}
        sleeper = Sleeper(self._process, [one.pid for one in family if JAVA_DRIVER in one.command])
        self.start()
        return sleeper

    def finish(self, seconds: float) -> int:
        """Take all records that are there, and end; what it returned."""
        self.start("--available-now", "--set", "source.max_records_per_batch=50000")
        assert self._process is not None
        return self._process.wait(seconds)

    def end(self) -> list[str]:
        """Leave nothing behind. Returns what was still there of drivers that were killed."""
        if self._process is not None:
            end_family(self._process)
        running = {(one.pid, one.command) for one in processes().values()}
        late = [one for one in self._left.values() if (one.pid, one.command) in running]
        kill(one.pid for one in late)
        return [one.command for one in late]
