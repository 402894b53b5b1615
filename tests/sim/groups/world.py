"""Virtual time, a network that misbehaves, and one coordinator shard that may be killed and loaded again."""

from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from typing import Any

from ottla.cluster.image import BrokerImage, ClusterImage, PartitionImage, TopicImage
from ottla.config.broker import BrokerConfig
from ottla.coordinator.group.shard import GroupShard
from ottla.coordinator.outcome import Call, Outcome, Ticket
from ottla.sim.chance import SimChance

from .witness import Witness

OnReply = Callable[[Any], None]

TOPICS = {"orders": 6, "payments": 3}


def _topic(chance: SimChance, name: str, partitions: int) -> TopicImage:
    return TopicImage(
        name, chance.uuid(), tuple(PartitionImage(index, 1, 0, (1,), (1,)) for index in range(partitions))
    )


class World:
    """Everything but the members."""

    def __init__(self, seed: int, settings: dict[str, str] | None = None) -> None:
        self.chance = SimChance(f"groups {seed}")
        self.now_ms = 1_700_000_000_000
        self.witness = Witness()
        self.calm = False
        """Once set, nothing is lost, repeated or late any more."""
        self.config = BrokerConfig({"group.initial.rebalance.delay.ms": "1000", **(settings or {})})
        topics = [_topic(self.chance, name, partitions) for name, partitions in TOPICS.items()]
        self.image = ClusterImage("simulated").with_broker(BrokerImage(1, {})).with_topics(*topics)
        self.log: list[tuple[bytes, bytes | None]] = []
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._order = count()
        self._waiting: dict[Ticket, tuple[str, Call, OnReply]] = {}
        self._alarm_ms: int | None = None
        self._load()

    # Time.

    def after(self, delay_ms: int, action: Callable[[], None]) -> None:
        """Have this done then."""
        heappush(self._events, (self.now_ms + delay_ms, next(self._order), action))

    def run_for(self, duration_ms: int) -> None:
        """Let time pass."""
        end_ms = self.now_ms + duration_ms
        while self._events and self._events[0][0] <= end_ms:
            self.now_ms, _, action = heappop(self._events)
            action()
        self.now_ms = end_ms

    # The network.

    def send(self, method: str, call: Call, on_reply: OnReply) -> None:
        """Deliver a request to the coordinator, if the network is kind; its reply comes back the same way."""
        for _ in range(self._copies()):
            self.after(self._delay_ms(), lambda: self._deliver(method, call, on_reply))

    def _copies(self) -> int:
        return 1 if self.calm else self.chance.choices((1, 0, 2), (95, 3, 2))[0]

    def _delay_ms(self) -> int:
        late = not self.calm and self.chance.random() < 0.03
        return self.chance.randint(500, 30_000) if late else self.chance.randint(1, 20)

    def _deliver(self, method: str, call: Call, on_reply: OnReply) -> None:
        outcome: Outcome = getattr(self.shard, method)(self.now_ms, call)
        if isinstance(outcome.reply, Ticket):
            self._waiting[outcome.reply] = method, call, on_reply
            self._apply(outcome)
            return
        self._apply(outcome)
        self._answer(method, call, on_reply, outcome.reply)

    def _answer(self, method: str, call: Call, on_reply: OnReply, reply: Any) -> None:
        self.witness.answered(method, call, reply)
        for _ in range(min(1, self._copies())):
            self.after(self._delay_ms(), lambda: on_reply(reply))

    # The coordinator.

    def _apply(self, outcome: Outcome) -> None:
        for record in outcome.records:
            key, value = record.encoded()
            self.log.append((key, value))
            self.shard.replay(key, value)
            self.witness.written(key, value)
        self.witness.check_owners()
        for ticket, reply in outcome.released:
            method, call, on_reply = self._waiting.pop(ticket)
            self._answer(method, call, on_reply, reply)
        self._set_alarm()

    def _set_alarm(self) -> None:
        next_ms = self.shard.next_deadline_ms
        if next_ms is not None and (self._alarm_ms is None or next_ms < self._alarm_ms):
            self._alarm_ms = next_ms
            self.after(max(0, next_ms - self.now_ms), lambda: self._alarm(next_ms))

    def _alarm(self, at_ms: int) -> None:
        if self._alarm_ms != at_ms:
            return
        self._alarm_ms = None
        self._apply(self.shard.expire(self.now_ms))

    def _load(self) -> None:
        self.shard = GroupShard(self.config, self.image, self.chance)
        for key, value in self.log:
            self.shard.replay(key, value)
        self._apply(self.shard.loaded(self.now_ms))

    def kill_coordinator(self) -> None:
        """Whoever waits hears nothing; everything is loaded again from the log."""
        self.witness.seen["coordinator killed"] += 1
        self._waiting.clear()
        self._alarm_ms = None
        self._load()

    def add_partitions(self, topic: str, more: int) -> None:
        """Grow a topic."""
        former = self.image.topics[topic]
        size = len(former.partitions)
        added = tuple(PartitionImage(index, 1, 0, (1,), (1,)) for index in range(size, size + more))
        grown = TopicImage(topic, former.topic_id, former.partitions + added)
        self.image = self.image.with_topic(grown)
        self._apply(self.shard.image_changed(self.now_ms, self.image))

    @property
    def waiting(self) -> int:
        """Requests that the coordinator still owes an answer."""
        return len(self._waiting)
