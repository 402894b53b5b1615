"""Which partition a record goes to."""

import zlib
from collections import Counter

import pytest
from kafka.partitioner import murmur2 as kafka_python_murmur2

from ottla.client.errors import UnknownTopicOrPartitionError
from ottla.client.picture import Leader, Topic
from ottla.client.producer.accumulator import PartitionQueue
from ottla.client.producer.partitioners import PartitionerFunction, Routes, crc32_partition, murmur2_partition
from ottla.client.types import TopicPartition
from ottla.sim import SimChance

BATCH_SIZE = 1000


class Queues(dict[TopicPartition, PartitionQueue]):
    def __missing__(self, partition: TopicPartition) -> PartitionQueue:
        made = self[partition] = PartitionQueue(partition, BATCH_SIZE, idempotent=False)
        return made


def topic_of(*leaders: int) -> Topic:
    return Topic("t", bytes(16), False, {number: Leader(node) for number, node in enumerate(leaders)}, 0.0)


def routes_of(partitioner: str | PartitionerFunction, *leaders: int) -> Routes:
    return Routes(topic_of(*leaders), partitioner, Queues().__getitem__, SimChance(1))


def test_hashes_agree_with_kafka_python_and_zlib() -> None:
    for number in range(200):
        key = b"k" * (number % 9) + b"%d" % number
        assert murmur2_partition(key, 7) == (kafka_python_murmur2(key) & 0x7FFFFFFF) % 7
        assert crc32_partition(key, 7) == zlib.crc32(key) % 7


def test_a_key_keeps_its_partition_though_that_has_no_leader() -> None:
    routes = routes_of("murmur2", -1, -1, -1)
    for number in range(20):
        key = b"%d" % number
        assert routes.of(key, None).partition.partition == murmur2_partition(key, 3)


def test_records_without_a_key_go_to_partitions_that_have_a_leader() -> None:
    routes = routes_of("murmur2", 1, -1, 1, -1)
    seen = set()
    for _ in range(20):
        queue = routes.of(None, None)
        seen.add(queue.partition.partition)
        queue.bytes_closed += BATCH_SIZE
    assert seen == {0, 2}


def test_they_stay_until_the_partition_has_its_share_and_move_when_it_loses_its_leader() -> None:
    routes = routes_of("murmur2", 1, 1, 1)
    first = routes.of(None, None)
    first.bytes_closed += BATCH_SIZE - 1
    assert routes.of(None, None) is first
    first.bytes_closed += 1
    second = routes.of(None, None)
    assert second is not first
    routes.topic.leaders[second.partition.partition] = Leader()
    assert routes.of(None, None) is not second


def test_all_partitions_get_about_as_much() -> None:
    routes = routes_of("sticky", *[1] * 5)
    counts: Counter[int] = Counter()
    for _ in range(1000):
        queue = routes.of(b"a key counts for nothing", None)
        counts[queue.partition.partition] += 1
        queue.bytes_closed += BATCH_SIZE
    assert min(counts.values()) > 150


def test_an_empty_key_is_one_to_java_and_none_to_librdkafka() -> None:
    assert not routes_of("murmur2", 1, 1).is_free(b"")
    assert routes_of("crc32", 1, 1).is_free(b"")
    assert not routes_of("crc32", 1, 1).is_free(b"k")
    assert routes_of("sticky", 1, 1).is_free(b"k")
    assert not routes_of("round_robin", 1, 1).is_free(None)


def test_new_partitions_are_used_once_they_are_known() -> None:
    routes = routes_of("murmur2", 1)
    assert routes.of(b"key", None).partition.partition == 0
    with pytest.raises(UnknownTopicOrPartitionError, match="has partitions 0 to 0, not 3"):
        routes.of(b"key", 3)
    routes.take(topic_of(1, 1, 1, 1))
    assert routes.of(b"key", 3).partition.partition == 3
    assert routes.of(b"key", None).partition.partition == murmur2_partition(b"key", 4)


def test_a_function_is_asked_with_all_partitions_and_those_that_have_a_leader() -> None:
    asked: list[tuple[bytes | None, list[int], list[int]]] = []

    def second(key: bytes | None, partitions: list[int], available: list[int]) -> int:
        asked.append((key, partitions, available))
        return 1

    routes = routes_of(second, 1, -1, 1)
    assert routes.current is None
    assert routes.of(None, None).partition.partition == 1
    assert asked == [(None, [0, 1, 2], [0, 2])]


def test_a_function_that_names_no_partition_is_told_so() -> None:
    with pytest.raises(UnknownTopicOrPartitionError, match="not 17"):
        routes_of(lambda key, partitions, available: 17, 1, 1).of(b"k", None)
