"""A consumer of the consumer protocol that does what clients do with the answers it gets, one step at a time."""

from collections.abc import Iterable
from typing import Any
from uuid import uuid4

from ottla.wire.api.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from ottla.wire.api.find_coordinator import FindCoordinatorRequest
from ottla.wire.api.metadata import MetadataRequest, MetadataRequestTopic
from ottla.wire.errors import ErrorCode
from tests.broker.consumer_design.ledger import Ledger
from tests.broker.consumer_design.line import Address, Line, Partition
from tests.broker.group_client import of

VERSION = 1
COMMIT_VERSION = 9

_START_ANEW = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH)
_ASK_AGAIN = (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE)


class ConsumerMember:
    """One consumer. Between `begin_beat` and `take_answer` a test can do what it likes, such as killing the broker."""

    def __init__(self, address: Address, ledger: Ledger | None = None, *, group_id: str = "g", **says: Any) -> None:
        self._address = address
        self._line: Line | None = None
        self._ledger = Ledger() if ledger is None else ledger
        self._names: dict[bytes, str] = {}
        self._tells_all = True
        self.group_id = group_id
        self.says = {"rebalance_timeout_ms": 10_000, "subscribed_topic_names": ["t"], **says}
        self.member_id = str(uuid4())
        self.generation = 0
        """Its member epoch."""
        self.assigned: frozenset[Partition] = frozenset()
        self.heard: list[ErrorCode] = []

    @property
    def line(self) -> Line:
        """The connection to the coordinator, which is looked for if need be."""
        if self._line is None:
            line = Line(self._address)
            found = line.call(FindCoordinatorRequest(key=self.group_id), 0)
            assert (found.error_code, (found.host, found.port)) == (0, self._address)
            self._line, self._tells_all = line, True
        return self._line

    @property
    def is_in(self) -> bool:
        """Whether it is a member."""
        return self.generation > 0

    def step(self) -> None:
        """Send a heartbeat and do as it is told."""
        try:
            self.beat()
        except (ConnectionError, TimeoutError):
            self.close()

    def close(self) -> None:
        """Close the connection, without a word."""
        if self._line is not None:
            self._line.__exit__(None, None, None)
            self._line = None

    lose_connection = close

    def beat(self) -> ErrorCode:
        """A heartbeat, and what comes of it."""
        self.begin_beat()
        return self.take_answer()

    def begin_beat(self) -> None:
        """Send a heartbeat. It says what the member has, and everything when it is not known what has arrived."""
        line = self.line
        tells_all = self._tells_all or self.generation == 0
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group_id,
            member_id=self.member_id,
            member_epoch=self.generation,
            topic_partitions=self._owned(line),
            **(self.says if tells_all else {}),
        )
        line.begin(request, VERSION)

    def take_answer(self) -> ErrorCode:
        """Wait for the answer to a heartbeat, and take it in."""
        response = self.line.finish()
        code = ErrorCode(response.error_code)
        self.heard.append(code)
        if code in _START_ANEW:
            self.generation, self.assigned = 0, frozenset()
        elif code is ErrorCode.NONE:
            self._tells_all = False
            self.generation = response.member_epoch
            if response.assignment is not None:
                self._follow(frozenset(self._named(response.assignment.topic_partitions)))
        else:
            assert code in _ASK_AGAIN, (code, response.error_message)
        return code

    def commit(self, partitions: Iterable[Partition] | None = None) -> ErrorCode:
        """Come further by one record in each of these partitions, or in all, and commit that."""
        code = ErrorCode.NONE
        for topic, index in sorted(self.assigned if partitions is None else partitions):
            offset = self.line.committed(self.group_id, topic, partition=index)[0] + 1
            who = of(self.member_id, self.generation)
            code = self.line.commit(self.group_id, topic, offset, COMMIT_VERSION, partition=index, **who)
            if code is ErrorCode.NONE:
                self._ledger.note((topic, index), offset)
        return code

    def leave(self) -> None:
        """Leave the group."""
        answer = self.line.consumer_heartbeat(self.group_id, member_id=self.member_id, member_epoch=-1)
        assert answer.error_code == 0
        self.generation, self.assigned = 0, frozenset()

    def _follow(self, assigned: frozenset[Partition]) -> None:
        """Commit for what is to be given up, and begin with what is new. The next heartbeat says so."""
        self.commit(self.assigned - assigned)
        new = assigned - self.assigned
        self.assigned = assigned
        self.commit(new)

    def _named(self, held: list[TopicPartitions]) -> list[Partition]:
        unknown = [topic.topic_id for topic in held if topic.topic_id not in self._names]
        if unknown:
            wanted = [MetadataRequestTopic(topic_id=topic_id, name=None) for topic_id in unknown]
            request = MetadataRequest(topics=wanted, allow_auto_topic_creation=False)
            self._names.update({topic.topic_id: topic.name for topic in self.line.call(request, 12).topics})
        return [(self._names[topic.topic_id], index) for topic in held for index in topic.partitions]

    def _owned(self, line: Line) -> list[TopicPartitions]:
        by_name: dict[str, list[int]] = {}
        for topic, index in sorted(self.assigned):
            by_name.setdefault(topic, []).append(index)
        ids = {name: topic_id for topic_id, name in self._names.items()}
        return [TopicPartitions(topic_id=ids[name], partitions=indexes) for name, indexes in by_name.items()]
