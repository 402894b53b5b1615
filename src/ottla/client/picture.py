"""What a client remembers of a cluster: its brokers, its topics, and who leads which partition."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from ottla.client.types import TopicPartition
from ottla.wire.api.metadata import MetadataResponse, MetadataResponseTopic

NO_TOPIC_ID = bytes(16)
NO_LEADER = -1


class Leader(NamedTuple):
    """Who leads a partition, and since which election."""

    node_id: int = NO_LEADER
    epoch: int = -1


class _Endpoint(Protocol):
    node_id: int
    host: str
    port: int


@dataclass(slots=True)
class Topic:
    """A topic as it was last described."""

    name: str
    topic_id: bytes
    is_internal: bool
    leaders: dict[int, Leader]
    """By partition."""
    seen_at: float
    """When it was described, by the event loop's clock."""

    @property
    def partitions(self) -> list[int]:
        """Its partitions, in order."""
        return sorted(self.leaders)


@dataclass(slots=True)
class Picture:
    """The cluster as last described; newer answers are painted over it.

    >>> from ottla.wire.api.metadata import MetadataResponseBroker, MetadataResponsePartition
    >>> picture = Picture()
    >>> server = MetadataResponseBroker(node_id=5, host="broker-5", port=9092)
    >>> partition = MetadataResponsePartition(partition_index=0, leader_id=5, leader_epoch=2)
    >>> topic = MetadataResponseTopic(name="orders", partitions=[partition])
    >>> picture.take(MetadataResponse(brokers=[server], topics=[topic]), 0.0)
    >>> picture.leader(TopicPartition("orders", 0)), picture.brokers[5]
    (Leader(node_id=5, epoch=2), ('broker-5', 9092))
    """

    brokers: dict[int, tuple[str, int]] = field(default_factory=dict)
    controller_id: int = NO_LEADER
    cluster_id: str | None = None
    topics: dict[str, Topic] = field(default_factory=dict)
    _names: dict[bytes, str] = field(default_factory=dict)

    def take(self, response: MetadataResponse, now: float) -> None:
        """Take what a broker says. Topics with an error are left as they were: the error is the caller's to look at."""
        self.brokers = {broker.node_id: (broker.host, broker.port) for broker in response.brokers}
        self.controller_id = response.controller_id
        self.cluster_id = response.cluster_id
        for topic in response.topics:
            if topic.name is not None and not topic.error_code:
                self._take_topic(topic, topic.name, now)

    def _take_topic(self, described: MetadataResponseTopic, name: str, now: float) -> None:
        before = self.topics.get(name)
        leaders = {one.partition_index: Leader(one.leader_id, one.leader_epoch) for one in described.partitions}
        if before is not None and before.topic_id == described.topic_id:
            # A broker that is behind may still tell of an election before the one that is known.
            for index, known in before.leaders.items():
                if index in leaders and 0 <= leaders[index].epoch < known.epoch:
                    leaders[index] = known
        elif before is not None:
            self._names.pop(before.topic_id, None)
        self.topics[name] = Topic(name, described.topic_id, described.is_internal, leaders, now)
        if described.topic_id != NO_TOPIC_ID:
            self._names[described.topic_id] = name

    def leader(self, partition: TopicPartition) -> Leader | None:
        """Who leads a partition; None if the partition is not known, NO_LEADER in it if it has none just now."""
        topic = self.topics.get(partition.topic)
        return None if topic is None else topic.leaders.get(partition.partition)

    def forget_leader(self, partition: TopicPartition) -> None:
        """Have it asked again who leads a partition."""
        topic = self.topics.get(partition.topic)
        if topic is not None and partition.partition in topic.leaders:
            topic.leaders[partition.partition] = Leader()

    def forget_topic(self, name: str) -> None:
        """Have a topic described again before it is used next."""
        topic = self.topics.pop(name, None)
        if topic is not None:
            self._names.pop(topic.topic_id, None)

    def take_hint(self, partition: TopicPartition, leader: Leader, endpoints: Iterable[_Endpoint]) -> bool:
        """Take the new leader that came with a refusal; False if it is not newer than what is known."""
        topic = self.topics.get(partition.topic)
        known = None if topic is None else topic.leaders.get(partition.partition)
        for endpoint in endpoints:
            self.brokers[endpoint.node_id] = (endpoint.host, endpoint.port)
        if topic is None or known is None or leader.node_id not in self.brokers or leader.epoch <= known.epoch:
            return False
        topic.leaders[partition.partition] = leader
        return True

    def topic_id(self, name: str) -> bytes:
        """A topic's id, zeros if the cluster has none or it is not known."""
        topic = self.topics.get(name)
        return NO_TOPIC_ID if topic is None else topic.topic_id

    def topic_name(self, topic_id: bytes) -> str:
        """The name of a topic whose id has been seen, or nothing."""
        return self._names.get(topic_id, "")
