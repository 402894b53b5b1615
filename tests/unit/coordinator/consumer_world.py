"""Members of one group of the consumer protocol, and the shard and the broker around it."""

from collections.abc import Iterable
from typing import Any

from ottla.config.broker import BrokerConfig
from ottla.coordinator.group.consumer import ConsumerGroup
from ottla.coordinator.group.shard import GroupShard
from ottla.sim.chance import SimChance
from ottla.wire.api.consumer_group_describe import ConsumerGroupDescribeRequest, DescribedGroup
from ottla.wire.api.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from ottla.wire.errors import ErrorCode

from .harness import Answer, Harness
from .topics import image_of, topic

REBALANCE_MS = 60_000
SESSION_MS = 45_000
INTERVAL_MS = 5_000

Held = set[tuple[str, int]]
"""Partitions by topic name and index."""


class ConsumerWorld(Harness[GroupShard]):
    """A shard under test with topics, by default "orders" of four partitions. Settings have underscores."""

    def __init__(self, topics: dict[str, int] | None = None, **settings: Any) -> None:
        named = {name.replace("_", "."): str(value) for name, value in settings.items()}
        self.config = BrokerConfig({"group.initial.rebalance.delay.ms": "0", **named})
        self._chance = SimChance("consumer")
        self._topic_numbers: dict[str, int] = {}
        self.image = image_of()
        for name, count in ({"orders": 4} if topics is None else topics).items():
            self.image = self.image.with_topics(topic(name, count, self._number(name)))
        super().__init__(lambda: GroupShard(self.config, self.image, self._chance))

    def _number(self, name: str) -> int:
        self._topic_numbers[name] = max(self._topic_numbers.values(), default=0) + 1
        return self._topic_numbers[name]

    def create(self, name: str, count: int) -> None:
        """A topic is made, with an id that none had before."""
        self._change(self.image.with_topics(topic(name, count, self._number(name))))

    def grow(self, name: str, count: int) -> None:
        self._change(self.image.with_topics(topic(name, count, self._topic_numbers[name])))

    def delete(self, name: str) -> None:
        self._change(self.image.without_topic(name))

    def _change(self, image: Any) -> None:
        self.image = image
        self._apply(self.subject.image_changed(self.now_ms, image))

    @property
    def group(self) -> ConsumerGroup:
        group = self.subject._groups["group"]
        assert isinstance(group, ConsumerGroup)
        return group

    @property
    def state(self) -> str:
        return self.described().group_state

    def described(self) -> DescribedGroup:
        request = ConsumerGroupDescribeRequest(group_ids=["group"])
        described: DescribedGroup = self.ask(self.subject.consumer_group_describe, request, 1).reply.groups[0]
        return described

    def beat(self, version: int = 1, **fields: Any) -> Answer:
        """Send a heartbeat as it is."""
        request = ConsumerGroupHeartbeatRequest(group_id="group", **fields)
        return self.ask(self.subject.consumer_group_heartbeat, request, version)

    def named(self, partitions: Iterable[TopicPartitions]) -> Held:
        held: Held = set()
        for one in partitions:
            found = self.image.topic_by_id(one.topic_id)
            name = found.name if found is not None else one.topic_id.hex()
            held |= {(name, index) for index in one.partitions}
        return held

    def settle(self, *consumers: "Consumer") -> None:
        """All give signs of life until there is nothing left to do."""
        for _ in range(2 * len(consumers) + 2):
            for consumer in consumers:
                consumer.beat()
        assert self.state == "Stable"


class Consumer:
    """A well-behaved client of the consumer protocol: it gives up what it loses at once, and says so."""

    def __init__(self, world: ConsumerWorld, member_id: str, *topics: str, **fields: Any) -> None:
        self.world = world
        self.member_id = member_id
        self.instance_id: str | None = fields.pop("instance_id", None)
        self.fields = {"subscribed_topic_names": list(topics or ("orders",)), **fields}
        self.epoch = 0
        self.held: Held = set()
        self._owned: list[TopicPartitions] = []
        self._told: list[TopicPartitions] | None = None

    def join(self) -> "Consumer":
        """Join, or join anew, with nothing."""
        self.epoch, self.held, self._owned, self._told = 0, set(), [], None
        full = {"rebalance_timeout_ms": REBALANCE_MS, "topic_partitions": [], **self.fields}
        self.take(self.send(**full))
        return self

    def beat(self, **fields: Any) -> Answer:
        """Give a sign of life; what was gained or lost since the last one is said."""
        if "topic_partitions" not in fields and self._told != self._owned:
            fields["topic_partitions"] = self._owned
        answer = self.send(**fields)
        self.take(answer)
        return answer

    def send(self, **fields: Any) -> Answer:
        """A heartbeat whose answer is not looked at: it may be lost."""
        fields.setdefault("member_epoch", self.epoch)
        return self.world.beat(member_id=self.member_id, instance_id=self.instance_id, **fields)

    def take(self, answer: Answer) -> None:
        """An answer has arrived."""
        assert answer.error is ErrorCode.NONE, answer.reply
        self.epoch = answer.reply.member_epoch
        self._told = self._owned
        if answer.reply.assignment is not None:
            self._owned = answer.reply.assignment.topic_partitions
            self.held = self.world.named(self._owned)

    def leave(self) -> Answer:
        return self.send(member_epoch=-1)
