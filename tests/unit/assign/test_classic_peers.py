"""Groups of several libraries: theirs lead ours, and ours lead theirs, with the bytes that each writes."""

from typing import Any

import kafka.structs
import pytest
from aiokafka.structs import TopicPartition as AiokafkaPartition
from hypothesis import given
from hypothesis import strategies as st

from ottla.assign.assignor import AnyMember, Member
from ottla.assign.assignors import check_assignment
from ottla.assign.classic import assign_members, decode_assignment, encode_subscription, subscription_user_data

from .groups import Assignment, alike, counts, groups, moved, owners
from .peers import (
    AIOKAFKA,
    KAFKA_PYTHON,
    aiokafka_assigns,
    aiokafka_leads,
    aiokafka_reads,
    kafka_python_leads,
    kafka_python_reads,
)

OWNED: Assignment = {
    "a": {"apples": (1, 4)},
    "b": {"apples": (0,), "berries": (2,)},
    "c": {"apples": (2,), "berries": (0,)},
    "d": {"apples": (3,), "berries": (1,)},
}
"""Balanced, and not what anybody would give who did not know it."""

COUNTS = {"apples": 5, "berries": 3}
TOPICS = ["apples", "berries"]
GENERATION = 6


def ottla_joins(name: str, owned: dict[str, tuple[int, ...]]) -> bytes:
    kept = owned if name == "cooperative-sticky" else {}
    return encode_subscription(TOPICS, subscription_user_data(name, owned, GENERATION), kept, GENERATION)


def aiokafka_joins(name: str, owned: dict[str, tuple[int, ...]]) -> bytes:
    assignor = AIOKAFKA[name]
    if name != "sticky":
        return bytes(assignor.metadata(TOPICS).encode())
    partitions = [AiokafkaPartition(topic, index) for topic, indexes in owned.items() for index in indexes]
    return bytes(assignor._metadata(TOPICS, partitions, GENERATION).encode())


def kafka_python_joins(name: str, owned: dict[str, tuple[int, ...]]) -> bytes:
    assignor = KAFKA_PYTHON[name]()
    assignor.member_assignment = [
        kafka.structs.TopicPartition(topic, index) for topic, indexes in owned.items() for index in indexes
    ]
    assignor.generation = GENERATION
    return bytes(assignor.metadata(TOPICS).encode())


PEERS = {"aiokafka": (aiokafka_joins, aiokafka_reads), "kafka-python": (kafka_python_joins, kafka_python_reads)}


@pytest.mark.parametrize(
    ("peer", "name"),
    [("aiokafka", name) for name in AIOKAFKA] + [("kafka-python", name) for name in KAFKA_PYTHON],
)
def test_members_of_another_library_get_their_share_from_us(peer: str, name: str) -> None:
    joins, reads = PEERS[peer]
    subscriptions = {"a": ottla_joins(name, {}), "b": joins(name, {}), "c": joins(name, {})}
    assignments = assign_members(name, subscriptions, {}, COUNTS)
    members: dict[str, AnyMember] = {member_id: Member(frozenset(TOPICS)) for member_id in "abc"}
    read = {"a": decode_assignment(assignments["a"]), "b": reads(assignments["b"]), "c": reads(assignments["c"])}
    assert check_assignment(members, COUNTS, read) is None
    assert sorted(len(owners({"": given})) for given in read.values()) == [2, 3, 3]


@pytest.mark.parametrize(
    ("peer", "name"), [("aiokafka", "sticky"), ("kafka-python", "sticky"), ("kafka-python", "cooperative-sticky")]
)
def test_members_of_another_library_keep_what_they_have_when_we_lead(peer: str, name: str) -> None:
    joins, reads = PEERS[peer]
    subscriptions = {
        member_id: (ottla_joins if member_id in "ab" else joins)(name, owned) for member_id, owned in OWNED.items()
    }
    assignments = assign_members(name, subscriptions, {}, COUNTS)
    assert {member_id: reads(data) for member_id, data in assignments.items()} == OWNED


def test_our_members_keep_what_they_have_when_aiokafka_leads() -> None:
    subscriptions = {
        member_id: (aiokafka_joins if member_id in "ab" else ottla_joins)("sticky", owned)
        for member_id, owned in OWNED.items()
    }
    assert aiokafka_leads("sticky", subscriptions, COUNTS) == OWNED


def test_our_members_keep_what_they_have_when_kafka_python_leads() -> None:
    name = "cooperative-sticky"
    subscriptions = {
        member_id: (kafka_python_joins if member_id in "ab" else ottla_joins)(name, owned)
        for member_id, owned in OWNED.items()
    }
    assert kafka_python_leads(name, subscriptions, COUNTS) == OWNED


@pytest.mark.parametrize("name", KAFKA_PYTHON)
def test_our_members_get_their_share_when_kafka_python_leads(name: str) -> None:
    subscriptions = {"a": kafka_python_joins(name, {}), "b": ottla_joins(name, {}), "c": ottla_joins(name, {})}
    assignment = kafka_python_leads(name, subscriptions, COUNTS)
    members: dict[str, AnyMember] = {member_id: Member(frozenset(TOPICS)) for member_id in "abc"}
    assert check_assignment(members, COUNTS, assignment) is None


def test_sticky_user_data_are_those_that_aiokafka_writes() -> None:
    written = aiokafka_joins("sticky", OWNED["b"])
    assert written.endswith(subscription_user_data("sticky", OWNED["b"], GENERATION))


@given(members=groups, partition_counts=counts)
def test_ranges_are_those_that_aiokafka_gives(members: dict[str, AnyMember], partition_counts: dict[str, int]) -> None:
    subscriptions = {member_id: encode_subscription(member.topics) for member_id, member in members.items()}
    assignments = assign_members("range", subscriptions, {}, partition_counts)
    theirs = aiokafka_assigns("range", members, partition_counts)
    assert {member_id: decode_assignment(data) for member_id, data in assignments.items()} == theirs


@given(members=alike, partition_counts=counts, data=st.data())
def test_no_more_moves_than_under_aiokafka_when_a_member_leaves(
    members: dict[str, Any], partition_counts: dict[str, int], data: st.DataObject
) -> None:
    topics = next(iter(members.values())).topics & partition_counts.keys()
    first = {member_id: encode_subscription(topics) for member_id in members}
    before = aiokafka_leads("sticky", first, partition_counts)
    leaver = data.draw(st.sampled_from(sorted(members)))
    rest = {
        member_id: encode_subscription(topics, subscription_user_data("sticky", before[member_id], 1))
        for member_id in members
        if member_id != leaver
    }
    if not rest:
        return
    theirs = aiokafka_leads("sticky", rest, partition_counts)
    ours = assign_members("sticky", rest, {}, partition_counts)
    read = {member_id: decode_assignment(assignment) for member_id, assignment in ours.items()}
    assert moved(before, read) <= moved(before, theirs)
