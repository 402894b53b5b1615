"""Random histories of a classic group: whatever members and the coordinator go through, some things stay true."""

from collections import defaultdict
from dataclasses import dataclass, field, replace
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.coordinator.group.classic import ClassicState, Member
from ottla.wire.embedded import decode_versioned
from ottla.wire.embedded.offsets_topic import GroupMetadataValue
from ottla.wire.errors import ErrorCode

from .classic_world import DELAY_MS, SESSION_MS, ClassicWorld, subscription
from .harness import Answer

PARTITIONS = 6
PROTOCOLS = (
    {"range": subscription("orders")},
    {"sticky": subscription("orders"), "range": subscription("orders")},
    {"range": subscription("returns"), "sticky": subscription("returns")},
)
LOST = {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID, ErrorCode.ILLEGAL_GENERATION}


@dataclass
class Client:
    """Somebody who takes part as well as it can, and believes what it was told last."""

    number: int
    version: int
    instance_id: str | None
    member_id: str = ""
    generation: int = -1
    heard: list[str] | None = None
    """The members that it is to share out to, if it leads."""
    join: Answer | None = None
    sync: Answer | None = None
    is_synced: bool = False
    must_join: bool = True

    def next_step(self) -> str:
        """What a client does that has nothing else in mind."""
        if self.join is not None or self.sync is not None:
            return "wait"
        if self.must_join:
            return "join"
        return "heartbeat" if self.is_synced else "sync"


@dataclass
class History:
    """A world, its clients, and what is known to have happened."""

    world: ClassicWorld
    clients: list[Client]
    leaders: dict[int, set[str]] = field(default_factory=lambda: defaultdict(set))
    owners: dict[tuple[int, int], set[int]] = field(default_factory=lambda: defaultdict(set))

    def do(self, what: str, who: int, how: int) -> None:
        client = self.clients[who]
        match what if what != "go on" else client.next_step():
            case "join":
                client.join = self.world.join(
                    client.member_id,
                    PROTOCOLS[how % len(PROTOCOLS)],
                    version=client.version,
                    instance_id=client.instance_id,
                    rebalance_ms=20_000,
                )
                self.hear(client)
            case "sync":
                shares = {
                    member_id: bytes(range(index, PARTITIONS, len(client.heard or ())))
                    for index, member_id in enumerate(client.heard or ())
                }
                client.sync = self.world.sync(
                    client.member_id, client.generation, shares, instance_id=client.instance_id
                )
                self.hear(client)
            case "heartbeat" | "late heartbeat":
                generation = client.generation - (what == "late heartbeat")
                error = self.world.heartbeat(client.member_id, generation, client.instance_id)
                if error is ErrorCode.REBALANCE_IN_PROGRESS:
                    client.must_join = True
                elif error in LOST and what != "late heartbeat":
                    self.forget(client)
            case "commit":
                self.world.commit(client.member_id, client.generation, client.instance_id)
            case "leave":
                self.world.leave((client.member_id, client.instance_id))
                self.forget(client)
            case "forget":
                self.forget(client)
            case "time":
                self.world.pass_time((1, 500, 900, DELAY_MS, SESSION_MS, 20_000)[how])
            case "restart":
                self.world.restart()
        for other in self.clients:
            self.hear(other)

    def forget(self, client: Client) -> None:
        client.member_id, client.generation, client.heard = "", -1, None
        client.must_join, client.is_synced = True, False

    def hear(self, client: Client) -> None:
        """Take in answers that have come."""
        if client.join is not None and not client.join.is_waiting:
            answer, client.join = client.join, None
            if not answer.is_lost:
                self.joined(client, answer)
        if client.sync is not None and not client.sync.is_waiting:
            answer, client.sync = client.sync, None
            client.must_join = answer.is_lost or answer.error is not ErrorCode.NONE
            if not client.must_join:
                client.is_synced = True
                for partition in answer.reply.assignment:
                    self.owners[client.generation, partition].add(client.number)
                    assert len(self.owners[client.generation, partition]) == 1, "a partition has two owners"

    def joined(self, client: Client, answer: Answer) -> None:
        reply = answer.reply
        if answer.error is ErrorCode.MEMBER_ID_REQUIRED:
            client.member_id = reply.member_id
        elif answer.error in LOST:
            self.forget(client)
        elif answer.error is ErrorCode.NONE:
            client.member_id, client.generation = reply.member_id, reply.generation_id
            client.must_join = client.is_synced = False
            leads = reply.leader == reply.member_id
            client.heard = (
                [member.member_id for member in reply.members] if leads and not reply.skip_assignment else None
            )
            if leads:
                self.leaders[reply.generation_id].add(client.instance_id or reply.member_id)
            assert len(self.leaders[reply.generation_id]) <= 1, "a generation has two leaders"

    def check(self) -> None:
        """What is true at every moment."""
        group, timers = self.world.group, self.world.subject.context.timers
        members = {member.member_id for member in group.members}
        waiting = group.joining.keys() | group.syncing.keys()
        assert waiting | group.unsynced <= members
        assert group.newcomers <= group.joining.keys()
        assert len(self.world.waiting) == len(group.joining) + len(group.syncing)
        for member_id in members | group.pending.keys():
            is_watched = timers.deadline_ms(("group", "session", member_id)) is not None
            assert is_watched == (member_id not in waiting or member_id in group.newcomers)
        assert (timers.deadline_ms(("group", "join")) is not None) == (group.state is ClassicState.PREPARING_REBALANCE)
        assert (timers.deadline_ms(("group", "sync")) is not None) == bool(group.unsynced)
        assert (group.state is ClassicState.EMPTY) == (not members)
        if group.state is ClassicState.COMPLETING_REBALANCE:
            assert group.leader in group.unsynced
        self.check_what_is_written()

    def check_what_is_written(self) -> None:
        live, fresh = self.world.group, self.world.replayed().group
        assert (fresh.generation, fresh.leader) == (live.generation, live.leader)
        if live.state is not ClassicState.PREPARING_REBALANCE:
            assert fresh.state is live.state
            assert fresh.empty_since_ms == live.empty_since_ms
            assert [durable(member) for member in fresh.members] == [durable(member) for member in live.members]
        values = [decode_versioned(GroupMetadataValue, value) for _, value in self.world.log if value is not None]
        for before, after in pairwise(values):
            # A new number for each round; the same one when it is shared out, or a static member has a new id.
            assert after.generation == before.generation + (after.protocol is None)


def durable(member: Member) -> Member:
    return replace(member, protocols={})


USUAL = ("go on",) * 16 + ("time",) * 2
RARE = ("join", "sync", "late heartbeat", "commit", "leave", "forget", "restart")
steps = st.lists(
    st.tuples(st.sampled_from(USUAL + RARE), st.integers(0, 3), st.integers(0, 5)), min_size=30, max_size=200
)


@settings(max_examples=60, deadline=None)
@given(
    steps=steps,
    versions=st.tuples(*[st.sampled_from([0, 3, 4, 5, 9])] * 2),
    delay_ms=st.sampled_from([0, DELAY_MS]),
)
def test_whatever_happens(steps: list[tuple[str, int, int]], versions: tuple[int, int], delay_ms: int) -> None:
    clients = [
        Client(0, versions[0], None),
        Client(1, versions[1], None),
        Client(2, 5, "a"),
        Client(3, 9, "b"),
    ]
    history = History(ClassicWorld(group_initial_rebalance_delay_ms=delay_ms), clients)
    for what, who, how in steps:
        history.do(what, who, how)
        history.check()
    # Nobody does anything any more: all who wait are answered, and all that is left is an empty group.
    history.world.pass_time(1_000_000)
    assert not history.world.waiting
    assert history.world.state == "Empty"
    assert len(history.world.subject.context.timers) == 0
