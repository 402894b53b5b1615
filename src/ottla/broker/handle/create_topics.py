"""CreateTopics (19): make topics, or with validate_only (v1) see whether they could be made.

A count of -1 stands for the broker's default; replicas that are assigned by hand take the place of both counts. v5
answers what was made and with which configs, v7 its id.
"""

from collections import Counter
from typing import TYPE_CHECKING

from ottla.broker.request import Answer, Request
from ottla.cluster.image import TopicImage
from ottla.config.describe import describe_topic
from ottla.wire.api.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from ottla.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from ottla.broker.broker import Broker


def handle(broker: "Broker", request: Request) -> Answer:
    """Create one topic after the other; each succeeds or fails for itself."""
    return _create_all(broker, request.body)


async def _create_all(broker: "Broker", body: CreateTopicsRequest) -> CreateTopicsResponse:
    named = Counter(topic.name for topic in body.topics)
    response = CreateTopicsResponse()
    for topic in {topic.name: topic for topic in body.topics}.values():
        result = CreatableTopicResult(name=topic.name, error_message=None)
        response.topics.append(result)
        try:
            if named[topic.name] > 1:
                raise KafkaError(ErrorCode.INVALID_REQUEST, f"topic {topic.name!r} is named {named[topic.name]} times")
            created = await _create(broker, topic, body.validate_only)
            _describe(broker, created, result, body.validate_only)
            if body.timeout_ms <= 0 and not body.validate_only:
                message = f"the topic is being created, but timeout_ms = {body.timeout_ms} leaves no time to wait"
                raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, message)
        except KafkaError as error:
            result.error_code, result.error_message = error.code, error.message
    return response


async def _create(broker: "Broker", topic: CreatableTopic, validate_only: bool) -> TopicImage:
    assignment = {assigned.partition_index: assigned.broker_ids for assigned in topic.assignments}
    if len(assignment) < len(topic.assignments):
        raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, "replicas are assigned twice for the same partition")
    configs: dict[str, str] = {}
    for config in topic.configs:
        if config.value is None:
            message = f"{config.name} has no value; leave it out to get the default"
            raise KafkaError(ErrorCode.INVALID_CONFIG, message)
        configs[config.name] = config.value
    return await broker.topics.create(
        topic.name,
        partition_count=topic.num_partitions,
        replication_factor=topic.replication_factor,
        assignment=assignment or None,
        configs=configs,
        validate_only=validate_only,
    )


def _describe(broker: "Broker", topic: TopicImage, result: CreatableTopicResult, validate_only: bool) -> None:
    if not validate_only:
        result.topic_id = topic.topic_id
    result.num_partitions = len(topic.partitions)
    result.replication_factor = len(topic.partitions[0].replicas)
    result.configs = [
        CreatableTopicConfigs(
            name=entry.name,
            value=entry.value,
            read_only=entry.read_only,
            config_source=entry.source,
            is_sensitive=entry.sensitive,
        )
        for entry in describe_topic(topic.configs, broker.config)
    ]
