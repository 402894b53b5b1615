"""DescribeUserScramCredentials and AlterUserScramCredentials."""

from typing import Any

import pytest

from ottla.cluster.credential import ScramMechanism
from ottla.net.sasl.scram import salted_password
from ottla.wire.api.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from ottla.wire.api.describe_user_scram_credentials import DescribeUserScramCredentialsRequest, UserName
from ottla.wire.errors import ErrorCode
from tests.unit.broker.small_broker import SmallBroker

SALT = b"0123456789abcdef"


@pytest.fixture
def broker(small: SmallBroker) -> SmallBroker:
    small.run(small.broker.users.load())
    return small


def upsertion(name: str, mechanism: int = 1, iterations: int = 4096, **fields: Any) -> ScramCredentialUpsertion:
    salted = salted_password(ScramMechanism(mechanism), "wonder", SALT, iterations) if mechanism in (1, 2) else b"x"
    return ScramCredentialUpsertion(
        **{
            "name": name,
            "mechanism": mechanism,
            "iterations": iterations,
            "salt": SALT,
            "salted_password": salted,
            **fields,
        }
    )


def alter(
    broker: SmallBroker,
    upsertions: list[ScramCredentialUpsertion],
    deletions: list[ScramCredentialDeletion] | None = None,
) -> dict[str, int]:
    answer = broker.ask(AlterUserScramCredentialsRequest(upsertions=upsertions, deletions=deletions or []), 0)
    return {result.user: result.error_code for result in answer.results}


def described(broker: SmallBroker, *names: str) -> dict[str, Any]:
    users = [UserName(name=name) for name in names] or None
    answer = broker.ask(DescribeUserScramCredentialsRequest(users=users), 0)
    assert answer.error_code == 0
    return {
        result.user: result.error_code or [(info.mechanism, info.iterations) for info in result.credential_infos]
        for result in answer.results
    }


def test_users_are_set_changed_described_and_deleted(broker: SmallBroker) -> None:
    assert alter(broker, [upsertion("alice"), upsertion("alice", 2, 8192), upsertion("bob")]) == {"alice": 0, "bob": 0}
    assert described(broker) == {"alice": [(1, 4096), (2, 8192)], "bob": [(1, 4096)]}
    assert alter(broker, [upsertion("alice", 1, 16384)], [ScramCredentialDeletion(name="bob", mechanism=1)]) == {
        "alice": 0,
        "bob": 0,
    }
    assert described(broker) == {"alice": [(1, 16384), (2, 8192)]}
    assert alter(broker, [], [ScramCredentialDeletion(name="alice", mechanism=1)]) == {"alice": 0}
    assert described(broker, "alice") == {"alice": [(2, 8192)]}


def test_what_does_not_exist_is_said_by_user(broker: SmallBroker) -> None:
    alter(broker, [upsertion("alice")])
    assert described(broker, "alice", "bob") == {"alice": [(1, 4096)], "bob": ErrorCode.RESOURCE_NOT_FOUND}
    deletions = [ScramCredentialDeletion(name="alice", mechanism=2), ScramCredentialDeletion(name="bob", mechanism=1)]
    assert set(alter(broker, [], deletions).values()) == {ErrorCode.RESOURCE_NOT_FOUND}
    assert described(broker) == {"alice": [(1, 4096)]}


def test_nothing_may_be_named_twice(broker: SmallBroker) -> None:
    alter(broker, [upsertion("alice")])
    assert described(broker, "alice", "alice") == {"alice": ErrorCode.DUPLICATE_RESOURCE}
    assert alter(broker, [upsertion("alice", 1, 5000), upsertion("alice", 1, 6000)]) == {
        "alice": ErrorCode.DUPLICATE_RESOURCE
    }
    both = [upsertion("alice", 1, 5000)], [ScramCredentialDeletion(name="alice", mechanism=1)]
    assert alter(broker, *both) == {"alice": ErrorCode.DUPLICATE_RESOURCE}
    assert described(broker) == {"alice": [(1, 4096)]}


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (upsertion("", 1), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (upsertion("alice", 1, 4095), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (upsertion("alice", 1, 16385), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (upsertion("alice", salt=b""), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (upsertion("alice", salt=bytes(2000)), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (upsertion("alice", salted_password=b""), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (upsertion("alice", 0), ErrorCode.UNSUPPORTED_SASL_MECHANISM),
        (upsertion("alice", 3), ErrorCode.UNSUPPORTED_SASL_MECHANISM),
    ],
)
def test_what_will_not_do_is_refused_and_leaves_others_alone(
    broker: SmallBroker, asked: ScramCredentialUpsertion, code: ErrorCode
) -> None:
    assert alter(broker, [asked, upsertion("bob")]) == {asked.name: code, "bob": 0}
    assert described(broker) == {"bob": [(1, 4096)]}
