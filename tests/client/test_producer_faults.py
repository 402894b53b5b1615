"""The producer behind a proxy that delays, cuts and repeats: nothing lost, nothing twice, nothing stuck."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

from ottla.client.errors import BrokerUnreachableError, BufferFullError, DeliveryTimedOutError, RequestTimedOutError
from ottla.client.producer import Delivery, Producer
from ottla.wire.errors import ErrorCode
from tests.faults import Action, FaultProxy, cut_reply, cut_request, drop_reply, edit_reply, every_cut
from tests.peers.fixtures import Broker

from .reading import values

NewTopic = Callable[..., str]
QUICK = {
    "retry_backoff_ms": 5,
    "retry_backoff_max_ms": 50,
    "reconnect_backoff_ms": 5,
    "reconnect_backoff_max_ms": 50,
    "request_timeout_ms": 3_000,
}


@pytest.fixture
def proxy(broker: Broker) -> Iterator[FaultProxy]:
    with FaultProxy(broker.bootstrap_servers) as started:
        yield started


def producing(proxy: FaultProxy, work: Callable[[Producer], Coroutine[Any, Any, Any]], **options: Any) -> None:
    async def story() -> None:
        async with Producer(bootstrap_servers=proxy.bootstrap_servers, **{**QUICK, **options}) as producer:
            await work(producer)

    try:
        asyncio.run(asyncio.wait_for(story(), 60))
    except BaseException as error:
        error.add_note(proxy.report())
        raise


@pytest.mark.parametrize("action", every_cut(), ids=str)
def test_a_connection_cut_at_any_point_costs_no_record_and_doubles_none(
    broker: Broker, proxy: FaultProxy, new_topic: NewTopic, action: Action
) -> None:
    topic = new_topic()
    sent = [b"%0100d" % number for number in range(300)]

    async def work(producer: Producer) -> None:
        await producer.send_and_wait(topic, b"first")
        rule = proxy.on("Produce", action, nth=2)
        deliveries = [await producer.send(topic, value) for value in sent]
        offsets = [(await delivery).offset for delivery in deliveries]
        assert offsets == list(range(1, 301))
        rule.wait()

    producing(proxy, work, batch_size=1000)
    assert values(broker.bootstrap_servers, topic) == [b"first", *sent]


@pytest.mark.parametrize("seed", range(6))
def test_random_faults_cost_no_record_and_double_none(
    broker: Broker, proxy: FaultProxy, new_topic: NewTopic, seed: int
) -> None:
    topic = new_topic(partitions=2)
    sent = [b"%d" % number for number in range(2000)]

    async def work(producer: Producer) -> None:
        proxy.random_faults(seed, 0.15)
        deliveries = [await producer.send(topic, value, partition=number % 2) for number, value in enumerate(sent)]
        await asyncio.gather(*deliveries)
        proxy.calm()

    producing(proxy, work, batch_size=200)
    assert proxy.faults.total() > 3, proxy.report()
    assert values(broker.bootstrap_servers, topic) == sent[::2] + sent[1::2]


def test_without_numbers_a_lost_reply_may_double_records_but_keeps_their_order(
    broker: Broker, proxy: FaultProxy, new_topic: NewTopic
) -> None:
    topic = new_topic()
    sent = [b"%0100d" % number for number in range(100)]

    async def work(producer: Producer) -> None:
        proxy.on("Produce", cut_reply(), nth=3, times=2)
        for value in sent:
            await producer.send(topic, value)

    producing(proxy, work, enable_idempotence=False, batch_size=1000)
    found = values(broker.bootstrap_servers, topic)
    assert list(dict.fromkeys(found)) == sent
    assert len(found) > len(sent), "the batch whose reply was lost is there twice"


def test_a_reply_that_never_comes_is_given_up_and_the_batch_sent_again(
    broker: Broker, proxy: FaultProxy, new_topic: NewTopic
) -> None:
    topic = new_topic()

    async def work(producer: Producer) -> None:
        proxy.on("Produce", drop_reply())
        assert (await producer.send_and_wait(topic, b"v")).offset == 0

    producing(proxy, work, request_timeout_ms=200)
    assert values(broker.bootstrap_servers, topic) == [b"v"]


def test_a_broker_that_stays_silent_fails_records_in_time_and_later_ones_are_not_stuck(
    broker: Broker, proxy: FaultProxy, new_topic: NewTopic
) -> None:
    topic = new_topic()

    async def work(producer: Producer) -> None:
        await producer.send_and_wait(topic, b"before")
        proxy.freeze()
        lost: list[Delivery] = [await producer.send(topic, b"during %d" % number) for number in range(3)]
        with pytest.raises(RequestTimedOutError, match="3 records were not acknowledged within 100 ms"):
            await producer.flush(timeout_ms=100)
        for delivery in lost:
            with pytest.raises(DeliveryTimedOutError, match="may have been written"):
                await delivery
        proxy.thaw()
        await producer.send_and_wait(topic, b"after")

    producing(proxy, work, delivery_timeout_ms=4_000, request_timeout_ms=1_000)
    found = values(broker.bootstrap_servers, topic)
    assert found[0] == b"before"
    assert found[-1] == b"after"
    assert len(found) == len(set(found))


def test_a_full_buffer_holds_the_sender_up_and_then_says_so(
    broker: Broker, proxy: FaultProxy, new_topic: NewTopic
) -> None:
    topic = new_topic()

    async def work(producer: Producer) -> None:
        await producer.send_and_wait(topic, b"before")
        proxy.freeze()

        async def fill() -> None:
            for _ in range(1000):
                await producer.send(topic, bytes(1000))

        with pytest.raises(BufferFullError, match="max_block_ms = 3000"):
            await fill()
        waiting = asyncio.ensure_future(producer.send(topic, b"waits"))
        await asyncio.sleep(0)
        proxy.thaw()
        await (await waiting)

    producing(proxy, work, buffer_memory=40_000, max_block_ms=3_000, batch_size=10_000)


def test_cancelling_one_who_waits_takes_nothing_back(broker: Broker, proxy: FaultProxy, new_topic: NewTopic) -> None:
    topic = new_topic()

    async def work(producer: Producer) -> None:
        await producer.send_and_wait(topic, b"before")
        proxy.freeze()
        delivery = await producer.send(topic, b"v")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(delivery, 0.05)
        proxy.thaw()
        assert (await delivery).offset == 1

    producing(proxy, work)


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
    ],
    ids=lambda code: code.name,
)
def test_an_error_that_passes_is_not_seen(
    broker: Broker, proxy: FaultProxy, new_topic: NewTopic, code: ErrorCode
) -> None:
    topic = new_topic()

    def spoil(response: Any) -> None:
        response.responses[0].partition_responses[0].error_code = code

    async def work(producer: Producer) -> None:
        proxy.on("Produce", edit_reply(spoil), times=2)
        deliveries = [await producer.send(topic, b"%0100d" % number) for number in range(100)]
        await asyncio.gather(*deliveries)

    producing(proxy, work, batch_size=1000)
    assert values(broker.bootstrap_servers, topic) == [b"%0100d" % number for number in range(100)]


def test_a_broker_that_is_cut_off_while_it_tells_its_versions_is_not_taken_for_an_old_one(
    broker: Broker, proxy: FaultProxy, new_topic: NewTopic
) -> None:
    topic = new_topic()

    async def work(producer: Producer) -> None:
        await producer.send_and_wait(topic, b"before")
        cut = proxy.on("ApiVersions", cut_request(), times=2)
        proxy.on("Produce", cut_reply())
        # An old format has no numbers, and so this would be there twice.
        assert (await producer.send_and_wait(topic, b"v")).offset == 1
        cut.wait(2)

    producing(proxy, work)
    assert values(broker.bootstrap_servers, topic) == [b"before", b"v"]


def test_nobody_at_the_address_is_said_at_once() -> None:
    async def story() -> None:
        with pytest.raises(BrokerUnreachableError, match="see whether a broker runs there"):
            await Producer(bootstrap_servers="127.0.0.1:1", **QUICK).start()  # type: ignore[arg-type]

    asyncio.run(asyncio.wait_for(story(), 20))
