"""Metadata (3): brokers, topics, partitions and who leads them.

An empty topic list asks for all topics in v0 and for none later, where null asks for all. Topics that do not exist are
created if the broker and, from v4 on, the client allow it. v10 has topic ids, v12 answers for ids alone.
"""

from typing import TYPE_CHECKING

from ottla.broker.handle.describe_cluster import CLUSTER_OPERATIONS
from ottla.broker.handle.describe_topic_partitions import TOPIC_OPERATIONS
from ottla.broker.request import Answer, Request
from ottla.cluster.image import TopicImage
from ottla.wire.api.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from ottla.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

NO_ID = bytes(16)


def handle(broker: "Broker", request: Request) -> Answer:
    """Answer from the image; create what is missing first where that is wanted."""
    body: MetadataRequest = request.body
    if body.topics is None or (request.version == 0 and not body.topics):
        return _respond(broker, body, [_describe(topic) for topic in broker.image.topics.values()])
    missing = [
        topic.name
        for topic in body.topics
        if topic.name is not None and topic.topic_id == NO_ID and topic.name not in broker.image.topics
    ]
    if missing and broker.config.auto_create_topics_enable and (request.version < 4 or body.allow_auto_topic_creation):
        return _create_first(broker, body, missing)
    return _respond(broker, body, [_find(broker, topic, {}) for topic in body.topics])


async def _create_first(broker: "Broker", body: MetadataRequest, missing: list[str]) -> MetadataResponse:
    errors: dict[str, ErrorCode] = {}
    for name in dict.fromkeys(missing):
        try:
            await broker.topics.create_automatically(name)
        except KafkaError as error:
            if error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
                errors[name] = error.code
    return _respond(broker, body, [_find(broker, topic, errors) for topic in body.topics or []])


def _find(broker: "Broker", asked: MetadataRequestTopic, errors: dict[str, ErrorCode]) -> MetadataResponseTopic:
    if asked.topic_id != NO_ID:
        topic = broker.image.topic_by_id(asked.topic_id)
        unknown = ErrorCode.UNKNOWN_TOPIC_ID
    else:
        topic = broker.image.topics.get(asked.name or "")
        unknown = errors.get(asked.name or "", broker.topics.why_missing(asked.name))
    if topic is not None:
        return _describe(topic)
    return MetadataResponseTopic(error_code=unknown, name=asked.name, topic_id=asked.topic_id)


def _describe(topic: TopicImage) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=[
            MetadataResponsePartition(
                partition_index=partition.index,
                leader_id=partition.leader,
                leader_epoch=partition.leader_epoch,
                replica_nodes=list(partition.replicas),
                isr_nodes=list(partition.isr),
            )
            for partition in topic.partitions
        ],
    )


def _respond(broker: "Broker", body: MetadataRequest, topics: list[MetadataResponseTopic]) -> MetadataResponse:
    for topic in topics:
        if body.include_topic_authorized_operations and not topic.error_code:
            topic.topic_authorized_operations = TOPIC_OPERATIONS
        if topic.name is None:
            # Only v12 can leave the name of an unknown id out.
            topic.name = ""
    image = broker.image
    response = MetadataResponse(
        brokers=[
            MetadataResponseBroker(node_id=node.node_id, host=node.host, port=node.port, rack=node.rack)
            for node in image.brokers.values()
        ],
        cluster_id=image.cluster_id,
        controller_id=image.controller_id,
        topics=topics,
    )
    if body.include_cluster_authorized_operations:
        response.cluster_authorized_operations = CLUSTER_OPERATIONS
    return response
