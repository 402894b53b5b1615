"""OffsetFetch (9): read how far a group has come.

v0 reads the metadata store, and has an error for what is not there; later versions read the offsets topic, and answer
-1. From v2 on null asks for everything, and the group has an error code of its own. v7 can ask for offsets that no open
transaction may change, v8 asks for many groups, v9 tells who asks, v10 has topic ids.
"""

import logging
from typing import TYPE_CHECKING

from ottla.broker.acl.check import allowed_names, check_allowed, divided, topic_failure
from ottla.broker.coordinator import together
from ottla.broker.request import Answer, Request
from ottla.cluster.acl import ACLOperation, ResourceType
from ottla.coordinator.group.shard import GroupShard
from ottla.meta.group_offsets import KeptOffset
from ottla.meta.store import StoreError
from ottla.wire.api.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from ottla.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

NO_OFFSET = -1
FIRST_VERSION_WITH_TOPIC_IDS = 10

log = logging.getLogger("ottla.groups")


def handle(broker: "Broker", request: Request) -> Answer:
    """Ask each group for itself. Versions that know one group only are translated to those that know many, and back."""
    body: OffsetFetchRequest = request.body
    if request.version == 0:
        return _fetch_from_store(broker, request)
    if request.version >= 8:
        return together(
            [_fetch(broker, request, group) for group in body.groups], lambda groups: OffsetFetchResponse(groups=groups)
        )
    asked = OffsetFetchRequestGroup(group_id=body.group_id, topics=None)
    if body.topics is not None:
        asked.topics = [
            OffsetFetchRequestTopics(name=topic.name, partition_indexes=topic.partition_indexes)
            for topic in body.topics
        ]
    return together([_fetch(broker, request, asked)], lambda groups: _of_one_group(request, groups[0]))


def _fetch(broker: "Broker", request: Request, asked: OffsetFetchRequestGroup) -> Answer:
    def refuse(error: KafkaError) -> OffsetFetchResponseGroup:
        return OffsetFetchResponseGroup(group_id=asked.group_id, error_code=error.code)

    try:
        check_allowed(broker, request, ACLOperation.DESCRIBE, ResourceType.GROUP, asked.group_id)
    except KafkaError as error:
        return refuse(error)
    if broker.authorizer is None:
        return broker.groups.ask(request, asked.group_id, GroupShard.offset_fetch, asked, refuse)
    everything = asked.topics is None
    refused: list[OffsetFetchRequestTopics] = []
    if asked.topics is not None:
        asked.topics, refused = divided(asked.topics, lambda topic: _failure(broker, request, topic))

    def merge(answers: list[OffsetFetchResponseGroup]) -> OffsetFetchResponseGroup:
        (group,) = answers
        if everything:
            names = [topic.name for topic in group.topics]
            visible = set(allowed_names(broker, request, ACLOperation.DESCRIBE, ResourceType.TOPIC, names))
            group.topics = [topic for topic in group.topics if topic.name in visible]
        elif not group.error_code:
            group.topics += map(_refused, refused)
        return group

    return together([broker.groups.ask(request, asked.group_id, GroupShard.offset_fetch, asked, refuse)], merge)


def _failure(broker: "Broker", request: Request, asked: OffsetFetchRequestTopics) -> ErrorCode:
    if request.version < FIRST_VERSION_WITH_TOPIC_IDS:
        return topic_failure(broker, request, ACLOperation.DESCRIBE, asked.name)
    topic = broker.image.topic_by_id(asked.topic_id)
    return ErrorCode.NONE if topic is None else topic_failure(broker, request, ACLOperation.DESCRIBE, topic.name)


def _refused(topic: OffsetFetchRequestTopics) -> OffsetFetchResponseTopics:
    code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return OffsetFetchResponseTopics(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=[
            OffsetFetchResponsePartitions(partition_index=index, committed_offset=NO_OFFSET, error_code=code)
            for index in topic.partition_indexes
        ],
    )


def _of_one_group(request: Request, group: OffsetFetchResponseGroup) -> OffsetFetchResponse:
    if group.error_code and request.version == 1:
        return _all_failed(request.body, group.error_code)
    return OffsetFetchResponse(
        error_code=group.error_code,
        topics=[
            OffsetFetchResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetFetchResponsePartition(
                        partition_index=partition.partition_index,
                        committed_offset=partition.committed_offset,
                        committed_leader_epoch=partition.committed_leader_epoch,
                        metadata=partition.metadata,
                        error_code=partition.error_code,
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in group.topics
        ],
    )


def _all_failed(body: OffsetFetchRequest, code: int) -> OffsetFetchResponse:
    """Before v2 only partitions can have an error."""
    return OffsetFetchResponse(
        topics=[
            OffsetFetchResponseTopic(
                name=topic.name, partitions=[_without(index, code) for index in topic.partition_indexes]
            )
            for topic in body.topics or []
        ]
    )


def _without(index: int, code: int) -> OffsetFetchResponsePartition:
    return OffsetFetchResponsePartition(partition_index=index, committed_offset=NO_OFFSET, error_code=code)


async def _fetch_from_store(broker: "Broker", request: Request) -> OffsetFetchResponse:
    body: OffsetFetchRequest = request.body
    response = OffsetFetchResponse()
    try:
        check_allowed(broker, request, ACLOperation.DESCRIBE, ResourceType.GROUP, body.group_id)
        for asked in body.topics or []:
            if code := topic_failure(broker, request, ACLOperation.DESCRIBE, asked.name):
                refused = [_without(index, code) for index in asked.partition_indexes]
                response.topics.append(OffsetFetchResponseTopic(name=asked.name, partitions=refused))
                continue
            topic = broker.image.topics.get(asked.name)
            kept = {} if topic is None else await broker.kept_offsets.fetch(body.group_id, topic)
            partitions = [_kept(index, kept.get(index)) for index in asked.partition_indexes]
            response.topics.append(OffsetFetchResponseTopic(name=asked.name, partitions=partitions))
    except KafkaError as error:
        return _all_failed(body, error.code)
    except StoreError as error:
        log.error("offsets of group %r could not be read: %s", body.group_id, error)
        return _all_failed(body, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return response


def _kept(index: int, found: KeptOffset | None) -> OffsetFetchResponsePartition:
    if found is None:
        return _without(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return OffsetFetchResponsePartition(partition_index=index, committed_offset=found.offset, metadata=found.metadata)
