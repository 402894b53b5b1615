"""The matrix over sockets, where logging in says who one is: somebody without rules, and somebody with all."""

from collections.abc import Iterator
from typing import Any

import pytest

from ottla.cluster.acl import (
    ACL,
    CLUSTER_NAME,
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
)
from ottla.testing import TestBroker
from ottla.wire.api import request as request_of
from tests.broker.acl_cases import CASES, FREE, Case
from tests.broker.acl_world import AUTHORIZATION_FAILED, TOPIC, codes
from tests.broker.sasl_client import SaslClient
from tests.interop.acl_people import SETTINGS, admin

EVERYTHING = ACLFilter(
    None,
    None,
    ACLOperation.ANY,
    ACLPermissionType.ANY,
    ResourcePatternFilter(ResourceType.ANY, None, ACLResourcePatternType.ANY),
)
ALL_OF = [
    ACL("User:bob", "*", ACLOperation.ALL, ACLPermissionType.ALLOW, ResourcePattern(kind, name))
    for kind, name in (
        (ResourceType.TOPIC, "*"),
        (ResourceType.GROUP, "*"),
        (ResourceType.TRANSACTIONAL_ID, "*"),
        (ResourceType.CLUSTER, CLUSTER_NAME),
    )
]


class Sockets:
    """A broker, and what requests have to know of it."""

    def __init__(self, broker: TestBroker) -> None:
        self.broker = broker
        with admin(broker) as root:
            root.create_topics([TOPIC])
            root.create_acls(ALL_OF)
            found = root.describe_topics([TOPIC])[TOPIC].topic_id
        assert found is not None
        self.topic_id = found.bytes

    def logged_in(self, user: str) -> SaslClient:
        client = SaslClient((self.broker.host, self.broker.port))
        assert client.plain(user, f"{user}-secret").error_code == 0
        return client

    def state(self) -> tuple[Any, ...]:
        """What the super user sees."""
        with admin(self.broker) as root:
            return (
                root.describe_topics(),
                set(root.describe_acls(EVERYTHING)),
                root.list_groups(),
                root.describe_user_scram_credentials(),
            )


@pytest.fixture
def sockets() -> Iterator[Sockets]:
    with TestBroker(SETTINGS) as started:
        yield Sockets(started)


def version_of(case: Case, sockets: Any) -> int:
    return case.versions(sockets)[-1]


def test_somebody_without_rules_is_refused_everything(sockets: Sockets) -> None:
    world: Any = sockets
    before = sockets.state()
    with sockets.logged_in("alice") as client:
        for case in CASES:
            answered = client.call(case.request(world), version_of(case, world))
            assert codes(answered) == {case.needed[0].code}, case.name
    assert sockets.state() == before


def test_somebody_with_all_rules_is_refused_nothing(sockets: Sockets) -> None:
    world: Any = sockets
    with sockets.logged_in("bob") as client:
        # The rules that it deletes are his own.
        for case in sorted(CASES, key=lambda case: case.name == "DeleteAcls"):
            answered = client.call(case.request(world), version_of(case, world))
            assert not codes(answered) & AUTHORIZATION_FAILED, case.name


def test_what_refuses_nobody_tells_nothing(sockets: Sockets) -> None:
    with sockets.logged_in("alice") as client:
        for key, why in FREE.items():
            if key not in (17, 36):
                # A second login is an error of its own.
                answered = client.call(request_of(key)(), 0)
                assert not codes(answered) & AUTHORIZATION_FAILED, why
                assert TOPIC not in repr(answered)
