"""Offsets by time, and the ends of partitions."""

import asyncio
from collections.abc import Mapping
from datetime import datetime
from enum import IntEnum
from typing import Literal

from ottla.client.checks import check_number
from ottla.client.cluster import Cluster
from ottla.client.errors import error_of
from ottla.client.types import OffsetAndTimestamp, TopicPartition
from ottla.net import Connection
from ottla.record._kernel_types import LARGEST_INT64
from ottla.wire.api.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from ottla.wire.errors import ErrorCode, KafkaError

IsolationLevel = Literal["read_uncommitted", "read_committed"]
ISOLATION_LEVELS: Mapping[str, int] = {"read_uncommitted": 0, "read_committed": 1}

NO_OFFSET = -1


class OffsetSpec(IntEnum):
    """A place in a partition that is not a time.

    >>> OffsetSpec.LATEST.name
    'LATEST'
    """

    LATEST = -1
    """After the last record."""
    EARLIEST = -2
    """The first record that is still there."""
    MAX_TIMESTAMP = -3
    """The record with the latest timestamp."""
    EARLIEST_LOCAL = -4
    """The first record that is on the broker's own disk."""
    LATEST_TIERED = -5
    """The last record that has been moved to remote storage."""


def milliseconds_of(time: datetime, name: str) -> int:
    """A time as brokers know it: milliseconds since 1970, in UTC.

    >>> milliseconds_of(datetime(1970, 1, 1, 0, 0, 1), "start")
    Traceback (most recent call last):
    ValueError: start is 1970-01-01 00:00:01, which has no timezone; write .astimezone() for the local one
    """
    if time.tzinfo is None:
        raise ValueError(f"{name} is {time}, which has no timezone; write .astimezone() for the local one")
    return max(0, int(time.timestamp() * 1000))


def time_of(partition: TopicPartition, time: int | datetime) -> int:
    """A time that a user gave for a partition, as brokers know it.

    >>> time_of(TopicPartition("orders", 3), datetime.fromisoformat("2001-09-09T01:46:40Z"))
    1000000000000
    """
    name = f"the time for {partition}"
    if isinstance(time, datetime):
        return milliseconds_of(time, name)
    check_number(name, time, 0, LARGEST_INT64)
    return time


EARLIEST = int(OffsetSpec.EARLIEST)
LATEST = int(OffsetSpec.LATEST)

_FIRST_VERSIONS: Mapping[int, int] = {
    OffsetSpec.MAX_TIMESTAMP: 7,
    OffsetSpec.EARLIEST_LOCAL: 8,
    OffsetSpec.LATEST_TIERED: 9,
}
"""Older brokers would take these for times."""
_FIRST_VERSION_WITH_ISOLATION = 2


async def ask_offsets(
    connection: Connection,
    specs: Mapping[TopicPartition, int],
    isolation_level: IsolationLevel = "read_uncommitted",
    *,
    timeout_ms: int = 30_000,
) -> dict[TopicPartition, OffsetAndTimestamp | KafkaError | None]:
    """Ask the leader of partitions once. None where there is no such record; errors of partitions are in the answer."""
    if isolation_level not in ISOLATION_LEVELS:
        raise ValueError(f"isolation_level is {isolation_level!r}; it is one of {', '.join(ISOLATION_LEVELS)}")
    version = connection.version_of(ListOffsetsRequest)
    for spec in set(specs.values()):
        if spec < 0 and version < _FIRST_VERSIONS.get(spec, 0):
            what = f"{connection.broker} is too old for OffsetSpec.{OffsetSpec(spec).name}"
            raise error_of(ErrorCode.UNSUPPORTED_VERSION, what)
    if isolation_level == "read_committed" and version < _FIRST_VERSION_WITH_ISOLATION:
        raise error_of(ErrorCode.UNSUPPORTED_VERSION, f"{connection.broker} is too old for read_committed")
    topics: dict[str, ListOffsetsTopic] = {}
    for place, spec in specs.items():
        topic = topics.setdefault(place.topic, ListOffsetsTopic(name=place.topic))
        topic.partitions.append(ListOffsetsPartition(partition_index=place.partition, timestamp=spec))
    request = ListOffsetsRequest(
        replica_id=-1,
        isolation_level=ISOLATION_LEVELS[isolation_level],
        topics=list(topics.values()),
        timeout_ms=timeout_ms,
    )
    found: dict[TopicPartition, OffsetAndTimestamp | KafkaError | None] = {}
    for answer in (await connection.request(request)).topics:
        for one in answer.partitions:
            place = TopicPartition(answer.name, one.partition_index)
            found[place] = error_of(one.error_code, str(place)) if one.error_code else _offset(one)
    return found


async def find_offsets(
    cluster: Cluster,
    specs: Mapping[TopicPartition, int],
    isolation_level: IsolationLevel = "read_uncommitted",
    *,
    timeout_ms: int | None = None,
) -> dict[TopicPartition, OffsetAndTimestamp | None]:
    """The first record at or after a time in each partition, None if there is none; or an end, EARLIEST or LATEST."""

    async def ask_leader(
        node_id: int, partitions: list[TopicPartition]
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        try:
            connection = await cluster.broker(node_id)
            answers = await ask_offsets(connection, {one: specs[one] for one in partitions}, isolation_level)
            found: dict[TopicPartition, OffsetAndTimestamp | None] = {}
            for place, answer in answers.items():
                if isinstance(answer, KafkaError):
                    raise answer
                found[place] = answer
            return found
        except KafkaError:
            for one in partitions:
                cluster.forget_leader(one)
            raise

    async def ask() -> dict[TopicPartition, OffsetAndTimestamp | None]:
        grouped = await cluster.by_leader(specs)
        found: dict[TopicPartition, OffsetAndTimestamp | None] = {}
        for answer in await asyncio.gather(*[ask_leader(node_id, led) for node_id, led in grouped.items()]):
            found.update(answer)
        return found

    return await cluster.retrying(ask, timeout_ms=timeout_ms)


async def list_offsets(
    cluster: Cluster, times_ms: Mapping[TopicPartition, int], isolation_level: IsolationLevel = "read_uncommitted"
) -> dict[TopicPartition, int]:
    """The same as `find_offsets` as numbers, -1 where there is no such record."""
    found = await find_offsets(cluster, times_ms, isolation_level)
    return {place: NO_OFFSET if answer is None else answer.offset for place, answer in found.items()}


def _offset(answer: ListOffsetsPartitionResponse) -> OffsetAndTimestamp | None:
    # Version 0 answers with a list: the offset that was asked for comes first.
    offset = answer.old_style_offsets[0] if answer.old_style_offsets else answer.offset
    return None if offset == NO_OFFSET else OffsetAndTimestamp(offset, answer.timestamp, answer.leader_epoch)
