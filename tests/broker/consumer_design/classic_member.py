"""A consumer of the classic protocol that does what clients do with the answers it gets, one step at a time."""

from typing import Any

from ottla.wire.api.find_coordinator import FindCoordinatorRequest
from ottla.wire.embedded import decode_versioned, encode_versioned
from ottla.wire.embedded.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
)
from ottla.wire.errors import ErrorCode
from tests.broker.consumer_design.ledger import Ledger
from tests.broker.consumer_design.line import Address, Line, Partition
from tests.broker.group_client import join, leave, of, sync

JOIN_VERSION, SYNC_VERSION, LEAVE_VERSION = 9, 5, 5

_START_ANEW = (ErrorCode.UNKNOWN_MEMBER_ID,)
_JOIN_AGAIN = (ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION)
_ASK_AGAIN = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REBALANCE_IN_PROGRESS,
)


class ClassicMember:
    """One consumer. Between `begin_...` and `take_answer` a test can do what it likes, such as killing the broker."""

    def __init__(
        self,
        address: Address,
        ledger: Ledger | None = None,
        *,
        group_id: str = "g",
        topics: tuple[str, ...] = ("t",),
        session_timeout_ms: int = 10_000,
        rebalance_timeout_ms: int = 10_000,
    ) -> None:
        self._address = address
        self._line: Line | None = None
        self._ledger = Ledger() if ledger is None else ledger
        self._waits_for: str | None = None
        self._joined: Any = None
        self._shared: list[Partition] = []
        self.group_id = group_id
        self.topics = topics
        self.timeouts = {"session_timeout_ms": session_timeout_ms, "rebalance_timeout_ms": rebalance_timeout_ms}
        self.member_id = ""
        self.generation = -1
        self.is_in = False
        self.assigned: frozenset[Partition] = frozenset()
        self.heard: list[ErrorCode] = []
        """Every answer but MEMBER_ID_REQUIRED, the last one last."""

    @property
    def line(self) -> Line:
        """The connection to the coordinator, which is looked for if need be."""
        if self._line is None:
            line = Line(self._address)
            found = line.call(FindCoordinatorRequest(key=self.group_id), 0)
            assert (found.error_code, (found.host, found.port)) == (0, self._address)
            self._line = line
        return self._line

    @property
    def leads(self) -> bool:
        """Whether it is the one that shares out."""
        return self._joined is not None and self._joined.leader == self.member_id

    def step(self) -> None:
        """Do the next thing: take an answer that has come, send a heartbeat, or join."""
        try:
            if self._waits_for is not None:
                if self.line.has_answer():
                    self.take_answer()
            elif not self.is_in:
                self.begin_sync() if self._joined is not None else self.begin_join()
            elif self.leads and self.line.partitions(self.topics) != self._shared:
                # How a leader notices that a topic has grown: nobody tells it.
                self._give_up_and_join()
            else:
                self.beat()
        except (ConnectionError, TimeoutError):
            self.lose_connection()

    def lose_connection(self) -> None:
        """The connection is gone, and with it the answer that was waited for."""
        self.close()
        self._waits_for = None
        if not self.is_in:
            self._joined = None

    def close(self) -> None:
        """Close the connection, without a word."""
        if self._line is not None:
            self._line.__exit__(None, None, None)
            self._line = None

    # Requests.

    def beat(self) -> ErrorCode:
        """Send a heartbeat, and do as its answer says, short of sending the next request."""
        code = self.line.heartbeat(self.group_id, self.member_id, self.generation)
        self._hear(code)
        if code in _JOIN_AGAIN:
            self._give_up()
        elif code in _START_ANEW:
            self._forget()
        return code

    def begin_join(self) -> None:
        """Send a JoinGroup request."""
        subscription = ConsumerProtocolSubscription(topics=list(self.topics))
        protocols = {"range": encode_versioned(subscription, 0)}
        request = join(self.group_id, member_id=self.member_id, protocols=protocols, **self.timeouts)
        self.line.begin(request, JOIN_VERSION)
        self._joined, self._waits_for = None, "join"

    def begin_sync(self) -> None:
        """Send a SyncGroup request; the leader shares out with it."""
        shares = self._share_out() if self.leads else {}
        self.line.begin(sync(self.group_id, self._joined, shares), SYNC_VERSION)
        self._waits_for = "sync"

    def take_answer(self) -> ErrorCode:
        """Wait for the answer, and take it in."""
        response = self.line.finish()
        waited_for, self._waits_for = self._waits_for, None
        code = ErrorCode(response.error_code)
        self._hear(code)
        if code is ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = response.member_id
        elif code in _START_ANEW:
            self._forget()
        elif code is ErrorCode.NONE and waited_for == "join":
            self._joined = response
            self.member_id, self.generation = response.member_id, response.generation_id
        elif code is ErrorCode.NONE:
            self._start(response.assignment)
        else:
            assert code in _JOIN_AGAIN + _ASK_AGAIN, code
            self._joined = None
        return code

    def get_id(self) -> None:
        """Have an id to join with."""
        self.begin_join()
        assert self.take_answer() is ErrorCode.MEMBER_ID_REQUIRED

    def leave(self) -> None:
        """Leave the group."""
        answer = self.line.call(leave(self.group_id, self.member_id), LEAVE_VERSION)
        assert answer.members[0].error_code == 0
        self._forget()

    def commit(self) -> ErrorCode:
        """Come further by one record in each partition, and commit that."""
        code = ErrorCode.NONE
        for topic, index in sorted(self.assigned):
            offset = self.line.committed(self.group_id, topic, partition=index)[0] + 1
            who = of(self.member_id, self.generation)
            code = self.line.commit(self.group_id, topic, offset, partition=index, **who)
            if code is ErrorCode.NONE:
                self._ledger.note((topic, index), offset)
        return code

    # What comes of them.

    def _hear(self, code: ErrorCode) -> None:
        if code is not ErrorCode.MEMBER_ID_REQUIRED:
            self.heard.append(code)

    def _start(self, assignment: bytes) -> None:
        self.is_in = True
        found = decode_versioned(ConsumerProtocolAssignment, assignment) if assignment else ConsumerProtocolAssignment()
        self.assigned = frozenset(
            (part.topic, index) for part in found.assigned_partitions for index in part.partitions
        )
        self.commit()

    def _give_up(self) -> None:
        """Stop reading: commit, if that is still possible, and join again."""
        self.commit()
        self.is_in, self._joined, self.assigned = False, None, frozenset()

    def _give_up_and_join(self) -> None:
        self._give_up()
        self.begin_join()

    def _forget(self) -> None:
        """Be nobody's member: whatever it had may be another's."""
        self.member_id, self.generation = "", -1
        self.is_in, self._joined, self.assigned = False, None, frozenset()

    def _share_out(self) -> dict[str, bytes]:
        readers = {
            member.member_id: decode_versioned(ConsumerProtocolSubscription, member.metadata).topics
            for member in self._joined.members
        }
        self._shared = self.line.partitions({topic for topics in readers.values() for topic in topics})
        shares: dict[str, list[TopicPartition]] = {member_id: [] for member_id in readers}
        for number, (topic, index) in enumerate(self._shared):
            suited = [member_id for member_id, topics in sorted(readers.items()) if topic in topics]
            shares[suited[number % len(suited)]].append(TopicPartition(topic=topic, partitions=[index]))
        return {
            member_id: encode_versioned(ConsumerProtocolAssignment(assigned_partitions=share), 0)
            for member_id, share in shares.items()
        }
