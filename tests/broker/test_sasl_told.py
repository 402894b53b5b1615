"""What is told of logins, to those who fail and in the log: enough for the one, and nothing for the others."""

import logging
import struct
import time
from base64 import b64encode
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ottla.client.admin import (
    ConfigResource,
    ConfigResourceType,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from ottla.cluster.credential import ScramMechanism
from ottla.net.sasl.scram_client import ScramClient
from ottla.sync import Admin
from ottla.testing import TestBroker
from ottla.wire.api.api_versions import ApiVersionsRequest
from tests.broker.sasl_client import SaslClient
from tests.broker.sasl_world import FAILED, PASSWORD, SETTINGS, add_users, connected, started


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


def test_structured_logs_have_what_a_stranger_calls_itself(
    client: SaslClient, caplog: pytest.LogCaptureFixture
) -> None:
    assert client.call(ApiVersionsRequest(), 0).error_code == 0
    client.socket.sendall(struct.pack(">i", -1))
    assert client.is_closed()
    (told,) = [record for record in caplog.records if "closing the connection" in record.getMessage()]
    assert (vars(told)["client_id"], vars(told)["principal"]) == ("raw", "User:ANONYMOUS")


def test_a_failed_login_is_answered_late() -> None:
    slow = started(connection_failed_authentication_delay_ms="300")
    try:
        for mechanism in ("PLAIN", "SCRAM-SHA-256"):
            with connected(slow) as one:
                began = time.monotonic()
                answer = one.plain("alice", "wrong") if mechanism == "PLAIN" else one.scram("alice", "wrong", mechanism)
                assert answer.error_code == FAILED
                assert time.monotonic() - began >= 0.29
    finally:
        slow.close()


@pytest.mark.parametrize("has_last_word", [True, False])
def test_a_refused_token_is_told_once_and_late_also_if_its_bearer_leaves(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, has_last_word: bool
) -> None:
    (tmp_path / "keys.json").write_text('{"keys": []}')
    settings = {
        **SETTINGS,
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "sasl.oauthbearer.jwks.endpoint.url": (tmp_path / "keys.json").as_uri(),
        "connection.failed.authentication.delay.ms": "300",
    }
    head = b64encode(b'{"alg":"ES256","kid":"made-up"}').decode().rstrip("=")
    with TestBroker(settings) as broker, connected(broker) as one:
        assert one.handshake("OAUTHBEARER").error_code == 0
        began = time.monotonic()
        refusal = one.authenticate(f"n,,\1auth=Bearer {head}.e30.AAAA\1\1".encode())
        assert time.monotonic() - began > 0.25
        assert refusal.auth_bytes == b'{"status":"invalid_token"}'
        if has_last_word:
            assert one.authenticate(b"\1").error_code == FAILED
    assert caplog.text.count("no key 'made-up' is known") == 1


def test_what_is_logged_names_peer_and_mechanism_and_no_secret(
    broker: TestBroker, caplog: pytest.LogCaptureFixture
) -> None:
    secrets = ["hunter2-typed-as-name", "hunter2-typed-as-password", PASSWORD]
    with caplog.at_level(logging.DEBUG):
        for user, password in (("alice", secrets[1]), (secrets[0], "x"), ("alice", PASSWORD + "alice")):
            with connected(broker) as one:
                one.plain(user, password)
                peer = "{}:{}".format(*one.socket.getsockname())
                if password != PASSWORD + "alice":
                    assert one.is_closed()
                    claim = "'alice'" if user == "alice" else "nobody who is known"
                    assert f"{peer} as {claim} with PLAIN" in caplog.text
            with connected(broker) as one:
                one.scram(user, password)
    assert "User:alice logged in" in caplog.text
    for record in caplog.records:
        for secret in secrets:
            assert secret not in record.getMessage()
            assert secret not in repr(vars(record))


def test_passwords_in_the_settings_are_not_shown(broker: TestBroker) -> None:
    name = "listener.name.sasl_plaintext.plain.sasl.jaas.config"
    resource = ConfigResource(ConfigResourceType.BROKER, "1")
    with Admin(broker.bootstrap_servers) as admin:
        found = admin.describe_configs([resource])[resource]
    assert "carols-password" not in repr(found)
    assert (found[name].value, found[name].is_sensitive) == (None, True)


def test_the_log_says_that_a_user_has_no_password_for_a_mechanism_and_the_answer_does_not(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with closing(started()) as broker:
        add_users(broker, ["dave"], [ScramMechanism.SCRAM_SHA_512])
        answers = []
        for user, mechanism in (
            ("dave", "SCRAM-SHA-256"),
            ("carol", "SCRAM-SHA-256"),
            ("alice", "SCRAM-SHA-256"),
            ("nobody", "SCRAM-SHA-256"),
        ):
            with connected(broker) as one:
                answer = one.scram(user, "wrong", mechanism)
                answers.append((answer.error_code, answer.error_message, answer.auth_bytes))
    assert len(set(answers)) == 1
    told = [one.partition(" as ")[2] for one in caplog.messages if one.startswith("a login from")]
    assert told == [
        "'dave' with SCRAM-SHA-256 failed: the user has no password for SCRAM-SHA-256, but for SCRAM-SHA-512",
        "'carol' with SCRAM-SHA-256 failed: the user has no password for SCRAM-SHA-256, but for PLAIN",
        "'alice' with SCRAM-SHA-256 failed: the password is wrong",
        "nobody who is known with SCRAM-SHA-256 failed: there is no such user",
    ]


@pytest.mark.parametrize("change", ["deleted", "changed"])
def test_who_is_deleted_or_gets_another_password_in_the_middle_of_a_login_does_not_get_in(
    change: str, caplog: pytest.LogCaptureFixture
) -> None:
    mine = ScramClient(ScramMechanism.SCRAM_SHA_256, "alice", PASSWORD + "alice", "n")
    with closing(started()) as broker, connected(broker) as one, Admin(broker.bootstrap_servers) as admin:
        one.handshake("SCRAM-SHA-256")
        final = mine.answer(one.authenticate(mine.first()).auth_bytes)
        assert final is not None
        mechanism = ScramMechanism.SCRAM_SHA_256
        admin.alter_user_scram_credentials(
            [
                UserScramCredentialDeletion("alice", mechanism)
                if change == "deleted"
                else UserScramCredentialUpsertion("alice", mechanism, "another")
            ]
        )
        answer = one.authenticate(final)
        assert (answer.error_code, answer.auth_bytes) == (FAILED, b"")
        assert one.is_closed()
    assert "the user was deleted, or got another password, in the middle of the login" in caplog.text
