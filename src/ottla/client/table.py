"""A topic, or a part of it, as an Arrow table."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from operator import index
from typing import TYPE_CHECKING, SupportsIndex, Unpack

from ottla.client.checks import check_flag, check_number, check_topic, shown
from ottla.client.cluster import Cluster
from ottla.client.consumer.arrow import check_columns, table_schema
from ottla.client.errors import OffsetOutOfRangeError, UnknownTopicOrPartitionError
from ottla.client.offsets import EARLIEST, LATEST, IsolationLevel, find_offsets, milliseconds_of
from ottla.client.options import BootstrapServers, ClientOptions
from ottla.client.ranges import RangeReader
from ottla.client.types import TopicPartition
from ottla.net.security import SecurityOptions, security_of, takes_security

if TYPE_CHECKING:
    import pyarrow as pa

Place = str | int | datetime | Mapping[int, int]
"""A place in a topic: "earliest", "latest", an offset in all partitions, offsets by partition, or a time."""

Offsets = dict[TopicPartition, int]


@takes_security
async def read_table(
    topic: str,
    start: Place | None = None,
    end: Place | None = None,
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
    a timezone, which stands for the first record at or after it. An end that is not reached yet stands for the end as
    it is now. A start after the end gives no rows; one whose records are gone already is an `OffsetOutOfRangeError`.
    The columns are topic, partition, offset, timestamp, timestamp_type, key, value and headers, or those of them that
    are named; the rows are ordered by partition and offset. With `zero_copy` values are Arrow's `binary_view` and stay
    in the bytes that were fetched, which is faster the larger they are. Needs pyarrow.

    >>> table = asyncio.run(read_table("orders", 1, bootstrap_servers=broker.bootstrap_servers, columns=["value"]))
    >>> table.to_pylist()
    [{'value': b'two'}, {'value': b'three'}]
    """
    import pyarrow as pa

    options = ClientOptions(
        bootstrap_servers=bootstrap_servers,
        client_id=client_id,
        request_timeout_ms=request_timeout_ms,
        retry_backoff_ms=retry_backoff_ms,
        retry_backoff_max_ms=retry_backoff_max_ms,
        reconnect_backoff_ms=reconnect_backoff_ms,
        reconnect_backoff_max_ms=reconnect_backoff_max_ms,
        metadata_max_age_ms=metadata_max_age_ms,
        connections_max_idle_ms=connections_max_idle_ms,
        security=security_of(security, "read_table"),
    )
    # What is wrong with the arguments is told before anybody is asked.
    check_topic(topic)
    check_columns(columns)
    check_flag("zero_copy", zero_copy)
    check_flag("check_crcs", check_crcs)
    table_schema(columns, zero_copy=zero_copy)
    chosen = None if partitions is None else _chosen(partitions)
    async with Cluster(options) as cluster:
        places = await _places(cluster, topic, chosen)
        first = await _ends(cluster, places, EARLIEST, isolation_level)
        last = await _ends(cluster, places, LATEST, isolation_level)
        starts = await _offsets(cluster, "earliest" if start is None else start, "start", first, last)
        ends = await _offsets(cluster, "latest" if end is None else end, "end", first, last)
        for place, offset in starts.items():
            if offset < first[place]:
                message = f"{place} begins at offset {first[place]} by now, after {offset}"
                raise OffsetOutOfRangeError(message).at(place, offset)
        ranges = {place: (starts[place], min(ends[place], last[place])) for place in places}
        reader = RangeReader(
            cluster,
            ranges,
            columns=columns,
            zero_copy=zero_copy,
            read_committed=isolation_level == "read_committed",
            check_crcs=check_crcs,
        )
        found: dict[int, list[pa.RecordBatch]] = {place.partition: [] for place in places}
        async for place, batch in reader.batches_by_partition():
            found[place.partition].append(batch)
    return pa.Table.from_batches([batch for place in places for batch in found[place.partition]], reader.schema)


def _chosen(partitions: Iterable[int]) -> set[int]:
    if not isinstance(partitions, Iterable):
        raise TypeError(f"partitions is {shown(partitions)}; give a list of ints")
    chosen = set(partitions)
    for partition in chosen:
        check_number("one of partitions", partition)
    return chosen


async def _places(cluster: Cluster, topic: str, chosen: set[int] | None) -> list[TopicPartition]:
    there = await cluster.partitions(topic)
    wanted = there if chosen is None else sorted(chosen)
    for partition in wanted:
        if partition not in there:
            raise UnknownTopicOrPartitionError(
                f"topic {topic!r} has no partition {partition}, but {len(there)} others", "name partitions that it has"
            )
    return [TopicPartition(topic, partition) for partition in wanted]


async def _ends(cluster: Cluster, places: list[TopicPartition], end: int, isolation_level: IsolationLevel) -> Offsets:
    found = await find_offsets(cluster, dict.fromkeys(places, end), isolation_level)
    return {place: answer.offset for place, answer in found.items() if answer is not None}


async def _offsets(cluster: Cluster, place: Place, name: str, first: Offsets, last: Offsets) -> Offsets:
    """A place as an offset in each partition."""
    if place == "earliest":
        return first
    if place == "latest":
        return last
    if isinstance(place, datetime):
        found = await find_offsets(cluster, dict.fromkeys(first, milliseconds_of(place, name)))
        return {one: last[one] if answer is None else answer.offset for one, answer in found.items()}
    if isinstance(place, Mapping):
        known = {one.partition for one in first}
        for key in place:
            if key not in known:
                there = ", ".join(map(str, sorted(known)))
                raise ValueError(f"{name} has {shown(key)}; its keys are numbers of partitions, of {there} here")
        missing = [str(partition) for partition in sorted(known) if partition not in place]
        if missing:
            raise ValueError(f"{name} says nothing of partition {', '.join(missing)}; name it, or choose partitions=")
        offsets = {one: place[one.partition] for one in first}
    elif isinstance(place, SupportsIndex) and not isinstance(place, bool):
        offsets = dict.fromkeys(first, index(place))
    else:
        raise ValueError(
            f"{name} is {place!r}; give 'earliest', 'latest', an offset, offsets by partition or a datetime"
        )
    for one, offset in offsets.items():
        check_number(f"{name} in {one}", offset)
        if offset < 0:
            raise ValueError(f"{name} is {offset} in {one}; an offset is at least 0")
    return offsets
