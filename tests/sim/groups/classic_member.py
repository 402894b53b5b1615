"""A member of the classic protocol."""

from typing import Any

from ottla.wire.api.heartbeat import HeartbeatRequest
from ottla.wire.api.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.wire.api.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.wire.api.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from ottla.wire.embedded import decode_versioned, encode_versioned
from ottla.wire.embedded.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
)
from ottla.wire.errors import ErrorCode

from .members import HEARTBEAT_MS, RETRY_MS, BaseMember, Place

SESSION_MS = 10_000
REBALANCE_MS = 20_000


class ClassicMember(BaseMember):
    """Joins, syncs, and lives on heartbeats; assigns partitions where it is the leader."""

    generation = -1

    def start(self) -> None:
        """Join."""
        self.owned = set()
        subscription = ConsumerProtocolSubscription(topics=self.topics)
        body = JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=REBALANCE_MS,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=encode_versioned(subscription, 0))],
        )
        version = self.world.chance.randint(5 if self.instance_id else 1, 9)
        self.ask("join_group", version, body, self._joined, REBALANCE_MS + 5000, self.start)

    def _joined(self, reply: Any) -> None:
        if reply.error_code == ErrorCode.NONE:
            self.member_id, self.generation = reply.member_id, reply.generation_id
            self._sync(reply)
        elif reply.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = reply.member_id
            self.start()
        else:
            self._complain(reply.error_code)

    def _sync(self, joined: Any) -> None:
        assignments = self._assign(joined.members) if joined.leader == self.member_id else []
        if joined.skip_assignment:
            assignments = []
        body = SyncGroupRequest(
            group_id=self.group,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=assignments,
        )
        version = self.world.chance.randint(3, 5)
        self.ask("sync_group", version, body, self._synced, REBALANCE_MS + 5000, self.start)

    def _assign(self, members: list[Any]) -> list[SyncGroupRequestAssignment]:
        wanted = {
            member.member_id: decode_versioned(ConsumerProtocolSubscription, member.metadata).topics
            for member in members
        }
        given: dict[str, list[TopicPartition]] = {member_id: [] for member_id in wanted}
        for topic in sorted({topic for topics in wanted.values() for topic in topics}):
            takers = sorted(member_id for member_id, topics in wanted.items() if topic in topics)
            for position, taker in enumerate(takers):
                indexes = list(range(position, len(self.world.image.topics[topic].partitions), len(takers)))
                given[taker].append(TopicPartition(topic=topic, partitions=indexes))
        return [
            SyncGroupRequestAssignment(
                member_id=member_id,
                assignment=encode_versioned(ConsumerProtocolAssignment(assigned_partitions=parts), 0),
            )
            for member_id, parts in given.items()
        ]

    def _synced(self, reply: Any) -> None:
        if reply.error_code:
            self._complain(reply.error_code)
            return
        self.owned = self._owned(reply.assignment)
        self.read_offsets()
        self.later(HEARTBEAT_MS, self._heartbeat)

    @staticmethod
    def _owned(assignment: bytes) -> set[Place]:
        if not assignment:
            return set()
        parts = decode_versioned(ConsumerProtocolAssignment, assignment).assigned_partitions
        return {(part.topic, index) for part in parts for index in part.partitions}

    def _heartbeat(self) -> None:
        if self.world.chance.random() < 0.5:
            self.commit(self.generation, self.world.chance.randint(7, 9))
        body = HeartbeatRequest(
            group_id=self.group,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
        )
        self.ask("heartbeat", 4, body, self._beaten, SESSION_MS, self._heartbeat)

    def _beaten(self, reply: Any) -> None:
        if reply.error_code:
            self._complain(reply.error_code)
        else:
            self.later(HEARTBEAT_MS, self._heartbeat)

    def _complain(self, code: int) -> None:
        if code == ErrorCode.FENCED_INSTANCE_ID:
            self.die()
            return
        if code == ErrorCode.UNKNOWN_MEMBER_ID:
            self.member_id = ""
        self.generation = -1
        self.go_on()
        self.later(RETRY_MS, self.start)

    def leave(self) -> None:
        """Say good-bye."""
        identity = MemberIdentity(member_id=self.member_id, group_instance_id=self.instance_id)
        body = LeaveGroupRequest(group_id=self.group, member_id=self.member_id, members=[identity])
        self.ask("leave_group", 5, body, lambda reply: None, SESSION_MS, lambda: None)
        self.die()
