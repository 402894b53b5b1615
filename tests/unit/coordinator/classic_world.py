"""Members of one classic group, and the broker around it."""

from collections.abc import Mapping, Sequence
from typing import Any

from ottla.cluster.image import ClusterImage
from ottla.config.broker import BrokerConfig
from ottla.coordinator.group.classic import ClassicGroup
from ottla.coordinator.group.context import Context
from ottla.sim.chance import SimChance
from ottla.wire.api.heartbeat import HeartbeatRequest
from ottla.wire.api.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.wire.api.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.wire.api.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from ottla.wire.embedded import encode_versioned
from ottla.wire.embedded.consumer_protocol import ConsumerProtocolSubscription
from ottla.wire.errors import ErrorCode, KafkaError

from .harness import Answer, Harness, OneClassicGroup

SESSION_MS = 10_000
REBALANCE_MS = 60_000
DELAY_MS = 3_000


def subscription(*topics: str, version: int = 1) -> bytes:
    """What a consumer says about itself."""
    return encode_versioned(ConsumerProtocolSubscription(topics=list(topics)), version)


RANGE = {"range": subscription("orders")}


class ClassicWorld(Harness[OneClassicGroup]):
    """A group under test. Settings are given as `BrokerConfig` has them, with underscores."""

    def __init__(self, **settings: Any) -> None:
        named = {name.replace("_", "."): str(value) for name, value in settings.items()}
        self.config = BrokerConfig({"group.initial.rebalance.delay.ms": "0", **named})
        # One source of chance for all starts: ids must not come again.
        self._chance = SimChance("classic")
        super().__init__(lambda: OneClassicGroup(Context(self.config, ClusterImage("cluster"), self._chance)))

    @property
    def group(self) -> ClassicGroup:
        return self.subject.group

    @property
    def state(self) -> str:
        return self.group.state.value

    def join(
        self,
        member_id: str = "",
        protocols: Mapping[str, bytes] | Sequence[tuple[str, bytes]] = RANGE,
        *,
        version: int = 3,
        instance_id: str | None = None,
        session_ms: int = SESSION_MS,
        rebalance_ms: int = REBALANCE_MS,
        protocol_type: str = "consumer",
        client_id: str = "client",
    ) -> Answer:
        """Version 3 is the last in which a new member is let in at once."""
        pairs = protocols.items() if isinstance(protocols, Mapping) else protocols
        request = JoinGroupRequest(
            group_id="group",
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=rebalance_ms,
            member_id=member_id,
            group_instance_id=instance_id,
            protocol_type=protocol_type,
            protocols=[JoinGroupRequestProtocol(name=name, metadata=metadata) for name, metadata in pairs],
        )
        return self.ask(self.group.join, request, version, client_id)

    def sync(
        self,
        member_id: str,
        generation: int,
        shares: Mapping[str, bytes] | None = None,
        *,
        version: int = 5,
        instance_id: str | None = None,
        protocol_type: str | None = None,
        protocol_name: str | None = None,
    ) -> Answer:
        request = SyncGroupRequest(
            group_id="group",
            generation_id=generation,
            member_id=member_id,
            group_instance_id=instance_id,
            protocol_type=protocol_type,
            protocol_name=protocol_name,
            assignments=[
                SyncGroupRequestAssignment(member_id=key, assignment=share) for key, share in (shares or {}).items()
            ],
        )
        return self.ask(self.group.sync, request, version)

    def heartbeat(self, member_id: str, generation: int, instance_id: str | None = None) -> ErrorCode:
        request = HeartbeatRequest(
            group_id="group", generation_id=generation, member_id=member_id, group_instance_id=instance_id
        )
        return self.ask(self.group.heartbeat, request, 4).error

    def leave(self, *members: tuple[str, str | None] | str) -> list[ErrorCode]:
        """Leave in version 3 or later: each is a member id, or a member id and an instance id."""
        identities = [
            MemberIdentity(member_id=one, group_instance_id=None)
            if isinstance(one, str)
            else MemberIdentity(member_id=one[0], group_instance_id=one[1])
            for one in members
        ]
        reply = self.ask(self.group.leave, LeaveGroupRequest(group_id="group", members=identities), 5).reply
        assert reply.error_code == 0
        return [ErrorCode(member.error_code) for member in reply.members]

    def commit(self, member_id: str, generation: int, instance_id: str | None = None) -> ErrorCode:
        """Whether a commit would be let through."""
        try:
            self.group.check_commit(self.now_ms, 8, member_id, instance_id, generation)
        except KafkaError as error:
            return error.code
        return ErrorCode.NONE

    def settled(self, count: int, **how: Any) -> list[str]:
        """A Stable group of that many members, in a generation that all have joined; the leader is the first.

        Each member's share is its own id.
        """
        ids: list[str] = []
        for _ in range(count):
            answer = self.join(**how)
            round_of = {member_id: self.join(member_id, **how) for member_id in ids}
            ids.append(answer.reply.member_id)
            leader = answer.reply.leader
            self.share_out(leader, answer.reply.generation_id, ids)
            assert all(not other.is_waiting for other in round_of.values())
        assert self.state == "Stable"
        assert self.group.leader == ids[0]
        return ids

    def share_out(self, leader: str, generation: int, ids: Sequence[str]) -> None:
        """All members sync, the leader last."""
        followers = [self.sync(member_id, generation) for member_id in ids if member_id != leader]
        reply = self.sync(leader, generation, {member_id: member_id.encode() for member_id in ids}).reply
        assert reply.error_code == 0
        assert reply.assignment == leader.encode()
        assert all(answer.error is ErrorCode.NONE for answer in followers)
