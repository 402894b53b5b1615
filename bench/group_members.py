"""Members of groups for benchmarks: as little client as there can be around the protocol."""

import asyncio
from collections.abc import Sequence
from typing import Any

from ottla.net.connection import Connection
from ottla.wire.api.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from ottla.wire.api.heartbeat import HeartbeatRequest
from ottla.wire.api.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.wire.api.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from ottla.wire.embedded import encode_versioned
from ottla.wire.embedded.consumer_protocol import ConsumerProtocolSubscription
from ottla.wire.errors import ErrorCode

TIMEOUT_MS = 300_000
SESSION_MS = 120_000
MOST_ROUNDS = 1000
HEARTBEAT_S = 0.05


def _check(code: int, what: str) -> None:
    if code:
        raise RuntimeError(f"{what} failed with {ErrorCode(code).name}")


class ClassicMember:
    """A member of the classic protocol on a connection of its own."""

    def __init__(self, connection: Connection, group: str, topic: str) -> None:
        self._connection = connection
        self._group = group
        self._subscription = encode_versioned(ConsumerProtocolSubscription(topics=[topic]), 0)
        self.member_id = ""
        self._generation = -1

    async def take_part(self) -> None:
        """Join, and sync: one rebalance as this member sees it. The leader hands out 100 bytes to each."""
        joined = await self._join()
        if joined.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = joined.member_id
            joined = await self._join()
        _check(joined.error_code, "JoinGroup")
        self.member_id, self._generation = joined.member_id, joined.generation_id
        assignments = [
            SyncGroupRequestAssignment(member_id=member.member_id, assignment=bytes(100)) for member in joined.members
        ]
        request = SyncGroupRequest(
            group_id=self._group,
            generation_id=joined.generation_id,
            member_id=self.member_id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=assignments,
        )
        synced = await self._connection.request(request, timeout_ms=TIMEOUT_MS)
        if synced.error_code == ErrorCode.REBALANCE_IN_PROGRESS:
            # Others came too late for this generation.
            await self.take_part()
        else:
            _check(synced.error_code, "SyncGroup")

    async def follow(self) -> None:
        """Go on as a member until it hears of a rebalance, and take part in it."""
        request = HeartbeatRequest(group_id=self._group, generation_id=self._generation, member_id=self.member_id)
        while (await self._connection.request(request)).error_code != ErrorCode.REBALANCE_IN_PROGRESS:
            await asyncio.sleep(HEARTBEAT_S)
        await self.take_part()

    async def _join(self) -> Any:
        request = JoinGroupRequest(
            group_id=self._group,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=TIMEOUT_MS,
            member_id=self.member_id,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=self._subscription)],
        )
        return await self._connection.request(request, timeout_ms=TIMEOUT_MS)


class ConsumerMember:
    """A member of the consumer protocol on a connection of its own; it gives up at once what it is told to."""

    def __init__(self, connection: Connection, group: str, topic: str, number: int) -> None:
        self._connection = connection
        self._topic = topic
        self._group = group
        self.member_id = f"member-{number}"
        self.epoch = 0
        self.owned: list[TopicPartitions] = []
        self.heartbeats = 0

    @property
    def partition_count(self) -> int:
        """How many partitions it has."""
        return sum(len(topic.partitions) for topic in self.owned)

    async def heartbeat(self) -> None:
        """Send one, and take what is given."""
        request = ConsumerGroupHeartbeatRequest(
            group_id=self._group, member_id=self.member_id, member_epoch=self.epoch, topic_partitions=self.owned
        )
        if not self.epoch:
            request.rebalance_timeout_ms = TIMEOUT_MS
            request.subscribed_topic_names = [self._topic]
        reply = await self._connection.request(request, timeout_ms=TIMEOUT_MS)
        _check(reply.error_code, "ConsumerGroupHeartbeat")
        self.heartbeats += 1
        self.epoch = reply.member_epoch
        if reply.assignment is not None:
            self.owned = reply.assignment.topic_partitions


async def settle(members: Sequence[ConsumerMember], partition_count: int) -> int:
    """Heartbeats of all, round by round, until every partition is held and all are in one epoch; how many rounds."""
    for rounds in range(1, MOST_ROUNDS):
        await asyncio.gather(*(member.heartbeat() for member in members))
        held = [member.partition_count for member in members]
        if sum(held) == partition_count and max(held) - min(held) <= 1 and len({one.epoch for one in members}) == 1:
            return rounds
    raise RuntimeError(f"after {MOST_ROUNDS} rounds {sum(held)} of {partition_count} partitions are held")
