"""Metadata (3): brokers, topics, partitions and who leads them.

An empty topic list asks for all topics in v0 and for none later, where null asks for all. Topics that do not exist are
created if the broker and, from v4 on, the client allow it. v10 has topic ids, v12 answers for ids alone.

Whoever may not describe a topic does not learn whether it is there, nor the name to an id.
"""

from typing import TYPE_CHECKING, Final

from ottla.broker.acl.check import allowed_names, authorized_operations, cluster_operations, is_allowed, topic_failure
from ottla.broker.request import Answer, Request
from ottla.cluster.acl import ACLOperation, ResourceType
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

NO_ID: Final = bytes(16)


def handle(broker: "Broker", request: Request) -> Answer:
    """Answer from the image; create what is missing first where that is wanted."""
    body: MetadataRequest = request.body
    if body.topics is None or (request.version == 0 and not body.topics):
        return _respond(broker, request, _all(broker, request))
    missing = [
        topic.name
        for topic in body.topics
        if topic.name is not None
        and topic.topic_id == NO_ID
        and topic.name not in broker.image.topics
        and is_allowed(broker, request, ACLOperation.DESCRIBE, ResourceType.TOPIC, topic.name)
    ]
    if missing and broker.config.auto_create_topics_enable and (request.version < 4 or body.allow_auto_topic_creation):
        return _create_first(broker, request, missing)
    return _respond(broker, request, [_find(broker, request, topic, {}) for topic in body.topics])


def _all(broker: "Broker", request: Request) -> list[MetadataResponseTopic]:
    topics = broker.image.topics
    visible = allowed_names(broker, request, ACLOperation.DESCRIBE, ResourceType.TOPIC, topics)
    return [_describe(topics[name]) for name in visible]


async def _create_first(broker: "Broker", request: Request, missing: list[str]) -> MetadataResponse:
    errors: dict[str, ErrorCode] = {}
    may_create_any = is_allowed(broker, request, ACLOperation.CREATE, ResourceType.CLUSTER)
    for name in dict.fromkeys(missing):
        if not may_create_any and (code := topic_failure(broker, request, ACLOperation.CREATE, name)):
            errors[name] = code
            continue
        try:
            await broker.topics.create_automatically(name)
        except KafkaError as error:
            if error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
                errors[name] = error.code
    return _respond(broker, request, [_find(broker, request, topic, errors) for topic in request.body.topics or []])


def _find(
    broker: "Broker", request: Request, asked: MetadataRequestTopic, errors: dict[str, ErrorCode]
) -> MetadataResponseTopic:
    unknown = ErrorCode.UNKNOWN_TOPIC_ID
    if asked.topic_id != NO_ID:
        topic = broker.image.topic_by_id(asked.topic_id)
        if topic is not None and (code := topic_failure(broker, request, ACLOperation.DESCRIBE, topic.name)):
            return MetadataResponseTopic(error_code=code, name=None, topic_id=asked.topic_id)
    elif code := topic_failure(broker, request, ACLOperation.DESCRIBE, asked.name or ""):
        return MetadataResponseTopic(error_code=code, name=asked.name)
    else:
        topic = broker.image.topics.get(asked.name or "")
        if topic is None:
            unknown = errors.get(asked.name or "") or broker.topics.why_missing(asked.name)
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


def _respond(broker: "Broker", request: Request, topics: list[MetadataResponseTopic]) -> MetadataResponse:
    body: MetadataRequest = request.body
    for topic in topics:
        if body.include_topic_authorized_operations and not topic.error_code:
            topic.topic_authorized_operations = authorized_operations(
                broker, request, ResourceType.TOPIC, topic.name or ""
            )
        if topic.name is None:
            # Only v12 can leave the name of an unknown id out.
            topic.name = ""
    image = broker.image
    response = MetadataResponse(
        brokers=[
            MetadataResponseBroker(node_id=node.node_id, host=where.host, port=where.port, rack=node.rack)
            for node, where in image.reached_by(request.caller.listener)
        ],
        cluster_id=image.cluster_id,
        controller_id=image.controller_id,
        topics=topics,
    )
    if body.include_cluster_authorized_operations:
        response.cluster_authorized_operations = cluster_operations(broker, request)
    return response
