"""The offsets that groups have committed: look at them, set and delete them."""

from collections.abc import Iterable, Mapping
from typing import Any

from ottla.client.admin.part import AdminPart, Answers, by_topic, lacks, outcome, places_of
from ottla.client.errors import check, error_of
from ottla.client.given import GivenOffset, given_offsets
from ottla.client.types import OffsetAndMetadata, TopicPartition
from ottla.net import Connection
from ottla.wire.api.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from ottla.wire.api.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from ottla.wire.api.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from ottla.wire.errors import ErrorCode, KafkaError

LAST_VERSION_WITH_NAMES = 9
"""OffsetCommit and OffsetFetch name topics up to this version, and then go by ids, which deleted topics have lost."""
FIRST_FETCH_VERSION_WITH_ALL = 2
FIRST_FETCH_VERSION_WITH_GROUPS = 8
NOTHING_COMMITTED = -1

_NOTHING_THERE = (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


class GroupOffsetAdmin(AdminPart):
    """The methods that concern what groups have committed."""

    async def list_consumer_group_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition] | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """What a group has committed, in all partitions or in some. Where it has not, there is no entry.

        >>> run(lambda admin: admin.create_topics([NewTopic("orders", 2)]))
        >>> run(lambda admin: admin.alter_consumer_group_offsets("readers", {TopicPartition("orders", 1): 0}))
        >>> run(lambda admin: admin.list_consumer_group_offsets("readers"))
        {TopicPartition(topic='orders', partition=1): OffsetAndMetadata(offset=0, metadata='', leader_epoch=-1)}
        """
        wanted = None if partitions is None else places_of(partitions)

        async def ask(connection: Connection) -> dict[TopicPartition, OffsetAndMetadata]:
            return await _committed(connection, group_id, wanted)

        return await self._cluster.retrying(lambda: self._coordinators.ask(group_id, ask))

    async def alter_consumer_group_offsets(self, group_id: str, offsets: Mapping[TopicPartition, GivenOffset]) -> None:
        """Set offsets of a group without members: what they will read next. A new group comes into being.

        >>> run(lambda admin: admin.create_topics(["orders"]))
        >>> run(lambda admin: admin.alter_consumer_group_offsets("readers", {TopicPartition("orders", 0): 0}))
        >>> [group.group_id for group in run(lambda admin: admin.list_groups())]
        ['readers']
        """
        wanted = given_offsets(offsets)

        async def ask(left: list[TopicPartition]) -> Answers[TopicPartition, None]:
            request = OffsetCommitRequest(
                group_id=group_id,
                topics=[
                    OffsetCommitRequestTopic(
                        name=topic,
                        partitions=[_position(one, wanted[TopicPartition(topic, one)]) for one in indexes],
                    )
                    for topic, indexes in by_topic(left).items()
                ],
            )

            async def commit(connection: Connection) -> Answers[TopicPartition, None]:
                version = min(connection.version_of(OffsetCommitRequest), LAST_VERSION_WITH_NAMES)
                return _outcomes(group_id, await connection.request(request, version=version))

            return await self._ask_coordinator(group_id, commit)

        await self._each(wanted, ask)

    async def delete_consumer_group_offsets(self, group_id: str, partitions: Iterable[TopicPartition]) -> None:
        """Delete what a group has committed in partitions of topics that none of its members reads.

        >>> run(lambda admin: admin.create_topics(["orders"]))
        >>> run(lambda admin: admin.alter_consumer_group_offsets("readers", {TopicPartition("orders", 0): 0}))
        >>> run(lambda admin: admin.delete_consumer_group_offsets("readers", [TopicPartition("orders", 0)]))
        >>> run(lambda admin: admin.list_consumer_group_offsets("readers"))
        {}
        """

        async def ask(left: list[TopicPartition]) -> Answers[TopicPartition, None]:
            request = OffsetDeleteRequest(
                group_id=group_id,
                topics=[
                    OffsetDeleteRequestTopic(
                        name=topic, partitions=[OffsetDeleteRequestPartition(partition_index=one) for one in indexes]
                    )
                    for topic, indexes in by_topic(left).items()
                ],
            )

            async def delete(connection: Connection) -> Answers[TopicPartition, None]:
                response = await connection.request(request)
                failure = outcome(response.error_code, None, "group", group_id)
                if failure is not None:
                    raise failure
                return _outcomes(group_id, response)

            return await self._ask_coordinator(group_id, delete)

        await self._each(places_of(partitions), ask, done=ErrorCode.GROUP_ID_NOT_FOUND)


async def _committed(
    connection: Connection, group_id: str, partitions: list[TopicPartition] | None
) -> dict[TopicPartition, OffsetAndMetadata]:
    version = min(connection.version_of(OffsetFetchRequest), LAST_VERSION_WITH_NAMES)
    if partitions is None and version < FIRST_FETCH_VERSION_WITH_ALL:
        raise lacks(connection.broker, "telling all offsets of a group; name the partitions")
    indexes = None if partitions is None else by_topic(partitions).items()
    group = OffsetFetchRequestGroup(group_id=group_id, topics=None)
    request = OffsetFetchRequest(group_id=group_id, topics=None, groups=[group])
    if indexes is not None:
        request.topics = [OffsetFetchRequestTopic(name=name, partition_indexes=some) for name, some in indexes]
        group.topics = [OffsetFetchRequestTopics(name=name, partition_indexes=some) for name, some in indexes]
    response: Any = await connection.request(request, version=version)
    if version >= FIRST_FETCH_VERSION_WITH_GROUPS:
        if not response.groups:
            raise error_of(ErrorCode.UNKNOWN_SERVER_ERROR, f"the broker leaves out group {group_id!r}")
        response = response.groups[0]
    check(response.error_code, f"offsets of group {group_id!r}")
    found: dict[TopicPartition, OffsetAndMetadata] = {}
    for topic in response.topics:
        for one in topic.partitions:
            place = TopicPartition(topic.name, one.partition_index)
            # An old broker says so of a partition in which nothing was committed.
            if one.committed_offset == NOTHING_COMMITTED and one.error_code in _NOTHING_THERE:
                continue
            check(one.error_code, f"offset of group {group_id!r} in {place}")
            found[place] = OffsetAndMetadata(one.committed_offset, one.metadata or "", one.committed_leader_epoch)
    return dict(sorted(found.items()))


def _outcomes(group_id: str, response: OffsetCommitResponse | OffsetDeleteResponse) -> Answers[TopicPartition, None]:
    answers: dict[TopicPartition, KafkaError | None] = {}
    for topic in response.topics:
        for one in topic.partitions:
            place = TopicPartition(topic.name, one.partition_index)
            if one.error_code == ErrorCode.UNKNOWN_MEMBER_ID:
                # A group with members takes commits of these alone.
                answers[place] = error_of(ErrorCode.NON_EMPTY_GROUP, f"group {group_id!r} has members")
            elif one.error_code == ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC:
                answers[place] = error_of(one.error_code, f"members of group {group_id!r} read {topic.name}")
            else:
                answers[place] = outcome(one.error_code, None, "partition", str(place))
    return answers


def _position(partition: int, position: OffsetAndMetadata) -> OffsetCommitRequestPartition:
    return OffsetCommitRequestPartition(
        partition_index=partition,
        committed_offset=position.offset,
        committed_leader_epoch=position.leader_epoch,
        committed_metadata=position.metadata,
    )
