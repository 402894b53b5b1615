"""OffsetFetch (9): read how far a group has come.

v0 reads the metadata store, and has an error for what is not there; later versions read the offsets topic, and answer
-1. From v2 on null asks for everything, and the group has an error code of its own. v7 can ask for offsets that no open
transaction may change, v8 asks for many groups, v9 tells who asks, v10 has topic ids.
"""

import logging
from typing import TYPE_CHECKING

from ottla.broker.coordinator import together
from ottla.broker.request import Answer, Request
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
    OffsetFetchResponseTopic,
)
from ottla.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

NO_OFFSET = -1

log = logging.getLogger("ottla.groups")


def handle(broker: "Broker", request: Request) -> Answer:
    """Ask each group for itself. Versions that know one group only are translated to those that know many, and back."""
    body: OffsetFetchRequest = request.body
    if request.version == 0:
        return _fetch_from_store(broker, body)
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

    return broker.groups.ask(request, asked.group_id, GroupShard.offset_fetch, asked, refuse)


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


async def _fetch_from_store(broker: "Broker", body: OffsetFetchRequest) -> OffsetFetchResponse:
    response = OffsetFetchResponse()
    try:
        for asked in body.topics or []:
            topic = broker.image.topics.get(asked.name)
            kept = {} if topic is None else await broker.kept_offsets.fetch(body.group_id, topic)
            partitions = [_kept(index, kept.get(index)) for index in asked.partition_indexes]
            response.topics.append(OffsetFetchResponseTopic(name=asked.name, partitions=partitions))
    except StoreError as error:
        log.error("offsets of group %r could not be read: %s", body.group_id, error)
        return _all_failed(body, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return response


def _kept(index: int, found: KeptOffset | None) -> OffsetFetchResponsePartition:
    if found is None:
        return _without(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return OffsetFetchResponsePartition(partition_index=index, committed_offset=found.offset, metadata=found.metadata)
