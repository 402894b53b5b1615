"""An immutable picture of the cluster. A change makes a new picture that shares what stayed the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from ottla.cluster.acl import ACL, Acls, ResourcePattern
from ottla.cluster.names import folded, is_internal

NO_LEADER = -1


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An address that a broker can be reached at."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class BrokerImage:
    """A broker, and the addresses that clients reach it at: one for each listener, by the listener's name.

    >>> BrokerImage(1, {"SSL": Endpoint("broker-1", 9093)}).endpoints["SSL"].port
    9093
    """

    node_id: int
    endpoints: Mapping[str, Endpoint]
    rack: str | None = None


@dataclass(frozen=True, slots=True)
class PartitionImage:
    """Who has a partition, who leads it, and who is in sync. The partition epoch counts changes of the in-sync set."""

    index: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    partition_epoch: int = 0


@dataclass(frozen=True, slots=True)
class TopicImage:
    """A topic: its partitions by index, and the configs that were set for it."""

    name: str
    topic_id: bytes
    partitions: tuple[PartitionImage, ...]
    configs: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def is_internal(self) -> bool:
        """Whether the broker itself keeps its state in it."""
        return is_internal(self.name)

    def partition(self, index: int) -> PartitionImage | None:
        """A partition, or None if there is none of that index."""
        return self.partitions[index] if 0 <= index < len(self.partitions) else None

    def with_partition(self, partition: PartitionImage) -> TopicImage:
        """The same with another state of one partition."""
        before, after = self.partitions[: partition.index], self.partitions[partition.index + 1 :]
        return replace(self, partitions=(*before, partition, *after))


@dataclass(frozen=True, slots=True)
class ClusterImage:
    """The cluster at one moment.

    >>> orders = TopicImage("orders", bytes(15) + b"1", (PartitionImage(0, 1, 0, (1,), (1,)),))
    >>> node = BrokerImage(1, {"PLAINTEXT": Endpoint("localhost", 9092)})
    >>> image = ClusterImage("cluster").with_broker(node).with_topics(orders)
    >>> image.topics["orders"] is image.topic_by_id(orders.topic_id)
    True
    >>> image.without_topic("orders").topics.get("orders"), image.partition("orders", 0).leader
    (None, 1)
    """

    cluster_id: str
    controller_id: int = NO_LEADER
    brokers: Mapping[int, BrokerImage] = field(default_factory=dict)
    topics: Mapping[str, TopicImage] = field(default_factory=dict)
    acls: Acls = field(default_factory=dict)
    """The rules of access, by the resources that they are about; no resource has none."""
    _by_id: Mapping[bytes, TopicImage] = field(default_factory=dict, repr=False)
    # Names with a dot or an underscore by what they have in common with those they would collide with.
    _by_folded: Mapping[str, str] = field(default_factory=dict, repr=False)

    def topic_by_id(self, topic_id: bytes) -> TopicImage | None:
        """The topic of that id, or None."""
        return self._by_id.get(topic_id)

    def partition(self, topic: str, index: int) -> PartitionImage | None:
        """A partition, or None if there is no such topic or index."""
        found = self.topics.get(topic)
        return found.partition(index) if found is not None else None

    def colliding_topic(self, name: str) -> str | None:
        """A topic whose name differs from this one only in dots and underscores, or None."""
        found = self._by_folded.get(folded(name))
        return found if found != name else None

    def with_topics(self, *topics: TopicImage) -> ClusterImage:
        """The same with these topics added, each in place of one of the same name if there is one."""
        by_name, by_id, by_folded = dict(self.topics), dict(self._by_id), dict(self._by_folded)
        for topic in topics:
            former = by_name.get(topic.name)
            if former is not None and former.topic_id != topic.topic_id:
                del by_id[former.topic_id]
            by_name[topic.name] = by_id[topic.topic_id] = topic
            if "_" in (key := folded(topic.name)):
                by_folded[key] = topic.name
        return replace(self, topics=by_name, _by_id=by_id, _by_folded=by_folded)

    def with_topic(self, topic: TopicImage) -> ClusterImage:
        """The same with this topic, in place of one of the same name if there is one."""
        return self.with_topics(topic)

    def without_topic(self, name: str) -> ClusterImage:
        """The same without that topic; fine if it is not there."""
        former = self.topics.get(name)
        if former is None:
            return self
        by_name, by_id, by_folded = dict(self.topics), dict(self._by_id), dict(self._by_folded)
        del by_name[name], by_id[former.topic_id]
        by_folded.pop(folded(name), None)
        return replace(self, topics=by_name, _by_id=by_id, _by_folded=by_folded)

    def with_broker(self, broker: BrokerImage) -> ClusterImage:
        """The same with this broker, in place of one of the same number if there is one."""
        return replace(self, brokers={**self.brokers, broker.node_id: broker})

    def without_broker(self, node_id: int) -> ClusterImage:
        """The same without that broker; fine if it is not there."""
        return replace(self, brokers={key: broker for key, broker in self.brokers.items() if key != node_id})

    def reached_by(self, listener: str) -> list[tuple[BrokerImage, Endpoint]]:
        """The brokers that have a listener of that name, and where it is."""
        return [
            (broker, broker.endpoints[listener]) for broker in self.brokers.values() if listener in broker.endpoints
        ]

    def with_controller(self, controller_id: int) -> ClusterImage:
        """The same with another controller."""
        return replace(self, controller_id=controller_id)

    def with_acls(self, pattern: ResourcePattern, rules: frozenset[ACL]) -> ClusterImage:
        """The same with these rules, and no others, for some resources."""
        acls = {**self.acls, pattern: rules}
        if not rules:
            del acls[pattern]
        return replace(self, acls=acls)
