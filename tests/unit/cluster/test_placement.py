"""Where replicas go."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.cluster.change import grown_topic, new_topic
from ottla.cluster.image import BrokerImage, ClusterImage, PartitionImage
from ottla.cluster.placement import (
    MOST_PARTITIONS,
    check_added_assignment,
    check_new_topic_assignment,
    place_replicas,
)
from ottla.config import BrokerConfig
from ottla.ports import SystemChance
from ottla.wire.errors import ErrorCode, KafkaError


class Fixed(SystemChance):
    """Always the same number, as far as it fits."""

    def __init__(self, number: float) -> None:
        self.number = number

    def uniform(self, low: float, high: float) -> float:
        return min(self.number, high)


def cluster(count: int) -> ClusterImage:
    image = ClusterImage("c")
    for node_id in range(1, count + 1):
        image = image.with_broker(BrokerImage(node_id, {}))
    return image


def test_replicas_lie_as_kafka_lays_them() -> None:
    # The table in the documentation of Kafka's own rack-unaware assignment: 5 brokers, 10 partitions, 3 replicas.
    assert place_replicas(range(5), 10, 3, Fixed(0)) == (
        (0, 1, 2),
        (1, 2, 3),
        (2, 3, 4),
        (3, 4, 0),
        (4, 0, 1),
        (0, 2, 3),
        (1, 3, 4),
        (2, 4, 0),
        (3, 0, 1),
        (4, 1, 2),
    )


@given(
    brokers=st.lists(st.integers(0, 100), min_size=1, max_size=8, unique=True),
    partitions=st.integers(1, 60),
    data=st.data(),
    number=st.floats(0, 100),
)
def test_replicas_are_distinct_and_evenly_spread(
    brokers: list[int], partitions: int, data: st.DataObject, number: float
) -> None:
    factor = data.draw(st.integers(1, len(brokers)))
    placed = place_replicas(brokers, partitions, factor, Fixed(number))
    assert len(placed) == partitions
    assert all(len(set(replicas)) == factor for replicas in placed)
    assert {broker for replicas in placed for broker in replicas} <= set(brokers)
    leaders = Counter(dict.fromkeys(brokers, 0) | Counter(replicas[0] for replicas in placed))
    assert max(leaders.values()) - min(leaders.values()) <= 1


@given(brokers=st.integers(1, 6), before=st.integers(1, 20), added=st.integers(1, 20), number=st.floats(0, 6))
def test_added_partitions_go_on_where_the_topic_left_off(brokers: int, before: int, added: int, number: float) -> None:
    ids = list(range(brokers))
    whole = place_replicas(ids, before + added, 1, Fixed(number))
    existing = [PartitionImage(index, each[0], 0, each, each) for index, each in enumerate(whole[:before])]
    assert place_replicas(ids, added, 1, Fixed(0), existing) == whole[before:]


@pytest.mark.parametrize(
    ("partitions", "factor", "code"),
    [
        (0, 1, ErrorCode.INVALID_PARTITIONS),
        (-5, 1, ErrorCode.INVALID_PARTITIONS),
        (MOST_PARTITIONS + 1, 1, ErrorCode.INVALID_PARTITIONS),
        (2**31 - 1, 1, ErrorCode.INVALID_PARTITIONS),
        (1, 0, ErrorCode.INVALID_REPLICATION_FACTOR),
        (1, 4, ErrorCode.INVALID_REPLICATION_FACTOR),
    ],
)
def test_impossible_counts_are_refused(partitions: int, factor: int, code: ErrorCode) -> None:
    with pytest.raises(KafkaError) as caught:
        place_replicas([1, 2, 3], partitions, factor, SystemChance())
    assert caught.value.code is code


@pytest.mark.parametrize(
    ("assignment", "complaint"),
    [
        ({}, "count up from 0"),
        ({1: [1]}, "count up from 0"),
        ({0: [1], 2: [1]}, "count up from 0"),
        ({0: []}, "no broker"),
        ({0: [1, 1]}, "twice"),
        ({0: [1], 1: [1, 2]}, "are not 1"),
        ({0: [1, 9]}, r"brokers \[9\]"),
        ({0: [-1]}, r"brokers \[-1\]"),
    ],
)
def test_a_manual_assignment_that_cannot_be_is_refused(assignment: dict[int, list[int]], complaint: str) -> None:
    with pytest.raises(KafkaError, match=complaint) as caught:
        check_new_topic_assignment(assignment, [1, 2, 3])
    assert caught.value.code is ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_an_assignment_for_added_partitions_fits_them() -> None:
    with pytest.raises(KafkaError, match="2 partitions are added, but replicas are assigned for 1"):
        check_added_assignment([[1]], [1], added=2, replication_factor=1)
    with pytest.raises(KafkaError, match="are not 2"):
        check_added_assignment([[1]], [1, 2], added=1, replication_factor=2)


def test_counts_left_open_are_the_brokers_defaults() -> None:
    broker = BrokerConfig({"num.partitions": "4", "default.replication.factor": "2"})
    topic = new_topic(cluster(3), "a", SystemChance(), broker)
    assert len(topic.partitions) == 4
    for partition in topic.partitions:
        assert len(partition.replicas) == 2
        assert partition.leader == partition.replicas[0]
        assert partition.isr == partition.replicas


def test_a_new_topic_takes_a_manual_assignment() -> None:
    topic = new_topic(cluster(3), "a", SystemChance(), BrokerConfig(), assignment={1: [2, 3], 0: [3, 1]})
    assert [partition.replicas for partition in topic.partitions] == [(3, 1), (2, 3)]
    assert [partition.index for partition in topic.partitions] == [0, 1]


@pytest.mark.parametrize(
    ("name", "settings", "code"),
    [
        ("no/name", {}, ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("old.one", {}, ErrorCode.TOPIC_ALREADY_EXISTS),
        ("old_one", {}, ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("a", {"configs": {"retention.ms": "soon"}}, ErrorCode.INVALID_CONFIG),
        ("a", {"configs": {"retention": "1"}}, ErrorCode.INVALID_CONFIG),
        ("a", {"partition_count": 2, "assignment": {0: [1]}}, ErrorCode.INVALID_REQUEST),
        ("a", {"replication_factor": 2}, ErrorCode.INVALID_REPLICATION_FACTOR),
    ],
)
def test_a_topic_that_cannot_be_is_refused_before_anything_is_written(
    name: str, settings: dict[str, object], code: ErrorCode
) -> None:
    image = cluster(1)
    image = image.with_topic(new_topic(image, "old.one", SystemChance(), BrokerConfig()))
    with pytest.raises(KafkaError) as caught:
        new_topic(image, name, SystemChance(), BrokerConfig(), **settings)  # type: ignore[arg-type]
    assert caught.value.code is code


def test_a_topic_grows_and_never_shrinks() -> None:
    image = cluster(3)
    image = image.with_topic(new_topic(image, "a", SystemChance(), BrokerConfig(), partition_count=2))
    grown = grown_topic(image, "a", 5, SystemChance())
    assert grown.topic_id == image.topics["a"].topic_id
    assert grown.partitions[:2] == image.topics["a"].partitions
    assert [partition.index for partition in grown.partitions] == [0, 1, 2, 3, 4]
    assert grown_topic(image, "a", 3, SystemChance(), [[3]]).partitions[2].replicas == (3,)
    for count in (2, 1, 0):
        with pytest.raises(KafkaError, match="has 2 partitions; ask for more") as caught:
            grown_topic(image, "a", count, SystemChance())
        assert caught.value.code is ErrorCode.INVALID_PARTITIONS
    with pytest.raises(KafkaError, match="no topic 'b'"):
        grown_topic(image, "b", 5, SystemChance())
