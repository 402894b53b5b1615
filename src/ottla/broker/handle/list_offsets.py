"""ListOffsets (2): find offsets by time, and the ends of a log.

v0 lists the first offsets of segments, newest first, beginning with the log's end; v1 and later answer one offset.
Times below zero ask for marks: -1 the end, -2 the start, -3 the record with the largest timestamp (v7), -4 the earliest
offset on this disk (v8), -5 the latest in tiered storage (v9) and -6 the earliest not yet there (v11), of which there
is none.
"""

from typing import TYPE_CHECKING

from ottla.broker.acl.check import check_allowed
from ottla.broker.failures import error_code
from ottla.broker.request import Answer, Request
from ottla.cluster.acl import ACLOperation, ResourceType
from ottla.replica.partition import READ_COMMITTED, Partition
from ottla.wire.api.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from ottla.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL = -4
LATEST_TIERED = -5
EARLIEST_PENDING_UPLOAD = -6


def handle(broker: "Broker", request: Request) -> Answer:
    """Answer each partition for itself."""
    body: ListOffsetsRequest = request.body
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[_answer(broker, request, topic.name, asked) for asked in topic.partitions],
            )
            for topic in body.topics
        ]
    )


def _answer(
    broker: "Broker", request: Request, topic: str, asked: ListOffsetsPartition
) -> ListOffsetsPartitionResponse:
    result = ListOffsetsPartitionResponse(partition_index=asked.partition_index)
    try:
        check_allowed(broker, request, ACLOperation.DESCRIBE, ResourceType.TOPIC, topic)
        partition = broker.leader(topic, asked.partition_index)
        partition.check_epoch(asked.current_leader_epoch)
        if request.version == 0:
            result.old_style_offsets = partition.log.segment_offsets(asked.timestamp, asked.max_num_offsets)
        else:
            _find(partition, asked.timestamp, request.body.isolation_level, result)
    except (KafkaError, OSError) as error:
        result.error_code = error_code(error, topic, asked.partition_index)
    return result


def _find(partition: Partition, timestamp: int, isolation: int, result: ListOffsetsPartitionResponse) -> None:
    log = partition.log
    end = log.last_stable_offset(partition.high_watermark) if isolation == READ_COMMITTED else log.end_offset
    if timestamp == LATEST:
        result.offset, result.leader_epoch = end, partition.leader_epoch
    elif timestamp in (EARLIEST, EARLIEST_LOCAL):
        result.offset, result.leader_epoch = log.start_offset, partition.leader_epoch
    elif timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        result.offset = -1
    elif timestamp == MAX_TIMESTAMP:
        found = log.max_timestamp()
        if found is not None and found.offset < end:
            result.offset, result.timestamp, result.leader_epoch = found
    elif timestamp < 0:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"timestamp {timestamp} asks for nothing that is known")
    else:
        found = log.offset_for_time(timestamp, end)
        if found is not None:
            result.offset, result.timestamp, result.leader_epoch = found
        elif log.end_offset > log.start_offset and log.max_timestamp() is None:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, f"no record of {partition.name} has a timestamp to look for"
            )
