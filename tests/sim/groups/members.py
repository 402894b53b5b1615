"""Members of groups as clients are: they join, own partitions, commit, and put up with what they are told."""

from typing import Any, Protocol

from ottla.coordinator.outcome import Call
from ottla.wire.api.offset_commit import OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic
from ottla.wire.api.offset_fetch import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from ottla.wire.errors import ErrorCode

from .world import World

HEARTBEAT_MS = 3000
RETRY_MS = 500

Place = tuple[str, int]


class Member(Protocol):
    """A member of either protocol."""

    name: str
    group: str
    topics: list[str]
    alive: bool
    in_line: bool
    owned: set[Place]

    def start(self) -> None: ...
    def leave(self) -> None: ...
    def die(self) -> None: ...
    def sleep(self, duration_ms: int) -> None: ...


class BaseMember:
    """Requests with timeouts, commits, pauses: what members of both protocols do alike."""

    def __init__(self, world: World, group: str, name: str, topics: list[str], instance_id: str | None = None) -> None:
        self.world = world
        self.group = group
        self.name = name
        self.topics = topics
        self.instance_id = instance_id
        self.member_id = ""
        self.alive = True
        self.in_line = False
        """Whether it waits for another member to let go of its instance id."""
        self.owned: set[Place] = set()
        self._turn = 0
        self._asleep_until_ms = 0

    def die(self) -> None:
        """Fall silent for ever."""
        self.alive = False
        self.owned = set()

    def sleep(self, duration_ms: int) -> None:
        """A long pause, as of a garbage collector: what was to be done then is done after it."""
        self._asleep_until_ms = self.world.now_ms + duration_ms

    def later(self, delay_ms: int, action: Any, *args: Any) -> None:
        """Do something later, unless this member has gone on to something else by then."""
        turn = self._turn

        def act() -> None:
            if not self.alive or turn != self._turn:
                return
            if self.world.now_ms < self._asleep_until_ms:
                self.world.after(self._asleep_until_ms - self.world.now_ms, act)
                return
            action(*args)

        self.world.after(delay_ms, act)

    def go_on(self) -> None:
        """What was planned until now is not to be done any more."""
        self._turn += 1

    def ask(self, method: str, version: int, body: Any, on_reply: Any, timeout_ms: int, on_timeout: Any) -> None:
        """Send a request; whichever comes first, reply or timeout, is acted on."""
        self.go_on()
        turn = self._turn

        def replied(reply: Any) -> None:
            if self.alive and turn == self._turn:
                self.go_on()
                self.later(0, on_reply, reply)

        self.world.send(method, Call(version, self.name, "/127.0.0.1", body), replied)
        self.later(timeout_ms, on_timeout)

    def commit(self, epoch: int, version: int) -> None:
        """Commit somewhere further than the group is known to be, for a partition that this member owns."""
        if not self.owned:
            return
        topic, index = self.world.chance.choice(sorted(self.owned))
        known = self.world.witness.committed.get((self.group, topic, index), 0)
        part = OffsetCommitRequestPartition(
            partition_index=index,
            committed_offset=known + self.world.chance.randint(1, 10),
            committed_metadata=self.name,
        )
        body = OffsetCommitRequest(
            group_id=self.group,
            generation_id_or_member_epoch=epoch,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            topics=[OffsetCommitRequestTopic(name=topic, partitions=[part])],
        )
        self.world.send("offset_commit", Call(version, self.name, "/127.0.0.1", body), lambda reply: None)

    def read_offsets(self) -> None:
        """Ask where the group is; the witness compares."""
        wanted = [
            OffsetFetchRequestTopics(
                name=topic, partition_indexes=list(range(len(self.world.image.topics[topic].partitions)))
            )
            for topic in self.topics
        ]
        body = OffsetFetchRequestGroup(group_id=self.group, topics=wanted)
        self.world.send("offset_fetch", Call(8, self.name, "/127.0.0.1", body), lambda reply: None)


COORDINATOR_AWAY = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)
