"""A shard of the group coordinator: the groups of one partition of the offsets topic, of whichever protocol.

The shard owns the groups and their offsets, and sends each request to the group that it is for. A group changes its
kind when it is empty, or while it runs where `group.consumer.migration.policy` allows that.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from ottla.cluster.image import ClusterImage
from ottla.config.broker import BrokerConfig
from ottla.coordinator.group import commits, listing, upkeep
from ottla.coordinator.group.classic import ClassicGroup
from ottla.coordinator.group.consumer import ConsumerGroup
from ottla.coordinator.group.consumer.migrate import upgrade_records
from ottla.coordinator.group.context import Context
from ottla.coordinator.group.register import WATCH, AnyGroup, Register
from ottla.coordinator.group.retention import CONSUMER_PROTOCOL_TYPE
from ottla.coordinator.group.upkeep import Upkeep
from ottla.coordinator.outcome import Call, Outcome, Record, Ticket
from ottla.coordinator.timers import Turns
from ottla.ports import Chance
from ottla.wire.api.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from ottla.wire.api.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse
from ottla.wire.api.heartbeat import HeartbeatResponse
from ottla.wire.api.join_group import JoinGroupResponse
from ottla.wire.api.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberResponse
from ottla.wire.api.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from ottla.wire.api.sync_group import SyncGroupResponse
from ottla.wire.embedded.offsets_topic import GroupMetadataKey
from ottla.wire.errors import ErrorCode, KafkaError
from ottla.wire.schema import Bytes

CONSUMER_PROTOCOL = "consumer"
JOINING_EPOCH = 0
FIRST_LEAVE_VERSION_WITH_MEMBERS = 3


class GroupShard:
    """The groups of a shard.

    >>> from ottla.ports import SystemChance
    >>> from ottla.wire.api.heartbeat import HeartbeatRequest
    >>> shard = GroupShard(BrokerConfig(), ClusterImage("c"), SystemChance())
    >>> outcome = shard.heartbeat(0, Call(4, "client", "/127.0.0.1", HeartbeatRequest(group_id="g", member_id="m")))
    >>> outcome.reply.error_code.name, outcome.records
    ('UNKNOWN_MEMBER_ID', [])
    """

    def __init__(self, config: BrokerConfig, image: ClusterImage, chance: Chance, turns: Turns | None = None) -> None:
        self._context = Context(config, image, chance, turns=turns or Turns())
        self._register = Register(self._context)
        self._groups = self._register.groups
        self._offsets = self._register.offsets
        self._upkeep = Upkeep(self._context, self._register)

    # Classic groups.

    def join_group(self, now_ms: int, call: Call) -> Outcome:
        """JoinGroup. The first member makes the group, in place of an empty one of the consumer protocol."""
        group_id: str = call.body.group_id
        if not group_id:
            return Outcome(JoinGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID, member_id=call.body.member_id))
        group = self._groups.get(group_id)
        if isinstance(group, ClassicGroup):
            return group.join(now_ms, call)
        if group is not None and not group.is_empty:
            return group.classic_join(now_ms, call)
        joined = ClassicGroup(self._context, group_id)
        outcome = joined.join(now_ms, call)
        if not isinstance(outcome.reply, Ticket) and outcome.reply.error_code not in _JOINED:
            return outcome
        self._groups[group_id] = joined
        return outcome if group is None else Outcome(records=group.removal()).then(outcome)

    def sync_group(self, now_ms: int, call: Call) -> Outcome:
        """SyncGroup."""

        def refuse(code: ErrorCode) -> SyncGroupResponse:
            return SyncGroupResponse(error_code=code)

        return self._of_member(now_ms, call, ClassicGroup.sync, ConsumerGroup.classic_sync, refuse)

    def heartbeat(self, now_ms: int, call: Call) -> Outcome:
        """Heartbeat."""

        def refuse(code: ErrorCode) -> HeartbeatResponse:
            return HeartbeatResponse(error_code=code)

        return self._of_member(now_ms, call, ClassicGroup.heartbeat, ConsumerGroup.classic_heartbeat, refuse)

    def leave_group(self, now_ms: int, call: Call) -> Outcome:
        """LeaveGroup."""
        request: LeaveGroupRequest = call.body

        def refuse(code: ErrorCode) -> LeaveGroupResponse:
            if code is not ErrorCode.UNKNOWN_MEMBER_ID or call.version < FIRST_LEAVE_VERSION_WITH_MEMBERS:
                return LeaveGroupResponse(error_code=code)
            members = [
                MemberResponse(member_id=one.member_id, group_instance_id=one.group_instance_id, error_code=code)
                for one in request.members
            ]
            return LeaveGroupResponse(members=members)

        return self._of_member(now_ms, call, ClassicGroup.leave, ConsumerGroup.classic_leave, refuse)

    def _of_member(
        self,
        now_ms: int,
        call: Call,
        classic: Callable[[ClassicGroup, int, Call], Outcome],
        consumer: Callable[[ConsumerGroup, int, Call], Outcome],
        refuse: Callable[[ErrorCode], Any],
    ) -> Outcome:
        group_id: str = call.body.group_id
        group = self._groups.get(group_id)
        if group is None:
            return Outcome(refuse(ErrorCode.UNKNOWN_MEMBER_ID if group_id else ErrorCode.INVALID_GROUP_ID))
        return classic(group, now_ms, call) if isinstance(group, ClassicGroup) else consumer(group, now_ms, call)

    # Groups of the consumer protocol.

    def consumer_group_heartbeat(self, now_ms: int, call: Call) -> Outcome:
        """ConsumerGroupHeartbeat. The first member makes the group, or makes a classic one change its kind."""
        request: ConsumerGroupHeartbeatRequest = call.body
        group = self._groups.get(request.group_id)
        try:
            self._check_on_offer()
            if isinstance(group, ConsumerGroup):
                return group.heartbeat(now_ms, call)
            return self._first_heartbeat(now_ms, call, group)
        except KafkaError as error:
            return Outcome(ConsumerGroupHeartbeatResponse(error_code=error.code, error_message=error.message))

    def _check_on_offer(self) -> None:
        on_offer = self._context.config.group_coordinator_rebalance_protocols
        if CONSUMER_PROTOCOL not in on_offer:
            message = f"group.coordinator.rebalance.protocols has {', '.join(on_offer)} and not {CONSUMER_PROTOCOL}"
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, message)

    def _first_heartbeat(self, now_ms: int, call: Call, classic: ClassicGroup | None) -> Outcome:
        request: ConsumerGroupHeartbeatRequest = call.body
        group = ConsumerGroup(self._context, request.group_id)
        change: list[Record] = []
        if classic is not None and request.member_epoch == JOINING_EPOCH:
            change = classic.removal() if classic.is_empty else self._upgrade(classic, group)
        outcome = group.heartbeat(now_ms, call)
        if outcome.records:
            outcome.records[:0] = change
            self._groups[request.group_id] = group
            if classic is not None:
                outcome.released += classic.release_waiting(ErrorCode.REBALANCE_IN_PROGRESS).released
                self._register.take_in(group)
            return outcome
        if outcome.reply.error_code == ErrorCode.UNKNOWN_MEMBER_ID:
            raise _no_member(request, classic)
        return outcome

    def _upgrade(self, classic: ClassicGroup, group: ConsumerGroup) -> list[Record]:
        records = upgrade_records(classic, self._context)
        for record in records:
            if not isinstance(record.key, GroupMetadataKey):
                group.replay(record.key, record.value)
        return records

    # Offsets.

    def offset_commit(self, now_ms: int, call: Call) -> Outcome:
        """OffsetCommit, version 1 and later."""
        return commits.commit(self._context, self._groups.get(call.body.group_id), now_ms, call)

    def offset_fetch(self, now_ms: int, call: Call) -> Outcome:
        """OffsetFetch for one group: the body is an OffsetFetchRequestGroup, the reply an OffsetFetchResponseGroup."""
        return commits.fetch(self._context, self._offsets, self._groups.get(call.body.group_id), call)

    def offset_delete(self, now_ms: int, call: Call) -> Outcome:
        """OffsetDelete."""
        request: OffsetDeleteRequest = call.body
        group = self._groups.get(request.group_id)
        if not request.group_id:
            return Outcome(OffsetDeleteResponse(error_code=ErrorCode.INVALID_GROUP_ID))
        if group is None:
            return Outcome(OffsetDeleteResponse(error_code=ErrorCode.GROUP_ID_NOT_FOUND))
        # What members of other protocol types read cannot be known.
        opaque = isinstance(group, ClassicGroup) and group.protocol_type != CONSUMER_PROTOCOL_TYPE
        if opaque and not group.is_empty:
            return Outcome(OffsetDeleteResponse(error_code=ErrorCode.NON_EMPTY_GROUP))
        return commits.delete(self._context, self._offsets, group, call)

    # Administration.

    def delete_groups(self, now_ms: int, call: Call) -> Outcome:
        """DeleteGroups: groups without members, with their offsets."""
        request: DeleteGroupsRequest = call.body
        response = DeleteGroupsResponse()
        records: list[Record] = []
        for group_id in dict.fromkeys(request.groups_names):
            result = DeletableGroupResult(group_id=group_id)
            response.results.append(result)
            try:
                records += self._removal(group_id)
            except KafkaError as error:
                result.error_code, result.error_message = error.code, error.message
        return Outcome(response, records)

    def _removal(self, group_id: str) -> list[Record]:
        group = self._groups.get(group_id)
        if group is None:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no group {group_id!r}")
        if not group.is_empty:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP, f"group {group_id!r} has members")
        return self._offsets.tombstones(group_id) + group.removal()

    def describe_groups(self, now_ms: int, call: Call) -> Outcome:
        """DescribeGroups."""
        return Outcome(listing.describe_groups(self._groups, call))

    def consumer_group_describe(self, now_ms: int, call: Call) -> Outcome:
        """ConsumerGroupDescribe."""
        return Outcome(listing.describe_consumer_groups(self._groups, call))

    def list_groups(self, now_ms: int, call: Call) -> Outcome:
        """ListGroups."""
        return Outcome(listing.list_groups(self._groups, call))

    # To look at.

    def groups(self) -> list[AnyGroup]:
        """The groups there are."""
        return list(self._groups.values())

    def positions(self, group_id: str) -> Iterator[tuple[str, int, int]]:
        """Topic, partition and offset of all that a group has committed."""
        return self._offsets.positions(group_id)

    # Durable state.

    def replay(self, key: Bytes, value: Bytes | None) -> None:
        """Do what a record says; bytes that make no sense raise ProtocolError and change nothing."""
        self._register.replay(key, value)

    @property
    def skipped(self) -> Counter[int]:
        """How many records were passed over, by their type: a newer version wrote them."""
        return self._register.skipped

    def loaded(self, now_ms: int) -> Outcome:
        """Everything is replayed: begin to watch over members, and remove offsets of topics that are gone."""
        outcome = self._upkeep.loaded(now_ms)
        for group in list(self._groups.values()):
            self._context.timers.cancel((group.group_id, WATCH))
            _add(outcome, group.loaded(now_ms))
        return outcome

    # Time, and changes around it.

    @property
    def next_deadline_ms(self) -> int | None:
        """When `expire` has something to do; it may be in the past already."""
        return self._context.timers.next_ms

    def expire(self, now_ms: int) -> Outcome:
        """Do what is due. What needs the records of this outcome to be replayed first stays due."""
        outcome = Outcome()
        timers = self._context.timers
        written: set[str] = set()
        for timer in timers.due(now_ms):
            assert isinstance(timer, tuple)
            is_of_all = timer in upkeep.TIMERS
            if timer[0] in written or (written and is_of_all):
                timers.set(timer, now_ms)
                break
            if is_of_all:
                return _add(outcome, self._upkeep.expire(now_ms, timer))
            group = self._groups.get(timer[0])
            if group is None:
                continue
            done = group.loaded(now_ms) if timer[1] == WATCH else group.expire(now_ms, timer[1:])
            if done.records:
                written.add(group.group_id)
            _add(outcome, done)
        return outcome

    def image_changed(self, now_ms: int, image: ClusterImage) -> Outcome:
        """Topics were created, have grown or were deleted: offsets go with their topics, and groups share out anew."""
        before, self._context.image = self._context.image, image
        return self._upkeep.image_changed(now_ms, before)

    def config_changed(self, config: BrokerConfig) -> None:
        """Settings have changed; they are read where they are used."""
        self._context.config = config


_JOINED = frozenset({ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED})


def _no_member(request: ConsumerGroupHeartbeatRequest, classic: ClassicGroup | None) -> KafkaError:
    """Why there can be no such member of the consumer protocol.

    It may have been one before the group became classic without it, and it has only to join again; Kafka says that
    there is no such group, which consumers take for the end.
    """
    if classic is None:
        return KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no group {request.group_id!r}")
    if classic.members.id_of(request.instance_id) is not None:
        message = f"instance id {request.instance_id!r} belongs to a classic member by now"
        return KafkaError(ErrorCode.FENCED_INSTANCE_ID, message)
    message = f"group {request.group_id!r} is a classic group, and has no member {request.member_id!r}"
    return KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, message)


def _add(outcome: Outcome, more: Outcome) -> Outcome:
    outcome.records += more.records
    outcome.released += more.released
    return outcome
