"""A Spark cluster of several processes on this machine: a master, and workers that start executors."""

import os
import re
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

import pyspark

from tests.spark_crash.processes import Running, descendants, end_family, wait_until

PROJECT = Path(__file__).parents[2]
START_SECONDS = 60.0
EXECUTOR = "org.apache.spark.executor.CoarseGrainedExecutorBackend"
SETTINGS = {
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
}
"""For applications, to fit."""


def environment() -> dict[str, str]:
    """For all processes of Spark: loopback only, this Python, and the modules of the tests."""
    paths = [str(PROJECT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        **os.environ,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
        # These processes do not live long enough for Java's better compiler to pay.
        "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        # Else the master listens on a port that is not free of choice.
        "SPARK_MASTER_OPTS": "-Dspark.master.rest.enabled=false",
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join(paths),
    }


class SparkCluster:
    """A master and workers of one core and a gigabyte each, on free ports of 127.0.0.1."""

    def __init__(self, folder: Path, workers: int = 2) -> None:
        self._folder = folder
        self._count = workers
        self._processes: list[subprocess.Popen[str]] = []
        self.master = ""

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _start(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        log = self._launch("master", "master.Master", "--port", "0")
        self.master = _wait_for(log, r"Starting Spark master at (spark://\S+)")
        logs = [
            self._launch(
                f"worker-{number}",
                "worker.Worker",
                *("--port", "0", "--cores", "1", "--memory", "1g"),
                *("--work-dir", str(self._folder / f"work-{number}"), self.master),
            )
            for number in range(self._count)
        ]
        for log in logs:
            _wait_for(log, r"(Successfully registered with master)")

    def _launch(self, name: str, kind: str, *words: str) -> Path:
        log = self._folder / f"{name}.log"
        command = [str(Path(pyspark.__file__).parent / "bin" / "spark-class"), f"org.apache.spark.deploy.{kind}"]
        with log.open("w") as output:
            process = subprocess.Popen(
                [*command, "--host", "127.0.0.1", "--webui-port", "0", *words],
                stdout=output,
                stderr=subprocess.STDOUT,
                text=True,
                env=environment(),
            )
        self._processes.append(process)
        return log

    def executors(self) -> list[Running]:
        """The executors of all applications."""
        found = descendants(*[process.pid for process in self._processes])
        return [one for one in found if EXECUTOR in one.command]

    def stop(self) -> None:
        """End all processes, with what they have started."""
        for process in reversed(self._processes):
            end_family(process)
        self._processes.clear()


def _wait_for(log: Path, pattern: str) -> str:
    found: list[str] = []

    def is_there() -> bool:
        found[:] = re.findall(pattern, log.read_text())
        return bool(found)

    try:
        wait_until(is_there, START_SECONDS, log.stem)
    except TimeoutError as error:
        raise RuntimeError(f"{error}; it said: {log.read_text()[-2000:]}") from None
    return found[0]
