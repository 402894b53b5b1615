"""DeleteRecords (21): forget the records before an offset. All versions are alike but for their encoding."""

from typing import TYPE_CHECKING

from ottla.broker.acl.check import check_allowed
from ottla.broker.request import Answer, Request
from ottla.cluster.acl import ACLOperation, ResourceType
from ottla.cluster.names import is_internal
from ottla.log.log import Log
from ottla.replica.partition import Partition
from ottla.wire.api.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from ottla.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

HIGH_WATERMARK = -1
"""As an offset: everything that is committed."""

NO_LOW_WATERMARK = -1


def handle(broker: "Broker", request: Request) -> Answer:
    """Answer each partition for itself with where it begins now, once that is sure to outlast a power cut."""
    return _delete_all(broker, request)


async def _delete_all(broker: "Broker", request: Request) -> DeleteRecordsResponse:
    body: DeleteRecordsRequest = request.body
    shortened: dict[Log, DeleteRecordsPartitionResult] = {}
    response = DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=[_answer(broker, request, topic.name, asked, shortened) for asked in topic.partitions],
            )
            for topic in body.topics
        ]
    )
    for log, error in (await broker.logs.settle_starts(shortened)).items():
        shortened[log].error_code = error.code
        shortened[log].low_watermark = NO_LOW_WATERMARK
    return response


def _answer(
    broker: "Broker",
    request: Request,
    topic: str,
    asked: DeleteRecordsPartition,
    shortened: dict[Log, DeleteRecordsPartitionResult],
) -> DeleteRecordsPartitionResult:
    result = DeleteRecordsPartitionResult(partition_index=asked.partition_index, low_watermark=NO_LOW_WATERMARK)
    try:
        check_allowed(broker, request, ACLOperation.DELETE, ResourceType.TOPIC, topic)
        if is_internal(topic):
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{topic} is the broker's own; its records stay")
        partition = broker.leader(topic, asked.partition_index)
        _delete(partition, asked.offset)
        result.low_watermark = partition.log.start_offset
        shortened[partition.log] = result
    except KafkaError as error:
        result.error_code = error.code
    return result


def _delete(partition: Partition, asked_offset: int) -> None:
    policy = partition.config.cleanup_policy
    if "compact" in policy and "delete" not in policy:
        raise KafkaError(
            ErrorCode.POLICY_VIOLATION, f"{partition.name} is compacted; records go if cleanup.policy has 'delete' too"
        )
    offset = partition.high_watermark if asked_offset == HIGH_WATERMARK else asked_offset
    if not 0 <= offset <= partition.high_watermark:
        raise KafkaError(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"offset {offset} of {partition.name} is not within 0 and {partition.high_watermark}",
        )
    partition.log.delete_before(offset)
