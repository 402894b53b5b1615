"""Consumers of both protocols in one group."""

from collections.abc import Mapping, Sequence

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

from .consumer_world import ConsumerWorld, Held
from .harness import Answer

CLASSIC_SESSION_MS = 10_000
CLASSIC_REBALANCE_MS = 30_000


class ClassicConsumer:
    """A client of the classic protocol that rebalances cooperatively: it gives up what it loses, then joins again."""

    def __init__(
        self,
        world: ConsumerWorld,
        *topics: str,
        instance_id: str | None = None,
        version: int = 9,
        protocols: Sequence[str] = ("cooperative-sticky",),
    ) -> None:
        self.world = world
        self.protocols = protocols
        self.topics = list(topics or ("orders",))
        self.instance_id = instance_id
        self.version = version
        self.member_id = ""
        self.generation = -1
        self.protocol = ""
        """The one that the group has agreed on, as it was told."""
        self.held: Held = set()
        self.is_leader = False
        self.owned_by_others: list[tuple[str, Held]] = []
        """What each member says it has, if this one leads."""

    def join(self) -> Answer:
        """Ask to join; the answer may have to wait."""
        metadata = encode_versioned(
            ConsumerProtocolSubscription(topics=self.topics, owned_partitions=_by_topic(self.held)), 3
        )
        request = JoinGroupRequest(
            group_id="group",
            session_timeout_ms=CLASSIC_SESSION_MS,
            rebalance_timeout_ms=CLASSIC_REBALANCE_MS,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name=name, metadata=metadata) for name in self.protocols],
        )
        answer = self.world.ask(self.world.subject.join_group, request, self.version)
        if not answer.is_waiting and answer.error is ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = answer.reply.member_id
            return self.join()
        return answer

    def joined(self, answer: Answer) -> None:
        """The answer has come."""
        reply = answer.reply
        assert answer.error is ErrorCode.NONE, reply
        self.member_id, self.generation, self.protocol = reply.member_id, reply.generation_id, reply.protocol_name
        self.is_leader = reply.leader == reply.member_id
        self.owned_by_others = [
            (one.member_id, _held(decode_versioned(ConsumerProtocolSubscription, one.metadata).owned_partitions))
            for one in reply.members
        ]

    def sync(self, shares: Mapping[str, Held] | None = None) -> Answer:
        """Ask for the assignment; a leader hands them out."""
        request = SyncGroupRequest(
            group_id="group",
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocol_type="consumer",
            protocol_name=self.protocol,
            assignments=[
                SyncGroupRequestAssignment(member_id=member_id, assignment=_assignment(share))
                for member_id, share in (shares or {}).items()
            ],
        )
        return self.world.ask(self.world.subject.sync_group, request, 5)

    def synced(self, answer: Answer) -> bool:
        """The answer has come; whether something was given up, so that the member is to join again."""
        assert answer.error is ErrorCode.NONE, answer.reply
        decoded = decode_versioned(ConsumerProtocolAssignment, answer.reply.assignment)
        given = _held(decoded.assigned_partitions)
        gave_up = bool(self.held - given)
        self.held = given
        return gave_up

    def heartbeat(self) -> ErrorCode:
        request = HeartbeatRequest(
            group_id="group",
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
        )
        return self.world.ask(self.world.subject.heartbeat, request, 4).error

    def leave(self) -> Answer:
        members = [MemberIdentity(member_id=self.member_id, group_instance_id=self.instance_id)]
        return self.world.ask(self.world.subject.leave_group, LeaveGroupRequest(group_id="group", members=members), 5)

    def follow(self) -> None:
        """What a client does in a group of the consumer protocol, until there is nothing left to do."""
        while self.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS:
            self.rejoin()

    def rejoin(self) -> None:
        self.joined(self.join())
        while self.synced(self.sync()):
            self.joined(self.join())


def classic_group(world: ConsumerWorld, *consumers: ClassicConsumer) -> None:
    """A classic group in which all partitions of "orders" are shared out."""
    for count, newest in enumerate(consumers):
        finish_round(world, [(one, one.join()) for one in (newest, *consumers[:count])])


def finish_round(world: ConsumerWorld, answers: Sequence[tuple[ClassicConsumer, Answer]]) -> None:
    """All have joined a classic group: the leader shares out what there is of "orders"."""
    for consumer, answer in answers:
        consumer.joined(answer)
    consumers = [consumer for consumer, _ in answers]
    leader = next(consumer for consumer in consumers if consumer.is_leader)
    count = len(world.image.topics["orders"].partitions)
    ids = [member_id for member_id, _ in leader.owned_by_others]
    shares: dict[str, Held] = {
        member_id: {("orders", index) for index in range(count) if index % len(ids) == place}
        for place, member_id in enumerate(ids)
    }
    synced = [(consumer, consumer.sync()) for consumer in consumers if consumer is not leader]
    synced.append((leader, leader.sync(shares)))
    for consumer, answer in synced:
        consumer.synced(answer)


def _held(topics: list[TopicPartition]) -> Held:
    return {(topic.topic, index) for topic in topics for index in topic.partitions}


def _by_topic(held: Held) -> list[TopicPartition]:
    return [
        TopicPartition(topic=topic, partitions=sorted(index for name, index in held if name == topic))
        for topic in sorted({name for name, _ in held})
    ]


def _assignment(held: Held) -> bytes:
    return encode_versioned(ConsumerProtocolAssignment(assigned_partitions=_by_topic(held)), 3)
