"""A Spark in a process of its own that has the official connector beside Ottla's, and does what it is asked with both.

It is a process of its own since a Spark with the official jar has no other `format("kafka")`.
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.conformance.oracle import PROJECT, download

HERE = Path(__file__).parent
PATIENCE_SECONDS = 180.0

Answer = dict[str, Any]


class OfficialError(Exception):
    """What a query failed with."""


def official_jars() -> list[str]:
    """The jars of the official connector."""

    def fetch(directory: Path) -> None:
        command = ["mvn", "--quiet", "--batch-mode", "--file", str(HERE / "pom.xml")]
        command += [f"-DoutputDirectory={directory}", "dependency:copy-dependencies"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)

    return sorted(map(str, download("spark-sql-kafka-4.2.0", fetch).glob("*.jar")))


class OfficialSpark:
    """Asks that process."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.spark.official", *official_jars()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=PROJECT,
            env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        )

    def read(self, format: str, options: Mapping[str, str], columns: Sequence[str] = ("*",)) -> list[list[Any]]:
        """The rows of a batch query, in order."""
        found: list[list[Any]] = self._ask("read", format=format, options=options, columns=columns)["rows"]
        return sorted(found, key=json.dumps)

    def tasks(self, format: str, options: Mapping[str, str]) -> list[int]:
        """How many rows each task of a batch query reads."""
        found: list[int] = self._ask("tasks", format=format, options=options)["tasks"]
        return found

    def stream(self, format: str, options: Mapping[str, str], checkpoint: str) -> list[list[list[Any]]]:
        """The rows of each micro-batch until nothing is new."""
        found = self._ask("stream", format=format, options=options, checkpoint=checkpoint)["batches"]
        return [sorted(rows, key=json.dumps) for rows in found]

    def write(self, format: str, select: str, options: Mapping[str, str], mode: str | None = "append") -> None:
        """Write what a query gives."""
        self._ask("write", format=format, select=select, options=options, mode=mode)

    def copy(
        self,
        format: str,
        options: Mapping[str, str],
        columns: Sequence[str],
        sink: Mapping[str, str],
        mode: str = "append",
    ) -> None:
        """Read and write in a stream until nothing is new."""
        self._ask("copy", format=format, options=options, columns=columns, sink=sink, mode=mode)

    def _ask(self, action: str, **arguments: Any) -> Answer:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        impatience = threading.Timer(PATIENCE_SECONDS, self._process.kill)
        impatience.start()
        try:
            self._process.stdin.write(json.dumps({"action": action, **arguments}) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        finally:
            impatience.cancel()
        assert line, f"the process ended with status {self._process.wait()}"
        answer: Answer = json.loads(line)
        if "error" in answer:
            raise OfficialError(answer["error"])
        return answer

    def close(self) -> None:
        """End the process."""
        try:
            self._process.communicate(timeout=60)
        finally:
            self._process.kill()


class Program:
    """What runs in the process."""

    def __init__(self, jars: Sequence[str]) -> None:
        from pyspark.sql import SparkSession

        self.spark = (
            SparkSession.builder.master("local[2]")
            .config("spark.jars", ",".join(jars))
            .config("spark.ui.enabled", "false")
            .config("spark.sql.shuffle.partitions", "2")
            .config("spark.sql.session.timeZone", "UTC")
            .config("spark.driver.host", "127.0.0.1")
            .getOrCreate()
        )

    def read(self, format: str, options: dict[str, str], columns: Sequence[str]) -> Answer:
        """Answers `OfficialSpark.read`, and so on."""
        return {"rows": plain(self.spark.read.format(format).options(**options).load().selectExpr(*columns).collect())}

    def tasks(self, format: str, options: dict[str, str]) -> Answer:
        rows = self.spark.read.format(format).options(**options).load().select("offset")
        found = rows.selectExpr("spark_partition_id() AS task").groupBy("task").count().collect()
        return {"tasks": sorted(row["count"] for row in found)}

    def stream(self, format: str, options: dict[str, str], checkpoint: str) -> Answer:
        batches: list[Any] = []
        query = (
            self.spark.readStream.format(format)
            .options(**options)
            .load()
            .writeStream.foreachBatch(lambda rows, number: batches.append(plain(rows.collect())))
            .option("checkpointLocation", checkpoint)
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        return {"batches": batches}

    def write(self, format: str, select: str, options: dict[str, str], mode: str | None) -> Answer:
        writing = self.spark.sql(select).write.format(format).options(**options)
        (writing if mode is None else writing.mode(mode)).save()
        return {}

    def copy(
        self, format: str, options: dict[str, str], columns: Sequence[str], sink: dict[str, str], mode: str
    ) -> Answer:
        with tempfile.TemporaryDirectory() as checkpoint:
            rows = self.spark.readStream.format(format).options(**options).load().selectExpr(*columns)
            writing = rows.writeStream.format(format).options(**sink, checkpointLocation=checkpoint)
            writing.outputMode(mode).trigger(availableNow=True).start().awaitTermination()
        return {}


def plain(value: Any) -> Any:
    """Rows as JSON has them."""
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if isinstance(value, (bytes, bytearray)):
        return {"bytes": value.hex()}
    return value if value is None or isinstance(value, (int, str, float)) else str(value)


def serve(jars: Sequence[str]) -> None:
    """Answer questions, each a line, until there are no more."""
    out = sys.stdout
    # Nothing but answers goes out.
    sys.stdout = sys.stderr
    program = Program(jars)
    for line in sys.stdin:
        question = json.loads(line)
        try:
            answer = getattr(program, question.pop("action"))(**question)
        except Exception as error:  # noqa: BLE001 - whatever Spark raises is an answer
            answer = {"error": f"{type(error).__name__}: {error}"}
        out.write(json.dumps(answer) + "\n")
        out.flush()
    program.spark.stop()


if __name__ == "__main__":
    serve(sys.argv[1:])
