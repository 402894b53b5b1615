"""Rules of access through the admin client: what is sent, what fails, and what older brokers cannot do."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from ottla.client.admin import (
    ACL,
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    Admin,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
)
from ottla.client.errors import InvalidRequestError, KafkaError, SeveralFailedError, UnsupportedVersionError
from ottla.testing import TestBroker
from ottla.wire.errors import ErrorCode

from .tools import ask, make_older

DESCRIBE_ACLS, CREATE_ACLS, DELETE_ACLS = 29, 30, 31
OLDEST = {DESCRIBE_ACLS: 0, CREATE_ACLS: 0, DELETE_ACLS: 0}

ORDERS = ResourcePattern(ResourceType.TOPIC, "orders")
PREFIX = ResourcePattern(ResourceType.TOPIC, "orders-", ACLResourcePatternType.PREFIXED)
READ = ACL("User:alice", "*", ACLOperation.READ, ACLPermissionType.ALLOW, ORDERS)
DENIED = ACL("User:bob", "10.0.0.1", ACLOperation.ALL, ACLPermissionType.DENY, PREFIX)
EVERYTHING = ACLFilter(
    None,
    None,
    ACLOperation.ANY,
    ACLPermissionType.ANY,
    ResourcePatternFilter(ResourceType.ANY, None, ACLResourcePatternType.ANY),
)


@pytest.fixture(scope="module")
def running() -> Iterator[TestBroker]:
    with TestBroker({"authorizer.class.name": "ottla", "super.users": "User:ANONYMOUS"}) as started:
        yield started


@pytest.fixture
def broker(running: TestBroker) -> Iterator[str]:
    """A broker that has no rules when the test is over."""
    yield running.bootstrap_servers
    ask(running.bootstrap_servers, lambda admin: admin.delete_acls([EVERYTHING]))


def test_rules_come_back_as_they_were_given(broker: str) -> None:
    async def story(admin: Admin) -> None:
        await admin.create_acls([READ, DENIED, READ])
        assert set(await admin.describe_acls(EVERYTHING)) == {READ, DENIED}
        of_orders = replace(EVERYTHING, resource_pattern=ORDERS)
        of_carol = replace(EVERYTHING, principal="User:carol")
        assert await admin.delete_acls([of_orders, of_carol]) == {of_orders: [READ], of_carol: []}
        assert await admin.describe_acls(EVERYTHING) == [DENIED]

    ask(broker, story)


def test_one_that_cannot_be_is_told_and_the_others_are_made(broker: str) -> None:
    nobody, nowhere = replace(READ, principal="alice"), replace(READ, host="")

    async def story(admin: Admin) -> None:
        with pytest.raises(InvalidRequestError, match="principal 'alice'"):
            await admin.create_acls([nobody, READ])
        with pytest.raises(SeveralFailedError) as failed:
            await admin.create_acls([nobody, DENIED, nowhere])
        assert set(failed.value.failures) == {nobody, nowhere}
        assert set(await admin.describe_acls(EVERYTHING)) == {READ, DENIED}
        with pytest.raises(InvalidRequestError, match="UNKNOWN"):
            await admin.describe_acls(replace(EVERYTHING, operation=ACLOperation.UNKNOWN))

    ask(broker, story)


def test_older_brokers_know_no_prefixes(broker: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make_older(monkeypatch, OLDEST)

    async def story(admin: Admin) -> None:
        await admin.create_acls([READ])
        assert await admin.describe_acls(EVERYTHING) == [READ]
        for work in (
            admin.create_acls([DENIED]),
            admin.describe_acls(replace(EVERYTHING, resource_pattern=PREFIX)),
            admin.delete_acls([replace(EVERYTHING, resource_pattern=PREFIX)]),
        ):
            with pytest.raises(UnsupportedVersionError, match="rules about prefixes"):
                await work

    ask(broker, story)


def test_a_broker_without_an_authorizer_says_so() -> None:
    async def story(admin: Admin) -> None:
        for work in (admin.create_acls([READ]), admin.describe_acls(EVERYTHING), admin.delete_acls([EVERYTHING])):
            with pytest.raises(KafkaError) as refused:
                await work
            assert refused.value.code is ErrorCode.SECURITY_DISABLED

    with TestBroker() as plain:
        ask(plain.bootstrap_servers, story)


def test_a_broker_without_an_authorizer_says_so_once_for_many_rules() -> None:
    async def story(admin: Admin) -> str:
        with pytest.raises(SeveralFailedError) as refused:
            await admin.create_acls([READ, DENIED, replace(READ, principal="User:carol")])
        assert {error.code for error in refused.value.failures.values()} == {ErrorCode.SECURITY_DISABLED}
        return str(refused.value)

    with TestBroker() as plain:
        said = ask(plain.bootstrap_servers, story)
    assert said.count("everybody may do everything here") == 1
    assert "3 failed: " in said


@pytest.mark.parametrize(
    ("method", "argument", "complaint"),
    [
        ("create_acls", READ, "acls is "),
        ("create_acls", [EVERYTHING], "give rules, each an ACL"),
        ("describe_acls", READ, "give an ACLFilter"),
        ("delete_acls", [READ], "give an ACLFilter"),
        ("delete_acls", "everything", "give a list"),
    ],
)
def test_what_is_no_rule_is_refused_at_the_call(broker: str, method: str, argument: Any, complaint: str) -> None:
    async def story(admin: Admin) -> None:
        with pytest.raises(TypeError, match=complaint):
            await getattr(admin, method)(argument)

    ask(broker, story)
