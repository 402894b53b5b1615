"""The client against a broker in memory that offers whatever versions a test wants."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from ottla.client.cluster import Cluster
from ottla.client.consumer import Consumer
from ottla.client.errors import (
    UnsupportedCompressionTypeError,
    UnsupportedForMessageFormatError,
    UnsupportedVersionError,
)
from ottla.client.offsets import LATEST, list_offsets
from ottla.client.options import ClientOptions
from ottla.client.producer import Producer
from ottla.client.producer.partitioners import murmur2_partition
from ottla.client.types import TopicPartition
from ottla.net import ConnectionLostError
from ottla.record import Batch, Codec
from ottla.record.kernels import murmur2
from ottla.wire.errors import ErrorCode, KafkaError

from .fake_broker import FakeBroker

NOW_MS = 1_700_000_000_000


def run(story: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(asyncio.wait_for(story, 20))


async def read_all(broker: FakeBroker, topic: str) -> list[Any]:
    servers = broker.bootstrap
    async with Consumer(bootstrap_servers=servers, auto_offset_reset="earliest", fetch_max_wait_ms=50) as consumer:
        consumer.assign([TopicPartition(topic, number) for number in await consumer.partitions_for_topic(topic)])
        ends = await consumer.end_offsets(consumer.assignment())
        found: list[Any] = []
        while any([await consumer.position(one) < end for one, end in ends.items()]):
            for records in (await consumer.getmany(timeout_ms=100)).values():
                found += records
    return sorted(found, key=lambda record: (record.partition, record.offset))


# Produce and Fetch in the versions where their formats change, with the other requests at their oldest and newest.
@pytest.mark.parametrize(
    "newest",
    [{0: 0, 1: 0, 2: 0, 3: 0, 18: 0}, {0: 2, 1: 2, 2: 1, 3: 1}, {0: 3, 1: 4, 3: 4}, {0: 8, 1: 11}, {0: 12, 1: 12}, {}],
    ids=lambda newest: f"Produce v{newest.get(0, 13)}, Fetch v{newest.get(1, 18)}",
)
def test_records_come_back_through_every_format(newest: dict[int, int]) -> None:
    codec = Codec.GZIP

    async def story(broker: FakeBroker) -> None:
        async with Producer(bootstrap_servers=broker.bootstrap, compression_type=codec.name.lower()) as producer:
            for number in range(100):
                key = None if number % 3 else b"key-%d" % number
                await producer.send("t", b"value-%d" % number, key, timestamp_ms=NOW_MS + number)
            await producer.flush()
            assert producer.records_sent == 100
            found = await read_all(broker, "t")
            assert {record.value for record in found} == {b"value-%d" % number for number in range(100)}
            for record in found:
                number = int((record.value or b"").split(b"-")[1])
                assert record.key == (None if number % 3 else b"key-%d" % number)
                assert record.timestamp == (-1 if newest.get(0) == 0 else NOW_MS + number)
                assert record.topic == "t"

    with FakeBroker(newest) as broker:
        run(story(broker))
        used = dict(broker.requests)
        assert used["Produce"] == broker.versions[0]
        assert used["Fetch"] == broker.versions[1]


@pytest.mark.parametrize("codec", Codec, ids=lambda codec: codec.name.lower())
def test_every_codec_and_headers_make_the_round_trip(codec: Codec) -> None:
    async def story(broker: FakeBroker) -> None:
        async with Producer(bootstrap_servers=broker.bootstrap, compression_type=codec.name.lower()) as producer:
            await producer.send("t", b"value" * 1000, None, partition=2, headers=[("a", b"b"), ("n", None)])
            await producer.send("t", None, b"tombstone", partition=2)
            await producer.flush()
            first, second = await read_all(broker, "t")
            assert (first.partition, first.value, tuple(first.headers)) == (
                2,
                b"value" * 1000,
                (("a", b"b"), ("n", None)),
            )
            assert (second.offset, second.key, second.value) == (1, b"tombstone", None)

    with FakeBroker() as broker:
        run(story(broker))
        assert Batch(broker.topics["t"].logs[2][0]).codec is codec


def test_keys_go_where_java_sends_them() -> None:
    # From Kafka's own tests of its hash.
    known = {b"21": -973932308, b"foobar": -790332482, b"a-little-bit-long-string": -985981536, b"abc": 479470107}
    for key, expected in known.items():
        assert murmur2(key) == expected & 0xFFFFFFFF
        assert murmur2_partition(key, 4) == (expected & 0x7FFFFFFF) % 4


def test_records_without_a_key_are_spread_over_partitions_batch_by_batch() -> None:
    async def story(broker: FakeBroker) -> None:
        async with Producer(bootstrap_servers=broker.bootstrap, batch_size=1000) as producer:
            # Partitions are chosen by chance: a dozen batches leave one of four out now and then, a hundred never.
            for _ in range(1000):
                await producer.send("t", bytes(100))
            await producer.flush()

    with FakeBroker() as broker:
        run(story(broker))
        assert all(broker.topics["t"].logs)
        assert sum(Batch(raw).count for log in broker.topics["t"].logs for raw in log) == 1000


def test_a_retriable_error_is_tried_again_and_another_is_raised() -> None:
    async def story(broker: FakeBroker) -> None:
        async with Producer(bootstrap_servers=broker.bootstrap, retry_backoff_ms=1) as producer:
            broker.failures[0] = [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_ENOUGH_REPLICAS]
            await producer.send("t", b"once", partition=0)
            await producer.flush()
            broker.failures[0] = [ErrorCode.MESSAGE_TOO_LARGE]
            await producer.send("t", b"never", partition=0)
            with pytest.raises(KafkaError, match="MESSAGE_TOO_LARGE: t-0"):
                await producer.flush()
            broker.failures[1] = [ErrorCode.NOT_LEADER_OR_FOLLOWER]
            broker.failures[2] = [ErrorCode.LEADER_NOT_AVAILABLE]
            assert [record.value for record in await read_all(broker, "t")] == [b"once"]

    with FakeBroker() as broker:
        run(story(broker))


def test_without_acknowledgement_nothing_is_waited_for() -> None:
    async def story(broker: FakeBroker) -> None:
        async with Producer(bootstrap_servers=broker.bootstrap, acks=0) as producer:
            await producer.send("t", b"v")
            await producer.flush()
            assert [record.value for record in await read_all(broker, "t")] == [b"v"]

    with FakeBroker() as broker:
        run(story(broker))


def test_a_topic_that_does_not_exist_is_said_within_a_second_or_two() -> None:
    async def story(broker: FakeBroker) -> None:
        async with Producer(bootstrap_servers=broker.bootstrap) as producer:
            started = asyncio.get_running_loop().time()
            with pytest.raises(KafkaError, match="UNKNOWN_TOPIC_OR_PARTITION: there is no topic 'nope'"):
                await producer.send("nope", b"v")
            assert asyncio.get_running_loop().time() - started < 15

    with FakeBroker(auto_create=False) as broker:
        run(story(broker))


def test_a_topic_that_has_no_leader_yet_is_waited_for() -> None:
    async def story(broker: FakeBroker) -> None:
        async with Cluster(ClientOptions(bootstrap_servers=broker.bootstrap)) as cluster:
            broker.failures[3] = [ErrorCode.LEADER_NOT_AVAILABLE] * 2
            assert await cluster.partitions("t", create=True) == [0, 1, 2, 3]

    with FakeBroker() as broker:
        run(story(broker))


def test_a_partition_that_does_not_exist_is_named() -> None:
    async def story(broker: FakeBroker) -> None:
        async with Cluster(ClientOptions(bootstrap_servers=broker.bootstrap)) as cluster:
            await cluster.topic("t", create=True)
            with pytest.raises(KafkaError, match="has no partition 9"):
                await list_offsets(cluster, {TopicPartition("t", 9): LATEST})

    with FakeBroker() as broker:
        run(story(broker))


def test_an_offset_out_of_range_is_said_with_the_place() -> None:
    async def story(broker: FakeBroker) -> None:
        broker.create("t")
        partition = TopicPartition("t", 0)
        async with Consumer(bootstrap_servers=broker.bootstrap, auto_offset_reset="none") as consumer:
            consumer.assign([partition])
            consumer.seek(partition, 17)
            with pytest.raises(KafkaError, match="OFFSET_OUT_OF_RANGE: t-0 at offset 17"):
                await consumer.getone()

    with FakeBroker() as broker:
        run(story(broker))


def test_headers_and_zstd_are_refused_where_the_broker_is_too_old_for_them() -> None:
    async def story(broker: FakeBroker) -> None:
        async with Producer(bootstrap_servers=broker.bootstrap) as producer:
            with pytest.raises(UnsupportedForMessageFormatError, match="too old for headers"):
                await producer.send_and_wait("t", b"v", headers=[("a", b"b")])
            await producer.send_and_wait("t", b"v")
        async with Producer(bootstrap_servers=broker.bootstrap, compression_type="zstd") as producer:
            with pytest.raises(UnsupportedCompressionTypeError, match="too old for zstd"):
                await producer.send_and_wait("t", b"v")

    with FakeBroker({0: 2}) as broker:
        run(story(broker))


def test_a_broker_without_identities_gets_records_without_numbers_unless_these_were_asked_for(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def story(broker: FakeBroker) -> None:
        async with Producer(bootstrap_servers=broker.bootstrap) as producer:
            await producer.send_and_wait("t", b"v", partition=0)
        with pytest.raises(UnsupportedVersionError, match="too old for enable_idempotence=True"):
            await Producer(bootstrap_servers=broker.bootstrap, enable_idempotence=True).start()

    caplog.set_level("INFO")
    with FakeBroker() as broker:
        run(story(broker))
        assert Batch(broker.topics["t"].logs[0][0]).producer_id == -1
    said = [record.message for record in caplog.records if "idempotent writes" in record.message]
    assert len(said) == 1


def test_offsets_are_found_by_time() -> None:
    async def story(broker: FakeBroker) -> None:
        async with Producer(bootstrap_servers=broker.bootstrap) as producer:
            for number in range(3):
                await producer.send_and_wait("t", b"v", partition=1, timestamp_ms=NOW_MS + 1000 * number)
        async with Cluster(ClientOptions(bootstrap_servers=broker.bootstrap)) as cluster:
            partition = TopicPartition("t", 1)
            assert await list_offsets(cluster, {partition: NOW_MS + 500}) == {partition: 1}
            assert await list_offsets(cluster, {partition: NOW_MS + 5000}) == {partition: -1}

    with FakeBroker() as broker:
        run(story(broker))


def test_the_second_bootstrap_address_serves_if_the_first_does_not() -> None:
    async def story(broker: FakeBroker) -> None:
        async with Cluster(ClientOptions(bootstrap_servers=f"127.0.0.1:1,{broker.bootstrap}")) as cluster:
            assert (await cluster.metadata(None)).topics == []
        async with Cluster(ClientOptions(bootstrap_servers="127.0.0.1:1,127.0.0.1:2")) as cluster:
            with pytest.raises(ConnectionLostError, match=r"127\.0\.0\.1:1: .*127\.0\.0\.1:2: "):
                await cluster.metadata(None)

    with FakeBroker() as broker:
        run(story(broker))


@pytest.mark.parametrize("text", ["", "host:", "host:port", ":9092", "host:70000", "a:1,,b:2"])
def test_a_bootstrap_address_that_makes_no_sense_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no address; write HOST:PORT"):
        Cluster(ClientOptions(bootstrap_servers=text))
