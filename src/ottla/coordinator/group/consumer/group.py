"""A group of the consumer protocol as the shard sees it."""

from collections.abc import Callable, Set
from typing import Any

from ottla.coordinator.group.consumer import check, classic
from ottla.coordinator.group.consumer.core import Core
from ottla.coordinator.group.consumer.describe import described
from ottla.coordinator.group.consumer.heartbeat import heartbeat
from ottla.coordinator.group.consumer.member import Member, Progress
from ottla.coordinator.group.consumer.protocol import CONSUMER
from ottla.coordinator.group.consumer.state import ConsumerState
from ottla.coordinator.group.consumer.watch import FAILURES, REBALANCE
from ottla.coordinator.group.context import Context
from ottla.coordinator.outcome import Call, Outcome, Record
from ottla.wire.api.consumer_group_describe import DescribedGroup
from ottla.wire.api.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from ottla.wire.api.heartbeat import HeartbeatResponse
from ottla.wire.api.join_group import JoinGroupResponse
from ottla.wire.api.list_groups import ListedGroup
from ottla.wire.api.sync_group import SyncGroupResponse
from ottla.wire.errors import KafkaError


class ConsumerGroup:
    """A group to whose members the coordinator gives partitions.

    >>> from ottla.cluster.image import ClusterImage
    >>> from ottla.config.broker import BrokerConfig
    >>> from ottla.ports import SystemChance
    >>> group = ConsumerGroup(Context(BrokerConfig(), ClusterImage("c"), SystemChance()), "g")
    >>> group.state.value, group.is_empty, group.epoch
    ('Empty', True, 0)
    """

    protocol_type = CONSUMER

    def __init__(self, context: Context, group_id: str) -> None:
        self.group_id = group_id
        self._core = Core(context, group_id)

    @property
    def state(self) -> ConsumerState:
        """What tools are told."""
        return self._core.state.state

    @property
    def epoch(self) -> int:
        """Rises with whatever calls for another assignment."""
        return self._core.state.epoch

    @property
    def members(self) -> dict[str, Member]:
        """The members by their ids; to look at."""
        return self._core.state.members

    @property
    def gone(self) -> bool:
        """Whether the record that removes it was replayed."""
        return self._core.state.gone

    @property
    def is_empty(self) -> bool:
        """Whether it has no members: it can be deleted, and anyone may commit for it."""
        return not self.members

    @property
    def empty_since_ms(self) -> int | None:
        """When the last member went, by what is written down; None if it has members or that is not known."""
        state = self._core.state
        is_known = self.is_empty and state.assignment_epoch == state.epoch
        return (state.assignment_time_ms or None) if is_known else None

    # Members of the consumer protocol.

    def heartbeat(self, now_ms: int, call: Call) -> Outcome:
        """ConsumerGroupHeartbeat."""
        try:
            return heartbeat(self._core, now_ms, call)
        except KafkaError as error:
            return Outcome(ConsumerGroupHeartbeatResponse(error_code=error.code, error_message=error.message))

    def describe(self) -> DescribedGroup:
        """State, epochs and members with what they have and are meant to have."""
        core = self._core
        return described(core.state, core.context.image, core.draft(0).assignor_name())

    # Classic members.

    def classic_join(self, now_ms: int, call: Call) -> Outcome:
        """JoinGroup."""
        try:
            return classic.join(self._core, now_ms, call)
        except KafkaError as error:
            return Outcome(JoinGroupResponse(error_code=error.code, member_id=call.body.member_id))

    def classic_sync(self, now_ms: int, call: Call) -> Outcome:
        """SyncGroup."""
        return _answered(classic.sync, self._core, now_ms, call, SyncGroupResponse)

    def classic_heartbeat(self, now_ms: int, call: Call) -> Outcome:
        """Heartbeat."""
        return _answered(classic.heartbeat, self._core, now_ms, call, HeartbeatResponse)

    def classic_leave(self, now_ms: int, call: Call) -> Outcome:
        """LeaveGroup."""
        return classic.leave(self._core, now_ms, call)

    # What the shard asks of every group.

    def check_commit(self, now_ms: int, version: int, member_id: str, instance_id: str | None, epoch: int) -> None:
        """Refuse a commit by somebody who may not commit now."""
        check.check_commit(self._core.state, version, member_id, instance_id, epoch)

    def check_fetch(self, member_id: str | None, epoch: int) -> None:
        """Refuse a fetch of offsets in the name of a member that is not one, or from another epoch."""
        check.check_fetch(self._core.state, member_id, epoch)

    def is_subscribed(self, topic: str) -> bool:
        """Whether a member reads that topic."""
        state = self._core.state
        named = any(topic in member.profile.topics for member in state.members.values())
        return named or any(topic in topics for topics in state.regexes.values())

    def may_read_any(self, topics: Set[str]) -> bool:
        """Whether a member is subscribed to one of these topics, or by a regular expression, to whatever it matches."""
        return any(
            member.profile.regex is not None or not member.profile.topics.isdisjoint(topics)
            for member in self.members.values()
        )

    def listed(self) -> ListedGroup:
        """Its line in ListGroups."""
        state = self.state.value
        return ListedGroup(group_id=self.group_id, protocol_type=CONSUMER, group_state=state, group_type=CONSUMER)

    def removal(self) -> list[Record]:
        """Records that remove it. Offsets are not among them."""
        return self._core.state.removal()

    def replay(self, key: Any, value: Any | None) -> None:
        """Do what a record says."""
        self._core.state.replay(key, value)

    def loaded(self, now_ms: int) -> Outcome:
        """Everything is replayed: begin to watch over its members, and see whether topics have changed meanwhile."""
        for member in self.members.values():
            self._core.watch.start(now_ms, member)
        return self.topics_changed(now_ms)

    def topics_changed(self, now_ms: int) -> Outcome:
        """The picture of the cluster has changed: if subscribed topics are not what they were, the epoch rises."""
        if self.is_empty:
            return Outcome()
        draft = self._core.draft(now_ms)
        draft.refresh()
        return Outcome(records=draft.records)

    def expire(self, now_ms: int, timer: tuple[str, ...]) -> Outcome:
        """A timer of this group is due: mostly a member did not do something in time, and is out."""
        match timer:
            case ("assign",):
                return self._decided(now_ms)
            case (what, member_id) if what in FAILURES and member_id in self.members:
                is_done = self.members[member_id].current.progress is not Progress.UNREVOKED_PARTITIONS
                if what == REBALANCE and is_done:
                    return Outcome()
                return Outcome(records=self._core.part(now_ms, [member_id]))
        return Outcome()

    def _decided(self, now_ms: int) -> Outcome:
        try:
            return Outcome(records=self._core.decide(now_ms))
        except KafkaError:
            # An assignor of somebody's own failed. The next heartbeat tries again, and is told.
            return Outcome()


def _answered(
    method: Callable[[Core, int, Call], Outcome],
    core: Core,
    now_ms: int,
    call: Call,
    response: type[SyncGroupResponse] | type[HeartbeatResponse],
) -> Outcome:
    try:
        return method(core, now_ms, call)
    except KafkaError as error:
        return Outcome(response(error_code=error.code))
