"""Groups of our members and Java's: Kafka's own assignors lead ours, and ours lead Java's members."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random

import pytest

from ottla.assign.classic import (
    assign_members,
    decode_assignment,
    encode_subscription,
    is_cooperative,
    subscription_user_data,
)
from tests.java import JavaProgram, jars, skip_without_maven

from .groups import Assignment, moved, owners

pytestmark = [pytest.mark.maven, skip_without_maven("KAFKA'S OWN ASSIGNORS ARE NOT ASKED")]

NAMES = ["range", "roundrobin", "sticky", "cooperative-sticky"]
TOPICS = ["apples", "berries", "cherries"]
OWNED: Assignment = {
    "a": {"apples": (1, 4)},
    "b": {"apples": (0,), "berries": (2,)},
    "c": {"apples": (2,), "berries": (0,)},
    "d": {"apples": (3,), "berries": (1,)},
}
"""Balanced, and not what anybody would give who did not know it."""
COUNTS = {"apples": 5, "berries": 3}


@pytest.fixture(scope="module")
def java() -> Iterator[JavaProgram]:
    with JavaProgram(jars("4.4.0"), Path(__file__).parent / "java" / "Assignors.java") as program:
        yield program


def ottla_joins(name: str, topics: list[str], owned: dict[str, tuple[int, ...]], generation: int) -> bytes:
    kept = owned if is_cooperative(name) else {}
    return encode_subscription(topics, subscription_user_data(name, owned, generation), kept, generation)


def java_joins(
    java: JavaProgram,
    name: str,
    topics: list[str],
    owned: dict[str, tuple[int, ...]],
    generation: int,
    version: int = 3,
) -> bytes:
    question = {"do": "join", "assignor": name, "topics": topics, "owned": owned, "generation": generation}
    return bytes.fromhex(java.ask(question | {"version": version}))


def java_leads(
    java: JavaProgram,
    name: str,
    subscriptions: Mapping[str, bytes],
    instance_ids: Mapping[str, str | None],
    partition_counts: Mapping[str, int],
) -> dict[str, bytes]:
    question = {"do": "lead", "assignor": name, "instances": instance_ids, "counts": partition_counts}
    question["subscriptions"] = {member_id: data.hex() for member_id, data in subscriptions.items()}
    return {member_id: bytes.fromhex(digits) for member_id, digits in java.ask(question).items()}


def read(assignments: Mapping[str, bytes]) -> Assignment:
    return {member_id: decode_assignment(data) for member_id, data in assignments.items()}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("generation", [-1, 7])
def test_a_subscription_has_javas_bytes(java: JavaProgram, name: str, generation: int) -> None:
    # One topic: in a sticky assignor's user data Java has several in no order.
    owned = OWNED["a"] if generation >= 0 else {}
    theirs = java_joins(java, name, ["apples", "berries"], owned, generation)
    # Where Java writes null for user data, we write none: consumers of 0.9 cannot read null.
    theirs = theirs.replace(b"berries\xff\xff\xff\xff", b"berries\0\0\0\0")
    assert ottla_joins(name, ["berries", "apples"], owned, generation) == theirs


@pytest.mark.parametrize("name", ["range", "roundrobin"])
def test_gives_what_java_gives(java: JavaProgram, name: str) -> None:
    random = Random(5)
    for _ in range(100):
        counts = {topic: random.randrange(7) for topic in random.sample(TOPICS, random.randint(1, 3))}
        members = [f"member-{number}" for number in range(random.randint(1, 6))]
        subscriptions = {
            member_id: encode_subscription(random.sample(TOPICS, random.randint(1, 3))) for member_id in members
        }
        instance_ids = {member_id: random.choice([None, str(random.random())]) for member_id in members}
        mine = assign_members(name, subscriptions, instance_ids, counts)
        assert read(mine) == read(java_leads(java, name, subscriptions, instance_ids, counts))


@pytest.mark.parametrize("name", ["sticky", "cooperative-sticky"])
@pytest.mark.parametrize("version", [1, 2, 3])
def test_javas_members_keep_what_they_have_when_we_lead(java: JavaProgram, name: str, version: int) -> None:
    topics = ["apples", "berries"]
    subscriptions = {
        member_id: ottla_joins(name, topics, owned, 7)
        if member_id in "ab"
        else java_joins(java, name, topics, owned, 7, version)
        for member_id, owned in OWNED.items()
    }
    assignments = assign_members(name, subscriptions, {}, COUNTS)
    seen = {member_id: java.ask({"do": "read", "data": data.hex()}) for member_id, data in assignments.items()}
    assert seen == {
        member_id: {topic: list(indexes) for topic, indexes in owned.items()} for member_id, owned in OWNED.items()
    }


@pytest.mark.parametrize("name", ["sticky", "cooperative-sticky"])
def test_our_members_keep_what_they_have_when_java_leads(java: JavaProgram, name: str) -> None:
    subscriptions = {
        member_id: ottla_joins(name, ["apples", "berries"], owned, 7) for member_id, owned in OWNED.items()
    }
    assert read(java_leads(java, name, subscriptions, {}, COUNTS)) == OWNED


@pytest.mark.parametrize("version", [1, 3])
def test_a_claim_of_a_java_member_is_as_old_as_java_says(java: JavaProgram, version: int) -> None:
    name, topics = "cooperative-sticky", ["apples"]
    for generation, owner in ((6, "java"), (8, "ottla")):
        subscriptions = {
            "java": java_joins(java, name, topics, {"apples": (0, 1)}, 7, version),
            "ottla": ottla_joins(name, topics, {"apples": (0, 1)}, generation),
        }
        assert read(assign_members(name, subscriptions, {}, {"apples": 4}))[owner] == {"apples": (0, 1)}


@pytest.mark.parametrize("name", ["sticky", "cooperative-sticky"])
def test_as_many_move_and_wait_as_under_java(java: JavaProgram, name: str) -> None:
    """Who loses what may differ between leaders; how much does not, where all read the same."""
    random = Random(7)
    for _ in range(60):
        counts = {topic: random.randint(1, 9) for topic in TOPICS}
        members = [f"member-{number}" for number in range(random.randint(2, 6))]
        owned: Assignment = {member_id: {} for member_id in members}
        for topic, count in counts.items():
            for index in range(count):
                owner = owned[random.choice(members)]
                owner[topic] = (*owner.get(topic, ()), index)
        for member_id in random.sample(members, random.randrange(len(members))):
            del owned[member_id]
        owned["newcomer"] = {}
        subscriptions = {member_id: ottla_joins(name, TOPICS, mine, 7) for member_id, mine in owned.items()}
        ours = read(assign_members(name, subscriptions, {}, counts))
        theirs = read(java_leads(java, name, subscriptions, {}, counts))
        assert moved(owned, ours) == moved(owned, theirs)
        assert len(owners(ours)) == len(owners(theirs))
