"""Logins message by message: what is answered before, during and after one, and what closes the connection."""

import struct
from base64 import b64encode
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from ottla.broker.apis import SERVED, served_versions
from ottla.cluster.credential import ScramMechanism
from ottla.net.sasl.scram_client import ScramClient
from ottla.testing import TestBroker
from ottla.wire.api.api_versions import ApiVersionsRequest
from ottla.wire.api.list_groups import ListGroupsRequest
from ottla.wire.api.metadata import MetadataRequest
from ottla.wire.api.sasl_authenticate import SaslAuthenticateRequest
from ottla.wire.api.sasl_handshake import SaslHandshakeRequest
from ottla.wire.errors import ErrorCode, KafkaError
from tests.broker.sasl_client import ClosedError, SaslClient
from tests.broker.sasl_world import FAILED, PASSWORD, SETTINGS, connected, started

API_VERSIONS, SASL_HANDSHAKE, SASL_AUTHENTICATE = 18, 17, 36


@pytest.fixture(scope="module")
def broker() -> Iterator[TestBroker]:
    """A broker with users alice and bob, whose passwords end with their names."""
    found = started()
    yield found
    found.close()


@pytest.fixture
def client(broker: TestBroker) -> Iterator[SaslClient]:
    with connected(broker) as found:
        yield found


def all_requests() -> Iterator[tuple[int, int]]:
    """All keys and versions there are, and some that there are not."""
    for key in range(-1, 100):
        last = max(served_versions(key).last, 0) if key in SERVED else 3
        for version in range(-1, last + 3):
            yield key, version


def test_no_api_is_reached_before_a_login(broker: TestBroker) -> None:
    """Each key and version in a connection of its own, as the first request and after ApiVersions."""
    answered = set()

    def attempt(place: tuple[int, int], after_versions: bool) -> None:
        key, version = place
        with connected(broker) as one:
            if after_versions:
                assert one.call(ApiVersionsRequest(), 0).error_code == 0
            # A header of either kind, and zeros, which are empty values in most requests.
            one.send_frame(struct.pack(">hhih", key, version, 7, -1) + bytes(40))
            try:
                one.frame()
            except ClosedError:
                return
            answered.add(key)

    with ThreadPoolExecutor(8) as pool:
        for after_versions in (False, True):
            for _ in pool.map(attempt, list(all_requests()), [after_versions] * len(list(all_requests()))):
                pass
    assert answered == {API_VERSIONS, SASL_HANDSHAKE}


def test_no_api_is_reached_in_the_middle_of_a_login(broker: TestBroker) -> None:
    """What is answered says that it is not possible now, and the connection closes."""

    def attempt(place: tuple[int, int]) -> None:
        key, version = place
        with connected(broker) as one:
            assert one.handshake("SCRAM-SHA-256").error_code == 0
            one.send_frame(struct.pack(">hhih", key, version, 7, -1) + bytes(40))
            try:
                answer = one.frame()
            except ClosedError:
                return
            if key == SASL_AUTHENTICATE:
                assert one.is_closed()
                return
            assert key in SERVED
            assert version in served_versions(key)
            # Whatever it is, there is nothing in it but the error.
            assert len(answer) <= 60
            assert one.is_closed()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(attempt, list(all_requests())))


def test_a_request_in_the_middle_of_a_login_is_told_that_it_is_out_of_place(client: SaslClient) -> None:
    client.handshake("PLAIN")
    assert client.call(ListGroupsRequest(), 4).error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert client.is_closed()


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_after_a_login_everything_is_open(client: SaslClient, mechanism: str) -> None:
    assert client.call(ApiVersionsRequest(), 0).error_code == 0
    answer = (
        client.plain("alice", PASSWORD + "alice")
        if mechanism == "PLAIN"
        else client.scram("alice", PASSWORD + "alice", mechanism)
    )
    assert (answer.error_code, answer.session_lifetime_ms) == (0, 0)
    assert client.call(MetadataRequest(topics=[]), 12).brokers
    # A second login right away is refused, and does no harm.
    assert client.authenticate(b"").error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert client.handshake(mechanism).error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert client.call(MetadataRequest(topics=[]), 12).brokers


def test_passwords_of_the_settings_count_for_plain(client: SaslClient) -> None:
    assert client.plain("carol", "carols-password").error_code == 0


@pytest.mark.parametrize("version", [0, 1, 2])
def test_all_versions_of_the_messages_are_answered(client: SaslClient, version: int) -> None:
    assert client.plain("alice", PASSWORD + "alice", version).error_code == 0


def test_a_mechanism_that_is_not_on_offer_is_refused_with_those_that_are(client: SaslClient) -> None:
    answer = client.handshake("GSSAPI")
    assert answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
    assert answer.mechanisms == ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
    assert client.is_closed()


@pytest.mark.parametrize(
    "token", [b"", b"\0", b"\0alice", b"\0alice\0", b"root\0alice\0" + PASSWORD.encode(), b"\xff\xff"]
)
def test_what_makes_no_sense_is_a_failed_login(client: SaslClient, token: bytes) -> None:
    client.handshake("PLAIN")
    assert client.authenticate(token).error_code == FAILED
    assert client.is_closed()


def test_bare_messages_follow_the_first_version_of_the_handshake(client: SaslClient) -> None:
    assert client.handshake("SCRAM-SHA-512", version=0).error_code == 0
    mine = ScramClient(ScramMechanism.SCRAM_SHA_512, "bob", PASSWORD + "bob", "n")
    client.send_frame(mine.first())
    final = mine.answer(client.frame())
    assert final is not None
    client.send_frame(final)
    assert mine.answer(client.frame()) is None
    assert client.call(MetadataRequest(topics=[]), 1).brokers


def test_bare_messages_that_fail_get_no_answer(client: SaslClient) -> None:
    assert client.handshake("PLAIN", version=0).error_code == 0
    client.send_frame(b"\0bob\0wrong")
    assert client.is_closed()


def test_an_unknown_user_and_a_wrong_password_are_told_alike(broker: TestBroker) -> None:
    for mechanism in ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"):
        answers: list[tuple[Any, ...]] = []
        for user in ("alice", "nobody"):
            with connected(broker) as one:
                if mechanism == "PLAIN":
                    answer = one.plain(user, "wrong")
                else:
                    one.handshake(mechanism)
                    first = one.authenticate(f"n,,n={user},r=n".encode())
                    assert first.error_code == 0
                    nonce, salt, iterations = first.auth_bytes.split(b",")
                    size = 32 if mechanism == "SCRAM-SHA-256" else 64
                    answer = one.authenticate(b"c=biws,%b,p=%b" % (nonce, b64encode(bytes(size))))
                    answers.append((len(salt), iterations, b""))
                assert one.is_closed()
                answers.append((answer.error_code, answer.error_message, answer.auth_bytes))
        assert answers[: len(answers) // 2] == answers[len(answers) // 2 :]


def test_a_salt_does_not_change_from_one_attempt_to_the_next(broker: TestBroker) -> None:
    for user in ("alice", "nobody"):
        salts = set()
        for _ in range(2):
            with connected(broker) as one:
                one.handshake("SCRAM-SHA-256")
                salts.add(one.authenticate(f"n,,n={user},r=n".encode()).auth_bytes.split(b",")[1])
        assert len(salts) == 1


def test_a_recorded_login_cannot_be_played_again(broker: TestBroker) -> None:
    mine = ScramClient(ScramMechanism.SCRAM_SHA_256, "alice", PASSWORD + "alice", "n")
    with connected(broker) as one:
        one.handshake("SCRAM-SHA-256")
        final = mine.answer(one.authenticate(mine.first()).auth_bytes)
        assert final is not None
        assert one.authenticate(final).error_code == 0
    with connected(broker) as other:
        other.handshake("SCRAM-SHA-256")
        assert other.authenticate(mine.first()).error_code == 0
        assert other.authenticate(final).error_code == FAILED
        assert other.is_closed()


def test_a_login_cannot_be_begun_as_one_and_ended_as_another(broker: TestBroker) -> None:
    alice = ScramClient(ScramMechanism.SCRAM_SHA_256, "alice", PASSWORD + "alice", "n")
    with connected(broker) as one:
        one.handshake("SCRAM-SHA-256")
        final = alice.answer(one.authenticate(b"n,,n=bob,r=n").auth_bytes)
        assert final is not None
        assert one.authenticate(final).error_code == FAILED


def test_a_login_cannot_go_on_in_a_weaker_mechanism(client: SaslClient) -> None:
    client.handshake("SCRAM-SHA-512")
    client.authenticate(b"n,,n=alice,r=n")
    assert client.call(SaslHandshakeRequest(mechanism="PLAIN"), 1).error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert client.is_closed()


def test_a_login_is_over_after_one_failure_whatever_was_sent_along(client: SaslClient) -> None:
    client.handshake("PLAIN")
    client.send(SaslAuthenticateRequest(auth_bytes=b"\0alice\0wrong"), 2)
    client.send(SaslAuthenticateRequest(auth_bytes=f"\0alice\0{PASSWORD}alice".encode()), 2)
    client.send(MetadataRequest(topics=[]), 12)
    client.frame()
    assert client.is_closed()


def test_a_stranger_cannot_have_the_broker_keep_much(client: SaslClient) -> None:
    client.socket.sendall(struct.pack(">i", 600_000))
    assert client.is_closed()


def test_a_listener_may_take_less_of_strangers() -> None:
    settings = {**SETTINGS, "listener.name.sasl_plaintext.sasl.server.max.receive.size": "100"}
    with TestBroker(settings) as broker, connected(broker) as one:
        assert one.handshake("PLAIN").error_code == 0
        one.send(SaslAuthenticateRequest(auth_bytes=b"\0alice\0" + b"x" * 100), 2)
        assert one.is_closed()


def test_who_has_logged_in_may_send_more(client: SaslClient) -> None:
    client.plain("alice", PASSWORD + "alice")
    assert client.call(ListGroupsRequest(states_filter=["x" * 30_000] * 30), 4).error_code == 0


def test_a_listener_without_sasl_knows_no_logins(broker: TestBroker) -> None:
    with SaslClient((broker.host, broker.port)) as one:
        assert one.handshake("PLAIN").error_code == ErrorCode.ILLEGAL_SASL_STATE
        assert one.authenticate(b"\0alice\0x").error_code == ErrorCode.ILLEGAL_SASL_STATE
        assert one.call(MetadataRequest(topics=[]), 12).brokers


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"listener.name.sasl_plaintext.plain.sasl.jaas.config": 'X required user_a="secret-4711"'}, "semicolon"),
        ({"sasl.enabled.mechanisms": "OAUTHBEARER"}, "sasl.oauthbearer.jwks.endpoint.url"),
        ({"sasl.enabled.mechanisms": "GSSAPI"}, "'GSSAPI' is not among"),
    ],
)
def test_a_broker_that_could_not_check_logins_does_not_start(settings: dict[str, str], complaint: str) -> None:
    with pytest.raises(KafkaError, match=complaint) as refused, TestBroker({**SETTINGS, **settings}):
        pass
    assert "secret-4711" not in str(refused.value)
