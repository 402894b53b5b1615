"""Fetching ahead: how much, from whom, and what happens when a broker is lost or forgets."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest

from ottla.client.cluster import Cluster
from ottla.client.consumer import Consumer
from ottla.client.consumer.fetching import SHORT_WAIT_MS, Fetcher, FetchOptions
from ottla.client.consumer.replies import Replies
from ottla.client.consumer.signal import Signal
from ottla.client.consumer.subscription import Subscription
from ottla.client.errors import TopicAuthorizationFailedError
from ottla.client.options import ClientOptions
from ottla.client.types import TopicPartition
from ottla.record import Record, build_batch
from ottla.wire.api.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from ottla.wire.errors import ErrorCode
from tests.unit.client.fake_broker import FakeBroker

from .fetched import batch, chunk

FETCH, METADATA = 1, 3
SIZE = len(batch(0))


class Plan:
    """Three partitions that broker 1 leads, and room for so many batches."""

    def __init__(self, batches: int) -> None:
        self.cluster = Cluster(ClientOptions())
        broker = MetadataResponseBroker(node_id=1, host="one", port=9092)
        partitions = [MetadataResponsePartition(partition_index=number, leader_id=1) for number in range(3)]
        topic = MetadataResponseTopic(name="t", partitions=partitions)
        self.cluster.picture.take(MetadataResponse(brokers=[broker], topics=[topic]), 0.0)
        self.subscription = Subscription()
        self.places = [TopicPartition("t", number) for number in range(3)]
        self.subscription.assign_by_user(self.places)
        self.states = [self.subscription.state(place) for place in self.places]
        for state in self.states:
            state.seek(0)
        replies = Replies(self.cluster, self.subscription, resets=True)
        options = FetchOptions(max_partition_fetch_bytes=SIZE, fetch_max_bytes=100 * SIZE, buffer_memory=batches * SIZE)
        self.fetcher = Fetcher(self.cluster, self.subscription, options, Signal(), replies, _raise)

        self.fetcher._by_node[1] = cast(Any, "a task")

    def look(self) -> tuple[list[int], int, int]:
        """The partitions that are fetched, bytes in batches, and how long the broker may wait."""

        async def story() -> tuple[list[int], int, int]:
            wanted, max_bytes, wait_ms, _ = self.fetcher._plan(1, in_turns=False)
            return sorted(place.partition for place in wanted), max_bytes // SIZE, wait_ms

        return asyncio.run(story())


def _raise(error: BaseException) -> None:
    raise error


def test_a_partition_is_fetched_until_its_share_of_the_room_is_full() -> None:
    plan = Plan(batches=9)
    assert plan.look() == ([0, 1, 2], 9, 500)
    for number in range(3):
        plan.states[0].chunks.append(chunk(batch(number)))
    # Meanwhile the broker does not keep the others waiting for long, for room may come any moment.
    assert plan.look() == ([1, 2], 6, SHORT_WAIT_MS)
    plan.states[0].chunks.popleft()
    assert plan.look() == ([0, 1, 2], 7, 500)


def test_when_all_room_is_taken_only_those_are_fetched_that_have_nothing() -> None:
    plan = Plan(batches=3)
    for number in range(3):
        plan.states[0].chunks.append(chunk(batch(number)))
    assert plan.look() == ([1, 2], 1, SHORT_WAIT_MS)
    for state in plan.states[1:]:
        state.chunks.append(chunk(batch(0)))
    assert plan.look()[0] == []


def test_whole_columns_are_fetched_in_larger_parts_unless_the_user_says_how_large() -> None:
    assert FetchOptions().limits(of_columns=False) == (2**20, 50 * 2**20)
    assert FetchOptions().limits(of_columns=True) == (8 * 2**20, 8 * 2**20)
    assert FetchOptions(buffer_memory=2**20).limits(of_columns=True)[0] == 2**20
    assert FetchOptions(max_partition_fetch_bytes=2**24).limits(of_columns=True) == (2**24, 2**24)
    given = FetchOptions(max_partition_fetch_bytes=7, fetch_max_bytes=9)
    assert given.limits(of_columns=False) == given.limits(of_columns=True) == (7, 9)
    plan = Plan(batches=9)
    plan.fetcher._options = FetchOptions()

    async def asked() -> int:
        (wanted,) = {one.max_bytes for one in plan.fetcher._plan(1, in_turns=False)[0].values()}
        return wanted

    assert asyncio.run(asked()) == 2**20
    plan.subscription.reads_columns = True
    assert asyncio.run(asked()) == 8 * 2**20


@pytest.mark.parametrize("reads_columns", [False, True])
@pytest.mark.parametrize("partition_bytes", [None, 2**22])
def test_no_reply_is_larger_than_the_user_says(partition_bytes: int | None, reads_columns: bool) -> None:
    plan = Plan(batches=9)
    plan.fetcher._options = FetchOptions(fetch_max_bytes=2**18, max_partition_fetch_bytes=partition_bytes)
    plan.subscription.reads_columns = reads_columns
    assert plan.look()[1] == 2**18 // SIZE
    assert FetchOptions(fetch_max_bytes=2**18).limits(of_columns=reads_columns) == (2**18, 2**18)


def test_what_is_on_its_way_counts_as_if_it_were_here() -> None:
    plan = Plan(batches=9)
    plan.fetcher._expected[2] = 5 * SIZE
    assert plan.look() == ([0, 1, 2], 4, 500)


def test_paused_withheld_and_failed_partitions_rest() -> None:
    plan = Plan(batches=9)
    plan.states[0].paused = True
    plan.states[1].withheld = True
    plan.subscription.fail(plan.states[2], ValueError())
    assert plan.look()[0] == []


def test_those_come_first_that_got_nothing_for_longest() -> None:
    plan = Plan(batches=9)
    for number, served in enumerate((7, 3, 5)):
        plan.states[number].served = served

    async def order() -> list[int]:
        return [place.partition for place in plan.fetcher._plan(1, in_turns=True)[0]]

    assert asyncio.run(order()) == [1, 2, 0]


def test_a_reply_is_let_go_when_little_of_it_is_still_wanted() -> None:
    plan = Plan(batches=9)
    reply = bytearray(batch(0) + bytes(20 * SIZE))
    kept = chunk(batch(0))
    kept.data = memoryview(reply)[:SIZE]
    plan.states[0].chunks.append(kept)
    assert plan.look()[1] == 8
    # Nobody looks into it any more, so it can be resized.
    reply.clear()
    assert bytes(kept.data) == batch(0)


# With brokers.


def tell(broker: FakeBroker, story: Callable[[Consumer], Awaitable[None]], **options: Any) -> None:
    async def run() -> None:
        settings = {"auto_offset_reset": "earliest", "fetch_max_wait_ms": 20, "retry_backoff_ms": 10, **options}
        settings = {"reconnect_backoff_ms": 10, "reconnect_backoff_max_ms": 50, **settings}
        async with Consumer(bootstrap_servers=broker.bootstrap, **settings) as consumer:
            await story(consumer)

    asyncio.run(asyncio.wait_for(run(), 20))


def write(broker: FakeBroker, partition: int, *offsets: int) -> None:
    records = [Record(offset, 1, None, b"v%d" % offset) for offset in offsets]
    broker.topics["t"].logs[partition].append(build_batch(records))


class ForgetfulBroker(FakeBroker):
    """Keeps fetch sessions, and answers with these errors, one after another, before it does."""

    def __init__(self, *errors: ErrorCode) -> None:
        super().__init__()
        self.errors = list(errors)
        self.seen: list[tuple[int, int, int]] = []
        self._wanted: dict[tuple[bytes, int], Any] = {}
        self._topics: dict[bytes, Any] = {}

    def _fetch(self, request: Any, version: int, failure: int) -> Any:
        self.seen.append((request.session_id, request.session_epoch, sum(len(t.partitions) for t in request.topics)))
        if request.session_epoch > 0 and self.errors:
            response = super()._fetch(type(request)(), version, failure)
            response.error_code = self.errors.pop(0)
            return response
        if request.session_epoch == 0:
            self._wanted = {}
        for topic in request.topics:
            self._topics[topic.topic_id] = topic
            for partition in topic.partitions:
                self._wanted[topic.topic_id, partition.partition] = partition
        everything = type(request)(max_wait_ms=request.max_wait_ms)
        for topic_id, topic in self._topics.items():
            partitions = [one for (owner, _), one in self._wanted.items() if owner == topic_id]
            everything.topics.append(type(topic)(topic=topic.topic, topic_id=topic_id, partitions=partitions))
        response = super()._fetch(everything, version, failure)
        response.session_id = 77
        return response


@pytest.mark.parametrize(
    ("error", "session_id"),
    [
        (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0),
        (ErrorCode.INVALID_FETCH_SESSION_EPOCH, 0),
        (ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR, 77),
    ],
)
def test_a_session_that_the_broker_does_not_know_begins_anew(error: ErrorCode, session_id: int) -> None:
    with ForgetfulBroker(error) as broker:
        broker.create("t", 2)

        async def story(consumer: Consumer) -> None:
            consumer.assign([TopicPartition("t", 0), TopicPartition("t", 1)])
            while len(broker.seen) < 3:
                await consumer.getmany(timeout_ms=10)
            write(broker, 1, 0)
            assert (await consumer.getone()).value == b"v0"

        tell(broker, story)
        assert broker.seen[0] == (0, 0, 2)
        assert broker.seen[1][:2] == (77, 1)
        assert broker.seen[2] == (session_id, 0, 2)
        # Later requests tell no more than where the one record has moved its partition to.
        assert all(told <= 1 for _, epoch, told in broker.seen[3:] if epoch > 0)


class Pair(FakeBroker):
    """Two brokers that lead a partition of `t` each; this one is number 1."""

    def __init__(self, other: FakeBroker) -> None:
        super().__init__()
        self.other = other
        self.topics = other.topics
        self.is_alone = False

    def _metadata(self, request: Any, version: int, failure: int) -> Any:
        response = super()._metadata(request, version, failure)
        host, port = self.other.address
        response.brokers.append(MetadataResponseBroker(node_id=2, host=host, port=port))
        for topic in response.topics:
            for partition in topic.partitions:
                partition.leader_id = 1 if self.is_alone else partition.partition_index + 1
        return response


def test_while_one_leader_is_lost_the_others_are_read_on() -> None:
    other = FakeBroker().__enter__()
    other.create("t", 2)
    with Pair(other) as broker:
        write(broker, 0, 0)
        write(broker, 1, 0)

        async def story(consumer: Consumer) -> None:
            consumer.assign([TopicPartition("t", 0), TopicPartition("t", 1)])
            assert {(await consumer.getone()).partition for _ in range(2)} == {0, 1}
            await asyncio.to_thread(other.__exit__, None, None, None)
            for offset in range(1, 6):
                write(broker, 0, offset)
                assert (await consumer.getone()).partition == 0
            # The partition is found again where it is led now.
            broker.is_alone = True
            write(broker, 1, 1)
            record = await consumer.getone()
            assert (record.partition, record.offset) == (1, 1)

        tell(broker, story)


def test_a_topic_that_may_not_be_read_is_told_and_the_others_are_read() -> None:
    with FakeBroker() as broker:
        broker.create("t")
        write(broker, 0, 0)
        broker.failures[FETCH] = [ErrorCode.TOPIC_AUTHORIZATION_FAILED]

        async def story(consumer: Consumer) -> None:
            consumer.assign([TopicPartition("t", 0)])
            with pytest.raises(TopicAuthorizationFailedError, match="t-0 at offset 0"):
                await consumer.getone()
            # Perhaps it may now.
            assert (await consumer.getone()).offset == 0

        tell(broker, story)


@pytest.mark.parametrize("error", [ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION])
def test_what_may_pass_is_tried_again(error: ErrorCode) -> None:
    with FakeBroker() as broker:
        broker.create("t")
        write(broker, 0, 0)
        broker.failures[FETCH] = [error] * 3

        async def story(consumer: Consumer) -> None:
            consumer.assign([TopicPartition("t", 0)])
            assert (await consumer.getone()).offset == 0

        tell(broker, story)


def test_a_partition_without_a_leader_is_waited_for() -> None:
    with FakeBroker() as broker:
        broker.create("t")
        write(broker, 0, 0)

        async def story(consumer: Consumer) -> None:
            broker.failures[METADATA] = [ErrorCode.LEADER_NOT_AVAILABLE] * 3
            consumer.assign([TopicPartition("t", 0)])
            assert (await consumer.getone()).offset == 0

        tell(broker, story)


def test_a_leader_that_somebody_else_forgot_is_found_again() -> None:
    with FakeBroker() as broker:
        broker.create("t")
        write(broker, 0, 0)

        async def story(consumer: Consumer) -> None:
            consumer.assign([TopicPartition("t", 0)])
            assert (await consumer.getone()).offset == 0
            consumer._core.cluster.forget_leader(TopicPartition("t", 0))
            write(broker, 0, 1)
            assert (await consumer.getone()).offset == 1

        tell(broker, story)


@pytest.mark.parametrize(
    ("option", "value"),
    [("fetch_min_bytes", -1), ("fetch_max_bytes", 0), ("buffer_memory", 0), ("max_partition_fetch_bytes", 2**31)],
)
def test_sizes_that_make_no_sense_are_refused(option: str, value: int) -> None:
    options: dict[str, Any] = {option: value}
    with pytest.raises(ValueError, match=f"{option} is {value}; it must be"):
        Consumer("t", **options)


@pytest.mark.parametrize("option", ["auto_offset_reset", "isolation_level", "max_poll_records"])
def test_choices_that_make_no_sense_are_refused(option: str) -> None:
    options: dict[str, Any] = {option: 0 if option == "max_poll_records" else "sometimes"}
    with pytest.raises(ValueError, match=f"{option} is"):
        Consumer("t", **options)
