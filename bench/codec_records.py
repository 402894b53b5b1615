"""Building and reading 100-byte records: as Python objects beside the peers, and to and from Arrow."""

import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import pyarrow as pa
from aiokafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder

from ottla.record import BatchBuilder
from ottla.record.batch import batches, records
from ottla.record.columns import arrow_batches, from_arrow, record_batches, to_arrow

from .timing import Work

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.record.default_records import DefaultRecordBatch as KafkaBatch
    from kafka.record.default_records import DefaultRecordBatchBuilder as KafkaBuilder

RECORDS = 1_000
RUN = 200
VALUE = b"v" * 100
TIMESTAMP_MS = 1_700_000_000_000


class RecordCase(NamedTuple):
    """A line: what is done, how many records a call handles, and who does it."""

    title: str
    records: int
    contenders: dict[str, Work]


def build_objects() -> bytes:
    """A batch built record by record."""
    builder = BatchBuilder()
    append = builder.append
    for _ in range(RECORDS):
        append(TIMESTAMP_MS, None, VALUE)
    return builder.build()


def record_cases() -> Iterator[RecordCase]:
    """Objects first, where the peers have something to compare; then columns."""
    batch = build_objects()
    assert [record.value for record in DefaultRecordBatch(batch)] == [VALUE] * RECORDS
    yield RecordCase(
        "build records from objects",
        RECORDS,
        {"ottla": build_objects, "aiokafka": _build_aiokafka, "kafka-python": _build_kafka_python},
    )
    yield RecordCase(
        "read records as objects",
        RECORDS,
        {
            "ottla": lambda: [record for entry in batches(batch) for record in records(entry)],  # type: ignore[arg-type]
            "aiokafka": lambda: list(DefaultRecordBatch(batch)),
            "kafka-python": lambda: list(KafkaBatch(memoryview(batch))),
        },
    )
    run = batch * RUN
    table = to_arrow(run)
    assert table.num_rows == RECORDS * RUN
    yield RecordCase(
        "records to Arrow, batch by batch",
        RECORDS * RUN,
        {"ottla": lambda: _stream(run), "aiokafka": lambda: _to_arrow_aiokafka(run)},
    )
    yield RecordCase(
        "records to Arrow, one table",
        RECORDS * RUN,
        {"ottla": lambda: to_arrow(run), "aiokafka": lambda: _to_arrow_aiokafka(run)},
    )
    rows = table.select(["key", "value", "timestamp"])
    assert sum(len(part) for part in from_arrow(rows)) > RECORDS * RUN * len(VALUE)
    yield RecordCase(
        "Arrow to records, batch by batch",
        RECORDS * RUN,
        {"ottla": lambda: sum(map(len, record_batches(rows))), "aiokafka": lambda: _from_arrow_aiokafka(rows)},
    )
    yield RecordCase(
        "Arrow to records, one list",
        RECORDS * RUN,
        {"ottla": lambda: from_arrow(rows), "aiokafka": lambda: _from_arrow_aiokafka(rows)},
    )


def _stream(run: bytes) -> int:
    """As a consumer or a Spark task takes them: each Arrow batch is used and let go."""
    return sum(batch.num_rows for batch in arrow_batches(run))


def _aiokafka_builder() -> Any:
    return DefaultRecordBatchBuilder(
        magic=2,
        compression_type=0,
        is_transactional=0,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=1 << 30,
    )


def _build_aiokafka() -> object:
    builder = _aiokafka_builder()
    append = builder.append
    for offset in range(RECORDS):
        append(offset, TIMESTAMP_MS, None, VALUE, [])
    return builder.build()


def _build_kafka_python() -> object:
    builder = KafkaBuilder(
        magic=2,
        compression_type=0,
        is_transactional=False,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=1 << 30,
    )
    for offset in range(RECORDS):
        builder.append(offset, TIMESTAMP_MS, None, VALUE, [])
    return builder.build()


def _to_arrow_aiokafka(run: bytes) -> object:
    """The way there without columns: objects, then lists, then Arrow."""
    size = len(run) // RUN
    found = [record for index in range(RUN) for record in DefaultRecordBatch(run[index * size : (index + 1) * size])]
    return pa.table(
        {
            "offset": pa.array([record.offset for record in found], pa.int64()),
            "timestamp": pa.array([record.timestamp for record in found], pa.timestamp("ms", "UTC")),
            "key": pa.array([record.key for record in found], pa.binary()),
            "value": pa.array([record.value for record in found], pa.binary()),
        }
    )


def _from_arrow_aiokafka(rows: Any) -> object:
    keys, values = rows.column("key").to_pylist(), rows.column("value").to_pylist()
    timestamps = rows.column("timestamp").cast(pa.int64()).to_pylist()
    built = []
    for start in range(0, len(values), RECORDS * 10):
        builder = _aiokafka_builder()
        for offset, index in enumerate(range(start, start + RECORDS * 10)):
            builder.append(offset, timestamps[index], keys[index], values[index], [])
        built.append(builder.build())
    return built
