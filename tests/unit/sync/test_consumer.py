import threading
from collections import Counter
from typing import Any

import pytest

from ottla import ConsumerRebalanceListener, ConsumerRecord, TopicPartition
from ottla.client.consumer.runs import Run
from ottla.errors import ClientClosedError, IllegalStateError, RecordDeserializationError
from ottla.sync import Admin, Consumer, Producer

QUIET_MS = 3_000
"""After so long without a record a loop ends: longer than it takes to join a group on a busy machine."""


def fill(servers: str, topic: str, count: int, partitions: int = 1) -> None:
    with Admin(servers) as admin:
        admin.create_topics([topic])
        if partitions > 1:
            admin.create_partitions({topic: partitions})
    with Producer(bootstrap_servers=servers) as producer:
        for number in range(count):
            producer.send(topic, b"%d" % number, partition=number % partitions)


def reader(servers: str, topic: str, **options: Any) -> Consumer:
    given = {"group_id": f"{topic}-readers", "auto_offset_reset": "earliest", **options}
    return Consumer(topic, bootstrap_servers=servers, **given)


def committed(servers: str, topic: str) -> int | None:
    with Admin(servers) as admin:
        found = admin.list_consumer_group_offsets(f"{topic}-readers").get(TopicPartition(topic, 0))
    return None if found is None else found.offset


def test_iteration_gives_all_records_in_order_and_ends_after_the_timeout(servers: str, topic: str) -> None:
    fill(servers, topic, 5_000)
    with reader(servers, topic, consumer_timeout_ms=QUIET_MS) as consumer:
        assert [record.value for record in consumer] == [b"%d" % number for number in range(5_000)]


def test_a_commit_in_the_middle_of_an_iteration_commits_exactly_what_was_handed_out(servers: str, topic: str) -> None:
    fill(servers, topic, 100)
    with reader(servers, topic, enable_auto_commit=False) as consumer:
        for record in consumer:
            if record.offset == 41:
                consumer.commit()
                assert consumer.committed(TopicPartition(topic, 0)) == 42
                assert consumer.position(TopicPartition(topic, 0)) == 42
            if record.offset == 50:
                break
    assert committed(servers, topic) == 42


def test_a_loop_goes_on_where_the_last_one_was_left(servers: str, topic: str) -> None:
    fill(servers, topic, 10)
    seen: list[int] = []
    with reader(servers, topic, consumer_timeout_ms=QUIET_MS) as consumer:
        for record in consumer:
            seen.append(record.offset)
            if len(seen) == 3:
                break
        seen.append(next(consumer).offset)
        seen.append(consumer.getone().offset)
        seen += [
            record.offset for records in consumer.poll(timeout_ms=5_000, max_records=2).values() for record in records
        ]
        seen += [record.offset for record in consumer]
    assert seen == list(range(10))


def test_next_and_other_calls_may_be_mixed(servers: str, topic: str) -> None:
    fill(servers, topic, 10)
    with reader(servers, topic, consumer_timeout_ms=QUIET_MS) as consumer:
        offsets = [next(consumer).offset, next(consumer).offset, consumer.getone().offset, next(consumer).offset]
        consumer.seek(TopicPartition(topic, 0), 8)
        offsets += [next(consumer).offset, next(consumer).offset]
        with pytest.raises(StopIteration):
            next(consumer)
    assert offsets == [0, 1, 2, 3, 8, 9]


def test_a_seek_inside_a_loop_is_obeyed_at_the_next_record(servers: str, topic: str) -> None:
    fill(servers, topic, 100)
    seen: list[int] = []
    with reader(servers, topic, consumer_timeout_ms=QUIET_MS) as consumer:
        for record in consumer:
            seen.append(record.offset)
            if record.offset == 2:
                consumer.seek(TopicPartition(topic, 0), 97)
    assert seen == [0, 1, 2, 97, 98, 99]


def test_a_pause_inside_a_loop_is_obeyed_at_the_next_record(servers: str, topic: str) -> None:
    fill(servers, topic, 100)
    place = TopicPartition(topic, 0)
    seen: list[int] = []
    with reader(servers, topic, consumer_timeout_ms=QUIET_MS) as consumer:
        for record in consumer:
            seen.append(record.offset)
            if record.offset == 2:
                consumer.pause(place)
        assert seen == [0, 1, 2]
        assert consumer.paused() == {place}
        consumer.resume(place)
        assert next(consumer).offset == 3


def test_what_was_read_is_finished_when_the_block_is_left(servers: str, topic: str) -> None:
    fill(servers, topic, 10)
    with reader(servers, topic) as consumer:
        for record in consumer:
            if record.offset == 4:
                break
    assert committed(servers, topic) == 5


def test_the_record_in_hand_is_not_finished_when_an_exception_ends_the_block(servers: str, topic: str) -> None:
    fill(servers, topic, 10)

    def work() -> None:
        with reader(servers, topic) as consumer:
            for record in consumer:
                if record.offset == 4:
                    raise LookupError

    with pytest.raises(LookupError):
        work()
    assert committed(servers, topic) == 4


def test_members_that_come_in_the_middle_of_an_iteration_get_their_share_and_no_record_twice(
    servers: str, topic: str
) -> None:
    fill(servers, topic, 20_000, partitions=4)
    counts: Counter[tuple[int, int]] = Counter()
    shares: list[int] = []
    second_reads = threading.Event()
    # Longer than a rebalance takes on a busy machine, in which nobody gets records.
    options = {"consumer_timeout_ms": 5_000, "heartbeat_interval_ms": 100}

    def read(consumer: Consumer, pause_at: int | None = None) -> None:
        share = 0
        with consumer:
            for record in consumer:
                counts[record.partition, record.offset] += 1
                share += 1
                if share == pause_at:
                    thread.start()
                # It is in the middle of a run when the other one joins, and goes on slowly until that one reads.
                elif pause_at is not None and share > pause_at and not second_reads.is_set():
                    second_reads.wait(0.005)
                elif pause_at is None:
                    second_reads.set()
        shares.append(share)

    thread = threading.Thread(target=lambda: read(reader(servers, topic, **options)))
    read(reader(servers, topic, **options), pause_at=100)
    thread.join()
    assert len(counts) == 20_000
    assert set(counts.values()) == {1}
    assert len(shares) == 2
    assert all(shares)


def test_a_listener_may_call_the_consumer(servers: str, topic: str) -> None:
    fill(servers, topic, 10)
    calls: list[str] = []

    class Listener(ConsumerRebalanceListener):
        def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
            calls.append(threading.current_thread().name)
            for place in assigned:
                consumer.seek(place, 7)

        def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
            consumer.commit()
            calls.append("revoked")

    consumer = reader(servers, topic, enable_auto_commit=False, listener=Listener())
    with consumer:
        assert consumer.getone().offset == 7
        consumer.subscribe([topic], listener=Listener())
    assert calls[0] not in ("ottla-sync", threading.current_thread().name)
    assert calls[-1] == "revoked"
    assert committed(servers, topic) == 8


def test_listeners_of_other_libraries_need_not_have_on_partitions_lost_and_may_be_async(
    servers: str, topic: str
) -> None:
    fill(servers, topic, 1)
    told: list[str] = []

    class Listener:
        async def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
            told.append("assigned")

        async def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
            told.append("revoked")

    with reader(servers, topic, listener=Listener()) as consumer:
        consumer.getone()
    assert told == ["assigned", "revoked"]


def test_an_exception_in_a_loop_does_not_end_the_consumer(servers: str, topic: str) -> None:
    fill(servers, topic, 3)

    def decode(value: bytes) -> int:
        if value == b"1":
            raise ValueError("one is not liked")
        return int(value)

    place = TopicPartition(topic, 0)
    with reader(servers, topic, value_deserializer=decode) as consumer:
        assert next(consumer).value == 0
        with pytest.raises(RecordDeserializationError, match="one is not liked"):
            next(consumer)
        consumer.seek(place, 2)
        assert next(consumer).value == 2


def test_partitions_may_be_assigned_before_the_start(servers: str, topic: str) -> None:
    fill(servers, topic, 3)
    consumer = Consumer(bootstrap_servers=servers, auto_offset_reset="earliest")
    consumer.assign([TopicPartition(topic, 0)])
    assert consumer.assignment() == {TopicPartition(topic, 0)}
    with consumer:
        assert consumer.getone().value == b"0"
        with pytest.raises(IllegalStateError, match="group_id"):
            consumer.commit()


def test_a_consumer_that_does_not_run_says_so(servers: str, topic: str) -> None:
    consumer = reader(servers, topic)
    for call in (consumer.getone, consumer.topics, lambda: next(iter(consumer)), lambda: next(consumer)):
        with pytest.raises(ClientClosedError, match="with Consumer"):
            call()
    consumer.stop()


@pytest.mark.parametrize("attempt", range(20))
def test_a_run_that_is_cut_while_another_thread_iterates_loses_and_doubles_nothing(attempt: int) -> None:
    records = [ConsumerRecord("orders", 0, offset, 0, 0, None, b"", ()) for offset in range(200_000)]
    run = Run(list(records), 0, 200_000)
    handed_out: list[ConsumerRecord] = []
    began = threading.Event()

    def iterate() -> None:
        for record in run.iterator:
            handed_out.append(record)
            if len(handed_out) == 100:
                began.set()

    thread = threading.Thread(target=iterate)
    thread.start()
    began.wait()
    later = run.cut()
    thread.join()
    rest = [] if later is None else later.records
    assert handed_out + rest == records
    assert run.position == len(handed_out)
    assert run.left == 0
    if later is not None:
        assert (later.start_offset, later.position, later.next_offset) == (len(handed_out), len(handed_out), 200_000)
