"""Where Spark looks for data sources: `format("ottla")` is found through the name of this package."""

from ottla.spark.source import OttlaDataSource


class DefaultSource(OttlaDataSource):
    """The source and sink `ottla`."""


__all__ = ["DefaultSource"]
