"""DescribeTopicPartitions (75): topics and their partitions in pages.

Topics come sorted by name. A page ends after so many partitions, and then names where the next one begins; the client
sends that back as its cursor.
"""

from typing import TYPE_CHECKING

from ottla.broker.acl.check import allowed_names, authorized_operations, topic_failure
from ottla.broker.request import Answer, Request
from ottla.cluster.acl import ACLOperation, ResourceType
from ottla.cluster.image import NO_LEADER, PartitionImage, TopicImage
from ottla.cluster.names import is_internal
from ottla.wire.api.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from ottla.wire.errors import ErrorCode

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

LARGEST_PAGE = 2000
"""Partitions in one reply, however many were asked for."""


def handle(broker: "Broker", request: Request) -> Answer:
    """Describe topics from the cursor on until the page is full."""
    body: DescribeTopicPartitionsRequest = request.body
    cursor = body.cursor or Cursor()
    if cursor.partition_index < 0:
        return DescribeTopicPartitionsResponse(
            topics=[_missing(topic.name, ErrorCode.INVALID_REQUEST) for topic in body.topics]
        )
    # Whoever asks for all topics gets those that he may see; whoever names one learns that he may not.
    asked = {topic.name for topic in body.topics} or allowed_names(
        broker, request, ACLOperation.DESCRIBE, ResourceType.TOPIC, broker.image.topics
    )
    response = DescribeTopicPartitionsResponse(next_cursor=None)
    left = max(1, min(body.response_partition_limit, LARGEST_PAGE))
    for name in sorted(name for name in asked if name >= cursor.topic_name):
        if left == 0:
            response.next_cursor = Cursor(topic_name=name, partition_index=0)
            break
        topic = broker.image.topics.get(name)
        if code := topic_failure(broker, request, ACLOperation.DESCRIBE, name):
            response.topics.append(DescribeTopicPartitionsResponseTopic(error_code=code, name=name))
            continue
        if topic is None:
            response.topics.append(_missing(name, broker.topics.why_missing(name)))
            continue
        first = cursor.partition_index if name == cursor.topic_name else 0
        page = topic.partitions[first : first + left]
        described = _describe(topic, page)
        described.topic_authorized_operations = authorized_operations(broker, request, ResourceType.TOPIC, name)
        response.topics.append(described)
        left -= len(page)
        if first + len(page) < len(topic.partitions):
            response.next_cursor = Cursor(topic_name=name, partition_index=first + len(page))
            break
    return response


def _missing(name: str, code: ErrorCode) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(error_code=code, name=name, is_internal=is_internal(name))


def _describe(topic: TopicImage, page: tuple[PartitionImage, ...]) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=[
            DescribeTopicPartitionsResponsePartition(
                error_code=ErrorCode.LEADER_NOT_AVAILABLE if partition.leader == NO_LEADER else ErrorCode.NONE,
                partition_index=partition.index,
                leader_id=partition.leader,
                leader_epoch=partition.leader_epoch,
                replica_nodes=list(partition.replicas),
                isr_nodes=list(partition.isr),
                eligible_leader_replicas=[],
                last_known_elr=[],
            )
            for partition in page
        ],
    )
