"""Which partition a record goes to."""

from collections.abc import Callable, Sequence
from typing import Literal, SupportsIndex
from zlib import crc32

from ottla.client.checks import shown
from ottla.client.errors import UnknownTopicOrPartitionError
from ottla.client.picture import NO_LEADER, Topic
from ottla.client.producer.accumulator import PartitionQueue
from ottla.client.types import TopicPartition
from ottla.ports import Chance
from ottla.record.kernels import murmur2

PartitionerFunction = Callable[[bytes | None, list[int], list[int]], int]
"""Called with the key, all partitions and those that have a leader; gives the partition."""

CHOOSE_ANOTHER = "name one of these, or none so that the partitioner chooses, or add some with Admin.create_partitions"

NAMES = ("murmur2", "crc32", "sticky", "round_robin")


def murmur2_partition(key: bytes, partition_count: int) -> int:
    """Where Java's clients, and those that agree with them, send a key.

    >>> murmur2_partition(b"kafka", 7)
    3
    """
    return (murmur2(key) & 0x7FFFFFFF) % partition_count


def crc32_partition(key: bytes, partition_count: int) -> int:
    """Where librdkafka's clients send a key unless told otherwise.

    >>> crc32_partition(b"kafka", 7)
    6
    """
    return crc32(key) % partition_count


Method = Literal["murmur2", "crc32"]
_BY_KEY: dict[str, tuple[Method, Callable[[bytes, int], int]]] = {
    "murmur2": ("murmur2", murmur2_partition),
    "crc32": ("crc32", crc32_partition),
}


class Routes:
    """The partitions of one topic, and which of them is whose.

    Records without a key stay with one partition until it has got `batch_size` bytes, then go to another: batches are
    full, and all partitions get as much. Only partitions that have a leader are chosen for them.
    """

    __slots__ = (
        "_by_key",
        "_chance",
        "_queue_of",
        "_sticky_from",
        "_turn",
        "current",
        "function",
        "is_complete",
        "method",
        "partitions",
        "queues",
        "topic",
    )

    def __init__(
        self,
        topic: Topic,
        partitioner: str | PartitionerFunction,
        queue_of: Callable[[TopicPartition], PartitionQueue],
        chance: Chance,
    ) -> None:
        self.function: PartitionerFunction | None = partitioner if callable(partitioner) else None
        """What chooses for every record, whether it has a key or not."""
        self.method: Method | None = None
        """By which hash a key is given its partition."""
        self._by_key: Callable[[bytes, int], int] | None = None
        if isinstance(partitioner, str) and partitioner in _BY_KEY:
            self.method, self._by_key = _BY_KEY[partitioner]
        if partitioner == "round_robin":
            self.function = self._round_robin
        self._queue_of = queue_of
        self._chance = chance
        self._turn = int(chance.uniform(0, 2**31))
        self._sticky_from = 0
        self.current: PartitionQueue | None = None
        """Where records without a key go now; None if the partitioner wants to be asked for each."""
        self.topic = topic
        self.is_complete = False
        """Whether all partitions had a leader when the topic was described."""
        self.partitions: list[int] = []
        self.queues: list[PartitionQueue] = []
        self.take(topic)

    def take(self, topic: Topic) -> None:
        """Take a newer description of the topic."""
        self.topic = topic
        self.partitions = topic.partitions
        self.queues = [self._queue_of(TopicPartition(topic.name, number)) for number in self.partitions]
        self.is_complete = all(leader.node_id != NO_LEADER for leader in topic.leaders.values())
        if self.function is None:
            self.stick()

    def of(self, key: bytes | None, partition: int | None) -> PartitionQueue:
        """The queue that a record goes to."""
        if partition is not None:
            return self.named(partition)
        if self.function is not None:
            choice = self.function(key, self.partitions, self._available())
            return self.named(choice, "have the partitioner give one of these")
        if self._by_key is None or key is None or self._is_none(key):
            return self.stick()
        return self.queues[self._by_key(key, len(self.queues))]

    def is_free(self, key: bytes | None) -> bool:
        """Whether a record may go to any partition, unless one is named."""
        return self.function is None and (self._by_key is None or key is None or self._is_none(key))

    def _is_none(self, key: bytes) -> bool:
        """Whether a key counts as none: librdkafka takes an empty one for that."""
        return not key and self.method == "crc32"

    def stick(self) -> PartitionQueue:
        """Where records without a key go: to another partition than before if that has got its share."""
        current = self.current
        if current is None or self._has_its_share(current):
            available = self._available()
            others = [number for number in available if current is None or number != current.partition.partition]
            choice = self._pick(others or available)
            self.current = current = self._queue_of(TopicPartition(self.topic.name, choice))
            self._sticky_from = _bytes_taken(current)
        return current

    def _has_its_share(self, queue: PartitionQueue) -> bool:
        leader = self.topic.leaders.get(queue.partition.partition)
        if leader is None or leader.node_id == NO_LEADER:
            return True
        return _bytes_taken(queue) - self._sticky_from >= queue.batch_size

    def _available(self) -> list[int]:
        leaders = self.topic.leaders
        return [number for number in self.partitions if leaders[number].node_id != NO_LEADER] or self.partitions

    def _pick(self, partitions: Sequence[int]) -> int:
        return partitions[min(int(self._chance.uniform(0, len(partitions))), len(partitions) - 1)]

    def _round_robin(self, key: bytes | None, partitions: list[int], available: list[int]) -> int:
        self._turn += 1
        return available[self._turn % len(available)]

    def named(self, partition: int, advice: str = CHOOSE_ANOTHER) -> PartitionQueue:
        """The queue of a partition; the advice is for one that does not exist."""
        # To ask for a protocol takes longer than all the rest, and most are plain ints.
        if type(partition) is not int and not isinstance(partition, SupportsIndex):
            raise TypeError(f"partition is {shown(partition)}; give an int")
        if partition not in self.topic.leaders:
            raise UnknownTopicOrPartitionError(
                f"topic {self.topic.name!r} has partitions 0 to {len(self.partitions) - 1}, not {partition!r}", advice
            )
        return self._queue_of(TopicPartition(self.topic.name, partition))


def _bytes_taken(queue: PartitionQueue) -> int:
    unfinished = 0 if queue.open is None or queue.open.builder is None else queue.open.builder.batch_size
    return queue.bytes_closed + unfinished
