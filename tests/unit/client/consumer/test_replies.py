"""What becomes of a reply to a fetch: data, refusals, and what comes too late."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from ottla.client.cluster import Cluster
from ottla.client.consumer.replies import Replies
from ottla.client.consumer.sessions import Wanted
from ottla.client.consumer.subscription import PartitionState, Start, Subscription
from ottla.client.errors import (
    CorruptRecordError,
    MessageSizeTooLargeError,
    OffsetOutOfRangeError,
    TopicAuthorizationFailedError,
)
from ottla.client.options import ClientOptions
from ottla.client.picture import Leader
from ottla.wire.api.fetch import (
    FetchableTopicResponse,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from ottla.wire.api.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from ottla.wire.errors import ErrorCode

from .fetched import PLACE, batch

TOPIC_ID = bytes(15) + b"\1"


class Reading:
    """A partition at offset 5, led by broker 1."""

    def __init__(self, *, resets: bool = True) -> None:
        self.cluster = Cluster(ClientOptions())
        broker = MetadataResponseBroker(node_id=1, host="one", port=9092)
        partition = MetadataResponsePartition(partition_index=0, leader_id=1, leader_epoch=3)
        topic = MetadataResponseTopic(name="t", topic_id=TOPIC_ID, partitions=[partition])
        self.cluster.picture.take(MetadataResponse(brokers=[broker], topics=[topic]), 0.0)
        self.subscription = Subscription()
        self.subscription.assign_by_user([PLACE])
        self.state.seek(5)
        self.replies = Replies(self.cluster, self.subscription, resets=resets)

    @property
    def state(self) -> PartitionState:
        return self.subscription.state(PLACE)

    def take(self, version: int = 18, offset: int = 5, endpoint: NodeEndpoint | None = None, **data: Any) -> None:
        answer = PartitionData(partition_index=0, **data)
        topic = FetchableTopicResponse(topic="t", topic_id=TOPIC_ID, partitions=[answer])
        endpoints = [] if endpoint is None else [endpoint]
        response = FetchResponse(responses=[topic], node_endpoints=endpoints)
        self.replies.take(response, version, {PLACE: Wanted(offset, 1000, 3, TOPIC_ID)})


def story(told: Callable[[], None]) -> None:
    async def run() -> None:
        told()

    asyncio.run(run())


@pytest.mark.parametrize("version", [4, 12, 13, 18])
def test_data_is_kept_and_the_next_fetch_goes_on_after_it(version: int) -> None:
    reading = Reading()
    reading.take(version, records=batch(4, 5, 6), high_watermark=9, last_stable_offset=8, log_start_offset=2)
    state = reading.state
    assert (state.fetch_offset, state.position, len(state.chunks)) == (7, 5, 1)
    assert (state.high_watermark, state.last_stable_offset, state.log_start_offset) == (9, 8, 2)


def test_a_reply_to_what_is_not_wanted_any_more_is_dropped() -> None:
    reading = Reading()
    reading.state.seek(50)
    reading.take(records=batch(5))
    assert not reading.state.chunks
    reading.take(error_code=ErrorCode.OFFSET_OUT_OF_RANGE)
    assert reading.state.position == 50
    reading.subscription.remove([PLACE])
    reading.take(records=batch(5))


def test_an_offset_out_of_range_is_reset_or_told() -> None:
    reading = Reading()
    reading.take(error_code=ErrorCode.OFFSET_OUT_OF_RANGE)
    assert reading.state.start is Start.RESET
    reading = Reading(resets=False)
    reading.take(error_code=ErrorCode.OFFSET_OUT_OF_RANGE)
    assert isinstance(reading.state.error, OffsetOutOfRangeError)
    assert (reading.state.error.topic_partition, reading.state.error.offset) == (reading.state.partition, 5)
    assert reading.state.position == 5


def test_what_was_fetched_before_the_log_was_cut_is_read_first() -> None:
    def told() -> None:
        reading = Reading()
        reading.take(records=batch(5))
        reading.take(offset=6, error_code=ErrorCode.OFFSET_OUT_OF_RANGE)
        assert (reading.state.position, len(reading.state.chunks)) == (5, 1)
        assert reading.state.not_before > 0

    story(told)


def test_a_new_leader_that_the_reply_names_is_taken_at_once() -> None:
    reading = Reading()
    reading.take(
        error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER,
        current_leader=LeaderIdAndEpoch(leader_id=2, leader_epoch=4),
        endpoint=NodeEndpoint(node_id=2, host="two", port=9093),
    )
    assert reading.cluster.picture.leader(PLACE) == Leader(2, 4)
    assert reading.cluster.picture.brokers[2] == ("two", 9093)
    assert reading.state.not_before == 0


@pytest.mark.parametrize(
    "code", [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
)
def test_without_a_hint_it_is_asked_who_leads(code: ErrorCode) -> None:
    def told() -> None:
        reading = Reading()
        reading.take(error_code=code)
        assert reading.cluster.picture.leader(PLACE) == Leader()
        assert reading.state.not_before > 0
        assert reading.state.error is None

    story(told)


def test_a_leader_that_is_behind_is_asked_again() -> None:
    def told() -> None:
        reading = Reading()
        reading.take(error_code=ErrorCode.UNKNOWN_LEADER_EPOCH)
        assert reading.cluster.picture.leader(PLACE) == Leader(1, 3)
        assert reading.state.not_before > 0

    story(told)


def test_a_topic_with_another_id_is_looked_up_again() -> None:
    def told() -> None:
        reading = Reading()
        reading.take(error_code=ErrorCode.UNKNOWN_TOPIC_ID)
        assert reading.cluster.picture.leader(PLACE) is None

    story(told)


def test_what_cannot_pass_is_for_the_user() -> None:
    reading = Reading()
    reading.take(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    assert isinstance(reading.state.error, TopicAuthorizationFailedError)
    assert "t-0 at offset 5" in str(reading.state.error)


def test_waits_grow_until_data_comes() -> None:
    def told() -> None:
        reading = Reading()
        for failures in (1, 2, 3):
            reading.take(error_code=ErrorCode.KAFKA_STORAGE_ERROR)
            assert reading.state.failures == failures
        reading.take(records=b"")
        assert reading.state.failures == 0

    story(told)


def test_a_message_that_an_old_broker_cannot_send_whole_is_named() -> None:
    reading = Reading()
    reading.take(version=2, records=batch(5)[:30])
    assert isinstance(reading.state.error, MessageSizeTooLargeError)
    assert "offset 5 of t-0 is larger than max_partition_fetch_bytes, 1000" in str(reading.state.error)
    # Later ones send what does not fit when its turn comes.
    reading = Reading()
    reading.take(version=3, records=batch(5)[:30])
    assert reading.state.error is None


@pytest.mark.parametrize("offset", [0, 2**63 - 1])
def test_batches_that_lead_nowhere_are_corrupt(offset: int) -> None:
    reading = Reading()
    moved = bytearray(batch(0, 1))
    moved[:8] = offset.to_bytes(8, "big")
    reading.take(records=bytes(moved))
    assert isinstance(reading.state.error, CorruptRecordError)
