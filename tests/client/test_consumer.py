"""Reading records by partitions: from where, how many, and what happens when something is in the way."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from datetime import UTC, datetime
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from confluent_kafka.cimpl import TopicPartition as TheirPartition

from ottla import Admin, Consumer, ConsumerRecord, TopicPartition
from ottla import NewTopic as NewTopicOfOurs
from ottla.client.errors import (
    ClientClosedError,
    IllegalStateError,
    KafkaError,
    NoOffsetForPartitionError,
    OffsetOutOfRangeError,
    RecordDeserializationError,
    TopicAlreadyExistsError,
    UnknownTopicOrPartitionError,
)
from ottla.testing import TestBroker
from tests.peers.fixtures import Broker, NewTopicFunction
from tests.waiting import eventually

from .writing import TIMEOUT_S, write, write_transaction

QUICK: dict[str, Any] = {"auto_offset_reset": "earliest", "fetch_max_wait_ms": 100}


def values_of(count: int, prefix: str = "value") -> list[bytes]:
    return [f"{prefix} {number}".encode() for number in range(count)]


def read(
    broker: Broker, work: Callable[[Consumer], Awaitable[Any]], partitions: list[TopicPartition], **options: Any
) -> Any:
    """What a story gives that is told a consumer with these partitions."""

    async def story() -> Any:
        async with Consumer(bootstrap_servers=broker.bootstrap_servers, **{**QUICK, **options}) as consumer:
            consumer.assign(partitions)
            return await work(consumer)

    return asyncio.run(asyncio.wait_for(story(), 60))


async def take(consumer: Consumer, count: int) -> list[ConsumerRecord]:
    found: list[ConsumerRecord] = []
    async for record in consumer:
        found.append(record)
        if len(found) == count:
            return found
    raise AssertionError(f"iteration ended after {len(found)} of {count}")


def test_all_partitions_are_read_each_in_order(broker: Broker, new_topic: NewTopicFunction) -> None:
    topic = new_topic(partitions=3)
    places = [TopicPartition(topic, number) for number in range(3)]
    for place in places:
        write(broker, topic, values_of(500), partition=place.partition, batch_num_messages=50)

    async def story(consumer: Consumer) -> None:
        found = await take(consumer, 1500)
        for place in places:
            of_place = [record for record in found if record.topic_partition == place]
            assert [record.offset for record in of_place] == list(range(500))
            assert [record.value for record in of_place] == values_of(500)
            assert await consumer.position(place) == 500
            assert consumer.highwater(place) == 500

    read(broker, story, places)


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_records_have_all_that_was_written(broker: Broker, new_topic: NewTopicFunction, codec: str) -> None:
    topic = new_topic()
    headers = [("trace", b"a1"), ("empty", b""), ("none", None)]
    write(
        broker,
        topic,
        [b"v" * 100, None, b""],
        key=b"k",
        headers=headers,
        timestamp=1_700_000_000_123,
        compression_type=codec,
    )

    async def story(consumer: Consumer) -> None:
        first, tombstone, empty = await take(consumer, 3)
        assert first == (topic, 0, 0, 1_700_000_000_123, 0, b"k", b"v" * 100, tuple(headers))
        assert (tombstone.value, empty.value) == (None, b"")

    read(broker, story, [TopicPartition(topic, 0)])


def test_getmany_gives_what_is_there_and_no_more_than_asked_for(broker: Broker, new_topic: NewTopicFunction) -> None:
    topic = new_topic(partitions=2)
    places = [TopicPartition(topic, 0), TopicPartition(topic, 1)]
    for place in places:
        write(broker, topic, values_of(100), partition=place.partition)

    async def story(consumer: Consumer) -> None:
        seen: dict[TopicPartition, list[int]] = {place: [] for place in places}
        while sum(map(len, seen.values())) < 200:
            found = await consumer.getmany(timeout_ms=20_000, max_records=30)
            assert 0 < sum(map(len, found.values())) <= 30
            for place, records in found.items():
                seen[place] += [record.offset for record in records]
                assert await consumer.position(place) == records[-1].offset + 1
        assert seen == {place: list(range(100)) for place in places}
        assert await consumer.getmany() == {}
        assert await consumer.poll(timeout_ms=10) == {}
        with pytest.raises(ValueError, match="max_records is 0"):
            await consumer.getmany(max_records=0)

    read(broker, story, places)


def test_one_partition_can_be_asked_for(broker: Broker, new_topic: NewTopicFunction) -> None:
    topic = new_topic(partitions=2)
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    write(broker, topic, values_of(10, "first"), partition=0)
    write(broker, topic, values_of(10, "second"), partition=1)

    async def story(consumer: Consumer) -> None:
        assert [(await consumer.getone(second)).value for _ in range(10)] == values_of(10, "second")
        assert await consumer.getmany(second, timeout_ms=10) == {}
        assert [(await consumer.getone(first)).offset for _ in range(3)] == [0, 1, 2]
        found = await consumer.getmany(first, timeout_ms=20_000)
        assert [record.offset for record in found[first]] == [3, 4, 5, 6, 7, 8, 9]

    read(broker, story, [first, second])


def test_positions_can_be_set_also_in_the_middle_of_an_iteration(broker: Broker, new_topic: NewTopicFunction) -> None:
    topic = new_topic()
    place = TopicPartition(topic, 0)
    write(broker, topic, values_of(20))

    async def story(consumer: Consumer) -> None:
        seen: list[int] = []
        async for record in consumer:
            seen.append(record.offset)
            if len(seen) == 3:
                consumer.seek(place, 15)
            if len(seen) == 6:
                break
        assert seen == [0, 1, 2, 15, 16, 17]
        assert await consumer.position(place) == 18
        await consumer.seek_to_beginning()
        assert (await consumer.getone()).offset == 0
        await consumer.seek_to_end(place)
        assert await consumer.position(place) == 20
        assert await consumer.getmany(timeout_ms=50) == {}
        write(broker, topic, [b"new"])
        assert (await consumer.getone()).value == b"new"

    read(broker, story, [place])


def test_a_paused_partition_rests_and_loses_nothing(broker: Broker, new_topic: NewTopicFunction) -> None:
    topic = new_topic(partitions=2)
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    for place in (first, second):
        write(broker, topic, values_of(50), partition=place.partition)

    async def story(consumer: Consumer) -> None:
        seen: dict[TopicPartition, list[int]] = {first: [], second: []}
        async for record in consumer:
            seen[record.topic_partition].append(record.offset)
            if record.topic_partition == first and not consumer.paused():
                consumer.pause(first)
            if len(seen[second]) == 50:
                break
        assert seen == {first: [0], second: list(range(50))}
        assert await consumer.getmany(timeout_ms=50) == {}
        consumer.resume(first)
        assert [(await consumer.getone()).offset for _ in range(49)] == list(range(1, 50))

    read(broker, story, [first, second])


def test_offsets_are_found_by_time_and_at_the_ends(broker: Broker, new_topic: NewTopicFunction) -> None:
    topic = new_topic()
    place = TopicPartition(topic, 0)
    write(broker, topic, [b"v"] * 3, timestamp=1_700_000_000_000, apart_ms=1000)

    async def story(consumer: Consumer) -> None:
        assert await consumer.beginning_offsets([place]) == {place: 0}
        assert await consumer.end_offsets([place]) == {place: 3}
        found = (await consumer.offsets_for_times({place: 1_700_000_000_500}))[place]
        assert found is not None
        assert (found.offset, found.timestamp) == (1, 1_700_000_001_000)
        time = datetime.fromtimestamp(1_700_000_000.5, UTC)
        assert await consumer.offsets_for_times({place: time}) == {place: found}
        assert await consumer.offsets_for_times({place: 1_800_000_000_000}) == {place: None}

    read(broker, story, [place])


def test_a_position_outside_the_log_is_reset_or_an_error(broker: Broker, new_topic: NewTopicFunction) -> None:
    topic = new_topic()
    place = TopicPartition(topic, 0)
    write(broker, topic, values_of(3))

    async def reset(consumer: Consumer) -> None:
        consumer.seek(place, 100)
        assert (await consumer.getone()).offset == 0

    async def refused(consumer: Consumer) -> None:
        for _ in range(2):
            with pytest.raises(NoOffsetForPartitionError, match=r"no position to begin .* seek to an offset"):
                await consumer.getone()
        consumer.seek(place, 100)
        for _ in range(2):
            with pytest.raises(OffsetOutOfRangeError, match="at offset 100"):
                await consumer.getone()
        consumer.seek(place, 2)
        assert (await consumer.getone()).offset == 2

    read(broker, reset, [place])
    read(broker, refused, [place], auto_offset_reset="none")


def test_records_that_were_deleted_are_not_waited_for(broker: Broker, new_topic: NewTopicFunction) -> None:
    topic = new_topic()
    place = TopicPartition(topic, 0)
    write(broker, topic, values_of(10))
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    for future in admin.delete_records([TheirPartition(topic, 0, 7)]).values():
        future.result(TIMEOUT_S)

    async def story(consumer: Consumer) -> None:
        assert await consumer.beginning_offsets([place]) == {place: 7}
        consumer.seek(place, 3)
        assert (await consumer.getone()).offset == 7

    read(broker, story, [place])


def test_what_deserializers_make_is_what_the_user_gets(broker: Broker, new_topic: NewTopicFunction) -> None:
    topic = new_topic()
    place = TopicPartition(topic, 0)
    write(broker, topic, [b"1", b"2", b"three", b"4"], key=b"k")

    async def story(consumer: Consumer) -> None:
        assert [(record.key, record.value) for record in await take(consumer, 2)] == [("k", 1), ("k", 2)]
        for _ in range(2):
            with pytest.raises(RecordDeserializationError, match=f"offset 2 of {topic}-0: ValueError"):
                await consumer.getone()
        consumer.seek(place, 3)
        assert (await consumer.getone()).value == 4

    read(broker, story, [place], key_deserializer=bytes.decode, value_deserializer=int)


def test_a_call_that_is_cancelled_takes_nothing(broker: Broker, new_topic: NewTopicFunction) -> None:
    topic = new_topic()
    place = TopicPartition(topic, 0)

    async def story(consumer: Consumer) -> None:
        for call in (consumer.getone, lambda: consumer.read_arrow(max_records=10, timeout_ms=60_000)):
            waiting = asyncio.create_task(call())
            await asyncio.sleep(0.05)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
        write(broker, topic, values_of(5))
        waiting = asyncio.create_task(consumer.read_arrow(max_records=10, timeout_ms=60_000))
        while consumer.highwater(place) != 5:
            await asyncio.sleep(0.01)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert [record.offset for record in await take(consumer, 5)] == [0, 1, 2, 3, 4]

    read(broker, story, [place])


def test_iteration_ends_after_a_time_without_records_if_asked_to(broker: Broker, new_topic: NewTopicFunction) -> None:
    topic = new_topic()
    write(broker, topic, values_of(3))

    async def story(consumer: Consumer) -> None:
        # With it come the others, so that they are at hand however long that took.
        assert (await consumer.getone()).offset == 0
        assert [record.offset async for record in consumer] == [1, 2]
        with pytest.raises(StopAsyncIteration):
            await anext(consumer)

    read(broker, story, [TopicPartition(topic, 0)], consumer_timeout_ms=500)


def test_small_buffers_change_nothing_but_the_pace(broker: Broker, new_topic: NewTopicFunction) -> None:
    topic = new_topic(partitions=3)
    places = [TopicPartition(topic, number) for number in range(3)]
    for place in places:
        write(broker, topic, [b"x" * 1000] * 200, partition=place.partition, batch_num_messages=10)

    async def story(consumer: Consumer) -> None:
        found = await take(consumer, 600)
        for place in places:
            offsets = [record.offset for record in found if record.topic_partition == place]
            assert offsets == list(range(200))

    read(broker, story, places, buffer_memory=30_000, max_partition_fetch_bytes=5_000, fetch_max_bytes=10_000)


def test_a_record_larger_than_a_fetch_is_read_nevertheless(broker: Broker, new_topic: NewTopicFunction) -> None:
    topic = new_topic()
    write(broker, topic, [b"x" * 100_000, b"small"])

    async def story(consumer: Consumer) -> None:
        large, small = await take(consumer, 2)
        assert (len(large.value), small.value) == (100_000, b"small")

    read(broker, story, [TopicPartition(topic, 0)], max_partition_fetch_bytes=1000, fetch_max_bytes=1000)


def test_what_is_aborted_is_not_read_where_only_what_is_committed_is_wanted(
    broker: Broker, new_topic: NewTopicFunction, name: str
) -> None:
    if isinstance(broker, TestBroker):
        pytest.skip("Ottla has no transactions yet")
    topic = new_topic()
    place = TopicPartition(topic, 0)
    write_transaction(broker, topic, values_of(50, "first"), commit=True, name=f"{name}-1")
    write_transaction(broker, topic, values_of(50, "second"), commit=False, name=f"{name}-2")
    write(broker, topic, values_of(10, "third"))
    write_transaction(broker, topic, values_of(50, "fourth"), commit=False, name=f"{name}-1")
    write_transaction(broker, topic, values_of(50, "fifth"), commit=True, name=f"{name}-2")
    wanted = values_of(50, "first") + values_of(10, "third") + values_of(50, "fifth")

    async def story(consumer: Consumer) -> None:
        assert [record.value for record in await take(consumer, 110)] == wanted
        # The last offset is that of a marker.
        while await consumer.position(place) < 214:
            assert await consumer.getmany(timeout_ms=50) == {}
        assert await consumer.getmany(timeout_ms=200) == {}
        assert await consumer.position(place) == (await consumer.end_offsets([place]))[place] == 214
        assert consumer.last_stable_offset(place) == 214
        await consumer.seek_to_beginning()
        found: list[bytes] = []
        while len(found) < len(wanted):
            # Those that were aborted count among the 110.
            table = await consumer.read_arrow(max_records=110, timeout_ms=5000, columns=["value"])
            found += table["value"].to_pylist()
        assert found == wanted
        # From the middle of an aborted transaction on.
        consumer.seek(place, 60)
        assert (await consumer.getone()).value == b"third 0"

    async def everything(consumer: Consumer) -> None:
        assert len(await take(consumer, 210)) == 210

    read(broker, story, [place], isolation_level="read_committed", fetch_max_bytes=1000)
    read(broker, everything, [place])


def test_without_a_group_all_partitions_of_topics_are_read_and_nothing_is_committed(
    broker: Broker, new_topic: NewTopicFunction
) -> None:
    topic = new_topic(partitions=3)
    for partition in range(3):
        write(broker, topic, values_of(5), partition=partition)

    async def story() -> None:
        async with Consumer(topic, bootstrap_servers=broker.bootstrap_servers, **QUICK) as consumer:
            assert len(await take(consumer, 15)) == 15
            assert {place.partition for place in consumer.assignment()} == {0, 1, 2}
            assert await consumer.partitions_for_topic(topic) == {0, 1, 2}
            assert topic in await consumer.topics()
            with pytest.raises(IllegalStateError, match=r"commit\(\) needs a group; give the consumer a group_id"):
                await consumer.commit()
            with pytest.raises(IllegalStateError, match="group_id"):
                await consumer.committed(TopicPartition(topic, 0))
            consumer.unsubscribe()
            assert consumer.assignment() == frozenset()

    asyncio.run(asyncio.wait_for(story(), 60))


def test_topics_that_match_a_pattern_are_found_as_they_come(broker: Broker, name: str) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})

    def create(topic: str) -> None:
        admin.create_topics([NewTopic(topic, num_partitions=1)])[topic].result(TIMEOUT_S)
        write(broker, topic, [topic.encode()])

    async def story() -> None:
        options = {**QUICK, "metadata_max_age_ms": 200}
        async with Consumer(bootstrap_servers=broker.bootstrap_servers, **options) as consumer:
            create(f"{name}-one")
            consumer.subscribe(pattern=f"{name}-(one|two)")
            assert (await consumer.getone()).value == f"{name}-one".encode()
            create(f"{name}-three")
            create(f"{name}-two")
            assert (await consumer.getone()).value == f"{name}-two".encode()
            assert consumer.subscription() == {f"{name}-one", f"{name}-two"}

    asyncio.run(asyncio.wait_for(story(), 60))


def test_a_topic_may_be_created_after_it_was_subscribed_to(broker: Broker, name: str) -> None:
    async def story() -> None:
        options = {**QUICK, "allow_auto_create_topics": False}
        async with Consumer(name, bootstrap_servers=broker.bootstrap_servers, **options) as consumer:
            assert await consumer.getmany(timeout_ms=300) == {}
            with pytest.raises(UnknownTopicOrPartitionError):
                await consumer.partitions_for_topic(name)
            admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
            admin.create_topics([NewTopic(name, num_partitions=2)])[name].result(TIMEOUT_S)
            write(broker, name, [b"v"], partition=1)
            assert (await consumer.getone()).value == b"v"

    asyncio.run(asyncio.wait_for(story(), 60))


def test_a_consumer_that_does_not_run_says_so(broker: Broker, new_topic: NewTopicFunction) -> None:
    topic = new_topic()

    async def story() -> None:
        consumer = Consumer(topic, bootstrap_servers=broker.bootstrap_servers)
        with pytest.raises(ClientClosedError, match=r"start it with start\(\)"):
            await consumer.getone()
        await consumer.start()
        waiting = asyncio.create_task(consumer.getone())
        iterating = asyncio.create_task(take(consumer, 1))
        await asyncio.sleep(0.05)
        await consumer.stop()
        with pytest.raises(ClientClosedError):
            await waiting
        with pytest.raises(AssertionError, match="iteration ended"):
            await iterating
        await consumer.stop()
        with pytest.raises(IllegalStateError, match="make another one"):
            await consumer.start()

    asyncio.run(asyncio.wait_for(story(), 60))


def test_reading_goes_on_after_a_broker_was_away() -> None:
    """Ottla alone, since the broker is stopped."""

    async def story(broker: TestBroker) -> None:
        place = TopicPartition("t", 0)
        write(broker, "t", values_of(10))
        options = {**QUICK, "reconnect_backoff_max_ms": 100, "retry_backoff_max_ms": 100}
        async with Consumer(bootstrap_servers=broker.bootstrap_servers, **options) as consumer:
            consumer.assign([place])
            assert len(await take(consumer, 10)) == 10
            await asyncio.to_thread(broker.stop)
            assert await consumer.getmany(timeout_ms=300) == {}
            await asyncio.to_thread(broker.start)
            await asyncio.to_thread(write, broker, "t", values_of(10))
            assert [record.offset for record in await take(consumer, 10)] == list(range(10, 20))

    with TestBroker() as broker:
        asyncio.run(asyncio.wait_for(story(broker), 60))


@pytest.mark.parametrize(("fails", "first_of_next"), [(False, 3), (True, 2)], ids=["stops", "fails"])
@pytest.mark.parametrize("by_hand", [False, True], ids=["async with", "stop"])
def test_what_is_in_hand_when_the_user_fails_is_read_again_by_the_next(
    broker: Broker, new_topic: NewTopicFunction, name: str, fails: bool, first_of_next: int, by_hand: bool
) -> None:
    topic = new_topic()
    write(broker, topic, values_of(10))

    def new_consumer() -> Consumer:
        return Consumer(topic, bootstrap_servers=broker.bootstrap_servers, group_id=name, **QUICK)

    async def work(consumer: Consumer) -> None:
        async for record in consumer:
            if record.offset == 2:
                if fails:
                    raise ZeroDivisionError
                return

    async def read_some() -> None:
        if by_hand:
            consumer = await new_consumer().start()
            try:
                await work(consumer)
            finally:
                await consumer.stop()
        else:
            async with new_consumer() as consumer:
                await work(consumer)

    async def story() -> None:
        with pytest.raises(ZeroDivisionError) if fails else nullcontext():
            await read_some()
        async with new_consumer() as consumer:
            assert (await consumer.getone()).offset == first_of_next

    asyncio.run(asyncio.wait_for(story(), 60))


def test_a_topic_that_was_made_again_is_read_from_its_beginning(broker: Broker, new_topic: NewTopicFunction) -> None:
    topic = new_topic()
    place = TopicPartition(topic, 0)
    write(broker, topic, values_of(3))

    async def story(consumer: Consumer) -> None:
        await take(consumer, 3)
        consumer.pause(place)
        async with Admin(broker.bootstrap_servers) as admin:
            await admin.delete_topics([topic])
            await _make_again(admin, topic)

            async def is_empty() -> bool:
                try:
                    return (await admin.end_offsets([place]))[place] == 0
                except KafkaError:
                    return False

            # Else records might still go to the one that Kafka's broker has not heard the end of yet.
            await eventually(is_empty, f"the broker has the new {topic}")
        await asyncio.to_thread(write, broker, topic, values_of(10, "new"))
        consumer.resume(place)
        assert [record.value for record in await take(consumer, 10)] == values_of(10, "new")

    read(broker, story, [place], allow_auto_create_topics=False)


async def _make_again(admin: Admin, topic: str) -> None:
    """Make a topic whose deletion may not be finished."""
    async with asyncio.timeout(TIMEOUT_S):
        while True:
            try:
                await admin.create_topics([NewTopicOfOurs(topic, 1)])
                return
            except TopicAlreadyExistsError:
                await asyncio.sleep(0.1)
