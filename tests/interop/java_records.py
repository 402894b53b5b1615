"""Kafka's own record classes, in a Java process that reads and writes batches on request."""

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ottla.record import Codec, Record
from tests.conformance import java_oracle
from tests.conformance.oracle import download

# The last release that can write the formats before v2; what it does with v2 has not changed since.
KAFKA_VERSION = java_oracle.LAST_WITH_OLD_VERSIONS
SOURCE = Path(__file__).parent / "java" / "Records.java"
POM = Path(java_oracle.__file__).parent / "java" / "pom.xml"


class JavaError(Exception):
    """Kafka's classes refused what they were given."""


class JavaRecords:
    """The other end of `Records.java`."""

    def __init__(self) -> None:
        jars = download(f"kafka-{KAFKA_VERSION}", _fetch_jars)
        command = ["java", "-XX:+UseSerialGC", "-Xmx256m", "-cp", f"{jars}/*", str(SOURCE)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
        )

    def close(self) -> None:
        """End the process: it stops where its input does."""
        self._process.communicate(timeout=30)

    def read(self, run: bytes) -> list[dict[str, Any]]:
        """The batches of a run of any format, each checked by `ensureValid`, with its `records`."""
        found: list[dict[str, Any]] = self._ask(run.hex())
        for batch in found:
            batch["codec"] = Codec[batch["codec"].upper()]
            batch["records"] = [_record(fields) for fields in batch["records"]]
        return found

    def write(
        self,
        originals: Sequence[Record],
        magic: int,
        codec: Codec,
        *,
        leader_epoch: int = -1,
        producer_id: int = -1,
        producer_epoch: int = -1,
        base_sequence: int = -1,
        transactional: bool = False,
        append_time: int | None = None,
    ) -> bytes:
        """The records as a batch, or as a message set of magic 0 or 1."""
        batch = {
            "magic": magic,
            "codec": codec.name.lower(),
            "base_offset": originals[0].offset,
            "leader_epoch": leader_epoch,
            "producer_id": producer_id,
            "producer_epoch": producer_epoch,
            "base_sequence": base_sequence,
            "transactional": transactional,
            "append_time": append_time,
            "records": [_fields(record) for record in originals],
        }
        return bytes.fromhex(self._ask(batch))

    def write_end_marker(
        self,
        *,
        commit: bool,
        producer_id: int,
        producer_epoch: int,
        coordinator_epoch: int,
        timestamp_ms: int,
        base_offset: int,
        leader_epoch: int,
    ) -> bytes:
        """The control batch that ends a transaction."""
        batch = {
            "magic": 2,
            "codec": "none",
            "base_offset": base_offset,
            "leader_epoch": leader_epoch,
            "producer_id": producer_id,
            "producer_epoch": producer_epoch,
            "base_sequence": -1,
            "transactional": True,
            "commit": commit,
            "coordinator_epoch": coordinator_epoch,
            "timestamp": timestamp_ms,
        }
        return bytes.fromhex(self._ask(batch))

    def _ask(self, question: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, f"Java ended with status {self._process.wait()}"
        answer = json.loads(line)
        if isinstance(answer, dict):
            raise JavaError(answer["error"])
        return answer


def _fetch_jars(directory: Path) -> None:
    command = ["mvn", "--quiet", "--batch-mode", "--file", str(POM), f"-Dkafka.version={KAFKA_VERSION}"]
    command += [f"-DoutputDirectory={directory}", "dependency:copy-dependencies"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def _record(fields: list[Any]) -> Record:
    offset, timestamp, key, value, headers = fields
    return Record(offset, timestamp, _bytes(key), _bytes(value), [(name, _bytes(content)) for name, content in headers])


def _fields(record: Record) -> list[Any]:
    headers = [[name, _digits(value)] for name, value in record.headers]
    return [record.offset, record.timestamp, _digits(record.key), _digits(record.value), headers]


def _bytes(digits: str | None) -> bytes | None:
    return None if digits is None else bytes.fromhex(digits)


def _digits(data: bytes | None) -> str | None:
    return None if data is None else data.hex()
