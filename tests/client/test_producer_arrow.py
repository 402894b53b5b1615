"""Whole tables into topics."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pyarrow as pa
import pytest

from ottla.client.errors import MessageSizeTooLargeError, UnknownTopicOrPartitionError
from ottla.client.producer import Producer
from ottla.client.producer.partitioners import crc32_partition, murmur2_partition
from ottla.client.types import TopicPartition
from tests.faults import FaultProxy
from tests.peers.fixtures import Broker

from .reading import read_all, values

NewTopic = Callable[..., str]
NOW_MS = 1_700_000_000_000


def producing(servers: str, work: Callable[[Producer], Coroutine[Any, Any, Any]], **options: Any) -> Any:
    async def story() -> Any:
        async with Producer(bootstrap_servers=servers, **options) as producer:
            return await work(producer)

    return asyncio.run(asyncio.wait_for(story(), 60))


@pytest.mark.parametrize("compression_type", [None, "lz4"])
def test_rows_are_written_with_all_their_columns(
    broker: Broker, new_topic: NewTopic, compression_type: str | None
) -> None:
    topic = new_topic()
    table = pa.table(
        {
            "key": pa.array([b"a", None], pa.binary()),
            "value": ["one", None],
            "timestamp": pa.array([NOW_MS, NOW_MS + 1], pa.timestamp("ms", "UTC")),
            "headers": pa.array(
                [[{"key": "h", "value": b"v"}], []],
                pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
            ),
            # Where it was when it was read is no part of a record.
            "offset": [17, 18],
            "topic": ["elsewhere", "elsewhere"],
        }
    )

    async def work(producer: Producer) -> None:
        delivery = await producer.send_arrow(table, topic)
        assert await delivery == (2, {TopicPartition(topic, 0): (0, 1)})
        assert delivery.done()
        assert await delivery == delivery.result()

    producing(broker.bootstrap_servers, work, compression_type=compression_type)
    assert read_all(broker.bootstrap_servers, topic) == [
        (0, 0, b"a", b"one", (1, NOW_MS), [("h", b"v")]),
        (0, 1, None, None, (1, NOW_MS + 1), []),
    ]


@pytest.mark.parametrize("partitioner", ["murmur2", "crc32"])
def test_rows_go_where_single_records_would_go_and_stay_in_order(
    broker: Broker, new_topic: NewTopic, partitioner: str
) -> None:
    topic = new_topic(partitions=4)
    keys = [None if number % 7 == 0 else b"key-%d" % (number % 20) for number in range(20_000)]
    table = pa.table(
        {"key": pa.array(keys, pa.binary()), "value": pa.array([b"%d" % number for number in range(20_000)])}
    )

    async def work(producer: Producer) -> None:
        metadata = await (await producer.send_arrow(table, topic))
        assert metadata.rows == 20_000
        assert sum(last - first + 1 for first, last in metadata.offsets.values()) == 20_000

    producing(broker.bootstrap_servers, work, partitioner=partitioner, batch_size=5_000, max_request_size=10_000)
    partition_of = {"murmur2": murmur2_partition, "crc32": crc32_partition}[partitioner]
    found = read_all(broker.bootstrap_servers, topic)
    assert len(found) == 20_000
    assert len({record.partition for record in found if record.key is None}) > 1
    last: dict[bytes, int] = {}
    for record in found:
        number = int(record.value or b"")
        assert record.key == keys[number]
        if record.key is not None:
            assert record.partition == partition_of(record.key, 4)
            assert last.get(record.key, -1) < number
            last[record.key] = number


def test_columns_name_topic_and_partition_row_by_row(broker: Broker, new_topic: NewTopic) -> None:
    one, two = new_topic(partitions=2), new_topic(partitions=2)
    table = pa.table(
        {
            "topic": [one, two, one, two],
            "partition": pa.array([1, 0, 0, None], pa.int64()),
            "key": ["k", "k", "k", "k"],
            "value": ["a", "b", "c", "d"],
        }
    )

    async def work(producer: Producer) -> None:
        await (await producer.send_arrow(table))
        await (await producer.send_arrow(table.slice(0, 1).to_batches()[0], two, partition=1))
        with pytest.raises(UnknownTopicOrPartitionError, match="has partitions 0 to 1, not 5"):
            await producer.send_arrow(pa.table({"partition": [0, 5], "value": ["x", "y"]}), one)
        with pytest.raises(ValueError, match="give a topic, or a column 'topic'"):
            await producer.send_arrow(pa.table({"value": ["x"]}))
        with pytest.raises(ValueError, match="column 'topic' has nulls"):
            await producer.send_arrow(pa.table({"topic": [None, one], "value": ["x", "y"]}))
        with pytest.raises(ValueError, match="the table has a column 'colour'; columns may be"):
            await producer.send_arrow(pa.table({"colour": ["red"], "value": ["x"]}), one)
        assert (await (await producer.send_arrow(pa.table({"value": pa.array([], pa.binary())}), one))).rows == 0

    producing(broker.bootstrap_servers, work)
    found = [(record.partition, record.value) for record in read_all(broker.bootstrap_servers, one)]
    assert found == [(0, b"c"), (1, b"a")]
    by_key = murmur2_partition(b"k", 2)
    expected = sorted([(0, b"b"), (by_key, b"d"), (1, b"a")])
    assert sorted((record.partition, record.value) for record in read_all(broker.bootstrap_servers, two)) == expected


def test_a_table_larger_than_the_memory_is_sent_batch_by_batch(broker: Broker, new_topic: NewTopic) -> None:
    topic = new_topic(partitions=3)
    rows = [b"%0200d" % number for number in range(20_000)]
    table = pa.table({"key": rows, "value": rows})

    async def work(producer: Producer) -> None:
        delivery = await producer.send_arrow(table, topic)
        await producer.flush()
        assert delivery.result().rows == 20_000

    options = {"buffer_memory": 100_000, "batch_size": 20_000, "linger_ms": 10_000}
    producing(broker.bootstrap_servers, work, **options)
    assert sorted(values(broker.bootstrap_servers, topic), key=lambda value: value or b"") == rows


def test_a_function_and_round_robin_decide_for_rows_too(broker: Broker, new_topic: NewTopic) -> None:
    topic = new_topic(partitions=3)
    table = pa.table({"key": ["1", "2", "1"], "value": ["a", "b", "c"]})

    async def work(producer: Producer) -> None:
        await (await producer.send_arrow(table, topic))

    producing(broker.bootstrap_servers, work, partitioner=lambda key, partitions, available: int(key))
    found = [(record.partition, record.value) for record in read_all(broker.bootstrap_servers, topic)]
    assert found == [(1, b"a"), (1, b"c"), (2, b"b")]


def test_a_failure_that_nobody_asked_for_is_raised_by_flush(broker: Broker, new_topic: NewTopic) -> None:
    topic = new_topic(max_message_bytes=1000)
    table = pa.table({"value": ["fits", "x" * 3000, "fits too"]})

    async def work(producer: Producer) -> None:
        await producer.send_arrow(table, topic)
        with pytest.raises(MessageSizeTooLargeError):
            await producer.flush()
        delivery = await producer.send_arrow(table, topic)
        with pytest.raises(MessageSizeTooLargeError):
            await delivery
        await producer.flush()
        with pytest.raises(MessageSizeTooLargeError, match="above max_request_size"):
            await producer.send_arrow(pa.table({"value": ["x" * 2_000_000]}), topic)

    producing(broker.bootstrap_servers, work)
    assert values(broker.bootstrap_servers, topic) == [b"fits", b"fits too"] * 2


def test_random_faults_cost_no_row_and_double_none(broker: Broker, new_topic: NewTopic) -> None:
    topic = new_topic(partitions=2)
    rows = [b"%d" % number for number in range(30_000)]
    table = pa.table({"key": rows, "value": rows})

    async def work(producer: Producer) -> None:
        proxy.random_faults(5, 0.2)
        await (await producer.send_arrow(table, topic))
        proxy.calm()

    with FaultProxy(broker.bootstrap_servers) as proxy:
        options = {"batch_size": 2_000, "max_request_size": 4_000, "retry_backoff_ms": 5, "reconnect_backoff_ms": 5}
        producing(proxy.bootstrap_servers, work, **options)
        assert proxy.faults.total() > 3, proxy.report()
    found = read_all(broker.bootstrap_servers, topic)
    for partition in range(2):
        expected = [row for row in rows if murmur2_partition(row, 2) == partition]
        assert [record.value for record in found if record.partition == partition] == expected
