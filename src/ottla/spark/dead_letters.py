"""Rows that do not fit, sent to a topic of their own instead of stopping the query.

They are sent by the tasks that find them, and acknowledged before their task is done. So a query stays one query with
one checkpoint and reads its topic once, whatever its sink is, and no micro-batch is committed before its dead letters
are stored. A task that Spark runs again sends them again: their headers say which record each is, for those who count.
"""

import json
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.types import BinaryType, DataType, StringType

from ottla.client.producer import Producer
from ottla.client.producer.options import ProducerOptions
from ottla.spark.producers import producers
from ottla.spark.sink_options import SinkOptions
from ottla.sync.loop import background
from ottla.wire.errors import KafkaError

if TYPE_CHECKING:
    import pyarrow as pa

REASON, TOPIC, PARTITION, OFFSET = (
    "dead-letter.reason",
    "dead-letter.topic",
    "dead-letter.partition",
    "dead-letter.offset",
)
"""Headers of a dead letter: why it is one, and which record it was."""

HEADERS_TYPE = "array<struct<key:string,value:binary>>"
_SENT = "_ottla_sent"


@dataclass(frozen=True, kw_only=True)
class DeadLetters:
    """The topic for records that do not fit.

    >>> DeadLetters(topic="orders-rejected", bootstrap_servers="broker-1:9092").topic
    'orders-rejected'
    """

    topic: str
    bootstrap_servers: str = "localhost:9092"
    options: Mapping[str, str] = field(default_factory=dict)
    """More options of the sink, such as `kafka.compression.type`."""

    def __post_init__(self) -> None:
        # Read once here, so that what is wrong is told before Spark starts anything.
        self.producer_options()

    def producer_options(self) -> ProducerOptions:
        """How they are sent."""
        return SinkOptions.parse({**self.options, "kafka.bootstrap.servers": self.bootstrap_servers}).producer


def divert(df: DataFrame, reason: Column, dead_letters: DeadLetters, value: Column | None = None) -> DataFrame:
    """The rows for which `reason` is null; the others go to the dead-letter topic, each with its reason.

    A dead letter keeps the row's key and headers, and its value or what is given as `value`.
    """
    rejected = sql.when(
        reason.isNotNull(),
        sql.struct(
            _bytes_of(df, "key").alias("key"),
            (_bytes_of(df, "value") if value is None else value.cast("binary")).alias("value"),
            # Spark is slow to hand arrays to Python, even where all are null; as JSON their values are in base 64.
            sql.to_json(_column_of(df, "headers", HEADERS_TYPE)).alias("headers"),
            _column_of(df, "topic", "string").alias("topic"),
            _column_of(df, "partition", "int").alias("partition"),
            _column_of(df, "offset", "bigint").alias("offset"),
            reason.alias("reason"),
        ),
    )
    # Sending is no function of its input alone: Spark must neither repeat it nor move a later filter before it.
    send = arrow_udf(_sender(dead_letters), "boolean").asNondeterministic()  # type: ignore[call-overload]
    return df.withColumn(_SENT, send(rejected)).where(sql.col(_SENT).isNull()).drop(_SENT)


def _column_of(df: DataFrame, name: str, type_name: str) -> Column:
    if name not in df.columns or df.schema[name].dataType.simpleString() != type_name:
        return sql.lit(None).cast(type_name)
    return sql.col(name)


def _bytes_of(df: DataFrame, name: str) -> Column:
    if name not in df.columns:
        return sql.lit(None).cast("binary")
    kind: DataType = df.schema[name].dataType
    if isinstance(kind, BinaryType | StringType):
        return sql.col(name).cast("binary")
    return sql.to_json(sql.struct(name)).cast("binary")


def _sender(dead_letters: DeadLetters) -> "Callable[[Iterator[pa.Array]], Iterator[pa.Array]]":
    import pyarrow as pa
    import pyarrow.compute as pc

    def send(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
        for batch in batches:
            if batch.null_count < len(batch):
                send_all(dead_letters, batch.drop_null())
            yield pc.if_else(batch.is_valid(), pa.scalar(True), pa.scalar(None, pa.bool_()))

    return send


def send_all(dead_letters: DeadLetters, rejected: "pa.Array") -> None:
    """Send rejected rows, and return when they are stored."""
    options = dead_letters.producer_options()
    producer = producers.get(options)
    try:
        background().call(_send, producer, dead_letters.topic, rejected.to_pylist())
    except KafkaError:
        producers.discard(options)
        raise


async def _send(producer: Producer, topic: str, rows: list[dict[str, Any]]) -> None:
    for row in rows:
        headers = [*_headers_of(row["headers"]), (REASON, row["reason"].encode())]
        for name, part in ((TOPIC, "topic"), (PARTITION, "partition"), (OFFSET, "offset")):
            if row[part] is not None:
                headers.append((name, str(row[part]).encode()))
        await producer.send(topic, row["value"], row["key"], headers=headers)
    await producer.flush()


def _headers_of(text: str | None) -> Iterator[tuple[str, bytes | None]]:
    for header in json.loads(text or "[]"):
        value = header.get("value")
        yield header["key"], None if value is None else b64decode(value)
