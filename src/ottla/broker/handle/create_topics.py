"""CreateTopics (19): make topics, or with validate_only (v1) see whether they could be made.

A count of -1 stands for the broker's default; replicas that are assigned by hand take the place of both counts. v5
answers what was made and with which configs, v7 its id.
"""

from collections import Counter
from typing import TYPE_CHECKING

from ottla.broker.acl.check import check_allowed, is_allowed
from ottla.broker.request import Answer, Request
from ottla.broker.topics import NewTopic
from ottla.cluster.acl import ACLOperation, ResourceType
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
    """Create topics; each succeeds or fails for itself."""
    return _create_all(broker, request)


async def _create_all(broker: "Broker", request: Request) -> CreateTopicsResponse:
    body: CreateTopicsRequest = request.body
    may_create_any = is_allowed(broker, request, ACLOperation.CREATE, ResourceType.CLUSTER)
    named = Counter(topic.name for topic in body.topics)
    results: dict[str, CreatableTopicResult] = {}
    wanted: list[NewTopic] = []
    for topic in body.topics:
        result = results[topic.name] = CreatableTopicResult(name=topic.name, error_message=None)
        try:
            if named[topic.name] > 1:
                raise KafkaError(ErrorCode.INVALID_REQUEST, f"topic {topic.name!r} is named {named[topic.name]} times")
            if not may_create_any:
                check_allowed(broker, request, ACLOperation.CREATE, ResourceType.TOPIC, topic.name)
            wanted.append(_wanted(topic))
        except KafkaError as error:
            result.error_code, result.error_message = error.code, error.message
    descriptions: dict[tuple[tuple[str, str], ...], list[CreatableTopicConfigs]] = {}
    for outcome, one in zip(
        await broker.topics.create_all(wanted, validate_only=body.validate_only), wanted, strict=True
    ):
        result = results[one.name]
        if isinstance(outcome, KafkaError):
            result.error_code, result.error_message = outcome.code, outcome.message
            continue
        if not body.validate_only:
            result.topic_id = outcome.topic_id
        if not is_allowed(broker, request, ACLOperation.DESCRIBE_CONFIGS, ResourceType.TOPIC, one.name):
            result.topic_config_error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        else:
            _describe(outcome, result)
            key = tuple(sorted(outcome.configs.items()))
            if key not in descriptions:
                descriptions[key] = _configs(broker, outcome)
            result.configs = descriptions[key]
        if body.timeout_ms <= 0 and not body.validate_only:
            result.error_code = ErrorCode.REQUEST_TIMED_OUT
            result.error_message = (
                f"the topic is being created, but timeout_ms = {body.timeout_ms} leaves no time to wait"
            )
    return CreateTopicsResponse(topics=list(results.values()))


def _wanted(topic: CreatableTopic) -> NewTopic:
    assignment = {assigned.partition_index: assigned.broker_ids for assigned in topic.assignments}
    if len(assignment) < len(topic.assignments):
        raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, "replicas are assigned twice for the same partition")
    configs: dict[str, str] = {}
    for config in topic.configs:
        if config.value is None:
            message = f"{config.name} has no value; leave it out to get the default"
            raise KafkaError(ErrorCode.INVALID_CONFIG, message)
        configs[config.name] = config.value
    return NewTopic(topic.name, topic.num_partitions, topic.replication_factor, assignment or None, configs)


def _describe(topic: TopicImage, result: CreatableTopicResult) -> None:
    result.num_partitions = len(topic.partitions)
    result.replication_factor = len(topic.partitions[0].replicas)


def _configs(broker: "Broker", topic: TopicImage) -> list[CreatableTopicConfigs]:
    return [
        CreatableTopicConfigs(
            name=entry.name,
            value=entry.value,
            read_only=entry.read_only,
            config_source=entry.source,
            is_sensitive=entry.sensitive,
        )
        for entry in describe_topic(topic.configs, broker.config)
    ]
