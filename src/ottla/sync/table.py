"""A topic as an Arrow table, without asyncio."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ottla.client import table
from ottla.client.offsets import IsolationLevel
from ottla.client.options import BootstrapServers
from ottla.sync.loop import background

if TYPE_CHECKING:
    import pyarrow as pa


def read_table(
    topic: str,
    start: table.Place | None = None,
    end: table.Place | None = None,
    *,
    bootstrap_servers: BootstrapServers = "localhost:9092",
    partitions: Iterable[int] | None = None,
    columns: Sequence[str] | None = None,
    isolation_level: IsolationLevel = "read_uncommitted",
    check_crcs: bool = True,
    **client_options: Any,
) -> "pa.Table":
    """Read the records of a topic from `start` to before `end`, by default all that there are now.

    A place is "earliest", "latest", an offset that holds for all partitions, offsets by partition, or a datetime with
    a timezone, which stands for the first record at or after it. See `ottla.read_table` for the rest.

    >>> read_table("orders", bootstrap_servers=broker.bootstrap_servers, columns=["offset", "value"]).to_pydict()
    {'offset': [0, 1, 2], 'value': [b'one', b'two', b'three']}
    """
    return background().call(
        table.read_table,
        topic,
        start,
        end,
        bootstrap_servers=bootstrap_servers,
        partitions=partitions,
        columns=columns,
        isolation_level=isolation_level,
        check_crcs=check_crcs,
        **client_options,
    )
