"""DescribeLogDirs (35): what lies in the data folder, and how full its disk is (v4)."""

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ottla.broker.acl.check import check_allowed
from ottla.broker.request import Answer, Request
from ottla.cluster.acl import ACLOperation, ResourceType
from ottla.wire.api.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from ottla.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from ottla.broker.broker import Broker


def handle(broker: "Broker", request: Request) -> Answer:
    """Describe the one data folder; partitions that are not in it are left out."""
    try:
        check_allowed(broker, request, ACLOperation.DESCRIBE, ResourceType.CLUSTER)
    except KafkaError as error:
        # Before v3 there is no place for the code, and nothing is all that is said.
        return DescribeLogDirsResponse(error_code=error.code)
    return _answer(broker, request.body)


async def _answer(broker: "Broker", body: DescribeLogDirsRequest) -> DescribeLogDirsResponse:
    result = DescribeLogDirsResult(log_dir=broker.disk.root)
    try:
        result.total_bytes, result.usable_bytes = broker.disk.usage()
    except OSError:
        result.error_code = ErrorCode.KAFKA_STORAGE_ERROR
        return DescribeLogDirsResponse(results=[result])
    for topic, indexes in _asked(broker, body):
        partitions = [found for index in indexes if (found := _describe(broker, topic, index)) is not None]
        if partitions:
            result.topics.append(DescribeLogDirsTopic(name=topic, partitions=partitions))
        # Tools ask for all topics at once; others get their turn in between.
        await asyncio.sleep(0)
    return DescribeLogDirsResponse(results=[result])


def _asked(broker: "Broker", body: DescribeLogDirsRequest) -> Iterator[tuple[str, list[int]]]:
    if body.topics is not None:
        for asked in body.topics:
            yield asked.topic, asked.partitions
        return
    for topic in broker.image.topics.values():
        yield topic.name, [partition.index for partition in topic.partitions]


def _describe(broker: "Broker", topic: str, index: int) -> DescribeLogDirsPartition | None:
    size = broker.logs.size_of(topic, index)
    return None if size is None else DescribeLogDirsPartition(partition_index=index, partition_size=size)
