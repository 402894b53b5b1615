"""Offsets by time, and the ends of partitions."""

import asyncio
from collections.abc import Mapping

from ottla.client.cluster import Cluster
from ottla.client.errors import check
from ottla.client.types import TopicPartition
from ottla.wire.api.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from ottla.wire.errors import KafkaError

EARLIEST = -2
LATEST = -1
NO_OFFSET = -1


async def list_offsets(cluster: Cluster, times_ms: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    """The first offset at or after a time in each partition, -1 if there is none; or of an end, EARLIEST or LATEST."""

    async def ask() -> dict[TopicPartition, int]:
        grouped = await cluster.by_leader(times_ms)
        found: dict[TopicPartition, int] = {}
        for answer in await asyncio.gather(
            *[_ask_leader(cluster, node_id, led, times_ms) for node_id, led in grouped.items()]
        ):
            found.update(answer)
        return found

    return await cluster.retrying(ask)


async def _ask_leader(
    cluster: Cluster, node_id: int, partitions: list[TopicPartition], times_ms: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int]:
    topics: dict[str, ListOffsetsTopic] = {}
    for one in partitions:
        topic = topics.setdefault(one.topic, ListOffsetsTopic(name=one.topic))
        topic.partitions.append(ListOffsetsPartition(partition_index=one.partition, timestamp=times_ms[one]))
    try:
        connection = await cluster.broker(node_id)
        request = ListOffsetsRequest(replica_id=-1, topics=list(topics.values()), timeout_ms=cluster.request_timeout_ms)
        response = await connection.request(request)
        found: dict[TopicPartition, int] = {}
        for answer in response.topics:
            for partition in answer.partitions:
                check(partition.error_code, f"{answer.name}-{partition.partition_index}")
                found[TopicPartition(answer.name, partition.partition_index)] = _offset(partition)
        return found
    except KafkaError:
        for one in partitions:
            cluster.forget_leader(one)
        raise


def _offset(answer: ListOffsetsPartitionResponse) -> int:
    # Version 0 answers with a list: the offset that was asked for comes first.
    return answer.old_style_offsets[0] if answer.old_style_offsets else answer.offset
