"""CreatePartitions (37): add partitions to topics. All versions are alike but for their encoding."""

from collections import Counter
from typing import TYPE_CHECKING

from ottla.broker.acl.check import check_allowed
from ottla.broker.request import Answer, Request
from ottla.cluster.acl import ACLOperation, ResourceType
from ottla.wire.api.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from ottla.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from ottla.broker.broker import Broker


def handle(broker: "Broker", request: Request) -> Answer:
    """Let one topic after the other grow; each succeeds or fails for itself."""
    return _grow_all(broker, request)


async def _grow_all(broker: "Broker", request: Request) -> CreatePartitionsResponse:
    body: CreatePartitionsRequest = request.body
    named = Counter(topic.name for topic in body.topics)
    response = CreatePartitionsResponse()
    for topic in {topic.name: topic for topic in body.topics}.values():
        result = CreatePartitionsTopicResult(name=topic.name)
        response.results.append(result)
        try:
            if named[topic.name] > 1:
                raise KafkaError(ErrorCode.INVALID_REQUEST, f"topic {topic.name!r} is named {named[topic.name]} times")
            check_allowed(broker, request, ACLOperation.ALTER, ResourceType.TOPIC, topic.name)
            await _grow(broker, topic, body)
        except KafkaError as error:
            result.error_code, result.error_message = error.code, error.message
    return response


async def _grow(broker: "Broker", topic: CreatePartitionsTopic, body: CreatePartitionsRequest) -> None:
    assignment = None if topic.assignments is None else [assigned.broker_ids for assigned in topic.assignments]
    await broker.topics.grow(topic.name, topic.count, assignment, validate_only=body.validate_only)
    if body.timeout_ms <= 0 and not body.validate_only:
        message = f"the partitions are being added, but timeout_ms = {body.timeout_ms} leaves no time to wait"
        raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, message)
