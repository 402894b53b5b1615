"""What clients are given and give back: places in topics, records, and what is known about them."""

from collections.abc import Sequence
from typing import Any, NamedTuple

NO_TIMESTAMP_TYPE, CREATE_TIME, LOG_APPEND_TIME = -1, 0, 1
"""Whose clock a record's timestamp is of: nobody's, the producer's, the broker's."""


class TopicPartition(NamedTuple):
    """A partition of a topic.

    >>> print(TopicPartition("orders", 3))
    orders-3
    """

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class OffsetAndMetadata(NamedTuple):
    """A position in a partition as a group commits it: the offset of the next record to read, and a note.

    >>> OffsetAndMetadata(17)
    OffsetAndMetadata(offset=17, metadata='', leader_epoch=-1)
    """

    offset: int
    metadata: str = ""
    leader_epoch: int = -1
    """The epoch of the record before it, -1 if that is not known."""


class OffsetAndTimestamp(NamedTuple):
    """Where the first record at or after a time is, and its own time in milliseconds.

    >>> OffsetAndTimestamp(offset=17, timestamp=1_700_000_000_000).offset
    17
    """

    offset: int
    timestamp: int
    leader_epoch: int = -1


class RecordMetadata(NamedTuple):
    """Where a record that was sent has gone.

    >>> RecordMetadata("orders", 3, 17, 1_700_000_000_000, CREATE_TIME).topic_partition
    TopicPartition(topic='orders', partition=3)
    """

    topic: str
    partition: int
    offset: int
    """-1 where the broker was not asked to acknowledge it (acks=0)."""
    timestamp: int
    timestamp_type: int

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition.

        >>> print(RecordMetadata("orders", 3, 17, 1_700_000_000_000, CREATE_TIME).topic_partition)
        orders-3
        """
        return TopicPartition(self.topic, self.partition)


class ConsumerRecord(NamedTuple):
    """A record with where it came from. Key and value are bytes unless the consumer has deserializers.

    >>> record = ConsumerRecord("orders", 3, 17, 1_700_000_000_000, CREATE_TIME, b"k", b"v", [("trace", b"a1")])
    >>> record.offset, record.value
    (17, b'v')
    """

    topic: str
    partition: int
    offset: int
    timestamp: int
    """Milliseconds since 1970."""
    timestamp_type: int
    """0: by its producer; 1: by the broker; -1: it has none."""
    key: Any
    value: Any
    headers: Sequence[tuple[str, bytes | None]]

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition.

        >>> print(ConsumerRecord("orders", 3, 17, 1_700_000_000_000, CREATE_TIME, b"k", b"v", ()).topic_partition)
        orders-3
        """
        return TopicPartition(self.topic, self.partition)
