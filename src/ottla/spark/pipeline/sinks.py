"""The sinks of a pipeline, each a streaming query."""

from collections.abc import Callable, Sequence
from pathlib import PurePosixPath
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter
from pyspark.sql.types import BinaryType, StringType

from ottla.spark.pipeline.delta import DeltaTableWriter
from ottla.spark.pipeline.spec import AVAILABLE_NOW, SinkSpec

Show = Callable[[str, int, Sequence[str], Sequence[Sequence[Any]]], None]
"""Shows the first rows of a micro-batch: the sink's name, the batch's number, columns, rows."""

COPIED = ("topic", "partition", "key", "value", "headers", "timestamp")


def start_sink(
    sink: SinkSpec, rows: DataFrame, *, name: str, checkpoint: str, trigger: str | None, show: Show
) -> StreamingQuery:
    """Start the query that writes rows to a sink."""
    writer = _writer(sink, rows, show).outputMode(sink.mode).queryName(f"{name}: {sink.name}")
    if trigger == AVAILABLE_NOW:
        writer = writer.trigger(availableNow=True)
    elif trigger is not None:
        writer = writer.trigger(processingTime=trigger)
    folder = f"{checkpoint}/{sink.name}" if "://" in checkpoint else str(PurePosixPath(checkpoint) / sink.name)
    return writer.option("checkpointLocation", folder).start()


def _writer(sink: SinkSpec, rows: DataFrame, show: Show) -> DataStreamWriter:
    if sink.kind == "console":
        return rows.writeStream.foreachBatch(_shower(sink, show))
    if sink.kind == "parquet":
        writer = rows.writeStream.format("parquet").options(**sink.options).option("path", sink.target)
        return writer.partitionBy(*sink.partition_by) if sink.partition_by else writer
    if sink.kind == "delta":
        return rows.writeStream.foreachBatch(DeltaTableWriter(sink.target, sink.partition_by, sink.options).write)
    if sink.kind == "copy":
        copied = rows.select(*COPIED)
        return copied.writeStream.format("ottla").options(**sink.options, includeTimestamp="true")
    records = as_records(rows, sink.key, sink.value)
    options = {**sink.options, "topic": sink.target}
    if sink.mode == "append":
        return records.writeStream.format("ottla").options(**options)

    # Spark lets no sink in Python take updates, though a topic does: each is one more record.
    def write(batch: DataFrame, batch_id: int) -> None:
        batch.write.format("ottla").options(**options).mode("append").save()

    return records.writeStream.foreachBatch(write)


def as_records(rows: DataFrame, key: str | None, value: str | None) -> DataFrame:
    """Rows as records: key and value by SQL expressions, or the columns of that name; else the row as JSON."""
    columns = [_key(rows, key), _value(rows, value)]
    columns += [sql.col(name) for name in ("headers", "partition") if name in rows.columns and _is_record(rows)]
    return rows.select(*[column for column in columns if column is not None])


def _key(rows: DataFrame, expression: str | None) -> Column | None:
    if expression is not None:
        return sql.expr(expression).cast("string").cast("binary").alias("key")
    return sql.col("key").cast("string").cast("binary").alias("key") if "key" in rows.columns else None


def _value(rows: DataFrame, expression: str | None) -> Column:
    if expression is not None:
        return sql.expr(expression).cast("string").alias("value")
    if _is_record(rows):
        return sql.col("value")
    fields = [sql.col(f"`{name}`") for name in rows.columns]
    return sql.to_json(sql.struct(*fields)).alias("value")


def _is_record(rows: DataFrame) -> bool:
    return "value" in rows.columns and isinstance(rows.schema["value"].dataType, BinaryType | StringType)


def _shower(sink: SinkSpec, show: Show) -> Callable[[DataFrame, int], None]:
    def write(batch: DataFrame, batch_id: int) -> None:
        kept = batch.persist()
        try:
            # All rows are made, though a few are shown: what is diverted on the way must not depend on that.
            if kept.count():
                show(sink.name, batch_id, batch.columns, [tuple(row) for row in kept.take(sink.rows)])
        finally:
            kept.unpersist()

    return write
