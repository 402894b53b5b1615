"""Kafka's own record classes, in a Java process that reads and writes batches on request."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ottla.record import Codec, Record
from tests.conformance.java_oracle import LAST_WITH_OLD_VERSIONS
from tests.java import JavaProgram, jars

SOURCE = Path(__file__).parent / "java" / "Records.java"


class JavaRecords:
    """The other end of `Records.java`."""

    def __init__(self) -> None:
        # The last release that can write the formats before v2; what it does with v2 has not changed since.
        self._program = JavaProgram(jars(LAST_WITH_OLD_VERSIONS), SOURCE)

    def close(self) -> None:
        """End the process."""
        self._program.close()

    def read(self, run: bytes) -> list[dict[str, Any]]:
        """The batches of a run of any format, each checked by `ensureValid`, with its `records`."""
        found: list[dict[str, Any]] = self._program.ask(run.hex())
        for batch in found:
            batch["codec"] = Codec[batch["codec"].upper()]
            batch["records"] = [from_fields(fields) for fields in batch["records"]]
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
            "records": [to_fields(record) for record in originals],
        }
        return bytes.fromhex(self._program.ask(batch))

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
        return bytes.fromhex(self._program.ask(batch))


def from_fields(fields: list[Any]) -> Record:
    """A record as the programs in Java write it."""
    offset, timestamp, key, value, headers = fields
    return Record(offset, timestamp, _bytes(key), _bytes(value), [(name, _bytes(content)) for name, content in headers])


def to_fields(record: Record) -> list[Any]:
    """A record as the programs in Java read it."""
    headers = [[name, _digits(value)] for name, value in record.headers]
    return [record.offset, record.timestamp, _digits(record.key), _digits(record.value), headers]


def _bytes(digits: str | None) -> bytes | None:
    return None if digits is None else bytes.fromhex(digits)


def _digits(data: bytes | None) -> str | None:
    return None if data is None else data.hex()
