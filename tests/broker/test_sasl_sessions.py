"""Sessions that end, and logins that make them go on."""

import time
from collections.abc import Iterator

import pytest

from ottla.cluster.credential import ScramMechanism
from ottla.net.sasl.scram_client import ScramClient
from ottla.testing import TestBroker
from ottla.wire.api.list_groups import ListGroupsRequest
from ottla.wire.api.metadata import MetadataRequest
from ottla.wire.errors import ErrorCode
from tests.broker.sasl_client import SaslClient
from tests.broker.sasl_world import FAILED, PASSWORD, connected, started


@pytest.fixture(scope="module")
def short() -> Iterator[TestBroker]:
    """A broker whose sessions last one second and a half."""
    found = started(connections_max_reauth_ms="1500")
    yield found
    found.close()


def until_next_login(client: SaslClient) -> None:
    """Wait until it is allowed to log in again."""
    deadline = time.monotonic() + 10
    while client.handshake("SCRAM-SHA-256").error_code == ErrorCode.ILLEGAL_SASL_STATE:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_session_goes_on_with_another_login(short: TestBroker) -> None:
    with connected(short) as one:
        assert one.scram("alice", PASSWORD + "alice").session_lifetime_ms == pytest.approx(1500, abs=20)
        ends = time.monotonic() + 1.5
        until_next_login(one)
        mine = ScramClient(ScramMechanism.SCRAM_SHA_256, "alice", PASSWORD + "alice", "n")
        final = mine.answer(one.authenticate(mine.first()).auth_bytes)
        assert final is not None
        assert one.authenticate(final).session_lifetime_ms == pytest.approx(1500, abs=20)
        while time.monotonic() < ends + 0.2:
            assert one.call(MetadataRequest(topics=[]), 12).brokers
            time.sleep(0.1)


def test_a_session_that_is_over_ends_with_the_next_request(short: TestBroker) -> None:
    with connected(short) as one:
        lifetime_ms = one.scram("alice", PASSWORD + "alice").session_lifetime_ms
        assert one.call(MetadataRequest(topics=[]), 12).brokers
        time.sleep(lifetime_ms / 1000 + 0.05)
        one.send(MetadataRequest(topics=[]), 12)
        assert one.is_closed()


def test_a_login_is_still_possible_when_the_session_is_over(short: TestBroker) -> None:
    with connected(short) as one:
        lifetime_ms = one.scram("alice", PASSWORD + "alice").session_lifetime_ms
        time.sleep(lifetime_ms / 1000 + 0.05)
        assert one.scram("alice", PASSWORD + "alice").error_code == 0
        assert one.call(MetadataRequest(topics=[]), 12).brokers


@pytest.mark.parametrize(
    ("user", "password", "mechanism"),
    [
        ("bob", PASSWORD + "bob", "SCRAM-SHA-256"),
        ("alice", "wrong", "SCRAM-SHA-256"),
        ("alice", PASSWORD + "alice", "SCRAM-SHA-512"),
    ],
)
def test_a_second_login_must_be_the_same_users_in_the_same_way(
    short: TestBroker, user: str, password: str, mechanism: str
) -> None:
    with connected(short) as one:
        one.scram("alice", PASSWORD + "alice")
        time.sleep(1.05)
        one.handshake(mechanism)
        found = ScramMechanism.named(mechanism)
        assert found is not None
        mine = ScramClient(found, user, password, "n")
        answer = one.authenticate(mine.first())
        if not answer.error_code:
            final = mine.answer(answer.auth_bytes)
            assert final is not None
            answer = one.authenticate(final)
        assert answer.error_code == FAILED
        assert one.is_closed()


def test_nothing_else_is_answered_while_a_client_logs_in_again(short: TestBroker) -> None:
    with connected(short) as one:
        one.scram("alice", PASSWORD + "alice")
        until_next_login(one)
        assert one.call(ListGroupsRequest(), 4).error_code == ErrorCode.ILLEGAL_SASL_STATE
        assert one.is_closed()
