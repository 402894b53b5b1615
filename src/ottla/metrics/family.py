"""Metrics on their way from a broker to whoever scrapes it, as plain rows: cheap to make on an event loop."""

from typing import Any, Literal

MOST_ROWS = 50_000
"""Of each family: a scrape stays bounded whatever groups and topics people make up."""

Kind = Literal["counter", "gauge", "histogram"]


class Family:
    """The samples of one name.

    >>> sizes = Family("ottla_partition_size_bytes", "gauge", "Bytes of its log.", "topic", "partition", limit=1)
    >>> sizes.add("orders", 0, 4096)
    >>> sizes.add("orders", 1, 512)
    >>> sizes.rows, sizes.left_out
    ([('orders', 0, 4096)], 1)
    """

    __slots__ = ("documentation", "kind", "labels", "left_out", "limit", "name", "rows")

    def __init__(self, name: str, kind: Kind, documentation: str, *labels: str, limit: int = MOST_ROWS) -> None:
        self.name = name
        """As it is documented; that of a counter ends in `_total`."""
        self.kind = kind
        self.documentation = documentation
        self.labels = labels
        self.limit = limit
        self.rows: list[tuple[Any, ...]] = []
        """The labels' values in order, then a number; of a histogram, then its buckets and their sum."""
        self.left_out = 0

    def add(self, *row: Any) -> None:
        """Add a sample: the labels' values, and its own."""
        if len(self.rows) < self.limit:
            self.rows.append(row)
        else:
            self.left_out += 1
