"""The producer against real brokers, with what it wrote read back by confluent-kafka."""

import asyncio
import json
import zlib
from collections import Counter
from collections.abc import Callable, Coroutine
from itertools import pairwise
from typing import Any

import pytest
from kafka.partitioner import murmur2 as kafka_python_murmur2

from ottla.client.errors import (
    ClientClosedError,
    InvalidTimestampError,
    MessageSizeTooLargeError,
    UnknownTopicOrPartitionError,
)
from ottla.client.producer import Producer
from ottla.client.types import CREATE_TIME, LOG_APPEND_TIME
from ottla.wire.errors import KafkaError
from tests.peers.fixtures import Broker

from .reading import read_all, values

NewTopic = Callable[..., str]
NOW_MS = 1_700_000_000_000


def run(story: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(asyncio.wait_for(story, 60))


def producing(broker: Broker, work: Callable[[Producer], Coroutine[Any, Any, Any]], **options: Any) -> Any:
    """Do something with a producer, and stop it."""

    async def story() -> Any:
        async with Producer(bootstrap_servers=broker.bootstrap_servers, **options) as producer:
            return await work(producer)

    return run(story())


def test_a_record_is_written_as_it_was_sent(broker: Broker, new_topic: NewTopic) -> None:
    topic = new_topic()
    headers = [("trace", b"a1"), ("nothing", None), ("trace", b"a2")]

    async def work(producer: Producer) -> None:
        delivery = await producer.send(topic, b"value", b"key", timestamp_ms=NOW_MS, headers=headers)
        metadata = await delivery
        assert metadata == (topic, 0, 0, NOW_MS, CREATE_TIME)
        assert await delivery == metadata, "it may be awaited again"
        tombstone = await producer.send_and_wait(topic, None, bytearray(b"gone"), timestamp_ms=NOW_MS + 1)
        assert tombstone.offset == 1

    producing(broker, work)
    assert read_all(broker.bootstrap_servers, topic) == [
        (0, 0, b"key", b"value", (1, NOW_MS), headers),
        (0, 1, b"gone", None, (1, NOW_MS + 1), []),
    ]


@pytest.mark.parametrize("acks", ["all", -1, 1, 0])
@pytest.mark.parametrize("idempotent", [None, False])
def test_records_arrive_in_order_however_they_are_acknowledged(
    broker: Broker, new_topic: NewTopic, acks: int | str, idempotent: bool | None
) -> None:
    topic = new_topic()

    async def work(producer: Producer) -> None:
        deliveries = [await producer.send(topic, b"%d" % number, partition=0) for number in range(3000)]
        await producer.flush()
        offsets = [delivery.result().offset for delivery in deliveries]
        assert offsets == ([-1] * 3000 if acks == 0 else list(range(3000)))
        assert producer.records_sent == 3000
        while len(await asyncio.to_thread(values, broker.bootstrap_servers, topic)) < 3000:
            assert acks == 0, "what is acknowledged is there"

    producing(broker, work, acks=acks, enable_idempotence=idempotent, batch_size=1000)
    assert values(broker.bootstrap_servers, topic) == [b"%d" % number for number in range(3000)]


@pytest.mark.parametrize(
    "options",
    [
        {"compression_type": "gzip"},
        {"compression_type": "gzip", "compression_level": 9},
        {"compression_type": "snappy"},
        {"compression_type": "lz4"},
        {"compression_type": "zstd", "compression_level": 1},
        {"compression_type": "none"},
    ],
    ids=lambda options: "-".join(map(str, options.values())),
)
def test_every_codec_is_read_by_others(broker: Broker, new_topic: NewTopic, options: dict[str, Any]) -> None:
    topic = new_topic()
    sent = [b"some text that repeats itself %d" % number for number in range(500)]

    async def work(producer: Producer) -> None:
        for value in sent:
            await producer.send(topic, value)

    producing(broker, work, linger_ms=20, **options)
    assert values(broker.bootstrap_servers, topic) == sent


def test_keys_go_where_java_and_kafka_python_send_them(broker: Broker, new_topic: NewTopic) -> None:
    topic = new_topic(partitions=5)
    keys = [b"", b"a", b"21", b"foobar", b"a-little-bit-long-string", *[b"key-%d" % number for number in range(100)]]

    async def work(producer: Producer) -> None:
        for key in keys:
            metadata = await producer.send_and_wait(topic, b"v", key)
            assert metadata.partition == (kafka_python_murmur2(key) & 0x7FFFFFFF) % 5

    producing(broker, work)


def test_records_of_a_key_stay_in_order_with_others_around_them(broker: Broker, new_topic: NewTopic) -> None:
    topic = new_topic(partitions=3)

    async def work(producer: Producer) -> None:
        for number in range(6000):
            # Those without a key are in the same batches, and move from partition to partition.
            await producer.send(topic, b"%d" % number, b"%d" % (number % 5) if number % 3 else None)

    producing(broker, work, batch_size=500)
    found = read_all(broker.bootstrap_servers, topic)
    assert len(found) == 6000
    for key in range(5):
        records = [record for record in found if record.key == b"%d" % key]
        assert len({record.partition for record in records}) == 1
        expected = [number for number in range(6000) if number % 3 and number % 5 == key]
        assert [int(record.value or b"") for record in records] == expected


def test_keys_go_where_librdkafka_sends_them_with_crc32(broker: Broker, new_topic: NewTopic) -> None:
    topic = new_topic(partitions=5)

    async def work(producer: Producer) -> None:
        for number in range(50):
            key = b"key-%d" % number
            assert (await producer.send_and_wait(topic, b"v", key)).partition == zlib.crc32(key) % 5

    producing(broker, work, partitioner="crc32")


def test_records_without_a_key_fill_one_partition_after_another(broker: Broker, new_topic: NewTopic) -> None:
    topic = new_topic(partitions=3)

    async def work(producer: Producer) -> None:
        one_by_one = [(await producer.send_and_wait(topic, bytes(100))).partition for _ in range(30)]
        changes = sum(before != after for before, after in pairwise(one_by_one))
        assert 3 <= changes <= 6, "each thousand bytes or so another, however many batches that takes"
        for _ in range(3000):
            await producer.send(topic, bytes(100))

    producing(broker, work, batch_size=1000)
    counts = Counter(record.partition for record in read_all(broker.bootstrap_servers, topic))
    assert len(counts) == 3
    assert min(counts.values()) > 500


def test_round_robin_takes_turns_and_a_function_decides_by_itself(broker: Broker, new_topic: NewTopic) -> None:
    topic = new_topic(partitions=3)
    asked: list[tuple[bytes | None, list[int], list[int]]] = []

    def last(key: bytes | None, partitions: list[int], available: list[int]) -> int:
        asked.append((key, partitions, available))
        return partitions[-1]

    async def in_turn(producer: Producer) -> None:
        # Now all of them have a leader.
        for partition in range(3):
            await producer.send_and_wait(topic, b"v", partition=partition)
        found = [(await producer.send_and_wait(topic, b"v", b"the same key")).partition for _ in range(6)]
        assert sorted(found[:3]) == [0, 1, 2]
        assert found[3:] == found[:3]

    async def by_function(producer: Producer) -> None:
        assert (await producer.send_and_wait(topic, b"v", b"k")).partition == 2
        assert (await producer.send_and_wait(topic, b"v", partition=1)).partition == 1

    producing(broker, in_turn, partitioner="round_robin")
    producing(broker, by_function, partitioner=last)
    assert asked == [(b"k", [0, 1, 2], [0, 1, 2])]


def test_serializers_make_bytes_and_nothing_else_does(broker: Broker, new_topic: NewTopic) -> None:
    topic = new_topic()

    async def with_serializers(producer: Producer) -> None:
        await producer.send_and_wait(topic, {"apples": 2}, "alice")
        await producer.send_and_wait(topic, None, "bob")

    async def without(producer: Producer) -> None:
        with pytest.raises(TypeError, match="the value is of type str, not bytes: encode it, or give value_serializer"):
            await producer.send(topic, "text")
        with pytest.raises(TypeError, match="the key is of type int, not bytes: make it bytes, or give key_serializer"):
            await producer.send(topic, b"value", 5)

    options = {"key_serializer": str.encode, "value_serializer": lambda value: json.dumps(value).encode()}
    producing(broker, with_serializers, **options)
    producing(broker, without)
    found = [(record.key, record.value) for record in read_all(broker.bootstrap_servers, topic)]
    assert found == [(b"alice", b'{"apples": 2}'), (b"bob", None)]


def test_the_brokers_time_is_told_where_the_topic_wants_it(broker: Broker, new_topic: NewTopic) -> None:
    topic = new_topic(message_timestamp_type="LogAppendTime")

    async def work(producer: Producer) -> None:
        metadata = await producer.send_and_wait(topic, b"v", timestamp_ms=NOW_MS)
        assert metadata.timestamp_type == LOG_APPEND_TIME
        assert metadata.timestamp > NOW_MS

    producing(broker, work)


def test_a_record_too_large_for_a_request_is_refused_at_once(broker: Broker, new_topic: NewTopic) -> None:
    topic = new_topic()

    async def work(producer: Producer) -> None:
        with pytest.raises(MessageSizeTooLargeError, match="above max_request_size = 5000"):
            await producer.send(topic, bytes(5000))
        await producer.send_and_wait(topic, bytes(4900))

    producing(broker, work, max_request_size=5000, batch_size=1000)


def test_a_batch_too_large_for_the_topic_is_sent_in_parts(broker: Broker, new_topic: NewTopic) -> None:
    topic = new_topic(max_message_bytes=2000)
    sent = [b"%050d" % number for number in range(1000)]

    async def work(producer: Producer) -> None:
        deliveries = [await producer.send(topic, value) for value in sent]
        assert [metadata.offset for metadata in await asyncio.gather(*deliveries)] == list(range(1000))
        with pytest.raises(MessageSizeTooLargeError, match=topic):
            await producer.send_and_wait(topic, bytes(3000))

    producing(broker, work)
    assert values(broker.bootstrap_servers, topic) == sent


def test_flush_raises_what_nobody_has_awaited_and_nothing_else(broker: Broker, new_topic: NewTopic) -> None:
    topic = new_topic(max_message_bytes=1000)

    async def work(producer: Producer) -> None:
        await producer.send(topic, bytes(2000))
        with pytest.raises(MessageSizeTooLargeError):
            await producer.flush()
        await producer.flush()
        known = await producer.send(topic, bytes(2000))
        with pytest.raises(MessageSizeTooLargeError):
            await known
        await producer.flush()
        seen = await producer.send(topic, bytes(2000))
        told: list[KafkaError | None] = []
        seen.add_done_callback(lambda delivery: told.append(delivery.exception()))
        await producer.flush()
        assert [type(error) for error in told] == [MessageSizeTooLargeError]

    producing(broker, work)


def test_a_lost_record_that_nobody_awaited_is_told_at_the_end(broker: Broker, new_topic: NewTopic) -> None:
    topic = new_topic(max_message_bytes=1000)

    async def work(producer: Producer) -> None:
        await producer.send(topic, bytes(2000))

    async def work_that_fails(producer: Producer) -> None:
        await producer.send(topic, bytes(2000))
        raise RuntimeError("this comes first")

    with pytest.raises(MessageSizeTooLargeError):
        producing(broker, work)
    with pytest.raises(RuntimeError, match="this comes first"):
        producing(broker, work_that_fails)


def test_a_refusal_for_good_does_not_hold_up_what_comes_after(broker: Broker, new_topic: NewTopic) -> None:
    topic = new_topic(message_timestamp_after_max_ms=1000, message_timestamp_before_max_ms=1000)

    async def work(producer: Producer) -> None:
        for number in range(20):
            delivery = await producer.send(topic, b"old", timestamp_ms=NOW_MS if number % 2 else None)
            if number % 2:
                with pytest.raises(InvalidTimestampError):
                    await delivery
            else:
                await delivery

    producing(broker, work)
    assert len(values(broker.bootstrap_servers, topic)) == 10


def test_topics_are_made_when_they_are_first_used_and_partitions_are_told(broker: Broker, name: str) -> None:
    async def work(producer: Producer) -> None:
        assert (await producer.send_and_wait(name, b"v")).offset == 0
        assert await producer.partitions_for(name) == {0}
        with pytest.raises(UnknownTopicOrPartitionError, match="has partitions 0 to 0, not 5"):
            await producer.send(name, b"v", partition=5)

    producing(broker, work)


def test_a_producer_that_does_not_run_says_so(broker: Broker, new_topic: NewTopic) -> None:
    topic = new_topic()

    async def story() -> None:
        producer = Producer(bootstrap_servers=broker.bootstrap_servers)
        with pytest.raises(ClientClosedError, match=r"start\(\) it"):
            await producer.send(topic, b"v")
        assert await producer.start() is producer
        await producer.send_and_wait(topic, b"v")
        await producer.close()
        await producer.stop()
        with pytest.raises(ClientClosedError):
            await producer.send(topic, b"v")
        await producer.start()
        assert (await producer.send_and_wait(topic, b"v")).offset == 1
        await producer.stop()

    run(story())


def test_many_tasks_share_a_producer(broker: Broker, new_topic: NewTopic) -> None:
    topic = new_topic(partitions=4)

    async def work(producer: Producer) -> None:
        async def one(task: int) -> None:
            for number in range(50):
                await producer.send_and_wait(topic, b"%d" % number, b"%d" % task)

        await asyncio.gather(*[one(task) for task in range(20)])

    producing(broker, work)
    by_task: dict[bytes | None, list[bytes | None]] = {}
    for record in read_all(broker.bootstrap_servers, topic):
        by_task.setdefault(record.key, []).append(record.value)
    assert len(by_task) == 20
    assert all(found == [b"%d" % number for number in range(50)] for found in by_task.values())


def test_a_little_memory_is_enough_for_many_records(broker: Broker, new_topic: NewTopic) -> None:
    topic = new_topic(partitions=10)

    async def work(producer: Producer) -> None:
        for number in range(5000):
            await producer.send(topic, b"%0100d" % number, b"%d" % number)

    # Ten batches would take 160 KB, and linger for ever.
    producing(broker, work, buffer_memory=64 * 1024, linger_ms=60_000, max_block_ms=20_000)
    found = [int(record.value or b"") for record in read_all(broker.bootstrap_servers, topic)]
    assert sorted(found) == list(range(5000))
