"""Every API by every operation: who may and who may not, with Kafka's codes, and nothing happens to who may not."""

import logging
import re
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from ottla.broker.apis import SERVED
from ottla.cluster.acl import ACLOperation, ACLPermissionType, ACLResourcePatternType
from tests.broker.acl_cases import CASES, FREE, Case, Grant
from tests.broker.acl_world import ALICE, AUTHORIZATION_FAILED, World, codes

MakeWorld = Callable[..., World]

OPERATIONS = [one for one in ACLOperation if one not in (ACLOperation.UNKNOWN, ACLOperation.ANY)]
IMPLYING = {
    ACLOperation.DESCRIBE: {ACLOperation.READ, ACLOperation.WRITE, ACLOperation.DELETE, ACLOperation.ALTER},
    ACLOperation.DESCRIBE_CONFIGS: {ACLOperation.ALTER_CONFIGS},
}

PAIRS = [pytest.param(case, grant, id=f"{case.name}: {grant}") for case in CASES for grant in case.needed]


@pytest.fixture
def new_world(tmp_path: Path) -> Iterator[MakeWorld]:
    """Makes one world after the other."""
    worlds: list[World] = []
    numbers = count()

    def make(**settings: str) -> World:
        folder = tmp_path / str(next(numbers))
        folder.mkdir()
        worlds.append(World(folder, **settings))
        return worlds[-1]

    yield make
    for world in worlds:
        world.close()


def allow(world: World, *grants: Grant) -> None:
    for grant in grants:
        world.rule(grant.operation, grant.kind, grant.name)


def others_of(case: Case, grant: Grant) -> list[Grant]:
    return [other for other in (*case.needed, *case.also) if other is not grant]


def assert_denied(world: World, case: Case, grant: Grant, version: int) -> None:
    before = world.state()
    assert codes(world.ask(case.request(world), version)) == {grant.code}
    assert world.state() == before


def assert_allowed(world: World, case: Case, version: int) -> None:
    found = codes(world.ask(case.request(world), version))
    assert not found & AUTHORIZATION_FAILED
    # Old versions have other formats of records, and ways of their own to do without a member id.
    if version == case.versions(world)[-1]:
        assert found <= case.well
        assert case.name == "OffsetFetch" or found == case.well


@pytest.mark.parametrize(("case", "grant"), PAIRS)
def test_an_operation_allows_what_kafka_says_and_nothing_else(case: Case, grant: Grant, new_world: MakeWorld) -> None:
    refused = new_world()
    allow(refused, *others_of(case, grant))
    version = case.versions(refused)[-1]
    assert_denied(refused, case, grant, version)
    for operation in OPERATIONS:
        if operation in {grant.operation, ACLOperation.ALL} | IMPLYING.get(grant.operation, set()):
            world = new_world()
            allow(world, *others_of(case, grant))
            world.rule(operation, grant.kind, grant.name)
            assert_allowed(world, case, version)
        else:
            refused.rule(operation, grant.kind, grant.name)
    # With every other operation that there is.
    assert_denied(refused, case, grant, version)


@pytest.mark.parametrize(("case", "grant"), PAIRS)
def test_every_version_refuses_and_allows(case: Case, grant: Grant, new_world: MakeWorld) -> None:
    refused = new_world()
    allow(refused, *others_of(case, grant))
    for version in case.versions(refused):
        assert_denied(refused, case, grant, version)
        world = new_world()
        allow(world, *case.needed, *case.also)
        assert_allowed(world, case, version)


@pytest.mark.parametrize(("case", "grant"), PAIRS)
def test_a_rule_that_denies_is_stronger(case: Case, grant: Grant, new_world: MakeWorld) -> None:
    world = new_world()
    allow(world, *case.needed, *case.also)
    world.rule(grant.operation, grant.kind, grant.name, permission=ACLPermissionType.DENY, principal="User:*")
    assert_denied(world, case, grant, case.versions(world)[-1])


@pytest.mark.parametrize(("case", "grant"), PAIRS)
def test_prefixes_and_wildcards_allow_too(case: Case, grant: Grant, new_world: MakeWorld) -> None:
    for name, pattern in (
        (grant.name[:3], ACLResourcePatternType.PREFIXED),
        ("*", ACLResourcePatternType.LITERAL),
    ):
        if grant.name == "kafka-cluster":
            # A cluster has one name, and no other can be given.
            name, pattern = grant.name, ACLResourcePatternType.PREFIXED
        world = new_world()
        allow(world, *others_of(case, grant))
        world.rule(grant.operation, grant.kind, name, pattern=pattern, principal="User:*")
        assert_allowed(world, case, case.versions(world)[-1])


@pytest.mark.parametrize(("case", "grant"), PAIRS)
def test_every_refusal_is_in_the_log(
    case: Case, grant: Grant, new_world: MakeWorld, caplog: pytest.LogCaptureFixture
) -> None:
    world = new_world()
    allow(world, *others_of(case, grant))
    caplog.set_level(logging.INFO, "ottla.authorizer")
    assert codes(world.ask(case.request(world), case.versions(world)[-1])) == {grant.code}
    told = [record for record in caplog.records if record.name == "ottla.authorizer"]
    assert {vars(record)["principal"] for record in told} == {ALICE.principal}
    assert all(record.getMessage().startswith(f"{ALICE.principal} may not ") for record in told)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_without_an_authorizer_nobody_is_refused(case: Case, new_world: MakeWorld) -> None:
    world = new_world()
    world.small.broker.authorizer = None
    found = codes(world.ask(case.request(world), case.versions(world)[-1]))
    assert not found & AUTHORIZATION_FAILED


def test_every_api_that_is_served_is_in_the_matrix(new_world: MakeWorld) -> None:
    world = new_world()
    assert {case.key(world) for case in CASES} | FREE.keys() == set(SERVED)


def test_the_guide_says_what_the_matrix_shows(new_world: MakeWorld) -> None:
    world = new_world()
    guide = (Path(__file__).parents[2] / "docs" / "security.md").read_text()
    section = guide.split("\n### What each request takes\n")[1].split("\n### ")[0]
    numbered = re.compile(r"[A-Za-z]+\s\((\d+)\)")
    rows = [line.split("|")[1:3] for line in section.splitlines() if line.startswith("| ")]
    told = {int(number): takes for names, takes in rows for number in numbered.findall(names)}
    (last_words,) = (words for words in section.split("\n\n") if "refuse nobody" in words)
    assert {int(number) for number in numbered.findall(last_words)} == FREE.keys() - {16}
    assert told.keys() | FREE.keys() == set(SERVED)
    for case in CASES:
        for grant in case.needed:
            assert grant.operation.name in told[case.key(world)], case.name
            kind = grant.kind.name.replace("_", " ").lower()
            assert kind in told[case.key(world)], case.name
            usual = {"topic": 29, "group": 30, "cluster": 31, "transactional id": 53}[kind]
            assert grant.code == usual or f"({grant.code})" in told[case.key(world)], case.name
