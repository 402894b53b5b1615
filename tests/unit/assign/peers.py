"""kafka-python's and aiokafka's own assignors, asked as their group leaders ask them."""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import aiokafka.coordinator.assignors.range
import aiokafka.coordinator.assignors.roundrobin
import aiokafka.coordinator.assignors.sticky.sticky_assignor
import kafka.coordinator.assignors.cooperative_sticky
import kafka.coordinator.assignors.range
import kafka.coordinator.assignors.roundrobin
import kafka.coordinator.assignors.sticky.sticky_assignor
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment, ConsumerProtocolMemberMetadata
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription

from ottla.assign.assignor import AnyMember
from ottla.assign.classic import encode_subscription

from .groups import Assignment

AIOKAFKA: dict[str, Any] = {
    "range": aiokafka.coordinator.assignors.range.RangePartitionAssignor,
    "roundrobin": aiokafka.coordinator.assignors.roundrobin.RoundRobinPartitionAssignor,
    "sticky": aiokafka.coordinator.assignors.sticky.sticky_assignor.StickyPartitionAssignor,
}
KAFKA_PYTHON: dict[str, Any] = {
    "range": kafka.coordinator.assignors.range.RangePartitionAssignor,
    "roundrobin": kafka.coordinator.assignors.roundrobin.RoundRobinPartitionAssignor,
    "sticky": kafka.coordinator.assignors.sticky.sticky_assignor.StickyPartitionAssignor,
    "cooperative-sticky": kafka.coordinator.assignors.cooperative_sticky.CooperativeStickyAssignor,
}


class Cluster:
    """What their assignors want to know of a cluster."""

    def __init__(self, partition_counts: Mapping[str, int]) -> None:
        self._counts = partition_counts

    def topics(self) -> set[str]:
        return set(self._counts)

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        return set(range(self._counts[topic])) if topic in self._counts else None


def aiokafka_leads(name: str, subscriptions: Mapping[str, bytes], partition_counts: Mapping[str, int]) -> Assignment:
    """From the bytes in the reply to JoinGroup to the bytes in SyncGroup, and what they say."""
    metadata = {
        member_id: ConsumerProtocolMemberMetadata.decode(data) for member_id, data in sorted(subscriptions.items())
    }
    answer = AIOKAFKA[name].assign(Cluster(partition_counts), metadata)
    return {member_id: aiokafka_reads(assignment.encode()) for member_id, assignment in answer.items()}


def aiokafka_reads(assignment: bytes) -> dict[str, tuple[int, ...]]:
    """The partitions that a member takes from an assignment."""
    return _by_topic(ConsumerProtocolMemberAssignment.decode(assignment).partitions())


def kafka_python_leads(
    name: str,
    subscriptions: Mapping[str, bytes],
    partition_counts: Mapping[str, int],
    instance_ids: Mapping[str, str | None] | None = None,
) -> Assignment:
    """As `aiokafka_leads`."""
    members = [
        SimpleNamespace(
            member_id=member_id,
            group_instance_id=(instance_ids or {}).get(member_id),
            metadata=ConsumerProtocolSubscription.decode(data),
        )
        for member_id, data in subscriptions.items()
    ]
    answer = KAFKA_PYTHON[name]().assign(Cluster(partition_counts), members)
    return {member_id: kafka_python_reads(assignment.encode()) for member_id, assignment in answer.items()}


def kafka_python_reads(assignment: bytes) -> dict[str, tuple[int, ...]]:
    """The partitions that a member takes from an assignment."""
    return _by_topic(ConsumerProtocolAssignment.decode(assignment).partitions())


def aiokafka_assigns(name: str, members: Mapping[str, AnyMember], partition_counts: Mapping[str, int]) -> Assignment:
    """What aiokafka's leader gives to members that own nothing."""
    return aiokafka_leads(name, _subscriptions(members), partition_counts)


def kafka_python_assigns(
    name: str, members: Mapping[str, AnyMember], partition_counts: Mapping[str, int]
) -> Assignment:
    """What kafka-python's leader gives to members that own nothing."""
    instance_ids = {member_id: member.instance_id for member_id, member in members.items()}
    return kafka_python_leads(name, _subscriptions(members), partition_counts, instance_ids)


def _subscriptions(members: Mapping[str, AnyMember]) -> dict[str, bytes]:
    return {member_id: encode_subscription(member.topics) for member_id, member in members.items()}


def _by_topic(partitions: list[Any]) -> dict[str, tuple[int, ...]]:
    found: dict[str, list[int]] = {}
    for topic, index in partitions:
        found.setdefault(topic, []).append(index)
    return {topic: tuple(sorted(indexes)) for topic, indexes in found.items()}
