"""What a client remembers of a cluster, and what overrides what."""

from ottla.client.picture import NO_TOPIC_ID, Leader, Picture
from ottla.client.types import TopicPartition
from ottla.wire.api.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from ottla.wire.api.produce import NodeEndpoint

ORDERS_0 = TopicPartition("orders", 0)
ID, OTHER_ID = b"1" * 16, b"2" * 16


def told(leader_id: int, epoch: int, *, topic_id: bytes = ID, error_code: int = 0) -> MetadataResponse:
    partition = MetadataResponsePartition(partition_index=0, leader_id=leader_id, leader_epoch=epoch)
    topic = MetadataResponseTopic(name="orders", topic_id=topic_id, error_code=error_code, partitions=[partition])
    brokers = [MetadataResponseBroker(node_id=node, host=f"broker-{node}", port=9092) for node in (1, 2)]
    return MetadataResponse(brokers=brokers, topics=[topic])


def test_an_answer_from_before_the_last_election_does_not_bring_the_old_leader_back() -> None:
    picture = Picture()
    picture.take(told(2, 7), 0.0)
    picture.take(told(1, 6), 1.0)
    assert picture.leader(ORDERS_0) == Leader(2, 7)
    picture.take(told(1, 8), 2.0)
    assert picture.leader(ORDERS_0) == Leader(1, 8)


def test_a_topic_that_was_made_anew_is_taken_though_its_epochs_begin_again() -> None:
    picture = Picture()
    picture.take(told(2, 7), 0.0)
    picture.take(told(1, 0, topic_id=OTHER_ID), 1.0)
    assert picture.leader(ORDERS_0) == Leader(1, 0)
    assert (picture.topic_id("orders"), picture.topic_name(OTHER_ID), picture.topic_name(ID)) == (
        OTHER_ID,
        "orders",
        "",
    )


def test_brokers_that_know_no_epochs_are_believed() -> None:
    picture = Picture()
    picture.take(told(2, -1, topic_id=NO_TOPIC_ID), 0.0)
    picture.take(told(1, -1, topic_id=NO_TOPIC_ID), 1.0)
    assert picture.leader(ORDERS_0) == Leader(1, -1)


def test_a_leader_that_was_forgotten_is_taken_from_any_answer() -> None:
    picture = Picture()
    picture.take(told(2, 7), 0.0)
    picture.forget_leader(ORDERS_0)
    assert picture.leader(ORDERS_0) == Leader()
    picture.take(told(1, 6), 1.0)
    assert picture.leader(ORDERS_0) == Leader(1, 6)


def test_a_topic_with_an_error_stays_as_it_was() -> None:
    picture = Picture()
    picture.take(told(2, 7), 0.0)
    picture.take(told(-1, -1, error_code=5), 1.0)
    assert picture.leader(ORDERS_0) == Leader(2, 7)


def test_a_hint_names_a_newer_leader_and_where_it_is() -> None:
    picture = Picture()
    picture.take(told(2, 7), 0.0)
    endpoint = NodeEndpoint(node_id=3, host="broker-3", port=9093)
    assert not picture.take_hint(ORDERS_0, Leader(3, 7), [endpoint])
    assert picture.take_hint(ORDERS_0, Leader(3, 8), [endpoint])
    assert (picture.leader(ORDERS_0), picture.brokers[3]) == (Leader(3, 8), ("broker-3", 9093))
    # One whose address nobody told is of no use.
    assert not picture.take_hint(ORDERS_0, Leader(4, 9), [])
    assert not picture.take_hint(TopicPartition("payments", 0), Leader(1, 9), [])
