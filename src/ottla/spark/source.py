"""The data source `ottla`: topics as tables and streams of Spark."""

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from ottla.spark.batch_reader import BatchReader
from ottla.spark.options import SourceOptions
from ottla.spark.schema import check_schema, source_schema
from ottla.spark.stream_reader import StreamReader
from ottla.spark.workers import spare_garbage_collector


class OttlaDataSource(DataSource):
    """`format("ottla")`: the options and the columns are those of Spark's own connector for Kafka.

    >>> OttlaDataSource.name()
    'ottla'
    """

    @classmethod
    def name(cls) -> str:
        """What users write in `format`."""
        return "ottla"

    def schema(self) -> StructType:
        """The columns. Options are checked here, so that what is wrong is told when a DataFrame is made."""
        spare_garbage_collector()
        options = SourceOptions.parse(self.options, streaming=None)
        return source_schema(include_headers=options.include_headers)

    def reader(self, schema: StructType) -> DataSourceReader:
        """For batch queries."""
        spare_garbage_collector()
        options = SourceOptions.parse(self.options, streaming=False)
        check_schema(schema, include_headers=options.include_headers)
        return BatchReader(options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """For streaming queries."""
        spare_garbage_collector()
        options = SourceOptions.parse(self.options, streaming=True)
        check_schema(schema, include_headers=options.include_headers)
        return StreamReader(options, schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """For DataFrames that are written to topics."""
        # Not for those who read: Spark starts processes for each query.
        from ottla.spark.sink import batch_writer

        spare_garbage_collector()
        return batch_writer(self.options, schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        """For streaming queries that are written to topics."""
        from ottla.spark.sink import stream_writer

        spare_garbage_collector()
        return stream_writer(self.options, schema, overwrite)
