"""A shard with all that the broker does around it, and requests of members, simple consumers and administrators."""

from collections.abc import Mapping
from typing import Any

from ottla.cluster.image import ClusterImage
from ottla.config.broker import BrokerConfig
from ottla.coordinator.group.shard import GroupShard
from ottla.coordinator.outcome import Call
from ottla.sim.chance import SimChance
from ottla.wire.api.consumer_group_describe import ConsumerGroupDescribeRequest
from ottla.wire.api.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from ottla.wire.api.delete_groups import DeleteGroupsRequest
from ottla.wire.api.describe_groups import DescribeGroupsRequest
from ottla.wire.api.heartbeat import HeartbeatRequest
from ottla.wire.api.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.wire.api.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.wire.api.list_groups import ListGroupsRequest
from ottla.wire.api.offset_commit import OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic
from ottla.wire.api.offset_delete import OffsetDeleteRequest, OffsetDeleteRequestPartition, OffsetDeleteRequestTopic
from ottla.wire.api.offset_fetch import OffsetFetchRequestGroup
from ottla.wire.api.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from ottla.wire.embedded import encode_versioned
from ottla.wire.embedded.consumer_protocol import ConsumerProtocolSubscription
from ottla.wire.errors import ErrorCode

from .harness import Answer, Harness
from .topics import image_of, topic

SESSION_MS = 10_000
MINUTE_MS = 60_000
WEEK_MS = 7 * 24 * 60 * MINUTE_MS


class ShardWorld(Harness[GroupShard]):
    """A shard under test, with the topics "orders" (4 partitions) and "bills" (1)."""

    def __init__(self, **settings: Any) -> None:
        named = {name.replace("_", "."): str(value) for name, value in settings.items()}
        self.config = BrokerConfig({"group.initial.rebalance.delay.ms": "0", **named})
        self.image = image_of(topic("orders", 4, number=1), topic("bills", 1, number=2))
        self._chance = SimChance("shard")
        super().__init__(lambda: GroupShard(self.config, self.image, self._chance))

    def see(self, image: ClusterImage) -> None:
        """Topics change while the shard runs."""
        self.image = image
        self._apply(self.subject.image_changed(self.now_ms, image))

    # Classic members.

    def join(
        self,
        group: str = "g",
        member_id: str = "",
        *,
        version: int = 3,
        topics: tuple[str, ...] = ("orders",),
        protocol_type: str = "consumer",
        session_ms: int = SESSION_MS,
    ) -> Answer:
        metadata = encode_versioned(ConsumerProtocolSubscription(topics=list(topics)), 1)
        request = JoinGroupRequest(
            group_id=group,
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=MINUTE_MS,
            member_id=member_id,
            protocol_type=protocol_type,
            protocols=[JoinGroupRequestProtocol(name="range", metadata=metadata)],
        )
        return self.ask(self.subject.join_group, request, version)

    def sync(
        self, member_id: str, generation: int, shares: Mapping[str, bytes] | None = None, group: str = "g"
    ) -> Answer:
        request = SyncGroupRequest(
            group_id=group,
            generation_id=generation,
            member_id=member_id,
            assignments=[
                SyncGroupRequestAssignment(member_id=key, assignment=share) for key, share in (shares or {}).items()
            ],
        )
        return self.ask(self.subject.sync_group, request, 3)

    def member(self, group: str = "g", **how: Any) -> tuple[str, int]:
        """The first member of a classic group, which is then Stable: its id and generation."""
        joined = self.join(group, **how).reply
        assert joined.error_code == 0
        assert self.sync(joined.member_id, joined.generation_id, {joined.member_id: b""}, group).error == 0
        return joined.member_id, joined.generation_id

    def heartbeat(self, member_id: str, generation: int, group: str = "g") -> ErrorCode:
        request = HeartbeatRequest(group_id=group, generation_id=generation, member_id=member_id)
        return self.ask(self.subject.heartbeat, request, 4).error

    def leave(self, member_id: str, group: str = "g", version: int = 5) -> Any:
        identities = [MemberIdentity(member_id=member_id)]
        request = LeaveGroupRequest(group_id=group, member_id=member_id, members=identities if version >= 3 else [])
        return self.ask(self.subject.leave_group, request, version).reply

    # Members of the consumer protocol.

    def consumer_heartbeat(
        self,
        member_id: str,
        epoch: int,
        group: str = "g",
        topics: tuple[str, ...] | None = None,
        owned: Mapping[bytes, list[int]] | None = None,
    ) -> Any:
        joins = epoch == 0
        request = ConsumerGroupHeartbeatRequest(
            group_id=group,
            member_id=member_id,
            member_epoch=epoch,
            rebalance_timeout_ms=MINUTE_MS if joins else -1,
            subscribed_topic_names=list(topics or ("orders",)) if joins else None,
            topic_partitions=[]
            if joins
            else None
            if owned is None
            else [TopicPartitions(topic_id=key, partitions=indexes) for key, indexes in owned.items()],
        )
        return self.ask(self.subject.consumer_group_heartbeat, request, 1).reply

    # Offsets.

    def commit(
        self,
        offsets: Mapping[int, int],
        group: str = "g",
        *,
        member_id: str = "",
        epoch: int = -1,
        name: str = "orders",
        version: int = 9,
        retention_ms: int = -1,
    ) -> list[ErrorCode]:
        partitions = [
            OffsetCommitRequestPartition(partition_index=index, committed_offset=offset)
            for index, offset in offsets.items()
        ]
        request = OffsetCommitRequest(
            group_id=group,
            generation_id_or_member_epoch=epoch,
            member_id=member_id,
            retention_time_ms=retention_ms,
            topics=[OffsetCommitRequestTopic(name=name, partitions=partitions)],
        )
        reply = self.ask(self.subject.offset_commit, request, version).reply
        return [ErrorCode(one.error_code) for one in reply.topics[0].partitions]

    def committed(self, group: str = "g") -> dict[tuple[str, int], int]:
        """All offsets of a group."""
        request = OffsetFetchRequestGroup(group_id=group, topics=None)
        reply = self.subject.offset_fetch(self.now_ms, Call(9, "c", "/h", request)).reply
        assert reply.error_code == 0
        return {
            (one.name, part.partition_index): part.committed_offset for one in reply.topics for part in one.partitions
        }

    def delete_offsets(
        self, *indexes: int, group: str = "g", name: str = "orders"
    ) -> tuple[ErrorCode, list[ErrorCode]]:
        partitions = [OffsetDeleteRequestPartition(partition_index=index) for index in indexes]
        request = OffsetDeleteRequest(
            group_id=group, topics=[OffsetDeleteRequestTopic(name=name, partitions=partitions)]
        )
        reply = self.ask(self.subject.offset_delete, request, 0).reply
        return ErrorCode(reply.error_code), [
            ErrorCode(one.error_code) for answered in reply.topics for one in answered.partitions
        ]

    # Administration.

    def listed(self, states: tuple[str, ...] = (), types: tuple[str, ...] = ()) -> dict[str, tuple[str, str, str]]:
        """State, type and protocol type of the groups."""
        request = ListGroupsRequest(states_filter=list(states), types_filter=list(types))
        reply = self.ask(self.subject.list_groups, request, 5).reply
        return {one.group_id: (one.group_state, one.group_type, one.protocol_type) for one in reply.groups}

    def delete(self, *groups: str) -> list[ErrorCode]:
        reply = self.ask(self.subject.delete_groups, DeleteGroupsRequest(groups_names=list(groups)), 3).reply
        assert [one.group_id for one in reply.results] == list(groups)
        return [ErrorCode(one.error_code) for one in reply.results]

    def describe(self, group: str, version: int = 6) -> Any:
        return self.ask(self.subject.describe_groups, DescribeGroupsRequest(groups=[group]), version).reply.groups[0]

    def describe_consumer(self, group: str) -> Any:
        request = ConsumerGroupDescribeRequest(group_ids=[group])
        return self.ask(self.subject.consumer_group_describe, request, 1).reply.groups[0]
