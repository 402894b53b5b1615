"""OffsetCommit (8): keep how far a group has come.

v0 keeps offsets in the metadata store, apart from all others, and knows no members. v1 has them in the offsets topic,
with a time for each; v2 to v4 tell how long to keep them; v6 has leader epochs, v7 static members, v9 the consumer
protocol's epochs, v10 topic ids.
"""

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from ottla.broker.acl.check import check_allowed, divided, topic_failure
from ottla.broker.coordinator import together
from ottla.broker.request import Answer, Request
from ottla.cluster.acl import ACLOperation, ResourceType
from ottla.cluster.image import TopicImage
from ottla.coordinator.group.shard import GroupShard
from ottla.meta.group_offsets import KeptOffset
from ottla.meta.store import StoreError
from ottla.wire.api.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from ottla.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

FIRST_VERSION_WITH_TOPIC_IDS = 10

log = logging.getLogger("ottla.groups")


def handle(broker: "Broker", request: Request) -> Answer:
    """Have the group decide; v0 has none that could."""
    body: OffsetCommitRequest = request.body
    if broker.authorizer is None:
        return _commit(broker, request, body)
    try:
        check_allowed(broker, request, ACLOperation.READ, ResourceType.GROUP, body.group_id)
    except KafkaError as error:
        return _refused(body.topics, error.code)
    body.topics, refused = divided(body.topics, lambda topic: _failure(broker, request, topic))
    if not refused:
        return _commit(broker, request, body)
    response = _refused(refused, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    if not body.topics:
        return response

    def merge(answers: list[OffsetCommitResponse]) -> OffsetCommitResponse:
        response.topics += answers[0].topics
        return response

    return together([_commit(broker, request, body)], merge)


def _failure(broker: "Broker", request: Request, asked: OffsetCommitRequestTopic) -> ErrorCode:
    if request.version < FIRST_VERSION_WITH_TOPIC_IDS:
        return topic_failure(broker, request, ACLOperation.READ, asked.name)
    topic = broker.image.topic_by_id(asked.topic_id)
    return ErrorCode.NONE if topic is None else topic_failure(broker, request, ACLOperation.READ, topic.name)


def _commit(broker: "Broker", request: Request, body: OffsetCommitRequest) -> Answer:
    if request.version == 0:
        return _commit_to_store(broker, body)

    def refuse(error: KafkaError) -> OffsetCommitResponse:
        return _refused(body.topics, error.code)

    too_large = ErrorCode.INVALID_COMMIT_OFFSET_SIZE
    return broker.groups.ask(request, body.group_id, GroupShard.offset_commit, body, refuse, if_too_large=too_large)


async def _commit_to_store(broker: "Broker", body: OffsetCommitRequest) -> OffsetCommitResponse:
    kept: dict[str, tuple[TopicImage, dict[int, KeptOffset]]] = {}
    codes: dict[tuple[str, int], ErrorCode] = {}
    for asked in body.topics:
        topic = broker.image.topics.get(asked.name)
        for partition in asked.partitions:
            code = _check(broker, topic, partition)
            codes[asked.name, partition.partition_index] = code
            if topic is not None and not code:
                offset = KeptOffset(partition.committed_offset, partition.committed_metadata or "")
                kept.setdefault(topic.name, (topic, {}))[1][partition.partition_index] = offset
    failure = await _keep(broker, body.group_id, list(kept.values())) if kept else ErrorCode.NONE
    return _answer(body.topics, lambda name, index: codes[name, index] or failure)


def _check(broker: "Broker", topic: TopicImage | None, asked: OffsetCommitRequestPartition) -> ErrorCode:
    if topic is None or topic.partition(asked.partition_index) is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if len(asked.committed_metadata or "") > broker.config.offset_metadata_max_bytes:
        return ErrorCode.OFFSET_METADATA_TOO_LARGE
    return ErrorCode.NONE


async def _keep(broker: "Broker", group_id: str, kept: list[tuple[TopicImage, dict[int, KeptOffset]]]) -> ErrorCode:
    try:
        await broker.kept_offsets.commit(group_id, kept)
    except KafkaError as error:
        return error.code
    except StoreError as error:
        log.error("offsets of group %r could not be kept: %s", group_id, error)
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    return ErrorCode.NONE


def _refused(topics: list[OffsetCommitRequestTopic], code: ErrorCode) -> OffsetCommitResponse:
    return _answer(topics, lambda _topic, _partition: code)


def _answer(topics: list[OffsetCommitRequestTopic], code_of: Callable[[str, int], ErrorCode]) -> OffsetCommitResponse:
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    OffsetCommitResponsePartition(
                        partition_index=partition.partition_index,
                        error_code=code_of(topic.name, partition.partition_index),
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in topics
        ]
    )
