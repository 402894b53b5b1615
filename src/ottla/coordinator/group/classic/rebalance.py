"""A classic group's rounds: a generation begins when all have joined, and is settled when its leader has shared out.

Written down at two moments, each before anybody is told: generation and members when all have joined, without a
protocol, and the same with protocol and assignments when the leader has shared out. A coordinator that starts again in
between finds the former: the number is used up, so nobody can take part in two generations of the same number, and the
members are asked to join again.
"""

from typing import Final

from ottla.coordinator.group.classic.member import Member
from ottla.coordinator.group.classic.roster import Roster
from ottla.coordinator.group.classic.state import ClassicState, may_follow
from ottla.coordinator.group.context import Context
from ottla.coordinator.outcome import Outcome, Record, Ticket, upsert
from ottla.wire.api.join_group import JoinGroupResponse, JoinGroupResponseMember
from ottla.wire.api.sync_group import SyncGroupResponse
from ottla.wire.embedded.offsets_topic import GroupMetadataKey, GroupMetadataValue
from ottla.wire.errors import ErrorCode, KafkaError

VALUE_VERSION: Final = 3
"""The version of the record that Kafka writes, and every version of it reads."""

SESSION: Final = "session"
JOIN: Final = "join"
SYNC: Final = "sync"


class RebalancingGroup:
    """Members, those of them who wait for an answer, and the rounds by which generations follow each other.

    Steps take an outcome and add to it: records, and answers for those who waited.
    """

    __slots__ = (
        "context", "emptied_ms", "gather_until_ms", "generation", "group_id", "joining", "leader", "members",
        "newcomers", "pending", "protocol", "protocol_type", "somebody_came", "state", "syncing", "unsynced",
    )  # fmt: skip

    def __init__(self, context: Context, group_id: str) -> None:
        self.context = context
        self.group_id = group_id
        self.state = ClassicState.EMPTY
        self.members = Roster()
        self.protocol_type = ""
        self.protocol: str | None = None
        """What the members of this generation agreed on."""
        self.generation = 0
        self.leader: str | None = None
        self.emptied_ms: int | None = None
        """When it was written down that the last member has gone."""

        self.pending: dict[str, None] = {}
        """Ids that were given out to members that are to join with them."""
        self.joining: dict[str, Ticket] = {}
        self.newcomers: set[str] = set()
        """Those of the joining who wait for their first answer."""
        self.syncing: dict[str, Ticket] = {}
        self.unsynced: set[str] = set()
        """Members who were told of this generation and have not asked for their assignment."""
        self.gather_until_ms: int | None = None
        """Set while a group that was empty waits for more members to come."""
        self.somebody_came = False

    # What others ask.

    def check_member(self, member_id: str, instance_id: str | None) -> Member:
        """The member that a request comes from."""
        if instance_id is not None:
            known_as = self.members.id_of(instance_id)
            if known_as is not None and known_as != member_id:
                raise KafkaError(
                    ErrorCode.FENCED_INSTANCE_ID,
                    f"static member {instance_id!r} has joined again since, as {known_as!r}: {member_id!r} must stop",
                )
            if known_as is None:
                raise KafkaError(
                    ErrorCode.UNKNOWN_MEMBER_ID,
                    f"group {self.group_id!r} has no static member {instance_id!r}: join it",
                )
        member = self.members.find(member_id)
        if member is None:
            raise KafkaError(
                ErrorCode.UNKNOWN_MEMBER_ID, f"group {self.group_id!r} has no member {member_id!r}: join without an id"
            )
        return member

    def check_generation(self, generation: int) -> None:
        """Refuse what belongs to another generation."""
        if generation != self.generation:
            raise KafkaError(
                ErrorCode.ILLEGAL_GENERATION,
                f"group {self.group_id!r} is in generation {self.generation}, not {generation}: join again",
            )

    def join_reply(self, member_id: str, generation: int, leader: str | None) -> JoinGroupResponse:
        """What a member is told about a generation; the leader is told about the others too."""
        members = [
            JoinGroupResponseMember(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                metadata=member.metadata(self.protocol),
            )
            for member in (self.members if member_id == leader else ())
        ]
        return JoinGroupResponse(
            generation_id=generation,
            protocol_type=self.protocol_type,
            protocol_name=self.protocol,
            leader=leader or "",
            member_id=member_id,
            members=members,
        )

    def sync_reply(self, assignment: bytes) -> SyncGroupResponse:
        """What a member is told about its assignment."""
        return SyncGroupResponse(protocol_type=self.protocol_type, protocol_name=self.protocol, assignment=assignment)

    # Sessions, and those who wait.

    def watch(self, now_ms: int, member_id: str) -> None:
        """A sign of life: its session begins anew. While a member waits for an answer nothing is expected of it."""
        if member_id not in self.joining and member_id not in self.syncing:
            deadline_ms = now_ms + self.members[member_id].session_timeout_ms
            self.context.timers.set((self.group_id, SESSION, member_id), deadline_ms)

    def wait_for_join(self, member_id: str, outcome: Outcome) -> None:
        """The caller waits until the round is over; one who waited as the same member before is sent away."""
        self._turn_away(self.joining.pop(member_id, None), JoinGroupResponse(member_id=member_id), outcome)
        self.joining[member_id] = outcome.reply = Ticket()
        if member_id not in self.newcomers:
            self.context.timers.cancel((self.group_id, SESSION, member_id))

    def wait_for_sync(self, member_id: str, outcome: Outcome) -> None:
        """The caller waits until the leader has shared out; one who waited as the same member before is sent away."""
        self._turn_away(self.syncing.pop(member_id, None), SyncGroupResponse(), outcome)
        self.syncing[member_id] = outcome.reply = Ticket()
        self.context.timers.cancel((self.group_id, SESSION, member_id))

    def answer_join(self, now_ms: int, member_id: str, response: JoinGroupResponse, outcome: Outcome) -> None:
        """Answer a member that waits for the round to end."""
        _release(self.joining.pop(member_id), response, outcome)
        self.newcomers.discard(member_id)
        self.watch(now_ms, member_id)

    def answer_sync(self, now_ms: int, member_id: str, response: SyncGroupResponse, outcome: Outcome) -> None:
        """Answer a member that waits for its assignment."""
        _release(self.syncing.pop(member_id), response, outcome)
        self.watch(now_ms, member_id)

    def remove(self, member_id: str, outcome: Outcome, error: ErrorCode = ErrorCode.UNKNOWN_MEMBER_ID) -> None:
        """Take a member out; if it waits for something, it gets the error. A step that goes on from there follows."""
        self._turn_away(self.joining.pop(member_id, None), JoinGroupResponse(member_id=member_id), outcome, error)
        self._turn_away(self.syncing.pop(member_id, None), SyncGroupResponse(), outcome, error)
        self.members.remove(member_id)
        self.newcomers.discard(member_id)
        self.unsynced.discard(member_id)
        self.context.timers.cancel((self.group_id, SESSION, member_id))

    def _turn_away(
        self,
        ticket: Ticket | None,
        response: JoinGroupResponse | SyncGroupResponse,
        outcome: Outcome,
        error: ErrorCode = ErrorCode.REBALANCE_IN_PROGRESS,
    ) -> None:
        if ticket is not None:
            response.error_code = error
            _release(ticket, response, outcome)

    # Rounds.

    def rebalance(self, now_ms: int, outcome: Outcome) -> None:
        """Begin a round, or end the one that is under way if nobody is missing."""
        if self.state is not ClassicState.PREPARING_REBALANCE:
            self._prepare(now_ms, outcome)
        else:
            self.complete_if_all_joined(now_ms, outcome)

    def _prepare(self, now_ms: int, outcome: Outcome) -> None:
        for member_id in list(self.syncing):
            self.answer_sync(now_ms, member_id, SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS), outcome)
        self.expect_no_syncs()
        was_empty = self.state is ClassicState.EMPTY
        self.move_to(ClassicState.PREPARING_REBALANCE)
        timeout_ms = self.members.rebalance_timeout_ms
        if not was_empty:
            self._set_timer(JOIN, now_ms + timeout_ms)
            self.complete_if_all_joined(now_ms, outcome)
        elif delay_ms := self.context.config.group_initial_rebalance_delay_ms:
            self.gather_until_ms = now_ms + max(timeout_ms, delay_ms)
            self.somebody_came = False
            self._set_timer(JOIN, now_ms + delay_ms)
        else:
            self.complete(now_ms, outcome)

    def complete_if_all_joined(self, now_ms: int, outcome: Outcome) -> None:
        """End the round if nobody is missing. A group that was empty waits a while for members not known yet."""
        all_joined = len(self.joining) == len(self.members) and not self.pending
        if not self.members or (all_joined and self.gather_until_ms is None):
            self.complete(now_ms, outcome)

    def complete(self, now_ms: int, outcome: Outcome) -> None:
        """End the round: who has not joined is out, but static members remain until their session ends."""
        self._set_timer(JOIN, None)
        self.gather_until_ms = None
        for member in list(self.members):
            if member.member_id not in self.joining and not member.is_static:
                self.remove(member.member_id, outcome)
        if not self.members:
            self.move_to(ClassicState.EMPTY)
            outcome.records.append(self.record(now_ms, self.generation + 1, None, None, {}))
        elif not self.joining:
            # There is nobody who could lead. Sessions end, or somebody comes.
            self._set_timer(JOIN, now_ms + max(self.members.rebalance_timeout_ms, 1))
        else:
            self._begin_generation(now_ms, outcome)

    def _begin_generation(self, now_ms: int, outcome: Outcome) -> None:
        generation = self.generation + 1
        joined = [member.member_id for member in self.members if member.member_id in self.joining]
        leader = self.leader if self.leader in self.joining else joined[0]
        self.protocol = self.members.vote()
        self.move_to(ClassicState.COMPLETING_REBALANCE)
        outcome.records.append(self.record(now_ms, generation, leader, None, {}))
        for member_id in joined:
            self.answer_join(now_ms, member_id, self.join_reply(member_id, generation, leader), outcome)
        assert not self.joining, f"{list(self.joining)} wait to join group {self.group_id!r} and are no members"
        self.unsynced = set(joined)
        self._set_timer(SYNC, now_ms + self.members.rebalance_timeout_ms)

    def expect_no_syncs(self) -> None:
        """Nobody is late with asking for an assignment any more."""
        self.unsynced.clear()
        self._set_timer(SYNC, None)

    def move_to(self, state: ClassicState) -> None:
        """Change the state, which must be allowed."""
        assert may_follow(self.state, state), f"group {self.group_id!r} cannot go from {self.state} to {state}"
        self.state = state

    def _set_timer(self, what: str, deadline_ms: int | None) -> None:
        if deadline_ms is None:
            self.context.timers.cancel((self.group_id, what))
        else:
            self.context.timers.set((self.group_id, what), deadline_ms)

    def expire(self, now_ms: int, timer: tuple[str, ...]) -> Outcome:
        """A timer of this group is due: its key without the group id."""
        outcome = Outcome()
        match timer:
            case ("session", member_id):
                self._end_session(now_ms, member_id, outcome)
            case ("join",):
                self._end_join(now_ms, outcome)
            case ("sync",):
                late = list(self.unsynced)
                for member_id in late:
                    self.remove(member_id, outcome)
                if late:
                    self._prepare(now_ms, outcome)
        return outcome

    def _end_session(self, now_ms: int, member_id: str, outcome: Outcome) -> None:
        if member_id in self.pending:
            del self.pending[member_id]
            if self.state is ClassicState.PREPARING_REBALANCE:
                self.complete_if_all_joined(now_ms, outcome)
        elif member_id in self.members:
            self.remove(member_id, outcome)
            self.rebalance(now_ms, outcome)

    def _end_join(self, now_ms: int, outcome: Outcome) -> None:
        if self.gather_until_ms is not None and self.somebody_came and now_ms < self.gather_until_ms:
            self.somebody_came = False
            delay_ms = self.context.config.group_initial_rebalance_delay_ms
            self._set_timer(JOIN, min(now_ms + delay_ms, self.gather_until_ms))
        else:
            self.complete(now_ms, outcome)

    # What is written down, and what loading makes of it.

    def record(
        self,
        now_ms: int,
        generation: int,
        leader: str | None,
        protocol: str | None,
        assignments: dict[str, bytes],
    ) -> Record:
        """The group as it is to be written down."""
        assert generation >= self.generation, f"group {self.group_id!r} would go back to generation {generation}"
        members = [
            member.written(self.protocol or "", assignments.get(member.member_id, b"")) for member in self.members
        ]
        value = GroupMetadataValue(
            protocol_type=self.protocol_type,
            generation=generation,
            protocol=protocol,
            leader=leader,
            current_state_timestamp=now_ms,
            members=members,
        )
        return upsert(GroupMetadataKey(group=self.group_id), value, VALUE_VERSION)

    def replay(self, value: GroupMetadataValue) -> None:
        """Take over what is written down."""
        self.generation = value.generation
        self.protocol_type = value.protocol_type
        self.leader = value.leader
        written = {member.member_id: member for member in value.members}
        for member in list(self.members):
            if member.member_id not in written:
                assert member.member_id not in self.joining, "a member that waits was left out of what is written"
                self.members.remove(member.member_id)
        for member_id, member_written in written.items():
            self.members.put(Member.read(member_written, value.protocol, self.members.find(member_id)))
        if not written:
            self.state, self.protocol = ClassicState.EMPTY, None
        elif value.protocol is None:
            # What they agreed on is not written yet; whoever saw them agree knows it.
            self.state = ClassicState.COMPLETING_REBALANCE
        else:
            self.state, self.protocol = ClassicState.STABLE, value.protocol
        is_known = not written and value.current_state_timestamp >= 0
        self.emptied_ms = value.current_state_timestamp if is_known else None

    def loaded(self, now_ms: int) -> Outcome:
        """Everything is replayed: begin to watch over its members, and have them join again if need be."""
        outcome = Outcome()
        for member in self.members:
            self.watch(now_ms, member.member_id)
        # A generation whose members have been told of it is not from a log: this group runs already.
        is_unfinished = self.state is ClassicState.COMPLETING_REBALANCE and not self.unsynced
        is_too_large = self.state is ClassicState.STABLE and len(self.members) > self.context.config.group_max_size
        if is_unfinished or is_too_large:
            self._prepare(now_ms, outcome)
        return outcome


def _release(ticket: Ticket, response: object, outcome: Outcome) -> None:
    # Whoever asked just now is answered directly: nothing waits for what is known already.
    if outcome.reply is ticket:
        outcome.reply = response
    else:
        outcome.released.append((ticket, response))
