"""Java's producer and consumer log in: new ones in SaslAuthenticate requests, old ones with bare messages."""

import json
import logging
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from uuid import uuid4

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import ECAlgorithm

from ottla.broker.turns import MOST_WAITING
from ottla.client.admin import NewTopic, ScramMechanism, UserScramCredentialDeletion, UserScramCredentialUpsertion
from ottla.cluster.credential import ScramCredential
from ottla.net.sasl.scram import matches
from ottla.record import Record
from ottla.sync import Admin, Producer
from ottla.testing import TestBroker
from ottla.wire.api.sasl_authenticate import SaslAuthenticateRequest
from tests.broker.sasl_client import SaslClient
from tests.certificates import Authority, written
from tests.java import skip_without_maven

from .java_client import NEWEST, JavaClient, release

pytestmark = [pytest.mark.maven, skip_without_maven("Java's clients logged in nowhere")]

PACKAGE = "org.apache.kafka.common.security"
MODULES = {
    "PLAIN": f"{PACKAGE}.plain.PlainLoginModule",
    "SCRAM-SHA-256": f"{PACKAGE}.scram.ScramLoginModule",
    "SCRAM-SHA-512": f"{PACKAGE}.scram.ScramLoginModule",
}
WITH_LOGINS = ("4.4.0", "2.8.2", "0.11.0.3", "0.10.2.2")
"""From 1.0 on messages go in SaslAuthenticate requests, and from 2.2 on clients log in again before a session ends."""

# SCRAM of the oldest ones needs a class that Java has no more.
each_login = pytest.mark.parametrize(
    ("java", "mechanism"),
    [
        (version, mechanism)
        for version in WITH_LOGINS
        for mechanism in MODULES
        if mechanism == "PLAIN" or release(version) >= (1,)
    ],
    indirect=["java"],
)


SESSION_MS = 2_000
KEY, OTHER_KEY, RETIRED_KEY = (ec.generate_private_key(ec.SECP256R1()) for _ in range(3))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("java-sasl")


def write_keys(folder: Path, **keys: ec.EllipticCurvePrivateKey) -> str:
    """Have these trusted; the address of the key set."""
    found = [{**json.loads(ECAlgorithm.to_jwk(key.public_key())), "kid": name} for name, key in keys.items()]
    return Path(written(folder, "keys.json", json.dumps({"keys": found}).encode())).as_uri()


@pytest.fixture(scope="module")
def broker(folder: Path) -> Iterator[TestBroker]:
    """A broker with a user alice, and tokens of two keys that are good."""
    authority = Authority()
    written(folder, "ca.pem", authority.pem)
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0,SASL_SSL://127.0.0.1:0",
        "ssl.keystore.location": str(written(folder, "broker.pem", authority.issue("localhost").store)),
        "sasl.enabled.mechanisms": ",".join([*MODULES, "OAUTHBEARER"]),
        "sasl.oauthbearer.jwks.endpoint.url": write_keys(folder, one=KEY, two=RETIRED_KEY),
        "sasl.oauthbearer.jwks.endpoint.refresh.ms": "200",
        "sasl.oauthbearer.clock.skew.seconds": "0",
    }
    with TestBroker(settings) as started:
        with Admin(started.bootstrap_servers) as admin:
            admin.alter_user_scram_credentials(
                [UserScramCredentialUpsertion("alice", mechanism, "wonder") for mechanism in ScramMechanism]
            )
        yield started


def login(mechanism: str, password: str) -> dict[str, Any]:
    return {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
        "sasl_jaas_config": f'{MODULES[mechanism]} required username="alice" password="{password}";',
    }


@each_login
def test_java_logs_in_and_writes_and_reads(broker: TestBroker, java: JavaClient, mechanism: str) -> None:
    servers, topic = str(broker.endpoints["SASL_PLAINTEXT"]), f"orders-{uuid4()}"
    right = login(mechanism, "wonder")
    assert java.produce(servers, topic, [Record(0, 1000, b"k", b"two apples")], **right) == [0]
    assert [record.value for record in java.consume(servers, topic, 1, **right).records] == [b"two apples"]


@each_login
def test_java_with_a_wrong_password_gets_nowhere(broker: TestBroker, java: JavaClient, mechanism: str) -> None:
    servers, topic = str(broker.endpoints["SASL_PLAINTEXT"]), f"orders-{uuid4()}"
    wrong = {**login(mechanism, "wander"), "max_block_ms": 2000}
    (outcome,) = java.produce(servers, topic, [Record(0, 1000, b"k", b"two apples")], **wrong)
    assert isinstance(outcome, str)
    # Older ones have no word for it, and only know that it takes too long.
    assert ("SaslAuthenticationException" if java.release >= (1,) else "Timeout") in outcome
    with Admin(broker.bootstrap_servers) as admin:
        assert topic not in admin.list_topics()


@pytest.mark.parametrize("mechanism", [*MODULES, "OAUTHBEARER"])
@pytest.mark.parametrize("java", [NEWEST], indirect=True)
def test_java_logs_in_over_tls(broker: TestBroker, java: JavaClient, folder: Path, mechanism: str) -> None:
    servers, topic, record = str(broker.endpoints["SASL_SSL"]), f"orders-{uuid4()}", Record(0, 1000, b"k", b"v")
    tls = {
        "security_protocol": "SASL_SSL",
        "ssl_truststore_type": "PEM",
        "ssl_truststore_location": str(folder / "ca.pem"),
    }
    bears_token = mechanism == "OAUTHBEARER"
    right, wrong = (
        (bearing(token()), bearing(token(OTHER_KEY)))
        if bears_token
        else (login(mechanism, "wonder"), {**login(mechanism, "wander"), "max_block_ms": 8000})
    )
    assert java.produce(servers, topic, [record], **{**right, **tls}) == [0]
    assert [one.value for one in java.consume(servers, topic, 1, **{**right, **tls}).records] == [b"v"]
    assert "SaslAuthenticationException" in str(java.produce(servers, topic, [record], **{**wrong, **tls})[0])


def token(key: ec.EllipticCurvePrivateKey = KEY, key_id: str = "one", seconds: int = 300) -> str:
    now = int(time.time())
    return jwt.encode({"sub": "alice", "iat": now - 400, "exp": now + seconds}, key, "ES256", {"kid": key_id})


def bearing(found: str) -> dict[str, Any]:
    return {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "OAUTHBEARER",
        "sasl_login_callback_handler_class": "TokenLogin",
        "sasl_jaas_config": f'{PACKAGE}.oauthbearer.OAuthBearerLoginModule required token="{found}";',
        # Where its first connection is let in and the next is not, it goes on trying for as long as this.
        "delivery_timeout_ms": 8000,
        "request_timeout_ms": 5000,
        "max_block_ms": 8000,
    }


each_with_tokens = pytest.mark.parametrize("java", [NEWEST, "2.8.2"], indirect=True)


@each_with_tokens
def test_java_with_a_good_token_writes_and_reads_and_with_any_other_gets_nowhere(
    broker: TestBroker, java: JavaClient, folder: Path
) -> None:
    servers, topic, record = str(broker.endpoints["SASL_PLAINTEXT"]), f"orders-{uuid4()}", Record(0, 1000, b"k", b"v")
    retiring = token(RETIRED_KEY, "two")
    write_keys(folder, one=KEY, two=RETIRED_KEY)
    for offset, good in enumerate((token(), retiring)):
        assert java.produce(servers, topic, [record], **bearing(good)) == [offset]
    assert len(java.consume(servers, topic, 2, **bearing(token())).records) == 2
    write_keys(folder, one=KEY)
    deadline = time.monotonic() + 30
    while isinstance(java.produce(servers, topic, [record], **bearing(retiring))[0], int):
        assert time.monotonic() < deadline, "the key was taken out of the set"
    for bad in (token(OTHER_KEY), token(seconds=-5), retiring):
        (outcome,) = java.produce(servers, topic, [record], **bearing(bad))
        assert "SaslAuthenticationException" in str(outcome)
        assert bad not in str(outcome)


@pytest.mark.parametrize("java", [NEWEST], indirect=True)
def test_java_as_a_user_who_was_deleted_gets_nowhere(broker: TestBroker, java: JavaClient) -> None:
    servers, topic, record = str(broker.endpoints["SASL_PLAINTEXT"]), f"orders-{uuid4()}", Record(0, 1000, b"k", b"v")
    with Admin(broker.bootstrap_servers) as admin:
        admin.alter_user_scram_credentials([UserScramCredentialUpsertion("mallory", "SCRAM-SHA-256", "wonder")])
        logins: list[dict[str, Any]] = [
            {name: value.replace("alice", "mallory") for name, value in login(mechanism, "wonder").items()}
            for mechanism in ("PLAIN", "SCRAM-SHA-256")
        ]
        assert [java.produce(servers, topic, [record], **given) for given in logins] == [[0], [1]]
        admin.alter_user_scram_credentials([UserScramCredentialDeletion("mallory", "SCRAM-SHA-256")])
    for given in logins:
        assert "SaslAuthenticationException" in str(java.produce(servers, topic, [record], **given)[0])


@pytest.mark.parametrize("java", [NEWEST, "2.8.2"], indirect=True)
def test_java_logs_in_again_on_the_same_connection_before_its_session_ends(
    java: JavaClient, caplog: pytest.LogCaptureFixture
) -> None:
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
        "connections.max.reauth.ms": str(SESSION_MS),
        "group.initial.rebalance.delay.ms": "0",
    }
    caplog.set_level(logging.DEBUG, "ottla")
    with TestBroker(settings) as short:
        with Admin(short.bootstrap_servers) as admin:
            admin.alter_user_scram_credentials([UserScramCredentialUpsertion("alice", "SCRAM-SHA-256", "wonder")])
            admin.create_topics([NewTopic("sessions", 1)])
        servers = str(short.endpoints["SASL_PLAINTEXT"])
        member = java.join(servers, "readers", topic="sessions", **login("SCRAM-SHA-256", "wonder"))
        read: list[bytes] = []
        sent: list[bytes] = []
        with Producer(bootstrap_servers=short.bootstrap_servers) as producer:
            deadline = time.monotonic() + 3 * SESSION_MS / 1000
            while time.monotonic() < deadline or len(read) < len(sent):
                assert time.monotonic() < deadline + 30
                if time.monotonic() < deadline:
                    sent.append(b"%d" % len(sent))
                    producer.send("sessions", sent[-1]).result(30)
                read += member.poll()
        member.commit()
        member.close()
    assert read == sent
    logins = Counter(
        vars(record)["address"] for record in caplog.records if record.getMessage().startswith("User:alice logged in")
    )
    assert max(logins.values()) >= 3, logins


@pytest.mark.parametrize("java", [NEWEST, "2.8.2"], indirect=True)
def test_java_comes_again_if_its_login_was_not_looked_at_for_the_crowd_before_it(
    java: JavaClient, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It takes a disconnect for a reason to come again, and a refusal for the end."""
    go_on = threading.Event()

    def slow(credential: ScramCredential, password: str) -> bool:
        assert go_on.wait(60)
        return matches(credential, password)

    monkeypatch.setattr("ottla.broker.users.matches", slow)
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms": "PLAIN",
    }
    with TestBroker(settings) as crowded, ExitStack() as clients, ThreadPoolExecutor(1) as pool:
        with Admin(crowded.bootstrap_servers) as admin:
            admin.alter_user_scram_credentials([UserScramCredentialUpsertion("alice", "SCRAM-SHA-256", "wonder")])
        where = crowded.endpoints["SASL_PLAINTEXT"]
        for _ in range(MOST_WAITING + 1):
            one = clients.enter_context(SaslClient((where.host, where.port)))
            one.handshake("PLAIN")
            one.send(SaslAuthenticateRequest(auth_bytes=b"\0alice\0wonder"), 2)
        produced = pool.submit(
            java.produce, str(where), "orders", [Record(0, 1000, b"k", b"two apples")], **login("PLAIN", "wonder")
        )
        try:
            deadline = time.monotonic() + 60
            while "its login was not looked at" not in caplog.text:
                assert time.monotonic() < deadline
                assert not produced.done()
                time.sleep(0.05)
        finally:
            go_on.set()
        assert produced.result(60) == [0]
