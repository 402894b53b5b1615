"""Topics as Arrow tables: whole or in part, and the same as what is read as objects."""

import asyncio
import random
from datetime import UTC, datetime
from typing import Any

import numpy
import pyarrow as pa
import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import TopicPartition as TheirPartition

from ottla import Consumer, Producer, TopicPartition, read_table
from ottla.client.cluster import Cluster
from ottla.client.errors import OffsetOutOfRangeError, RequestTimedOutError, UnknownTopicOrPartitionError
from ottla.client.options import ClientOptions
from ottla.client.ranges import RangeReader
from ottla.net import Connection
from ottla.testing import TestBroker
from ottla.wire.api.fetch import FetchRequest
from tests.peers.fixtures import Broker, NewTopicFunction

from .writing import TIMEOUT_S, write, write_transaction

FIRST_MS = 1_700_000_000_000


def table_of(broker: Broker, *arguments: Any, **options: Any) -> Any:
    story = read_table(*arguments, bootstrap_servers=broker.bootstrap_servers, **options)
    return asyncio.run(asyncio.wait_for(story, 60))


def offsets_of(broker: Broker, *arguments: Any, **options: Any) -> list[tuple[int, int]]:
    table = table_of(broker, *arguments, **options, columns=["partition", "offset"])
    return list(zip(table["partition"].to_pylist(), table["offset"].to_pylist(), strict=True))


def each(*ranges: range) -> list[tuple[int, int]]:
    return [(partition, offset) for partition, offsets in enumerate(ranges) for offset in offsets]


@pytest.fixture
def topic(broker: Broker, new_topic: NewTopicFunction) -> str:
    """Two partitions with ten records each, a second apart."""
    made = new_topic(partitions=2)
    for partition in range(2):
        values = [b"v%d" % number for number in range(10)]
        write(broker, made, values, partition, key=b"k", timestamp=FIRST_MS, apart_ms=1000)
    return made


def test_a_table_has_all_that_the_records_have(broker: Broker, topic: str) -> None:
    table = table_of(broker, topic)
    assert table.num_rows == 20
    assert table.slice(0, 1).to_pylist() == [
        {
            "topic": topic,
            "partition": 0,
            "offset": 0,
            "timestamp": datetime.fromtimestamp(FIRST_MS / 1000, UTC),
            "timestamp_type": 0,
            "key": b"k",
            "value": b"v0",
            "headers": [],
        }
    ]
    assert table["value"].to_pylist() == [b"v%d" % number for number in range(10)] * 2


def test_values_need_not_be_copied_and_can_be_sent_again(broker: Broker, new_topic: NewTopicFunction) -> None:
    topic = new_topic()
    values = [b"%d" % number * 50 for number in range(100)]
    write(broker, topic, values)
    table = table_of(broker, topic, zero_copy=True)
    assert table["value"].type == pa.binary_view()
    assert table["value"].to_pylist() == values
    assert table.drop_columns("value") == table_of(broker, topic).drop_columns("value")

    async def send_again() -> None:
        async with Producer(bootstrap_servers=broker.bootstrap_servers) as producer:
            await (await producer.send_arrow(table.select(["value"]), topic))

    asyncio.run(asyncio.wait_for(send_again(), 60))
    assert table_of(broker, topic, columns=["value"])["value"].to_pylist() == values * 2


def test_start_and_end_are_offsets_times_or_ends(broker: Broker, topic: str) -> None:
    ten = range(10)
    assert offsets_of(broker, topic) == each(ten, ten)
    assert offsets_of(broker, topic, 3, 5) == each(range(3, 5), range(3, 5))
    assert offsets_of(broker, topic, {0: 8, 1: 2}, {0: 100, 1: 4}) == each(range(8, 10), range(2, 4))
    assert offsets_of(broker, topic, numpy.int64(9)) == each(range(9, 10), range(9, 10))
    assert offsets_of(broker, topic, 4, partitions=[1]) == [(1, offset) for offset in range(4, 10)]
    third, sixth = [datetime.fromtimestamp(FIRST_MS / 1000 + seconds, UTC) for seconds in (2.5, 6)]
    assert offsets_of(broker, topic, third, sixth) == each(range(3, 6), range(3, 6))
    assert offsets_of(broker, topic, datetime(2100, 1, 1, tzinfo=UTC)) == []
    assert offsets_of(broker, topic, end=datetime(2100, 1, 1, tzinfo=UTC)) == each(ten, ten)
    assert offsets_of(broker, topic, "earliest", "latest") == each(ten, ten)
    for nothing in (("latest",), (50,), (5, 5), (7, 3), ("earliest", "earliest")):
        assert offsets_of(broker, topic, *nothing) == []


def test_a_place_that_makes_no_sense_is_refused(broker: Broker, topic: str) -> None:
    for start, reason in [
        (datetime(2024, 1, 1, tzinfo=UTC).replace(tzinfo=None), "has no timezone"),
        ("yesterday", "start is 'yesterday'; give 'earliest'"),
        ({0: 1}, "start says nothing of partition 1"),
        ({0: 1, 7: 1}, "start has 7, an int; its keys are numbers of partitions, of 0, 1 here"),
        (-5, "start is -5 in"),
        ({0: 1, 1: -5}, "start is -5 in .*-1; an offset is at least 0"),
    ]:
        with pytest.raises(ValueError, match=reason):
            table_of(broker, topic, start)
    for offset, reason in [("2", "'2', a str"), (None, "None"), (1.5, "1.5, a float")]:
        with pytest.raises(TypeError, match=f"start in {topic}-1 is {reason}; give an int"):
            table_of(broker, topic, {0: 1, 1: offset})
    with pytest.raises(ValueError, match="there is no column 'valu'"):
        table_of(broker, topic, columns=["valu"])
    with pytest.raises(UnknownTopicOrPartitionError, match=r"has no partition 7, .*; name partitions that it has"):
        table_of(broker, topic, partitions=[7])
    with pytest.raises(UnknownTopicOrPartitionError, match="there is no topic"):
        table_of(broker, f"{topic}-not")


def test_records_that_are_gone_are_missed_where_they_were_asked_for(broker: Broker, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    for future in admin.delete_records([TheirPartition(topic, 1, 4)]).values():
        future.result(TIMEOUT_S)
    assert offsets_of(broker, topic) == each(range(10), range(4, 10))
    with pytest.raises(OffsetOutOfRangeError, match=f"{topic}-1 begins at offset 4 by now, after 2"):
        table_of(broker, topic, 2)

    async def story() -> None:
        async with Cluster(ClientOptions(bootstrap_servers=broker.bootstrap_servers)) as cluster:
            reader = RangeReader(cluster, {TopicPartition(topic, 1): (2, 8)})
            with pytest.raises(OffsetOutOfRangeError, match=f"{topic}-1 at offset 2 .* from 2 to 8"):
                await anext(reader.batches())

    asyncio.run(asyncio.wait_for(story(), 60))


def test_a_range_to_the_end_of_the_log_leaves_no_fetch_behind_that_the_next_one_waits_for(
    broker: Broker, topic: str
) -> None:
    async def story() -> float:
        async with Cluster(ClientOptions(bootstrap_servers=broker.bootstrap_servers)) as cluster:
            loop = asyncio.get_running_loop()
            started = loop.time()
            for _ in range(20):
                reader = RangeReader(cluster, {TopicPartition(topic, 0): (0, 10)})
                assert sum([batch.num_rows async for batch in reader.batches()]) == 10
            return loop.time() - started

    # A fetch at the end of a log is answered after 500 ms.
    assert asyncio.run(asyncio.wait_for(story(), 60)) < 20 * 0.5


@pytest.mark.parametrize(
    ("given", "asked"),
    [
        ({}, (8 * 2**20, 8 * 2**20)),
        ({"fetch_max_bytes": 2**20}, (2**20, 2**20)),
        ({"fetch_max_bytes": 2**20, "max_partition_fetch_bytes": 2**21}, (2**20, 2**21)),
    ],
)
def test_ranges_are_fetched_in_parts_as_large_as_the_user_says(
    given: dict[str, int],
    asked: tuple[int, int],
    broker: Broker,
    topic: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found: set[tuple[int, int]] = set()
    request = Connection.request

    async def watched(self: Connection, message: object, **options: Any) -> Any:
        if isinstance(message, FetchRequest):
            found.update(
                (message.max_bytes, part.partition_max_bytes) for one in message.topics for part in one.partitions
            )
        return await request(self, message, **options)

    async def story() -> None:
        async with Cluster(ClientOptions(bootstrap_servers=broker.bootstrap_servers)) as cluster:
            reader = RangeReader(cluster, {TopicPartition(topic, 0): (0, 10)}, **given)  # type: ignore[arg-type]
            assert sum([batch.num_rows async for batch in reader.batches()]) == 10

    monkeypatch.setattr(Connection, "request", watched)
    asyncio.run(asyncio.wait_for(story(), 60))
    assert found == {asked}


def test_ranges_of_several_topics_are_read_together(broker: Broker, topic: str, new_topic: NewTopicFunction) -> None:
    other = new_topic()
    write(broker, other, [b"a", b"b", b"c"])

    async def story() -> list[tuple[str, int, int]]:
        async with Cluster(ClientOptions(bootstrap_servers=broker.bootstrap_servers)) as cluster:
            ranges = {
                TopicPartition(topic, 1): (2, 4),
                TopicPartition(other, 0): (1, 3),
                TopicPartition(topic, 0): (5, 5),
            }
            reader = RangeReader(cluster, ranges, columns=["topic", "partition", "offset"])
            rows = [row for batch in [batch async for batch in reader.batches()] for row in batch.to_pylist()]
            assert reader.schema.names == ["topic", "partition", "offset"]
            return sorted((row["topic"], row["partition"], row["offset"]) for row in rows)

    found = asyncio.run(asyncio.wait_for(story(), 60))
    assert found == sorted([(topic, 1, 2), (topic, 1, 3), (other, 0, 1), (other, 0, 2)])


def test_a_range_that_the_log_does_not_have_yet_is_not_waited_for_without_end(broker: Broker, topic: str) -> None:
    async def story() -> None:
        options = ClientOptions(bootstrap_servers=broker.bootstrap_servers, request_timeout_ms=1000)
        async with Cluster(options) as cluster:
            reader = RangeReader(cluster, {TopicPartition(topic, 0): (8, 12)}, columns=["offset"])

            async def read() -> None:
                async for batch in reader.batches():
                    seen.extend(batch["offset"].to_pylist())

            seen: list[int] = []
            with pytest.raises(RequestTimedOutError, match=f"nothing more came of {topic}-0 in 2000 ms"):
                await read()
            assert seen == [8, 9]

    asyncio.run(asyncio.wait_for(story(), 60))


def test_a_table_is_complete_where_transactions_were_aborted(
    broker: Broker, new_topic: NewTopicFunction, name: str
) -> None:
    if isinstance(broker, TestBroker):
        pytest.skip("Ottla has no transactions yet")
    topic = new_topic()
    for number, commit in enumerate([True, False, True, False]):
        values = [b"%d" % number] * 5
        write_transaction(broker, topic, values, commit=commit, name=name)
    # The log ends with the marker of a transaction that was given up.
    committed = table_of(broker, topic, isolation_level="read_committed")
    assert committed["value"].to_pylist() == [b"0"] * 5 + [b"2"] * 5
    assert table_of(broker, topic).num_rows == 20


def test_reading_columns_and_objects_can_take_turns(broker: Broker, topic: str) -> None:
    place = TopicPartition(topic, 0)

    async def story() -> None:
        async with Consumer(bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="earliest") as consumer:
            consumer.assign([place])

            async def columns(count: int) -> list[int]:
                table = await consumer.read_arrow(max_records=count, timeout_ms=5000, columns=["offset"])
                offsets: list[int] = table["offset"].to_pylist()
                assert await consumer.position(place) == offsets[-1] + 1
                return offsets

            assert await columns(2) == [0, 1]
            assert (await consumer.getone()).offset == 2
            assert await columns(3) == [3, 4, 5]
            assert [record.offset for record in (await consumer.getmany(timeout_ms=5000, max_records=2))[place]] == [
                6,
                7,
            ]
            assert await columns(2) == [8, 9]
            empty = await consumer.read_arrow()
            assert (empty.num_rows, empty.num_columns) == (0, 8)
            with pytest.raises(ValueError, match="max_records is 0"):
                await consumer.read_arrow(max_records=0)

    asyncio.run(asyncio.wait_for(story(), 60))


def test_large_reads_are_whole_though_calls_are_cancelled_and_positions_move(
    broker: Broker, new_topic: NewTopicFunction
) -> None:
    topic, count = new_topic(partitions=2), 60_000
    for partition in range(2):
        write(broker, topic, [b"%0100d" % number for number in range(count)], partition)
    places = [TopicPartition(topic, partition) for partition in range(2)]

    async def story() -> None:
        chance = random.Random(7)
        async with Consumer(bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="earliest") as consumer:
            consumer.assign(places)
            expected = dict.fromkeys(range(2), 0)
            while any(offset < count for offset in expected.values()):
                reading = asyncio.create_task(consumer.read_arrow(timeout_ms=5000))
                if chance.random() < 0.5:
                    # At any moment, also before anything was fetched.
                    await asyncio.sleep(chance.choice([0, 0.001, 0.003]))
                    reading.cancel()
                try:
                    table = await reading
                except asyncio.CancelledError:
                    continue
                for batch in table.to_batches():
                    partition, first = batch["partition"][0].as_py(), expected[batch["partition"][0].as_py()]
                    numbers = range(first, first + batch.num_rows)
                    assert batch["offset"].to_pylist() == list(numbers)
                    assert batch["value"].to_pylist() == [b"%0100d" % number for number in numbers]
                    expected[partition] = numbers.stop
                if chance.random() < 0.1:
                    back = chance.randrange(2)
                    expected[back] = max(0, expected[back] - chance.randrange(20_000))
                    consumer.seek(places[back], expected[back])
            assert [await consumer.position(place) for place in places] == [count, count]

    asyncio.run(asyncio.wait_for(story(), 120))


def test_what_the_broker_stamped_is_told_apart(broker: Broker, new_topic: NewTopicFunction) -> None:
    topic = new_topic(message_timestamp_type="LogAppendTime")
    write(broker, topic, [b"v"], timestamp=FIRST_MS)
    (row,) = table_of(broker, topic, columns=["timestamp", "timestamp_type"]).to_pylist()
    assert row["timestamp_type"] == 1
    assert row["timestamp"] > datetime.fromtimestamp(FIRST_MS / 1000, UTC)
