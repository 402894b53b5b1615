"""Offsets and records of partitions through the admin client."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from ottla.client.admin import Admin, NewTopic
from ottla.client.cluster import Cluster
from ottla.client.errors import (
    OffsetOutOfRangeError,
    PolicyViolationError,
    UnknownTopicOrPartitionError,
    UnsupportedVersionError,
)
from ottla.client.offsets import OffsetSpec
from ottla.client.options import ClientOptions
from ottla.client.types import OffsetAndTimestamp, TopicPartition
from ottla.record import BatchBuilder
from ottla.testing import TestBroker
from ottla.wire.api.init_producer_id import InitProducerIdRequest
from ottla.wire.api.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.wire.errors import ErrorCode
from tests.unit.client.fake_broker import FakeBroker

from .tools import ask, make_older

START_MS = 1_700_000_000_000
TIMES_MS = [START_MS, START_MS + 2000, START_MS + 1000]
"""The second record is the latest."""
LIST_OFFSETS, LAST_PRODUCE_WITH_NAMES = 2, 12


@pytest.fixture(scope="module")
def broker() -> Iterator[TestBroker]:
    with TestBroker() as running:
        yield running


@pytest.fixture
def topic(broker: TestBroker, request: pytest.FixtureRequest) -> str:
    """A topic of two partitions, the first of which has three records of an idempotent producer."""
    name = str(request.node.name[:50].split("[")[0])

    async def fill() -> None:
        async with Cluster(ClientOptions(bootstrap_servers=broker.bootstrap_servers)) as cluster:
            connection = await cluster.any_broker()
            producer = await connection.request(InitProducerIdRequest(transactional_id=None))
            builder = BatchBuilder(producer_id=producer.producer_id, producer_epoch=0, base_sequence=0)
            for time_ms in TIMES_MS:
                builder.append(time_ms, None, b"value")
            data = PartitionProduceData(index=0, records=builder.build())
            request = ProduceRequest(
                acks=-1, timeout_ms=5000, topic_data=[TopicProduceData(name=name, partition_data=[data])]
            )
            response: Any = await connection.request(request, version=LAST_PRODUCE_WITH_NAMES)
            assert response.responses[0].partition_responses[0].error_code == ErrorCode.NONE

    ask(broker.bootstrap_servers, lambda admin: admin.create_topics([NewTopic(name, 2)]))
    asyncio.run(fill())
    return name


def test_offsets_are_found_by_time_and_at_the_ends(broker: TestBroker, topic: str) -> None:
    filled, empty = TopicPartition(topic, 0), TopicPartition(topic, 1)

    async def story(admin: Admin) -> None:
        async def find(spec: int) -> tuple[OffsetAndTimestamp | None, OffsetAndTimestamp | None]:
            found = await admin.list_offsets({filled: spec, empty: spec})
            return found[filled], found[empty]

        assert await find(START_MS + 500) == (OffsetAndTimestamp(1, START_MS + 2000, 0), None)
        assert await find(START_MS + 9000) == (None, None)
        assert await find(OffsetSpec.MAX_TIMESTAMP) == (OffsetAndTimestamp(1, START_MS + 2000, 0), None)
        last, nothing = await find(OffsetSpec.LATEST)
        assert last is not None
        assert nothing is not None
        assert (last.offset, nothing.offset) == (3, 0)
        assert await admin.beginning_offsets([topic]) == {filled: 0, empty: 0}
        assert await admin.end_offsets([topic, filled], isolation_level="read_committed") == {filled: 3, empty: 0}
        assert await admin.end_offsets([]) == {}

    ask(broker.bootstrap_servers, story)


def test_a_partition_that_does_not_exist_is_named(broker: TestBroker, topic: str) -> None:
    async def story(admin: Admin) -> None:
        with pytest.raises(UnknownTopicOrPartitionError, match=f"topic '{topic}' has no partition 9"):
            await admin.end_offsets([TopicPartition(topic, 0), TopicPartition(topic, 9)])
        with pytest.raises(UnknownTopicOrPartitionError, match="there is no topic 'nope'"):
            await admin.end_offsets(["nope"])
        with pytest.raises(ValueError, match="it is one of read_uncommitted, read_committed"):
            await admin.end_offsets([topic], isolation_level="committed")  # type: ignore[arg-type]

    ask(broker.bootstrap_servers, story)


def test_places_that_an_old_broker_would_take_for_times_are_refused(
    broker: TestBroker, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_older(monkeypatch, {LIST_OFFSETS: 6})

    async def story(admin: Admin) -> None:
        with pytest.raises(UnsupportedVersionError, match=r"too old for OffsetSpec\.MAX_TIMESTAMP"):
            await admin.list_offsets({TopicPartition(topic, 0): OffsetSpec.MAX_TIMESTAMP})

    ask(broker.bootstrap_servers, story)


def test_a_partition_whose_leader_has_moved_is_asked_for_again() -> None:
    with FakeBroker() as fake:
        fake.create("orders", 2)
        fake.failures[LIST_OFFSETS] = [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.LEADER_NOT_AVAILABLE]
        ends = ask(fake.bootstrap, lambda admin: admin.end_offsets(["orders"]))
        assert list(ends.values()) == [0, 0]
        assert sum(name == "ListOffsets" for name, _ in fake.requests) == 3


def test_records_are_deleted_up_to_an_offset_or_all(broker: TestBroker, topic: str) -> None:
    filled, empty = TopicPartition(topic, 0), TopicPartition(topic, 1)

    async def story(admin: Admin) -> None:
        assert await admin.delete_records({filled: 2, empty: 0}) == {filled: 2, empty: 0}
        assert await admin.beginning_offsets([topic]) == {filled: 2, empty: 0}
        with pytest.raises(OffsetOutOfRangeError, match=f"the log of {topic}-0 does not reach offset 99; give one"):
            await admin.delete_records({filled: 99})
        assert await admin.delete_records({filled: -1}) == {filled: 3}
        await admin.create_topics([NewTopic(f"{topic}-compacted", 1, topic_configs={"cleanup.policy": "compact"})])
        with pytest.raises(PolicyViolationError):
            await admin.delete_records({TopicPartition(f"{topic}-compacted", 0): 0})

    ask(broker.bootstrap_servers, story)


def test_producers_are_described_by_partition(broker: TestBroker, topic: str) -> None:
    filled, empty = TopicPartition(topic, 0), TopicPartition(topic, 1)
    found = ask(broker.bootstrap_servers, lambda admin: admin.describe_producers([filled, empty]))
    (producer,) = found[filled]
    assert (producer.producer_epoch, producer.last_sequence) == (0, 2)
    assert (producer.coordinator_epoch, producer.current_transaction_start_offset) == (None, None)
    assert found[empty] == ()
