"""Positions of a group as requests carry them, in all versions of OffsetCommit and OffsetFetch."""

from collections.abc import Iterable, Mapping
from typing import Any

from ottla.client.consumer.membership.identity import Identity
from ottla.client.errors import check, error_of
from ottla.client.picture import NO_TOPIC_ID, Picture
from ottla.client.types import OffsetAndMetadata, TopicPartition
from ottla.net import Connection
from ottla.wire.api.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from ottla.wire.api.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from ottla.wire.errors import ErrorCode, KafkaError

LAST_VERSION_WITH_NAMES = 9
"""OffsetCommit and OffsetFetch name topics up to this version, and then go by ids."""
FIRST_FETCH_VERSION_WITH_GROUPS = 8
NOTHING_COMMITTED = -1

Offsets = Mapping[TopicPartition, OffsetAndMetadata]


def version_for(request: type[Any], topics: Iterable[str], connection: Connection, picture: Picture) -> int:
    """The version to ask in: the newest, unless it needs ids of topics that are not known."""
    version = connection.version_of(request)
    if version > LAST_VERSION_WITH_NAMES and any(picture.topic_id(topic) == NO_TOPIC_ID for topic in topics):
        return LAST_VERSION_WITH_NAMES
    return version


def commit_request(group_id: str, identity: Identity, offsets: Offsets, picture: Picture) -> OffsetCommitRequest:
    """Ask for positions to be kept."""
    topics: dict[str, OffsetCommitRequestTopic] = {}
    for place, position in offsets.items():
        topic = topics.get(place.topic)
        if topic is None:
            topic = OffsetCommitRequestTopic(name=place.topic, topic_id=picture.topic_id(place.topic))
            topics[place.topic] = topic
        topic.partitions.append(
            OffsetCommitRequestPartition(
                partition_index=place.partition,
                committed_offset=position.offset,
                committed_leader_epoch=position.leader_epoch,
                committed_metadata=position.metadata,
            )
        )
    return OffsetCommitRequest(
        group_id=group_id,
        generation_id_or_member_epoch=identity.generation,
        member_id=identity.member_id,
        group_instance_id=identity.instance_id,
        topics=list(topics.values()),
    )


def check_commit(group_id: str, response: OffsetCommitResponse, picture: Picture) -> None:
    """Raise what went wrong. What concerns the whole group or cannot be mended goes before what may pass."""
    errors: list[KafkaError] = []
    for topic in response.topics:
        name = topic.name or picture.topic_name(topic.topic_id)
        for one in topic.partitions:
            if one.error_code:
                place = TopicPartition(name, one.partition_index)
                errors.append(error_of(one.error_code, f"position of group {group_id!r} in {place}"))
            if one.error_code == ErrorCode.UNKNOWN_TOPIC_ID:
                picture.forget_topic(name)
    if errors:
        raise min(errors, key=lambda error: error.retriable)


def fetch_request(
    group_id: str,
    identity: Identity,
    partitions: Iterable[TopicPartition],
    picture: Picture,
    *,
    require_stable: bool = False,
) -> OffsetFetchRequest:
    """Ask for what was committed."""
    indexes: dict[str, list[int]] = {}
    for place in partitions:
        indexes.setdefault(place.topic, []).append(place.partition)
    group = OffsetFetchRequestGroup(
        group_id=group_id,
        member_id=identity.member_id or None,
        member_epoch=identity.generation,
        topics=[
            OffsetFetchRequestTopics(name=name, topic_id=picture.topic_id(name), partition_indexes=numbers)
            for name, numbers in indexes.items()
        ],
    )
    return OffsetFetchRequest(
        group_id=group_id,
        topics=[OffsetFetchRequestTopic(name=name, partition_indexes=numbers) for name, numbers in indexes.items()],
        groups=[group],
        require_stable=require_stable,
    )


def read_fetched(
    group_id: str, response: OffsetFetchResponse, version: int, picture: Picture
) -> dict[TopicPartition, OffsetAndMetadata]:
    """What was committed; partitions without a position are left out."""
    answer: Any = response
    if version >= FIRST_FETCH_VERSION_WITH_GROUPS:
        (answer,) = response.groups
    check(answer.error_code, f"positions of group {group_id!r}")
    found: dict[TopicPartition, OffsetAndMetadata] = {}
    for topic in answer.topics:
        name = picture.topic_name(topic.topic_id) if version > LAST_VERSION_WITH_NAMES else topic.name
        for one in topic.partitions:
            place = TopicPartition(name, one.partition_index)
            if one.error_code == ErrorCode.UNKNOWN_TOPIC_ID:
                picture.forget_topic(name)
            # Brokers before 0.9 say so where nothing was committed.
            if one.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and version < 2:
                continue
            check(one.error_code, f"position of group {group_id!r} in {place}")
            if one.committed_offset != NOTHING_COMMITTED:
                found[place] = OffsetAndMetadata(one.committed_offset, one.metadata or "", one.committed_leader_epoch)
    return found
