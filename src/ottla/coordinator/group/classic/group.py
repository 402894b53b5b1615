"""A classic group as the shard sees it."""

from ottla.coordinator.group.classic.join import join
from ottla.coordinator.group.classic.leave import leave
from ottla.coordinator.group.classic.rebalance import JOIN, SESSION, SYNC, RebalancingGroup
from ottla.coordinator.group.classic.state import ClassicState
from ottla.coordinator.group.classic.sync import sync
from ottla.coordinator.outcome import Call, Outcome, Record, tombstone
from ottla.wire.api.describe_groups import DescribedGroup, DescribedGroupMember
from ottla.wire.api.heartbeat import HeartbeatResponse
from ottla.wire.api.list_groups import ListedGroup
from ottla.wire.embedded.offsets_topic import GroupMetadataKey
from ottla.wire.errors import ErrorCode, KafkaError

CONSUMER = "consumer"
"""The protocol type of consumers; others, such as Connect's workers, tell each other what they like."""


class ClassicGroup(RebalancingGroup):
    """A group whose members share the work out among themselves.

    >>> from ottla.cluster.image import ClusterImage
    >>> from ottla.config.broker import BrokerConfig
    >>> from ottla.coordinator.group.context import Context
    >>> from ottla.ports import SystemChance
    >>> group = ClassicGroup(Context(BrokerConfig(), ClusterImage("c"), SystemChance()), "g")
    >>> group.state.value, group.is_empty, group.generation
    ('Empty', True, 0)
    """

    __slots__ = ()

    def join(self, now_ms: int, call: Call) -> Outcome:
        """JoinGroup: a response, or a ticket if the round has to wait for others."""
        return join(self, now_ms, call)

    def sync(self, now_ms: int, call: Call) -> Outcome:
        """SyncGroup: a response, or a ticket if the leader has not shared out yet."""
        return sync(self, now_ms, call)

    def leave(self, now_ms: int, call: Call) -> Outcome:
        """LeaveGroup."""
        return leave(self, now_ms, call)

    def heartbeat(self, now_ms: int, call: Call) -> Outcome:
        """Heartbeat: the session goes on, and a member learns that it is to join again."""
        request = call.body
        try:
            member = self.check_member(request.member_id, request.group_instance_id)
            self.check_generation(request.generation_id)
        except KafkaError as error:
            return Outcome(HeartbeatResponse(error_code=error.code))
        self.watch(now_ms, member.member_id)
        is_preparing = self.state is ClassicState.PREPARING_REBALANCE
        return Outcome(HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS if is_preparing else 0))

    @property
    def is_empty(self) -> bool:
        """Whether it has no members: it can be deleted, and anyone may commit for it."""
        return not self.members

    @property
    def empty_since_ms(self) -> int | None:
        """When the last member went, by what is written down; None if it has members or that is not known."""
        return self.emptied_ms if self.is_empty else None

    def check_commit(self, now_ms: int, version: int, member_id: str, instance_id: str | None, epoch: int) -> None:
        """Refuse a commit by somebody who may not commit now. Members may commit until the next generation begins."""
        if epoch < 0 and self.is_empty:
            return
        if epoch < 0 and not member_id and instance_id is None:
            raise KafkaError(
                ErrorCode.UNKNOWN_MEMBER_ID,
                f"group {self.group_id!r} has members, and only they may commit: join it, or use another group id",
            )
        member = self.check_member(member_id, instance_id)
        self.check_generation(epoch)
        if self.state is ClassicState.COMPLETING_REBALANCE:
            raise KafkaError(
                ErrorCode.REBALANCE_IN_PROGRESS,
                f"generation {epoch} of group {self.group_id!r} has no assignment yet: join it again",
            )
        self.watch(now_ms, member.member_id)

    def check_fetch(self, member_id: str | None, epoch: int) -> None:
        """Everybody may fetch the offsets of a classic group."""

    def is_subscribed(self, topic: str) -> bool:
        """Whether a member reads that topic. One whose subscription cannot be read may read any."""
        if self.protocol_type != CONSUMER:
            return False
        return any((topics := member.topics()) is None or topic in topics for member in self.members)

    def listed(self) -> ListedGroup:
        """Its line in ListGroups."""
        return ListedGroup(
            group_id=self.group_id, protocol_type=self.protocol_type, group_state=self.state.value, group_type="classic"
        )

    def describe(self) -> DescribedGroup:
        """State and members. What members say about themselves is shown while they agree on how to say it."""
        is_stable = self.state is ClassicState.STABLE
        return DescribedGroup(
            group_id=self.group_id,
            group_state=self.state.value,
            protocol_type=self.protocol_type,
            protocol_data=(self.protocol or "") if is_stable else "",
            members=[
                DescribedGroupMember(
                    member_id=member.member_id,
                    group_instance_id=member.instance_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    member_metadata=member.metadata(self.protocol) if is_stable else b"",
                    member_assignment=member.assignment,
                )
                for member in self.members
            ],
        )

    def removal(self) -> list[Record]:
        """Records that remove it. Offsets are not among them."""
        return [tombstone(GroupMetadataKey(group=self.group_id))]

    def release_waiting(self, error: ErrorCode) -> Outcome:
        """The group is deleted, or a group of another kind takes its place: send all away who wait, stop all timers."""
        outcome = Outcome()
        for member in list(self.members):
            self.remove(member.member_id, outcome, error)
        for what in (JOIN, SYNC):
            self.context.timers.cancel((self.group_id, what))
        for member_id in self.pending:
            self.context.timers.cancel((self.group_id, SESSION, member_id))
        self.pending.clear()
        self.move_to(ClassicState.DEAD)
        return outcome
