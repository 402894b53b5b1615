"""A storm: records flow all the time while members of one group come, go, die and stop for a while."""

import random
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from threading import Event as Flag
from threading import Thread
from typing import Any

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from ottla.testing import TestBroker

from .group_storm_check import History, judge, longest_silence_ns
from .group_storm_member import HEARTBEAT_MS, SESSION_MS
from .group_storm_process import KCAT, MemberProcess

TOPIC, GROUP = "orders", "billing"
PARTITIONS = 6
RECORDS_PER_S = 300
PAUSE_S = 1.75 * SESSION_MS / 1000
"""Longer than the session timeout, so that the group goes on without the one who is paused."""
OBSERVE_S = 0.1
SETTLE_S = 60.0
KCAT_SLACK_NS = 1_000_000_000
"""kcat tells no times: they are those at which its output was read. Neither does it tell of commits; and it drops the
record that comes just when it is told to stop, but commits it with the others."""

SETTINGS = {
    "group.min.session.timeout.ms": "1000",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": str(SESSION_MS),
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": str(HEARTBEAT_MS),
}


@dataclass(frozen=True)
class Move:
    """What happens to a member at a moment of the storm; `broker` may be restarted too."""

    at_s: float
    what: str
    member: str = ""


SCRIPT = (
    Move(0.0, "join", "a"),
    Move(0.0, "join", "b"),
    Move(2.5, "join", "c"),
    Move(4.0, "kill", "a"),
    Move(4.5, "join", "d"),
    Move(5.5, "pause", "b"),
    Move(6.5, "leave", "c"),
    Move(7.0, "join", "e"),
    Move(5.5 + PAUSE_S, "resume", "b"),
    Move(10.0, "leave", "d"),
    Move(10.5, "kill", "e"),
    Move(10.5, "join", "f"),
)
"""Twelve seconds in which everything happens once, some of it while the group still deals with what came before."""
SCRIPT_S = 12.0


def random_moves(chance: random.Random, seconds: float, *, restarts: bool) -> list[Move]:
    """Moves for so long: two to five members that run, and others that are paused meanwhile."""
    moves: list[Move] = []
    running: list[str] = []
    resuming: list[tuple[float, str]] = []
    at_s, count = 0.0, 0
    while at_s < seconds:
        back = [name for due_s, name in resuming if due_s <= at_s]
        resuming = [(due_s, name) for due_s, name in resuming if due_s > at_s]
        moves += [Move(at_s, "resume", name) for name in back]
        running += back
        choices = ["join"] * (len(running) < 5) + ["leave", "kill", "pause"] * (len(running) > 2)
        what = "join" if len(running) < 2 else chance.choice(choices)
        if restarts and chance.random() < 0.15:
            moves.append(Move(at_s, "restart"))
        if what == "join":
            count += 1
            running.append(f"m{count}")
        member = running[-1] if what == "join" else chance.choice(running)
        moves.append(Move(at_s, what, member))
        if what in ("leave", "kill", "pause"):
            running.remove(member)
        if what == "pause":
            resuming.append((at_s + PAUSE_S, member))
        at_s += chance.choice((0.1, 0.5, 1.0, 3.0))
    return moves + [Move(due_s, "resume", name) for due_s, name in resuming]


@dataclass
class Report:
    """How a storm went."""

    client: str
    seconds: float
    history: History
    moves: Counter[str]
    trouble: list[str] = field(default_factory=list)
    """What should not have been."""

    @property
    def delivered(self) -> int:
        """Deliveries of records, those that came twice twice."""
        return sum(last - first + 1 for event in self.history.events for _, first, last in event.spans)

    @property
    def produced(self) -> int:
        return sum(self.history.produced.values())

    @property
    def said(self) -> Counter[str]:
        """How often each kind of event was."""
        return Counter(event.kind for event in self.history.events)

    @property
    def longest_silence_s(self) -> float:
        return longest_silence_ns(self.history) / 1e9


def storm(client: str, moves: Iterable[Move], seconds: float) -> Report:
    """Have one, wait until the group has settled, and judge."""
    with TestBroker(SETTINGS) as broker:
        made = _Storm(client, broker)
        try:
            made.create_topic()
            with made.running():
                made.play(moves, seconds)
            made.settle()
            made.part()
        finally:
            made.clean_up()
    return made.report(seconds)


class _Storm:
    """The parts of a storm while it lasts."""

    def __init__(self, client: str, broker: TestBroker) -> None:
        self._client = client
        self._broker = broker
        self._members: dict[str, MemberProcess] = {}
        self._admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
        self._produced = dict.fromkeys(range(PARTITIONS), 0)
        self._observed: list[tuple[int, Mapping[int, int]]] = []
        self._moves: Counter[str] = Counter()
        self._trouble: list[str] = []
        self._unobserved: Counter[str] = Counter()
        self._over = Flag()

    def create_topic(self) -> None:
        self._admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result(SETTLE_S)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Produce and observe meanwhile."""
        threads = [Thread(target=self._produce), Thread(target=self._observe)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._over.set()
            for thread in threads:
                thread.join()

    def _produce(self) -> None:
        producer = Producer(
            {
                "bootstrap.servers": self._broker.bootstrap_servers,
                "enable.idempotence": True,
                "linger.ms": 5,
                "log_level": 0,
            }
        )

        def arrived(error: Any, message: Any) -> None:
            if error is not None or message.value() != b"%d" % message.offset():
                self._trouble.append(f"produced {message.value()!r}: {error or message.offset()}")

        while not self._over.wait(PARTITIONS / RECORDS_PER_S):
            for partition, number in self._produced.items():
                producer.produce(TOPIC, b"%d" % number, partition=partition, on_delivery=arrived)
                self._produced[partition] = number + 1
            producer.poll(0)
        if producer.flush(SETTLE_S):
            self._trouble.append("not everything could be produced")

    def _observe(self) -> None:
        while not self._over.wait(OBSERVE_S):
            try:
                committed = self._committed()
            except KafkaException as error:
                # The group is not there yet, or the broker is not.
                self._unobserved[error.args[0].name()] += 1
            else:
                # The moment of the answer: what was committed while the question was on its way may be in it.
                self._observed.append((time.monotonic_ns(), committed))

    def _committed(self) -> Mapping[int, int]:
        asked = [ConsumerGroupTopicPartitions(GROUP)]
        offsets = self._admin.list_consumer_group_offsets(asked, request_timeout=5.0)[GROUP].result().topic_partitions
        return {one.partition: one.offset for one in offsets if one.error is None}

    def play(self, moves: Iterable[Move], seconds: float) -> None:
        start = time.monotonic()
        for move in moves:
            time.sleep(max(0.0, start + move.at_s - time.monotonic()))
            self._moves[move.what] += 1
            if move.what == "join":
                address = self._broker.bootstrap_servers
                self._members[move.member] = MemberProcess(self._client, move.member, address, GROUP, TOPIC)
            elif move.what == "restart":
                self._broker.stop()
                self._broker.start()
            else:
                getattr(self._members[move.member], move.what)()
        time.sleep(max(0.0, start + seconds - time.monotonic()))

    def _staying(self) -> list[MemberProcess]:
        return [member for member in self._members.values() if member.alive and not member.leaving]

    def settle(self) -> None:
        """Wait until all is read and committed, and the group is stable with each partition in one hand."""
        self._wait_for("STABLE", len(self._staying()), list(range(PARTITIONS)), self._produced)

    def part(self) -> None:
        """Have everybody leave, and see that the group is empty then."""
        for member in self._staying():
            member.leave()
        for member in self._members.values():
            status = member.finish()
            # One that has said nothing was still starting, and had not asked to be told.
            if member.leaving and member.has_spoken and status != 0:
                self._trouble.append(f"{member.name} was told to leave and ended with {status}")
        self._wait_for("EMPTY", 0, [], self._produced)

    def _wait_for(self, *wanted: object) -> None:
        deadline = time.monotonic() + SETTLE_S
        seen: object = None
        while time.monotonic() < deadline:
            try:
                group = self._admin.describe_consumer_groups([GROUP], request_timeout=5.0)[GROUP].result()
                owned = [one.partition for member in group.members for one in member.assignment.topic_partitions]
                seen = (group.state.name, len(group.members), sorted(owned), dict(self._committed()))
            except KafkaException as error:
                seen = error
            if seen == wanted:
                return
            time.sleep(OBSERVE_S)
        self._trouble.append(f"after {SETTLE_S:.0f} s the group is {seen}, and should be {wanted}")

    def clean_up(self) -> None:
        """Nothing is left running, whatever happened."""
        for member in self._members.values():
            member.kill()
            member.finish()

    def report(self, seconds: float) -> Report:
        events = [event for member in self._members.values() for event in member.events]
        history = History(self._produced, events, self._observed)
        if self._client == KCAT:
            history = replace(history, slack_ns=KCAT_SLACK_NS, commits_are_told=False, swallows_when_leaving=True)
        return Report(self._client, seconds, history, self._moves, [*self._trouble, *judge(history)])
