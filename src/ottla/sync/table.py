"""A topic as an Arrow table, without asyncio."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Unpack

from ottla.client import table
from ottla.client.offsets import IsolationLevel
from ottla.client.options import BootstrapServers
from ottla.net.security import SecurityOptions, takes_security
from ottla.sync.loop import background

if TYPE_CHECKING:
    import pyarrow as pa


@takes_security
def read_table(
    topic: str,
    start: table.Place | None = None,
    end: table.Place | None = None,
    *,
    bootstrap_servers: BootstrapServers = "localhost:9092",
    partitions: Iterable[int] | None = None,
    columns: Sequence[str] | None = None,
    zero_copy: bool = False,
    isolation_level: IsolationLevel = "read_uncommitted",
    check_crcs: bool = True,
    client_id: str = "ottla",
    request_timeout_ms: int = 30_000,
    retry_backoff_ms: int = 100,
    retry_backoff_max_ms: int = 1_000,
    reconnect_backoff_ms: int = 50,
    reconnect_backoff_max_ms: int = 1_000,
    metadata_max_age_ms: int = 300_000,
    connections_max_idle_ms: int = 540_000,
    **security: Unpack[SecurityOptions],
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
        zero_copy=zero_copy,
        isolation_level=isolation_level,
        check_crcs=check_crcs,
        client_id=client_id,
        request_timeout_ms=request_timeout_ms,
        retry_backoff_ms=retry_backoff_ms,
        retry_backoff_max_ms=retry_backoff_max_ms,
        reconnect_backoff_ms=reconnect_backoff_ms,
        reconnect_backoff_max_ms=reconnect_backoff_max_ms,
        metadata_max_age_ms=metadata_max_age_ms,
        connections_max_idle_ms=connections_max_idle_ms,
        **security,
    )
