"""DeleteRecords (21): forget the records before an offset. All versions are alike but for their encoding."""

from typing import TYPE_CHECKING

from ottla.broker.request import Answer, Request
from ottla.cluster.names import is_internal
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
    """Answer each partition for itself with where it begins now."""
    body: DeleteRecordsRequest = request.body
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=[_answer(broker, topic.name, asked) for asked in topic.partitions],
            )
            for topic in body.topics
        ]
    )


def _answer(broker: "Broker", topic: str, asked: DeleteRecordsPartition) -> DeleteRecordsPartitionResult:
    result = DeleteRecordsPartitionResult(partition_index=asked.partition_index, low_watermark=NO_LOW_WATERMARK)
    try:
        if is_internal(topic):
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{topic} is the broker's own; its records stay")
        partition = broker.leader(topic, asked.partition_index)
        _delete(partition, asked.offset)
        result.low_watermark = partition.log.start_offset
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
    if offset > partition.log.start_offset:
        partition.log.delete_before(offset)
