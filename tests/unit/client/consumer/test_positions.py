"""Where reading begins, and what happens when a new leader has less than the one before had."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from ottla.client.consumer import Consumer
from ottla.client.errors import LogTruncationError, TopicAuthorizationFailedError
from ottla.client.types import TopicPartition
from ottla.record import Record, build_batch
from ottla.wire.api.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from ottla.wire.errors import ErrorCode
from tests.unit.client.fake_broker import FakeBroker

PLACE = TopicPartition("t", 0)
LIST_OFFSETS, EPOCHS = 2, 23


class EpochBroker(FakeBroker):
    """A broker whose partitions have had leaders before."""

    def __init__(self, newest: dict[int, int] | None = None) -> None:
        super().__init__(newest)
        self.versions[EPOCHS] = (newest or {}).get(EPOCHS, 4)
        self.epoch = 1
        self.ends: dict[int, int] = {}
        self.asked: list[int] = []

    def write(self, *offsets: int, epoch: int) -> None:
        records = [Record(offset, 1, None, b"v%d" % offset) for offset in offsets]
        self.topics["t"].logs[0].append(build_batch(records, leader_epoch=epoch))

    def _metadata(self, request: Any, version: int, failure: int) -> Any:
        response = super()._metadata(request, version, failure)
        for topic in response.topics:
            for partition in topic.partitions:
                partition.leader_epoch = self.epoch
        return response

    def _fetch(self, request: Any, version: int, failure: int) -> Any:
        response = super()._fetch(request, version, failure)
        for topic, asked in zip(response.responses, request.topics, strict=True):
            for answer, wanted in zip(topic.partitions, asked.partitions, strict=True):
                if wanted.current_leader_epoch < self.epoch:
                    answer.error_code, answer.records = ErrorCode.FENCED_LEADER_EPOCH, b""
        return response

    def _offset_for_leader_epoch(self, request: Any, version: int, failure: int) -> Any:
        response = OffsetForLeaderEpochResponse()
        for topic in request.topics:
            answer = OffsetForLeaderTopicResult(topic=topic.topic)
            for one in topic.partitions:
                self.asked.append(one.leader_epoch)
                end = self.ends.get(one.leader_epoch, -1)
                found = EpochEndOffset(error_code=failure, partition=one.partition, end_offset=end)
                answer.partitions.append(found)
            response.topics.append(answer)
        return response


def tell(broker: FakeBroker, story: Callable[[Consumer], Awaitable[None]], **options: Any) -> None:
    async def run() -> None:
        settings = {"auto_offset_reset": "earliest", "fetch_max_wait_ms": 20, "retry_backoff_ms": 10, **options}
        async with Consumer(bootstrap_servers=broker.bootstrap, **settings) as consumer:
            consumer.assign([PLACE])
            await story(consumer)

    asyncio.run(asyncio.wait_for(run(), 20))


async def next_offset(consumer: Consumer) -> int:
    return (await consumer.getone()).offset


def test_reading_goes_on_where_a_new_leader_has_all_that_was_read() -> None:
    with EpochBroker() as broker:
        broker.create("t")
        broker.write(0, 1, epoch=1)

        async def story(consumer: Consumer) -> None:
            assert [await next_offset(consumer) for _ in range(2)] == [0, 1]
            broker.epoch, broker.ends = 2, {1: 2}
            broker.write(2, epoch=2)
            assert await next_offset(consumer) == 2
            assert broker.asked == [1]

        tell(broker, story)


def test_reading_goes_back_to_where_a_new_leader_has_cut_the_log() -> None:
    with EpochBroker() as broker:
        broker.create("t")
        broker.write(0, epoch=1)
        broker.write(1, 2, epoch=1)

        async def story(consumer: Consumer) -> None:
            assert [await next_offset(consumer) for _ in range(3)] == [0, 1, 2]
            broker.epoch, broker.ends = 2, {1: 1}
            broker.topics["t"].logs[0].pop()
            broker.write(1, 2, 3, epoch=2)
            record = await consumer.getone()
            assert (record.offset, record.value) == (1, b"v1")

        tell(broker, story)


def test_a_cut_log_is_an_error_where_nobody_said_where_to_go_on() -> None:
    with EpochBroker() as broker:
        broker.create("t")
        broker.write(0, 1, epoch=1)

        async def story(consumer: Consumer) -> None:
            consumer.seek(PLACE, 0)
            assert [await next_offset(consumer) for _ in range(2)] == [0, 1]
            broker.epoch, broker.ends = 2, {1: 1}
            with pytest.raises(LogTruncationError, match="t-0 was cut at 1, before 2; seek"):
                await consumer.getone()
            consumer.seek(PLACE, 0)
            assert await next_offset(consumer) == 0

        tell(broker, story, auto_offset_reset="none")


def test_an_epoch_that_the_leader_does_not_know_means_a_reset() -> None:
    with EpochBroker() as broker:
        broker.create("t")
        broker.write(0, 1, epoch=1)

        async def story(consumer: Consumer) -> None:
            assert [await next_offset(consumer) for _ in range(2)] == [0, 1]
            broker.epoch = 2
            assert await next_offset(consumer) == 0

        tell(broker, story)


@pytest.mark.parametrize("newest", [-1, 2])
def test_brokers_that_cannot_be_asked_about_epochs_are_believed(newest: int) -> None:
    with EpochBroker() as broker:
        if newest < 0:
            del broker.versions[EPOCHS]
        else:
            broker.versions[EPOCHS] = newest
        broker.create("t")
        broker.write(0, epoch=1)

        async def story(consumer: Consumer) -> None:
            assert await next_offset(consumer) == 0
            broker.epoch = 2
            broker.write(1, epoch=2)
            assert await next_offset(consumer) == 1
            assert broker.asked == []

        tell(broker, story)


def test_finding_a_position_is_tried_again_while_that_can_help() -> None:
    with FakeBroker() as broker:
        broker.create("t")
        broker.failures[LIST_OFFSETS] = [
            ErrorCode.NOT_LEADER_OR_FOLLOWER,
            ErrorCode.LEADER_NOT_AVAILABLE,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ]

        async def story(consumer: Consumer) -> None:
            assert await consumer.position(PLACE) == 0

        tell(broker, story)
        assert not broker.failures[LIST_OFFSETS]


def test_a_position_that_cannot_be_found_is_told_and_then_tried_again() -> None:
    with FakeBroker() as broker:
        broker.create("t")
        broker.failures[LIST_OFFSETS] = [ErrorCode.TOPIC_AUTHORIZATION_FAILED] * 2

        async def story(consumer: Consumer) -> None:
            for _ in range(2):
                with pytest.raises(TopicAuthorizationFailedError, match="t-0"):
                    await consumer.position(PLACE)
            assert await consumer.position(PLACE) == 0

        tell(broker, story)


def test_a_seek_wins_over_a_position_that_is_still_being_looked_for() -> None:
    with FakeBroker() as broker:
        broker.create("t")

        async def story(consumer: Consumer) -> None:
            looking = asyncio.create_task(consumer.seek_to_end(PLACE))
            await asyncio.sleep(0)
            consumer.seek(PLACE, 0)
            await looking
            assert await consumer.position(PLACE) == 0

        tell(broker, story)
