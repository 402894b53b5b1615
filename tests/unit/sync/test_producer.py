import asyncio
import re
import threading
from collections import defaultdict
from typing import Any

import pytest

from ottla import sync
from ottla.client.producer import Producer as ClientProducer
from ottla.errors import (
    ClientClosedError,
    InvalidTopicError,
    MessageSizeTooLargeError,
    RequestTimedOutError,
    UnknownTopicOrPartitionError,
)
from ottla.sync import Delivery, Producer
from ottla.sync.delivery import MOST_RECORDS


def values_of(servers: str, topic: str) -> list[bytes]:
    found: list[bytes] = sync.read_table(topic, bootstrap_servers=servers, columns=["value"])["value"].to_pylist()
    return found


def test_records_are_sent_in_order_and_each_delivery_says_where_it_went(servers: str, topic: str) -> None:
    with Producer(bootstrap_servers=servers) as producer:
        deliveries = [producer.send(topic, b"%d" % number) for number in range(1_000)]
        assert [delivery.get(timeout=30).offset for delivery in deliveries] == list(range(1_000))
        assert all(delivery.done() and delivery.exception() is None for delivery in deliveries)
        assert producer.records_sent == 1_000
    assert producer.records_sent == 1_000, "it is known after the end too"
    assert values_of(servers, topic) == [b"%d" % number for number in range(1_000)]


def test_what_is_wrong_with_headers_and_serializers_is_told_to_him_who_sends(servers: str, topic: str) -> None:
    with Producer(bootstrap_servers=servers, value_serializer=lambda value: value) as producer:
        with pytest.raises(TypeError, match=r"headers is {'trace': b'a1'}, a dict; give a list of"):
            producer.send(topic, b"", headers={"trace": b"a1"})  # type: ignore[dict-item]
        with pytest.raises(TypeError, match="value_serializer returned 'two apples', a str; have it return bytes"):
            producer.send(topic, "two apples")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"topic": b"orders"}, "topic is b'orders', a bytes"),
        ({"partition": "0"}, "partition is '0', a str; give an int"),
        ({"timestamp_ms": "now"}, "timestamp_ms is 'now', a str; give an int"),
        ({"headers": [("trace", "a1")]}, "the value of header 'trace' is 'a1', a str; give bytes or None"),
    ],
)
def test_what_is_wrong_with_a_record_is_told_at_the_call(
    servers: str, topic: str, arguments: dict[str, Any], message: str
) -> None:
    with Producer(bootstrap_servers=servers) as producer, pytest.raises(TypeError, match=re.escape(message)):
        producer.send(**{"topic": topic, "value": b"", **arguments})


def test_of_several_failures_that_nobody_asked_for_one_is_raised_and_the_others_are_logged(
    servers: str, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    with Producer(bootstrap_servers=servers) as producer:
        producer.send("a b", b"")
        for _ in range(2):
            producer.send(topic, b"", partition=99)
        with pytest.raises(InvalidTopicError, match="'a b'"):
            producer.flush()
    (line,) = (one.getMessage() for one in caplog.records if one.name.startswith("ottla.sync"))
    assert line.startswith("2 more of what was sent failed: UNKNOWN_TOPIC_OR_PARTITION: ")


def test_leaving_the_block_waits_until_all_is_acknowledged(servers: str, topic: str) -> None:
    with Producer(bootstrap_servers=servers, linger_ms=10_000) as producer:
        delivery = producer.send(topic, b"late")
        assert not delivery.done()
    assert delivery.done()
    assert values_of(servers, topic) == [b"late"]


def test_threads_share_a_producer_and_what_each_sends_stays_in_order(servers: str, topic: str) -> None:
    count = 3 * MOST_RECORDS

    def work(name: int) -> None:
        for number in range(count):
            producer.send(topic, b"%d %d" % (name, number))

    with Producer(bootstrap_servers=servers) as producer:
        threads = [threading.Thread(target=work, args=(name,)) for name in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    by_thread: defaultdict[bytes, list[int]] = defaultdict(list)
    for value in values_of(servers, topic):
        name, number = value.split()
        by_thread[name].append(int(number))
    assert len(by_thread) == 4
    assert all(numbers == list(range(count)) for numbers in by_thread.values())


def test_threads_that_wait_for_each_record_do_not_lose_any(servers: str, topic: str) -> None:
    def work() -> None:
        for _ in range(200):
            metadata = producer.send_and_wait(topic, b"")
            offsets.append(metadata.offset)

    offsets: list[int] = []
    with Producer(bootstrap_servers=servers) as producer:
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(offsets) == list(range(800))


def test_who_sends_faster_than_the_loop_takes_waits_for_it(servers: str, topic: str) -> None:
    go = threading.Event()

    def hold_the_loop(key: bytes | None, partitions: list[int], available: list[int]) -> int:
        go.wait()
        return 0

    sent = 0

    def work() -> None:
        nonlocal sent
        for _ in range(3 * MOST_RECORDS):
            producer.send(topic, b"")
            sent += 1

    with Producer(bootstrap_servers=servers, partitioner=hold_the_loop) as producer:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join(0.5)
        assert thread.is_alive()
        assert sent < 2 * MOST_RECORDS
        go.set()
        thread.join()
    assert len(values_of(servers, topic)) == 3 * MOST_RECORDS


def test_few_large_records_wait_as_well(servers: str, topic: str) -> None:
    go = threading.Event()

    def hold_the_loop(key: bytes | None, partitions: list[int], available: list[int]) -> int:
        go.wait()
        return 0

    with Producer(bootstrap_servers=servers, partitioner=hold_the_loop) as producer:
        thread = threading.Thread(target=lambda: [producer.send(topic, bytes(500_000)) for _ in range(40)])
        thread.start()
        thread.join(0.3)
        assert thread.is_alive()
        go.set()
        thread.join()


def test_what_is_wrong_with_a_value_is_raised_where_it_is_sent(servers: str, topic: str) -> None:
    with Producer(bootstrap_servers=servers) as producer, pytest.raises(TypeError, match="value_serializer"):
        producer.send(topic, "text")


def test_a_failure_is_raised_by_get_and_then_not_by_flush(servers: str, topic: str) -> None:
    with Producer(bootstrap_servers=servers) as producer:
        too_large, nowhere = producer.send(topic, bytes(2_000_000)), producer.send(topic, b"", partition=99)
        with pytest.raises(MessageSizeTooLargeError):
            too_large.get()
        assert isinstance(nowhere.exception(), UnknownTopicOrPartitionError)
        producer.flush()


def test_a_failure_that_nobody_asked_for_is_raised_by_flush_once(servers: str, topic: str) -> None:
    with Producer(bootstrap_servers=servers) as producer:
        producer.send(topic, bytes(2_000_000))
        producer.send(topic, b"sound")
        with pytest.raises(MessageSizeTooLargeError):
            producer.flush()
        producer.flush()
    assert values_of(servers, topic) == [b"sound"]


def test_a_failure_that_nobody_asked_for_is_raised_at_the_end_of_the_block(servers: str, topic: str) -> None:
    with pytest.raises(MessageSizeTooLargeError), Producer(bootstrap_servers=servers) as producer:
        producer.send(topic, bytes(2_000_000))


def test_the_exception_of_the_block_is_not_hidden_by_one_of_the_producer(servers: str, topic: str) -> None:
    def work() -> None:
        with Producer(bootstrap_servers=servers) as producer:
            producer.send(topic, bytes(2_000_000))
            raise LookupError

    with pytest.raises(LookupError):
        work()


def test_a_value_is_serialized_when_it_is_sent_and_may_be_changed_afterwards(servers: str, topic: str) -> None:
    order = {"apples": 1}
    raw = bytearray(b"raw")
    with Producer(bootstrap_servers=servers, value_serializer=lambda value: str(value).encode()) as producer:
        producer.send(topic, order)
        order["apples"] = 2
        producer.send(topic, order)
    with Producer(bootstrap_servers=servers) as producer:
        producer.send(topic, raw)
        raw[:] = b"new"
    assert values_of(servers, topic) == [b"{'apples': 1}", b"{'apples': 2}", b"raw"]


def test_waiting_for_a_delivery_may_be_bounded(servers: str, topic: str) -> None:
    with Producer(bootstrap_servers=servers, linger_ms=2_000) as producer:
        producer.partitions_for(topic)
        delivery = producer.send(topic, b"late")
        with pytest.raises(RequestTimedOutError, match="still on its way"):
            delivery.get(timeout=0.05)
        assert not delivery.done()
        delivery.get()


def test_flushing_may_be_bounded(servers: str, topic: str) -> None:
    with Producer(bootstrap_servers=servers) as producer:
        delivery = producer.send(topic, b"late")
        with pytest.raises(RequestTimedOutError, match="still on their way"):
            producer.flush(timeout_ms=0)
        delivery.get()


def test_a_callback_is_called_with_the_delivery_once_it_is_done(servers: str, topic: str) -> None:
    called: list[Delivery] = []
    seen = threading.Event()

    def note(delivery: Delivery) -> None:
        called.append(delivery)
        if len(called) == 2:
            seen.set()

    with Producer(bootstrap_servers=servers) as producer:
        good, bad = producer.send(topic, b"good"), producer.send(topic, bytes(2_000_000))
        good.add_done_callback(note)
        bad.add_done_callback(note)
        assert seen.wait(30)
    assert set(called) == {good, bad}
    assert good.get().offset == 0


def test_a_callback_may_send_again(servers: str, topic: str) -> None:
    done = threading.Event()
    with Producer(bootstrap_servers=servers) as producer:

        def answer(_: Delivery) -> None:
            producer.send(topic, b"second").add_done_callback(lambda _: done.set())

        producer.send(topic, b"first").add_done_callback(answer)
        assert done.wait(30)
    assert values_of(servers, topic) == [b"first", b"second"]


def test_a_producer_that_does_not_run_says_so(servers: str) -> None:
    producer = Producer(bootstrap_servers=servers)
    with pytest.raises(ClientClosedError, match="with Producer"):
        producer.send("topic", b"")
    with producer:
        pass
    for call in (lambda: producer.send("topic", b""), producer.flush, lambda: producer.partitions_for("topic")):
        with pytest.raises(ClientClosedError, match="with Producer"):
            call()
    producer.stop()


def test_records_that_were_not_taken_when_stopping_is_interrupted_fail(
    servers: str, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never(*record: object) -> None:
        await asyncio.get_running_loop().create_future()

    monkeypatch.setattr(ClientProducer, "send", never)
    producer = Producer(bootstrap_servers=servers).start()
    deliveries = [producer.send(topic, b"") for _ in range(3)]
    handover = producer._handover
    assert handover is not None

    async def interrupted() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(handover.close(), 0.05)

    producer._running.call(interrupted)
    for delivery in deliveries:
        with pytest.raises(ClientClosedError, match="before the record was sent"):
            delivery.get(timeout=5)
    producer.stop()
