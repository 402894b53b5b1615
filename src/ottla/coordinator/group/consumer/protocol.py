"""What classic consumers put into JoinGroup and find in SyncGroup, between topic names and topic ids."""

from collections.abc import Iterable

from ottla.cluster.image import ClusterImage
from ottla.coordinator.group.consumer import partitions
from ottla.coordinator.group.consumer.partitions import Partitions
from ottla.wire.embedded import decode_versioned, encode_versioned, read_prefix
from ottla.wire.embedded.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
)
from ottla.wire.schema import schema_of

CONSUMER = "consumer"
"""The protocol type."""


def subscription(metadata: bytes) -> ConsumerProtocolSubscription:
    """What a consumer says of itself; ProtocolError if it cannot be read."""
    return decode_versioned(ConsumerProtocolSubscription, metadata, from_the_future=True)


def by_id(topics: Iterable[TopicPartition], image: ClusterImage) -> Partitions:
    """Partitions by topic id. Topics that are gone are left out."""
    found: dict[bytes, set[int]] = {}
    for topic in topics:
        known = image.topics.get(topic.topic)
        if known is not None:
            found.setdefault(known.topic_id, set()).update(topic.partitions)
    return {topic_id: tuple(sorted(indexes)) for topic_id, indexes in found.items() if indexes}


def given(assignment: bytes, image: ClusterImage) -> Partitions:
    """What an assignment gives; nothing is given by no bytes at all. ProtocolError if it cannot be read."""
    if not assignment:
        return partitions.NONE
    decoded = decode_versioned(ConsumerProtocolAssignment, assignment, from_the_future=True)
    return by_id(decoded.assigned_partitions, image)


def assignment_bytes(held: Partitions, image: ClusterImage, metadata: bytes) -> bytes:
    """An assignment in the version in which a member's own metadata is written."""
    topics = [(image.topic_by_id(topic_id), indexes) for topic_id, indexes in held.items()]
    message = ConsumerProtocolAssignment(
        assigned_partitions=[
            TopicPartition(topic=topic.name, partitions=list(indexes)) for topic, indexes in topics if topic is not None
        ]
    )
    newest = schema_of(ConsumerProtocolAssignment).versions.last
    return encode_versioned(message, min(max(read_prefix(metadata), 0), newest) if metadata else 0)
