from typing import Any

import pytest

from ottla.wire.api.describe_producers import DescribeProducersRequest, TopicRequest
from ottla.wire.errors import ErrorCode
from tests.unit.broker.small_broker import SmallBroker


def describe(small: SmallBroker, topic: str, *indexes: int) -> list[Any]:
    body = DescribeProducersRequest(topics=[TopicRequest(name=topic, partition_indexes=list(indexes))])
    (answered,) = small.ask(body, 0).topics
    assert answered.name == topic
    assert [result.partition_index for result in answered.partitions] == list(indexes)
    results: list[Any] = answered.partitions
    return results


def test_producers_are_told_with_their_last_sequence(small: SmallBroker) -> None:
    small.create("orders", partitions=2)
    before_ms = small.broker.clock.now_ms()
    small.append("orders", count=3, producer_id=7, producer_epoch=1, base_sequence=0)
    small.append("orders", count=2, producer_id=7, producer_epoch=1, base_sequence=3)
    small.append("orders", count=1)
    with_producer, without = describe(small, "orders", 0, 1)
    (found,) = with_producer.active_producers
    assert (found.producer_id, found.producer_epoch, found.last_sequence) == (7, 1, 4)
    assert before_ms <= found.last_timestamp <= small.broker.clock.now_ms()
    assert (found.coordinator_epoch, found.current_txn_start_offset) == (-1, -1)
    assert (without.error_code, without.active_producers) == (0, [])


def test_an_open_transaction_is_told_with_its_first_offset(small: SmallBroker) -> None:
    small.create("orders")
    small.append("orders", count=4)
    small.append("orders", producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
    (result,) = describe(small, "orders", 0)
    assert [found.current_txn_start_offset for found in result.active_producers] == [4]


@pytest.mark.parametrize(("topic", "index"), [("orders", 1), ("nothing", 0)])
def test_an_unknown_partition_is_an_error(small: SmallBroker, topic: str, index: int) -> None:
    small.create("orders")
    (result,) = describe(small, topic, index)
    assert result.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert result.error_message
