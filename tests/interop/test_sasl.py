"""Other people's clients, and Ottla's own, log in: in every way that they can, with what is right and what is not."""

import asyncio
import json
import logging
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import confluent_kafka
import jwt
import kafka.admin
import pytest
from confluent_kafka import admin as confluent_admin
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import ECAlgorithm

from ottla import Producer
from ottla.client.admin import ScramMechanism, UserScramCredentialDeletion, UserScramCredentialUpsertion
from ottla.client.oauth import ClientCredentials
from ottla.errors import (
    AuthenticationFailedError,
    IllegalSaslStateError,
    LoginMissingError,
    UnsupportedSaslMechanismError,
)
from ottla.sync import Admin, Consumer
from ottla.testing import TestBroker
from tests.certificates import Authority, written
from tests.interop.sasl_clients import CLIENTS, VALUE, Login, RefusedError, issuing, librdkafka_options
from tests.waiting import until

KEY, OTHER_KEY, RETIRED_KEY = (ec.generate_private_key(ec.SECP256R1()) for _ in range(3))
PASSWORD = "wonder-4711"
SESSION_MS = 3_000
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")

WITH_TOKENS = [client for client in CLIENTS if client != "kcat"]
"""kcat has no way to be given a token, and gets none by itself unless its librdkafka was built with curl."""

each_client = pytest.mark.parametrize("client", CLIENTS)
each_with_tokens = pytest.mark.parametrize("client", WITH_TOKENS)
each_pair = pytest.mark.parametrize(
    ("client", "mechanism"),
    [
        (client, mechanism)
        for client in CLIENTS
        for mechanism in MECHANISMS
        if mechanism != "OAUTHBEARER" or client in WITH_TOKENS
    ],
)


def token(key: Any = KEY, user: str = "alice", seconds: int = 300, key_id: str = "one") -> str:
    now = int(time.time())
    claims = {"sub": user, "aud": "ottla", "iat": now - 400, "exp": now + seconds, "scope": "all"}
    return jwt.encode(claims, key, "ES256", {"kid": key_id})


def write_keys(folder: Path, **keys: ec.EllipticCurvePrivateKey) -> str:
    """Have these trusted; the address of the key set."""
    found = [{**json.loads(ECAlgorithm.to_jwk(key.public_key())), "kid": name} for name, key in keys.items()]
    return Path(written(folder, "keys.json", json.dumps({"keys": found}).encode())).as_uri()


def settings(folder: Path, **others: str) -> dict[str, str]:
    authority = Authority()
    return {
        "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0,SASL_SSL://127.0.0.1:0",
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        "sasl.oauthbearer.jwks.endpoint.url": write_keys(folder, one=KEY),
        "sasl.oauthbearer.jwks.endpoint.refresh.ms": "200",
        "sasl.oauthbearer.expected.audience": "ottla",
        "sasl.oauthbearer.clock.skew.seconds": "0",
        "connection.failed.authentication.delay.ms": "20",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(written(folder, "broker.pem", authority.issue("localhost").store)),
        "ssl.truststore.location": str(written(folder, "ca.pem", authority.pem)),
        **{name.replace("_", "."): value for name, value in others.items()},
    }


def started(folder: Path, **others: str) -> TestBroker:
    broker = TestBroker(settings(folder, **others)).start()
    with Admin(broker.bootstrap_servers) as admin:
        admin.alter_user_scram_credentials(
            [UserScramCredentialUpsertion("alice", mechanism, PASSWORD) for mechanism in ScramMechanism]
        )
    return broker


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sasl")


@pytest.fixture(scope="module")
def broker(folder: Path) -> Iterator[TestBroker]:
    """A broker with a user alice."""
    found = started(folder)
    yield found
    found.close()


def login(broker: TestBroker, mechanism: str, **fields: Any) -> Login:
    right = {"user": "alice", "password": PASSWORD, "token": token()}
    return Login(**{"bootstrap": str(broker.endpoints["SASL_PLAINTEXT"]), "mechanism": mechanism, **right, **fields})


def options(given: Login) -> dict[str, Any]:
    """As Ottla's clients take them."""
    return {
        "bootstrap_servers": given.bootstrap,
        "security_protocol": given.protocol,
        "sasl_mechanism": given.mechanism,
        "sasl_plain_username": given.user,
        "sasl_plain_password": given.password,
    }


@each_pair
def test_a_client_that_logs_in_writes_and_reads(broker: TestBroker, client: str, mechanism: str) -> None:
    assert CLIENTS[client](login(broker, mechanism), f"orders-{uuid4()}") == VALUE


@each_pair
def test_a_login_over_tls(broker: TestBroker, folder: Path, client: str, mechanism: str) -> None:
    given = login(broker, mechanism, ca=str(folder / "ca.pem"), bootstrap=str(broker.endpoints["SASL_SSL"]))
    assert CLIENTS[client](given, f"orders-{uuid4()}") == VALUE


@each_pair
def test_a_client_with_a_wrong_password_or_token_gets_nowhere(broker: TestBroker, client: str, mechanism: str) -> None:
    wrong = login(broker, mechanism, password="wander", token=token(OTHER_KEY))
    topic = f"orders-{uuid4()}"
    with pytest.raises(RefusedError):
        CLIENTS[client](wrong, topic)
    with Admin(broker.bootstrap_servers) as admin:
        assert topic not in admin.list_topics()


@each_with_tokens
def test_an_expired_token_gets_nowhere(broker: TestBroker, client: str) -> None:
    with pytest.raises(RefusedError):
        CLIENTS[client](login(broker, "OAUTHBEARER", token=token(seconds=-5)), f"orders-{uuid4()}")


@pytest.fixture(scope="module")
def retired(broker: TestBroker, folder: Path) -> str:
    """A token that was good until its key was taken out of the key set."""
    found = token(RETIRED_KEY, key_id="two")
    given = login(broker, "OAUTHBEARER", token=found)
    write_keys(folder, one=KEY, two=RETIRED_KEY)
    until(lambda: _comes_in(given))
    write_keys(folder, one=KEY)
    until(lambda: not _comes_in(given))
    return found


def _comes_in(given: Login) -> bool:
    try:
        return CLIENTS["ottla"](given, f"orders-{uuid4()}") == VALUE
    except RefusedError:
        return False


@each_with_tokens
def test_a_token_whose_key_was_taken_out_of_the_key_set_gets_nowhere(
    broker: TestBroker, client: str, retired: str
) -> None:
    with pytest.raises(RefusedError):
        CLIENTS[client](login(broker, "OAUTHBEARER", token=retired), f"orders-{uuid4()}")


@pytest.fixture(scope="module")
def deleted(broker: TestBroker) -> str:
    """A user who could log in until he was deleted."""
    with Admin(broker.bootstrap_servers) as admin:
        admin.alter_user_scram_credentials([UserScramCredentialUpsertion("mallory", "SCRAM-SHA-256", PASSWORD)])
        for mechanism in ("PLAIN", "SCRAM-SHA-256"):
            assert CLIENTS["ottla"](login(broker, mechanism, user="mallory"), f"orders-{uuid4()}") == VALUE
        admin.alter_user_scram_credentials([UserScramCredentialDeletion("mallory", "SCRAM-SHA-256")])
    return "mallory"


@each_client
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
def test_a_user_who_was_deleted_gets_nowhere(broker: TestBroker, client: str, mechanism: str, deleted: str) -> None:
    with pytest.raises(RefusedError):
        CLIENTS[client](login(broker, mechanism, user=deleted), f"orders-{uuid4()}")


def test_tokens_that_nobody_signed_are_refused(broker: TestBroker) -> None:
    """librdkafka makes such tokens by itself, for brokers that do not look."""
    refused: list[Any] = []
    client = confluent_kafka.Producer(
        {
            **librdkafka_options(login(broker, "OAUTHBEARER")),
            "enable.sasl.oauthbearer.unsecure.jwt": True,
            "sasl.oauthbearer.config": "principal=alice",
            "error_cb": refused.append,
            "log_level": 0,
        }
    )
    deadline = time.monotonic() + 20
    while not any(error.code() == confluent_kafka.KafkaError._AUTHENTICATION for error in refused):
        client.poll(0.1)
        assert time.monotonic() < deadline


@pytest.mark.parametrize("key", [KEY, OTHER_KEY], ids=["right", "wrong"])
def test_librdkafka_logs_in_with_a_token_that_it_fetched_by_itself(
    broker: TestBroker, key: ec.EllipticCurvePrivateKey
) -> None:
    refused: list[Any] = []
    with issuing(token(key)) as url:
        fetching = {"method": "oidc", "client.id": "app", "client.secret": "s", "token.endpoint.url": url}
        client = confluent_kafka.Producer(
            {
                **librdkafka_options(login(broker, "OAUTHBEARER")),
                **{f"sasl.oauthbearer.{name}": value for name, value in fetching.items()},
                "error_cb": refused.append,
                "log_level": 0,
            }
        )
        topic = f"orders-{uuid4()}"
        client.produce(topic, VALUE)
        deadline = time.monotonic() + 20
        while client.flush(0.1) and not refused:
            assert time.monotonic() < deadline
        client.purge()
        client.flush(1)
    with Admin(broker.bootstrap_servers) as admin:
        assert (topic in admin.list_topics()) is (key is KEY)
    codes = {error.code() for error in refused}
    assert (confluent_kafka.KafkaError._AUTHENTICATION in codes) is (key is OTHER_KEY)


@pytest.mark.parametrize("mechanism", ScramMechanism)
def test_kafka_python_and_confluent_change_passwords(broker: TestBroker, mechanism: ScramMechanism) -> None:
    given = login(broker, "PLAIN")
    admin = kafka.admin.KafkaAdminClient(**options(given))
    new = kafka.admin.UserScramCredentialUpsertion("bob", mechanism.text, "builder", iterations=5000)
    assert admin.alter_user_scram_credentials([new]) == {"bob": None}
    assert CLIENTS["ottla"](login(broker, mechanism.text, user="bob", password="builder"), f"x-{uuid4()}") == VALUE
    other: Any = confluent_admin.AdminClient(librdkafka_options(given))
    found = other.describe_user_scram_credentials(["bob"])["bob"].result()
    assert [(int(one.mechanism.value), one.iterations) for one in found.scram_credential_infos] == [(mechanism, 5000)]
    names: Any = confluent_admin
    deletion = names.UserScramCredentialDeletion("bob", names.ScramMechanism(int(mechanism)))
    other.alter_user_scram_credentials([deletion])["bob"].result()
    described = admin.describe_user_scram_credentials()
    assert set(described) == {"alice"}
    admin.close()
    with pytest.raises(RefusedError):
        CLIENTS["ottla"](login(broker, mechanism.text, user="bob", password="builder"), f"x-{uuid4()}")


# What Ottla's client says.


def failure(**given: Any) -> Exception:
    with pytest.raises(Exception) as raised, Admin(**given) as admin:
        admin.list_topics()
    return raised.value


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
def test_a_failed_login_names_broker_and_user_and_not_the_password(broker: TestBroker, mechanism: str) -> None:
    given = login(broker, mechanism, password="wander-0815")
    error = failure(**options(given))
    assert isinstance(error, AuthenticationFailedError)
    assert not error.retriable
    assert str(error) == (
        f"SASL_AUTHENTICATION_FAILED: {given.bootstrap} refuses a login as 'alice' with {mechanism}: "
        f"Authentication failed: invalid credentials for SASL mechanism {mechanism}; "
        "check user name, password and mechanism"
    )


def test_a_mechanism_that_is_not_offered_is_told_with_those_that_are(tmp_path: Path) -> None:
    with TestBroker({"listeners": "SASL_PLAINTEXT://127.0.0.1:0"}) as other:
        error = failure(**options(login(other, "PLAIN")))
    assert isinstance(error, UnsupportedSaslMechanismError)
    assert "does not offer PLAIN" in str(error)
    assert "SCRAM-SHA-256, SCRAM-SHA-512" in str(error)


def test_a_login_where_none_is_asked_for_is_told(broker: TestBroker) -> None:
    error = failure(**options(login(broker, "PLAIN", bootstrap=broker.bootstrap_servers)))
    assert isinstance(error, IllegalSaslStateError)
    assert "asks for no login" in str(error)


def test_a_client_that_does_not_log_in_where_it_must_is_told_soon(broker: TestBroker) -> None:
    began = time.monotonic()
    error = failure(bootstrap_servers=str(broker.endpoints["SASL_PLAINTEXT"]))
    assert time.monotonic() - began < 10
    assert isinstance(error, LoginMissingError)
    assert "set security_protocol to 'SASL_PLAINTEXT', and sasl_mechanism" in str(error)


def test_a_token_provider_may_be_a_coroutine_function_an_object_or_fail(broker: TestBroker) -> None:
    class Provider:
        async def token(self) -> str:
            return token()

        def extensions(self) -> dict[str, str]:
            return {"traceId": "7"}

    async def good() -> str:
        return token()

    def bad() -> str:
        raise OSError("cannot reach https://user:secret-4711@login")

    common: dict[str, Any] = {
        "bootstrap_servers": str(broker.endpoints["SASL_PLAINTEXT"]),
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "OAUTHBEARER",
    }
    for provider in (Provider(), good):
        with Admin(**common, sasl_oauth_token_provider=provider) as admin:
            admin.list_topics()
    error = failure(**common, sasl_oauth_token_provider=bad)
    assert isinstance(error, AuthenticationFailedError)
    assert "sasl_oauth_token_provider failed with OSError" in str(error)
    assert "secret-4711" not in str(error)
    error = failure(**common, sasl_oauth_token_provider=lambda: None)
    assert "gave no token but NoneType" in str(error)
    assert "gave an empty token" in str(failure(**common, sasl_oauth_token_provider=str))
    absent = ClientCredentials(token_endpoint_url="file:///nowhere/token")
    said = str(failure(**common, sasl_oauth_token_provider=absent))
    assert "there is no token from /nowhere/token: no such file or directory" in said


def test_no_secret_is_in_what_is_logged_or_shown(broker: TestBroker, caplog: pytest.LogCaptureFixture) -> None:
    right = token()
    with caplog.at_level(logging.DEBUG):
        for mechanism in MECHANISMS:
            by_ottla = CLIENTS["ottla"]
            assert by_ottla(login(broker, mechanism, token=right), f"orders-{uuid4()}") == VALUE
            with pytest.raises(RefusedError) as refused:
                by_ottla(login(broker, mechanism, password="wander-0815", token=right + "x"), "orders")
            shown = [str(refused.value), repr(refused.value.__cause__), *(repr(vars(one)) for one in caplog.records)]
            for secret in (PASSWORD, "wander-0815", right, right.rpartition(".")[2]):
                assert not [text for text in shown if secret in text]


# Sessions that end.


@pytest.fixture(scope="module")
def short(folder: Path) -> Iterator[TestBroker]:
    """A broker whose sessions are short, though a twentieth of one is enough for a login on a busy machine."""
    found = started(folder, connections_max_reauth_ms=str(SESSION_MS))
    yield found
    found.close()


def test_ottlas_client_logs_in_again_and_nobody_notices(short: TestBroker, caplog: pytest.LogCaptureFixture) -> None:
    given = options(login(short, "SCRAM-SHA-256"))

    async def story() -> int:
        sent = 0
        async with Producer(**given, linger_ms=0) as producer:
            await producer.send_and_wait("sessions", b"first")
            caplog.clear()
            deadline = asyncio.get_running_loop().time() + 2 * SESSION_MS / 1000
            while asyncio.get_running_loop().time() < deadline:
                await asyncio.gather(*[producer.send_and_wait("sessions", b"next") for _ in range(20)])
                sent += 20
        return sent

    with caplog.at_level(logging.DEBUG):
        sent = asyncio.run(story())
    with Consumer("sessions", auto_offset_reset="earliest", **given) as consumer:
        records = iter(consumer)
        assert [next(records).offset for _ in range(sent + 1)] == list(range(sent + 1))
    logins = [one.getMessage() for one in caplog.records if "logged in" in one.getMessage()]
    assert len(logins) >= 2, "it did log in again"
    assert "over" not in "".join(one.getMessage() for one in caplog.records if one.name.startswith("ottla.net"))
    assert not [one for one in caplog.records if one.levelno >= logging.WARNING]


def test_a_consumer_in_a_group_goes_on_over_sessions(short: TestBroker, caplog: pytest.LogCaptureFixture) -> None:
    given = options(login(short, "SCRAM-SHA-512"))
    topic = f"sessions-{uuid4()}"

    async def produce() -> None:
        async with Producer(**given) as producer:
            await producer.send_and_wait(topic, b"x")

    asyncio.run(produce())
    with (
        caplog.at_level(logging.WARNING),
        Consumer(topic, group_id="readers", auto_offset_reset="earliest", session_timeout_ms=6000, **given) as consumer,
    ):
        records = iter(consumer)
        next(records)
        deadline = time.monotonic() + 2 * SESSION_MS / 1000
        while time.monotonic() < deadline:
            asyncio.run(produce())
            next(records)
            consumer.commit()
    assert not [one.getMessage() for one in caplog.records if one.levelno >= logging.WARNING]


def test_librdkafka_logs_in_again_on_the_same_connection(short: TestBroker, caplog: pytest.LogCaptureFixture) -> None:
    errors: list[Any] = []

    def delivered(error: Any, message: Any) -> None:
        if error is not None:
            errors.append(error)

    caplog.set_level(logging.DEBUG, "ottla.broker")
    producer = confluent_kafka.Producer(
        {**librdkafka_options(login(short, "SCRAM-SHA-256")), "error_cb": errors.append, "log_level": 0}
    )
    deadline = time.monotonic() + 2 * SESSION_MS / 1000
    while time.monotonic() < deadline:
        producer.produce("sessions-of-librdkafka", VALUE, on_delivery=delivered)
        assert producer.flush(30) == 0
    assert errors == []
    logins = [one for one in caplog.records if one.getMessage().startswith("User:alice logged in")]
    assert max(Counter(vars(one)["address"] for one in logins).values()) >= 2


def test_a_user_who_is_gone_cannot_log_in_again(short: TestBroker) -> None:
    with Admin(short.bootstrap_servers) as admin:
        admin.alter_user_scram_credentials([UserScramCredentialUpsertion("guest", "SCRAM-SHA-256", "g")])
    given = options(login(short, "SCRAM-SHA-256", user="guest", password="g"))

    async def story() -> None:
        async with Producer(**given, linger_ms=0) as producer:
            await producer.send_and_wait("sessions", b"first")

            def leave() -> None:
                with Admin(short.bootstrap_servers) as admin:
                    admin.alter_user_scram_credentials([UserScramCredentialDeletion("guest", "SCRAM-SHA-256")])

            await asyncio.to_thread(leave)
            async with asyncio.timeout(20):
                while True:
                    await producer.send_and_wait("sessions", b"next")
                    await asyncio.sleep(0.02)

    with pytest.raises(AuthenticationFailedError):
        asyncio.run(story())
