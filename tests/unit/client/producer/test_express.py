"""The short way of single records: the same result as the usual one, which takes over whenever something is unusual."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from itertools import pairwise
from typing import Any

import pytest
import uvloop

from ottla import Admin, Consumer, Producer
from ottla.client.errors import MessageSizeTooLargeError
from ottla.client.producer._taking_types import Untaken
from ottla.client.producer.batch import Delivery
from ottla.client.producer.express import Express
from ottla.client.producer.intake import Intake
from ottla.client.producer.lane import Lane
from ottla.net.vigil import Vigil
from ottla.testing import TestBroker
from ottla.wire.errors import ErrorCode
from tests.unit.client.fake_broker import FakeBroker

PRODUCE = 0


class Watched:
    """What came of each record that was offered to the short way: whether it was taken."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.taken: list[bool] = []
        take = Express.take

        def watched(express: Express, record: Untaken, intake: Intake) -> Delivery | None:
            found = take(express, record, intake)
            self.taken.append(found is not None)
            return found

        monkeypatch.setattr(Express, "take", watched)


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Watched:
    return Watched(monkeypatch)


@pytest.fixture(scope="module")
def broker() -> Iterator[TestBroker]:
    with TestBroker({"num.partitions": "3"}) as running:
        yield running


def tell(
    servers: str, story: Callable[[Producer], Awaitable[Any]], run: Callable[..., Any] = asyncio.run, **options: Any
) -> Any:
    async def whole() -> Any:
        async with Producer(bootstrap_servers=servers, **{"retry_backoff_ms": 1, **options}) as producer:
            return await story(producer)

    return run(asyncio.wait_for(whole(), 30))


async def read(servers: str, topic: str, count: int) -> list[Any]:
    found: list[Any] = []
    async with Consumer(topic, bootstrap_servers=servers, auto_offset_reset="earliest") as consumer:
        while len(found) < count:
            found.append(await asyncio.wait_for(consumer.getone(), 20))
    return found


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def test_records_that_are_waited_for_one_by_one_take_the_short_way_after_the_first(
    broker: TestBroker, watched: Watched, run: Callable[..., Any]
) -> None:
    topic = f"one-by-one-{run.__module__}"

    async def story(producer: Producer) -> None:
        told = [
            await producer.send_and_wait(
                topic, b"%d" % number, key=b"k", timestamp_ms=1000 + number, headers=[("n", b"%d" % number)]
            )
            for number in range(10)
        ]
        assert [metadata.offset for metadata in told] == list(range(10))
        assert producer.records_sent == 10
        records = await read(broker.bootstrap_servers, topic, 10)
        for number, record in enumerate(records):
            assert (record.value, record.key, record.timestamp) == (b"%d" % number, b"k", 1000 + number)
            assert list(record.headers) == [("n", b"%d" % number)]
            assert (record.partition, record.timestamp) == (told[number].partition, told[number].timestamp)

    tell(broker.bootstrap_servers, story, run)
    assert watched.taken == [False] + [True] * 9


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def test_both_ways_can_be_mixed_in_any_order(broker: TestBroker, watched: Watched, run: Callable[..., Any]) -> None:
    topic = f"mixed-{run.__module__}"

    async def story(producer: Producer) -> None:
        for turn in range(20):
            sent = [await producer.send(topic, b"%d" % turn, partition=0) for _ in range(turn % 3)]
            waits = [producer.send_and_wait(topic, b"%d" % turn, partition=0) for _ in range(1 + turn % 4)]
            told = await asyncio.gather(*waits)
            assert all(delivery.done() for delivery in sent)
            assert [one.offset for one in told] == sorted(one.offset for one in told)
        values = [int(record.value) for record in await read(broker.bootstrap_servers, topic, producer.records_sent)]
        assert values == sorted(values)

    tell(broker.bootstrap_servers, story, run)
    assert True in watched.taken
    assert False in watched.taken[1:]


def test_records_without_a_key_are_spread_as_always(broker: TestBroker, watched: Watched) -> None:
    async def story(producer: Producer) -> None:
        told = [await producer.send_and_wait("spread", bytes(500)) for _ in range(60)]
        assert {metadata.partition for metadata in told} == {0, 1, 2}
        changes = sum(one.partition != other.partition for one, other in pairwise(told))
        assert 5 < changes < 30, "one partition gets its share, then another"

    tell(broker.bootstrap_servers, story, batch_size=2_000)
    assert watched.taken.count(True) > 50


@pytest.mark.parametrize("options", [{"linger_ms": 1}, {"compression_type": "gzip"}, {"acks": 0}], ids=str)
def test_what_could_not_leave_by_itself_takes_the_usual_way(
    broker: TestBroker, watched: Watched, options: dict[str, Any]
) -> None:
    async def story(producer: Producer) -> None:
        for number in range(3):
            await producer.send_and_wait("usual", b"%d" % number)

    tell(broker.bootstrap_servers, story, **options)
    assert watched.taken == [False] * 3


def test_a_record_larger_than_a_batch_takes_the_usual_way_and_one_that_is_too_large_is_refused(
    broker: TestBroker, watched: Watched
) -> None:
    async def story(producer: Producer) -> None:
        await producer.send_and_wait("large", b"first", partition=0)
        assert (await producer.send_and_wait("large", bytes(3_000), partition=0)).offset == 1
        with pytest.raises(MessageSizeTooLargeError, match="max_request_size"):
            await producer.send_and_wait("large", bytes(20_000), partition=0)
        assert (await producer.send_and_wait("large", b"last", partition=0)).offset == 2

    tell(broker.bootstrap_servers, story, batch_size=2_000, max_request_size=10_000)
    assert watched.taken == [False, False, False, True]


def test_a_topic_that_was_made_anew_is_looked_up_again(broker: TestBroker) -> None:
    async def story(producer: Producer) -> None:
        for _ in range(3):
            await producer.send_and_wait("anew", b"before", partition=0)
        async with Admin(bootstrap_servers=broker.bootstrap_servers) as admin:
            await admin.delete_topics(["anew"])
            await admin.create_topics(["anew"])
        assert (await producer.send_and_wait("anew", b"after", partition=0)).offset == 0

    tell(broker.bootstrap_servers, story)


@pytest.mark.parametrize("newest", [9, 10, 12, 13])
def test_a_refusal_that_may_pass_has_the_record_sent_again(watched: Watched, newest: int) -> None:
    with FakeBroker({PRODUCE: newest}) as broker:
        broker.create("t")

        async def story(producer: Producer) -> None:
            await producer.send_and_wait("t", b"0")
            broker.failures[PRODUCE] = [ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.NOT_LEADER_OR_FOLLOWER]
            assert (await producer.send_and_wait("t", b"1")).offset == 1
            # Who leads the partition was asked again, so this one has to see what has changed.
            assert (await producer.send_and_wait("t", b"2")).offset == 2
            assert (await producer.send_and_wait("t", b"3")).offset == 3

        tell(broker.bootstrap, story, enable_idempotence=False)
        assert len(broker.topics["t"].logs[0]) == 4
    assert watched.taken == [False, newest >= 10, False, newest >= 10]


def test_a_producer_that_does_not_run_says_so(broker: TestBroker) -> None:
    async def story(producer: Producer) -> None:
        await producer.send_and_wait("closed", b"0")
        await producer.stop()
        with pytest.raises(Exception, match="does not run"):
            await producer.send_and_wait("closed", b"1")

    tell(broker.bootstrap_servers, story)


def test_answers_are_waited_for_awake_and_each_broker_is_known_by_its_own(broker: TestBroker) -> None:
    async def story(producer: Producer) -> None:
        await producer.send_and_wait("awake", b"first", partition=0)
        assert producer._sender is not None
        (lane,) = producer._sender._lanes.values()
        other = Lane(7)
        lane.vigil = Vigil(asyncio.get_running_loop(), possible=True)
        for _ in range(20):
            await producer.send_and_wait("awake", b"next", partition=0)
        assert lane.vigil.usual_s > 0
        assert other.vigil.usual_s == 0

    tell(broker.bootstrap_servers, story)


def test_it_sleeps_while_more_than_one_record_is_under_way(broker: TestBroker) -> None:
    async def story(producer: Producer) -> None:
        for partition in range(3):
            await producer.send_and_wait("asleep", b"first", partition=partition)
        assert producer._sender is not None
        (lane,) = producer._sender._lanes.values()
        lane.vigil = Vigil(asyncio.get_running_loop(), possible=True)
        # As long as another is under way, which is what the lane says.
        lane.in_flight += 1
        await asyncio.gather(*(producer.send_and_wait("asleep", b"next", partition=number) for number in range(3)))
        lane.in_flight -= 1
        assert lane.vigil.usual_s == 0

    tell(broker.bootstrap_servers, story)
