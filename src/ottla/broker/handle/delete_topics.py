"""DeleteTopics (20): remove topics with all their records.

Up to v5 topics are named; v6 takes names or ids. Where the broker does not allow it, v3 and later have a code of their
own to say so.
"""

from typing import TYPE_CHECKING

from ottla.broker.acl.check import check_allowed, is_allowed, topic_failure
from ottla.broker.request import Answer, Request
from ottla.cluster.acl import ACLOperation, ResourceType
from ottla.wire.api.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from ottla.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

NO_ID = bytes(16)


def handle(broker: "Broker", request: Request) -> Answer:
    """Delete one topic after the other; each succeeds or fails for itself."""
    return _delete_all(broker, request)


async def _delete_all(broker: "Broker", request: Request) -> DeleteTopicsResponse:
    body: DeleteTopicsRequest = request.body
    asked = body.topics if request.version >= 6 else [DeleteTopicState(name=name) for name in body.topic_names]
    results = [_find(broker, request, topic) for topic in asked]
    results = _refuse_repeated(results)
    for result in results:
        if result.error_code == ErrorCode.NONE:
            await _delete(broker, result, body.timeout_ms)
    return DeleteTopicsResponse(responses=results)


def _find(broker: "Broker", request: Request, asked: DeleteTopicState) -> DeletableTopicResult:
    """The result for a topic with its name and id filled in, or with the reason why it cannot be deleted.

    Whoever may not describe a topic does not learn whether it is there, nor the name to an id.
    """
    result = DeletableTopicResult(name=asked.name, topic_id=asked.topic_id)
    try:
        if not broker.config.delete_topic_enable:
            code = ErrorCode.TOPIC_DELETION_DISABLED if request.version >= 3 else ErrorCode.INVALID_REQUEST
            raise KafkaError(code, "topics cannot be deleted here: delete.topic.enable is false")
        if (asked.name is None) == (asked.topic_id == NO_ID):
            raise KafkaError(ErrorCode.INVALID_REQUEST, "name a topic by its name or by its id, one of the two")
        if asked.name is None:
            topic = broker.topics.existing_by_id(asked.topic_id)
            _check_access(broker, request, topic.name, result)
        else:
            check_allowed(broker, request, ACLOperation.DESCRIBE, ResourceType.TOPIC, asked.name)
            if asked.name not in broker.image.topics:
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {asked.name!r}")
            topic = broker.image.topics[asked.name]
            check_allowed(broker, request, ACLOperation.DELETE, ResourceType.TOPIC, asked.name)
        result.name, result.topic_id = topic.name, topic.topic_id
    except KafkaError as error:
        _fail(result, error.code, error.message)
    return result


def _check_access(broker: "Broker", request: Request, name: str, result: DeletableTopicResult) -> None:
    if is_allowed(broker, request, ACLOperation.DESCRIBE, ResourceType.TOPIC, name):
        result.name = name
        check_allowed(broker, request, ACLOperation.DELETE, ResourceType.TOPIC, name)
    elif code := topic_failure(broker, request, ACLOperation.DELETE, name):
        raise KafkaError(code, "you may not delete the topic of this id")


def _refuse_repeated(results: list[DeletableTopicResult]) -> list[DeletableTopicResult]:
    """One result for each topic, however often it was named, and by name or id; twice is once too often."""
    kept: dict[tuple[str | None, bytes], DeletableTopicResult] = {}
    for result in results:
        first = kept.setdefault((result.name, result.topic_id), result)
        if first is not result:
            _fail(first, ErrorCode.INVALID_REQUEST, "the topic is named more than once")
    return list(kept.values())


async def _delete(broker: "Broker", result: DeletableTopicResult, timeout_ms: int) -> None:
    try:
        assert result.name is not None
        await broker.topics.delete(result.name)
        if timeout_ms <= 0:
            message = f"the topic is being deleted, but timeout_ms = {timeout_ms} leaves no time to wait"
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, message)
    except KafkaError as error:
        _fail(result, error.code, error.message)


def _fail(result: DeletableTopicResult, code: ErrorCode, message: str) -> None:
    result.error_code, result.error_message = code, message
