"""Administration of groups: who is in them, what they have committed, and changes to that."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NamedTuple, TypeVar

from ottla.client.cluster import Cluster
from ottla.client.errors import check, error_of
from ottla.client.types import TopicPartition
from ottla.net import Connection
from ottla.wire.api.consumer_group_describe import ConsumerGroupDescribeRequest
from ottla.wire.api.consumer_group_describe import DescribedGroup as DescribedConsumerGroup
from ottla.wire.api.delete_groups import DeleteGroupsRequest
from ottla.wire.api.describe_groups import DescribedGroup, DescribeGroupsRequest
from ottla.wire.api.find_coordinator import FindCoordinatorRequest
from ottla.wire.api.list_groups import ListedGroup, ListGroupsRequest
from ottla.wire.api.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.wire.api.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from ottla.wire.api.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from ottla.wire.embedded import decode_versioned
from ottla.wire.embedded.consumer_protocol import ConsumerProtocolAssignment
from ottla.wire.errors import ErrorCode, KafkaError, ProtocolError
from ottla.wire.schema import schema_of

T = TypeVar("T")

LAST_VERSION_WITH_NAMES = 9
"""OffsetCommit and OffsetFetch name topics up to this version, and then go by ids."""
FIRST_FETCH_VERSION_WITH_GROUPS = 8
FIRST_FIND_VERSION_WITH_MANY = 4
NOTHING_COMMITTED = -1

Assignment = dict[str, list[int]]
"""Partitions by topic."""


class GroupOffset(NamedTuple):
    """A position that a group has committed."""

    offset: int
    leader_epoch: int
    metadata: str


@dataclass(frozen=True, slots=True)
class GroupMember:
    """A member of a group."""

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    assignment: Assignment | None
    """None where the members share out something else than partitions, or in a way that is theirs alone."""


@dataclass(frozen=True, slots=True)
class GroupDescription:
    """A group as its coordinator sees it."""

    group_id: str
    group_type: str
    """`classic` or `consumer`."""
    state: str
    protocol_type: str
    assignor: str
    coordinator: str
    """The broker that looks after it, as `host:port`."""
    members: list[GroupMember] = field(default_factory=list)

    @property
    def is_active(self) -> bool:
        """Whether it has members: its offsets are theirs then."""
        return bool(self.members) or self.state not in ("Empty", "Dead")


class GroupAdmin:
    """Looks at groups and changes their offsets. What fails raises KafkaError.

    A group's requests go to its coordinator, and are tried again while that one moves or starts.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def list_groups(self, states: Iterable[str] = (), types: Iterable[str] = ()) -> list[ListedGroup]:
        """The groups of all brokers by id, or only those of certain states and types."""
        request = ListGroupsRequest(states_filter=list(states), types_filter=list(types))

        async def ask(node_id: int) -> list[ListedGroup]:
            connection = await self._cluster.broker(node_id)
            response = await connection.request(request)
            check(response.error_code, f"groups of broker {node_id}")
            return list(response.groups)

        async def ask_all() -> list[ListedGroup]:
            brokers = (await self._cluster.metadata([])).brokers
            answers = await asyncio.gather(*[ask(broker.node_id) for broker in brokers])
            return sorted(chain.from_iterable(answers), key=lambda group: group.group_id)

        return await self._cluster.retrying(ask_all)

    async def describe(self, group_id: str) -> GroupDescription:
        """State and members of a group."""

        async def ask(connection: Connection) -> GroupDescription:
            if schema_of(ConsumerGroupDescribeRequest).key in connection.offer:
                modern = (await connection.request(ConsumerGroupDescribeRequest(group_ids=[group_id]))).groups[0]
                if modern.error_code not in _NOT_OF_THE_CONSUMER_PROTOCOL:
                    check(modern.error_code, modern.error_message or f"group {group_id!r}")
                    return _consumer_group(modern, connection.broker)
            classic = (await connection.request(DescribeGroupsRequest(groups=[group_id]))).groups[0]
            if classic.group_state == "Dead" or classic.error_code == ErrorCode.GROUP_ID_NOT_FOUND:
                raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no group {group_id!r}")
            check(classic.error_code, classic.error_message or f"group {group_id!r}")
            return _classic_group(classic, connection.broker)

        return await self._at_coordinator(group_id, ask)

    async def committed(self, group_id: str) -> dict[TopicPartition, GroupOffset]:
        """All that a group has committed; nothing for one that does not exist."""

        async def ask(connection: Connection) -> dict[TopicPartition, GroupOffset]:
            version = min(connection.version_of(OffsetFetchRequest), LAST_VERSION_WITH_NAMES)
            request = OffsetFetchRequest(
                group_id=group_id, topics=None, groups=[OffsetFetchRequestGroup(group_id=group_id, topics=None)]
            )
            response: Any = await connection.request(request, version=version)
            if version >= FIRST_FETCH_VERSION_WITH_GROUPS:
                (response,) = response.groups
            check(response.error_code, f"offsets of group {group_id!r}")
            found: dict[TopicPartition, GroupOffset] = {}
            for topic in response.topics:
                for one in topic.partitions:
                    check(one.error_code, f"offset of group {group_id!r} in {topic.name}-{one.partition_index}")
                    if one.committed_offset != NOTHING_COMMITTED:
                        found[TopicPartition(topic.name, one.partition_index)] = GroupOffset(
                            one.committed_offset, one.committed_leader_epoch, one.metadata or ""
                        )
            return dict(sorted(found.items()))

        return await self._at_coordinator(group_id, ask)

    async def commit(self, group_id: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Set offsets of a group without members; one that does not exist comes into being."""
        topics: dict[str, OffsetCommitRequestTopic] = {}
        for place, offset in offsets.items():
            topic = topics.setdefault(place.topic, OffsetCommitRequestTopic(name=place.topic))
            topic.partitions.append(
                OffsetCommitRequestPartition(partition_index=place.partition, committed_offset=offset)
            )
        request = OffsetCommitRequest(group_id=group_id, topics=list(topics.values()))

        async def ask(connection: Connection) -> None:
            version = min(connection.version_of(OffsetCommitRequest), LAST_VERSION_WITH_NAMES)
            response = await connection.request(request, version=version)
            for topic in response.topics:
                for one in topic.partitions:
                    if one.error_code == ErrorCode.UNKNOWN_MEMBER_ID:
                        raise KafkaError(
                            ErrorCode.UNKNOWN_MEMBER_ID, f"group {group_id!r} has members: stop them first"
                        )
                    check(one.error_code, f"offset of group {group_id!r} in {topic.name}-{one.partition_index}")

        await self._at_coordinator(group_id, ask)

    async def delete(self, group_id: str) -> None:
        """Delete a group without members, with its offsets."""

        async def ask(connection: Connection) -> None:
            response = await connection.request(DeleteGroupsRequest(groups_names=[group_id]))
            for result in response.results:
                reason = _REASONS.get(result.error_code, "group {!r}").format(group_id)
                check(result.error_code, result.error_message or reason)

        await self._at_coordinator(group_id, ask)

    async def delete_offsets(self, group_id: str, partitions: Iterable[TopicPartition]) -> None:
        """Delete offsets of partitions that no member reads."""
        topics: dict[str, OffsetDeleteRequestTopic] = {}
        for place in partitions:
            topic = topics.setdefault(place.topic, OffsetDeleteRequestTopic(name=place.topic))
            topic.partitions.append(OffsetDeleteRequestPartition(partition_index=place.partition))
        request = OffsetDeleteRequest(group_id=group_id, topics=list(topics.values()))

        async def ask(connection: Connection) -> None:
            response = await connection.request(request)
            check(response.error_code, _REASONS.get(response.error_code, "group {!r}").format(group_id))
            for topic in response.topics:
                for one in topic.partitions:
                    if one.error_code == ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC:
                        reason = f"members of group {group_id!r} read {topic.name}: stop them first"
                        raise error_of(one.error_code, reason)
                    check(one.error_code, f"offset of group {group_id!r} in {topic.name}-{one.partition_index}")

        await self._at_coordinator(group_id, ask)

    async def _at_coordinator(self, group_id: str, ask: Callable[[Connection], Awaitable[T]]) -> T:
        async def find_and_ask() -> T:
            return await ask(await self._coordinator(group_id))

        return await self._cluster.retrying(find_and_ask)

    async def _coordinator(self, group_id: str) -> Connection:
        connection = await self._cluster.any_broker()
        response: Any = await connection.request(
            FindCoordinatorRequest(key=group_id, coordinator_keys=[group_id]),
        )
        if connection.version_of(FindCoordinatorRequest) >= FIRST_FIND_VERSION_WITH_MANY:
            (response,) = response.coordinators
        check(response.error_code, response.error_message or f"coordinator of group {group_id!r}")
        return await self._cluster.broker(response.node_id)


_NOT_OF_THE_CONSUMER_PROTOCOL = (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION)

_REASONS: Mapping[int, str] = {
    ErrorCode.NON_EMPTY_GROUP: "group {!r} has members: stop them first",
    ErrorCode.GROUP_ID_NOT_FOUND: "there is no group {!r}",
}


def _consumer_group(described: DescribedConsumerGroup, broker: str) -> GroupDescription:
    members = [
        GroupMember(
            one.member_id,
            one.instance_id,
            one.client_id,
            one.client_host,
            {topic.topic_name: sorted(topic.partitions) for topic in one.assignment.topic_partitions},
        )
        for one in described.members
    ]
    return GroupDescription(
        described.group_id, "consumer", described.group_state, "consumer", described.assignor_name, broker, members
    )


def _classic_group(described: DescribedGroup, broker: str) -> GroupDescription:
    members = [
        GroupMember(
            one.member_id,
            one.group_instance_id,
            one.client_id,
            one.client_host,
            _assignment(described.protocol_type, one.member_assignment),
        )
        for one in described.members
    ]
    return GroupDescription(
        described.group_id,
        "classic",
        described.group_state,
        described.protocol_type,
        described.protocol_data,
        broker,
        members,
    )


def _assignment(protocol_type: str, data: bytes) -> Assignment | None:
    if protocol_type != "consumer":
        return None
    if not data:
        return {}
    try:
        assigned = decode_versioned(ConsumerProtocolAssignment, data, from_the_future=True)
    except ProtocolError:
        return None
    return {topic.topic: sorted(topic.partitions) for topic in assigned.assigned_partitions}
