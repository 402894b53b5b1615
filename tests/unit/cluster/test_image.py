"""The picture of the cluster."""

from dataclasses import FrozenInstanceError

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.cluster.image import BrokerImage, ClusterImage, PartitionImage, TopicImage
from ottla.cluster.names import folded


def topic(name: str, number: int = 1) -> TopicImage:
    return TopicImage(name, number.to_bytes(16, "big"), (PartitionImage(0, 1, 0, (1,), (1,)),))


def test_a_change_leaves_the_older_picture_as_it_was() -> None:
    empty = ClusterImage("c")
    one = empty.with_topic(topic("a"))
    two = one.with_topic(topic("b", 2))
    none = two.without_topic("a").without_topic("b")
    assert [sorted(image.topics) for image in (empty, one, two, none)] == [[], ["a"], ["a", "b"], []]
    assert one.topic_by_id(topic("b", 2).topic_id) is None
    assert two.topics["a"] is one.topics["a"]


def test_a_picture_cannot_be_changed_in_place() -> None:
    image = ClusterImage("c").with_topic(topic("a"))
    with pytest.raises(FrozenInstanceError):
        image.controller_id = 2  # type: ignore[misc]
    with pytest.raises(TypeError):
        image.topics["a"].configs["x"] = "y"  # type: ignore[index]


def test_a_topic_made_again_is_found_by_its_new_id_only() -> None:
    image = ClusterImage("c").with_topic(topic("a", 1)).with_topic(topic("a", 2))
    assert image.topic_by_id(topic("a", 1).topic_id) is None
    assert image.topic_by_id(topic("a", 2).topic_id) is image.topics["a"]


def test_partitions_are_found_or_none() -> None:
    image = ClusterImage("c").with_topic(topic("a"))
    found = image.partition("a", 0)
    assert found is not None
    assert found.leader == 1
    assert [image.partition("a", -1), image.partition("a", 1), image.partition("b", 0)] == [None] * 3


def test_a_partition_changes_alone() -> None:
    partitions = tuple(PartitionImage(index, 1, 0, (1, 2), (1, 2)) for index in range(3))
    changed = TopicImage("a", bytes(16), partitions).with_partition(PartitionImage(1, 2, 1, (1, 2), (2,)))
    assert [partition.leader for partition in changed.partitions] == [1, 2, 1]


def test_brokers_come_and_go() -> None:
    image = ClusterImage("c").with_broker(BrokerImage(1, {})).with_broker(BrokerImage(2, {}, "rack"))
    assert image.with_broker(BrokerImage(1, {}, "other")).brokers[1].rack == "other"
    assert list(image.without_broker(1).without_broker(9).brokers) == [2]
    assert image.with_controller(2).controller_id == 2


@given(st.lists(st.tuples(st.text("a._", min_size=1, max_size=3), st.booleans())))
def test_collisions_are_found_as_by_looking_at_every_name(steps: list[tuple[str, bool]]) -> None:
    image = ClusterImage("c")
    for number, (name, add) in enumerate(steps, 1):
        colliding = [other for other in image.topics if other != name and folded(other) == folded(name)]
        assert image.colliding_topic(name) == (colliding[0] if colliding else None)
        if add and not colliding:
            image = image.with_topic(topic(name, number))
        elif not add:
            image = image.without_topic(name)
        assert {each.topic_id: each for each in image.topics.values()} == dict(image._by_id)
