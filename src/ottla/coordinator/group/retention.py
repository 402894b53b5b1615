"""Which committed offsets have had their time.

As in Kafka since 2.1: offsets are kept as long as the group is in use, and `offsets.retention.minutes` longer. What a
member reads never expires; of a group with members only those topics expire that nobody is subscribed to any more, and
only where the subscriptions can be known.
"""

from ottla.coordinator.group.classic import ClassicState
from ottla.coordinator.group.consumer import ConsumerGroup
from ottla.coordinator.group.offsets import NO_TIMESTAMP, Committed, Offsets, removed
from ottla.coordinator.group.register import AnyGroup
from ottla.coordinator.outcome import Record

CONSUMER_PROTOCOL_TYPE = "consumer"
MS_PER_MINUTE = 60_000


def expired(
    group: AnyGroup, offsets: Offsets, topic: str, partitions: list[int], now_ms: int, retention_minutes: int
) -> list[Record]:
    """Records that remove what has expired of a group's offsets for these partitions of a topic."""
    if not _knows_what_it_reads(group) or group.is_subscribed(topic):
        return []
    oldest_ms = now_ms - retention_minutes * MS_PER_MINUTE
    empty_since_ms = group.empty_since_ms
    return [
        removed(group.group_id, topic, partition)
        for partition in partitions
        if (committed := offsets.find(group.group_id, topic, partition)) is not None
        and _is_over(committed, empty_since_ms, now_ms, oldest_ms)
    ]


def _knows_what_it_reads(group: AnyGroup) -> bool:
    if isinstance(group, ConsumerGroup) or group.is_empty or not group.protocol_type:
        return True
    return group.protocol_type == CONSUMER_PROTOCOL_TYPE and group.state is ClassicState.STABLE


def _is_over(committed: Committed, empty_since_ms: int | None, now_ms: int, oldest_ms: int) -> bool:
    if committed.expire_timestamp_ms != NO_TIMESTAMP:
        return now_ms >= committed.expire_timestamp_ms
    # An offset that was set by hand after the members had gone starts its own time.
    return max(committed.commit_timestamp_ms, empty_since_ms or 0) <= oldest_ms
