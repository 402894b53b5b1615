"""OffsetForLeaderEpoch (23): where a leader's term ended, for those who must know whether their records still count.

v1 answers the epoch that was found, which may be an earlier one; v2 and later say which leader they believe in.
"""

from typing import TYPE_CHECKING

from ottla.broker.acl.check import check_allowed, is_allowed
from ottla.broker.request import Answer, Request
from ottla.cluster.acl import ACLOperation, ResourceType
from ottla.wire.api.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)
from ottla.wire.errors import KafkaError

if TYPE_CHECKING:
    from ottla.broker.broker import Broker


def handle(broker: "Broker", request: Request) -> Answer:
    """Answer each partition for itself. Brokers may ask for all topics."""
    body: OffsetForLeaderEpochRequest = request.body
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[_answer(broker, request, topic.topic, asked) for asked in topic.partitions],
            )
            for topic in body.topics
        ]
    )


def _answer(broker: "Broker", request: Request, topic: str, asked: OffsetForLeaderPartition) -> EpochEndOffset:
    result = EpochEndOffset(partition=asked.partition)
    try:
        if not is_allowed(broker, request, ACLOperation.CLUSTER_ACTION, ResourceType.CLUSTER):
            check_allowed(broker, request, ACLOperation.DESCRIBE, ResourceType.TOPIC, topic)
        partition = broker.leader(topic, asked.partition)
        partition.check_epoch(asked.current_leader_epoch)
        if asked.leader_epoch == partition.leader_epoch:
            # The term that is on: it has an end so far, even if nothing was written in it.
            result.leader_epoch, result.end_offset = partition.leader_epoch, partition.log.end_offset
        else:
            result.leader_epoch, result.end_offset = partition.log.epochs.end_offset(
                asked.leader_epoch, partition.log.end_offset
            )
    except KafkaError as error:
        result.error_code = error.code
    return result
