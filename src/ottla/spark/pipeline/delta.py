"""Delta tables without jars: tasks write Parquet files, and the driver adds them to the table as one transaction.

The transaction carries the query's id and the number of the micro-batch. A micro-batch that Spark does again after a
crash is found in the table and left out, so that each row is there once. Files of tasks that failed are not part of
the table; `vacuum` removes them.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema

from ottla.ports import Clock, SystemClock
from ottla.spark.pipeline.section import PipelineError

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import DeltaTable

FILE_SCHEMA = "path string, size bigint, partition_values map<string,string>, records bigint"
QUERY_ID = "sql.streaming.queryId"
ROWS_PER_GROUP = 100_000


class DeltaTableWriter:
    """Adds the rows of micro-batches to a table, which is made if it is not there."""

    def __init__(
        self,
        path: str,
        partition_by: Sequence[str] = (),
        storage_options: Mapping[str, str] | None = None,
        *,
        clock: Clock | None = None,
    ) -> None:
        self._path = path
        self._partition_by = list(partition_by)
        self._storage_options = dict(storage_options or {}) or None
        self._clock = clock or SystemClock()

    def write(self, batch: DataFrame, batch_id: int) -> None:
        """For `foreachBatch`."""
        from deltalake import CommitProperties, Transaction
        from deltalake.transaction import AddAction, RemoveAction

        query_id = batch.sparkSession.sparkContext.getLocalProperty(QUERY_ID) or self._path
        schema = _all_nullable(to_arrow_schema(batch.schema, timezone="UTC"))
        table = self._open(schema)
        done = table.transaction_version(query_id)
        if done is not None and done >= batch_id:
            return
        files = batch.mapInArrow(_file_writer(self._path, self._partition_by, schema), FILE_SCHEMA).collect()
        actions: list[AddAction | RemoveAction] = [
            AddAction(
                path=file.path,
                size=file.size,
                partition_values={name: file.partition_values.get(name) for name in self._partition_by},
                modification_time=self._clock.now_ms(),
                data_change=True,
                stats=json.dumps({"numRecords": file.records}),
            )
            for file in files
        ]
        if actions:
            table.create_write_transaction(
                actions,
                "append",
                table.schema(),
                self._partition_by,
                commit_properties=CommitProperties(app_transactions=[Transaction(query_id, batch_id)]),
            )

    def _open(self, schema: "pa.Schema") -> "DeltaTable":
        from deltalake import DeltaTable, Schema

        wanted = Schema.from_arrow(schema)
        table = DeltaTable.create(
            self._path,
            wanted,
            mode="ignore",
            partition_by=self._partition_by,
            storage_options=self._storage_options,
        )
        found = {field.name: field.type for field in table.schema().fields}
        for field in wanted.fields:
            if found.pop(field.name, None) != field.type:
                raise PipelineError(
                    f"the table {self._path} has no column {field.name} of type {field.type}; "
                    "write to another table, or change this one's schema"
                )
        parts = table.metadata().partition_columns
        if parts != self._partition_by:
            raise PipelineError(f"the table {self._path} is partitioned by {parts}; write partition_by = {parts}")
        return table


def _all_nullable(schema: "pa.Schema") -> "pa.Schema":
    import pyarrow as pa

    # Whether Spark knows that a column has no nulls may change with the query; the table is not to change with it.
    return pa.schema([pa.field(field.name, field.type, nullable=True) for field in schema])


def _file_writer(
    path: str, partition_by: Sequence[str], schema: "pa.Schema"
) -> "Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]":
    import pyarrow as pa

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = write_files(path, partition_by, schema, batches)
        if rows:
            yield pa.RecordBatch.from_pylist(rows, _file_schema())

    return write


def _file_schema() -> "pa.Schema":
    import pyarrow as pa

    return pa.schema(
        {
            "path": pa.string(),
            "size": pa.int64(),
            "partition_values": pa.map_(pa.string(), pa.string()),
            "records": pa.int64(),
        }
    )


def write_files(
    path: str, partition_by: Sequence[str], schema: "pa.Schema", batches: "Iterator[pa.RecordBatch]"
) -> list[dict[str, Any]]:
    """Write rows as Parquet files below a table's folder, and say which files those are."""
    import pyarrow as pa
    import pyarrow.dataset as ds
    from pyarrow import fs

    system, root = fs.FileSystem.from_uri(path) if "://" in path else (fs.LocalFileSystem(), path)
    partitioning = ds.partitioning(pa.schema([schema.field(name) for name in partition_by]), flavor="hive")
    written: list[dict[str, Any]] = []

    def note(file: Any) -> None:
        relative = file.path.removeprefix(root).lstrip("/")
        values = ds.get_partition_keys(partitioning.parse(relative)) if partition_by else {}
        written.append(
            {
                "path": relative,
                "size": file.size,
                "partition_values": [(name, _as_text(value)) for name, value in values.items()],
                "records": file.metadata.num_rows,
            }
        )

    def rows() -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if batch.num_rows:
                yield pa.RecordBatch.from_arrays(
                    [column.cast(field.type) for column, field in zip(batch.columns, schema, strict=True)],
                    schema=schema,
                )

    ds.write_dataset(
        rows(),
        root,
        schema=schema,
        filesystem=system,
        format="parquet",
        partitioning=partitioning if partition_by else None,
        basename_template=f"part-{uuid4()}-{{i}}.parquet",
        existing_data_behavior="overwrite_or_ignore",
        max_rows_per_group=ROWS_PER_GROUP,
        file_visitor=note,
    )
    return [file for file in written if file["records"]]


def _as_text(value: Any) -> str | None:
    """A partition's value as Delta writes it down."""
    if value is None:
        return None
    if isinstance(value, bool):
        return str(value).lower()
    return value.isoformat() if type(value) is date else str(value)
