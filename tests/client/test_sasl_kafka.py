"""Ottla's client logs in to Apache Kafka: each mechanism, wrong passwords, and sessions that end."""

import asyncio
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from ottla import Producer
from ottla.client.admin import (
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from ottla.errors import (
    AuthenticationFailedError,
    ResourceNotFoundError,
    UnacceptableCredentialError,
    UnsupportedSaslMechanismError,
)
from ottla.sync import Admin, Consumer
from tests.java import skip_without_maven
from tests.peers import KAFKA_4, KafkaBroker, ReservedPort
from tests.waiting import until

pytestmark = [pytest.mark.maven, skip_without_maven("OTTLA'S CLIENT LOGGED IN TO NO APACHE KAFKA")]

PLAIN_USERS = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="wonder";'
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")

# A client logs in again when a twentieth of it is left, which has to do for a login on a busy machine.
SESSION_MS = 6_000

SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule required;"


class KafkaWithLogins(KafkaBroker):
    """A Kafka broker with a second listener, which asks for logins."""

    def __init__(self) -> None:
        super().__init__(KAFKA_4)
        self._logins = ReservedPort(self.host)
        self._ports.append(self._logins)

    @property
    def with_logins(self) -> str:
        return f"{self.host}:{self._logins.number}"

    def _all_settings(self) -> dict[str, str]:
        settings = super()._all_settings()
        name = "listener.name.sasl_plaintext"
        return {
            **settings,
            "listeners": f"{settings['listeners']},SASL_PLAINTEXT://{self.with_logins}",
            "advertised.listeners": f"{settings['advertised.listeners']},SASL_PLAINTEXT://{self.with_logins}",
            "listener.security.protocol.map": (
                "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT"
            ),
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
            f"{name}.plain.sasl.jaas.config": PLAIN_USERS,
            f"{name}.scram-sha-256.sasl.jaas.config": SCRAM_MODULE,
            f"{name}.scram-sha-512.sasl.jaas.config": SCRAM_MODULE,
            "connections.max.reauth.ms": str(SESSION_MS),
        }


@pytest.fixture(scope="module")
def kafka() -> Iterator[KafkaWithLogins]:
    with KafkaWithLogins() as broker:
        with Admin(broker.bootstrap_servers) as admin:
            # Kafka takes one change for each user and request.
            for mechanism in ScramMechanism:
                admin.alter_user_scram_credentials([UserScramCredentialUpsertion("alice", mechanism, "wonder")])
            both = set(ScramMechanism)
            until(lambda: {one.mechanism for one in credentials(admin, "alice")} == both, "alice has both mechanisms")
        yield broker


def credentials(admin: Admin, user: str) -> tuple[ScramCredentialInfo, ...]:
    """What the broker knows of a user. It hears of changes a moment after the controller has made them."""
    try:
        return admin.describe_user_scram_credentials([user])[user]
    except ResourceNotFoundError:
        return ()


def login(kafka: KafkaWithLogins, mechanism: str, password: str = "wonder") -> dict[str, Any]:
    return {
        "bootstrap_servers": kafka.with_logins,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
        "sasl_plain_username": "alice",
        "sasl_plain_password": password,
    }


def test_clients_log_in_again_and_again_and_lose_nothing(
    kafka: KafkaWithLogins, caplog: pytest.LogCaptureFixture
) -> None:
    async def begin() -> None:
        """Have the topics made. Kafka names the leader of a new one before that leader knows of it, and sends away
        who asks it then: a warning that is about no login."""
        async with Producer(bootstrap_servers=kafka.bootstrap_servers) as producer:
            for mechanism in MECHANISMS:
                await producer.send_and_wait(f"sessions-{mechanism}", b"the first")

    async def send(mechanism: str) -> int:
        """Send until two sessions are over."""
        sent = 0
        async with Producer(**login(kafka, mechanism), linger_ms=0) as producer:
            deadline = asyncio.get_running_loop().time() + 2 * SESSION_MS / 1000
            while asyncio.get_running_loop().time() < deadline:
                await asyncio.gather(*[producer.send_and_wait(f"sessions-{mechanism}", b"x") for _ in range(10)])
                sent += 10
                await asyncio.sleep(0.01)
        return sent

    async def story() -> list[int]:
        # Side by side, since most of the time is spent waiting for the end of sessions.
        return await asyncio.gather(*[send(mechanism) for mechanism in MECHANISMS])

    asyncio.run(begin())
    with caplog.at_level(logging.WARNING):
        counts = asyncio.run(story())
    for mechanism, sent in zip(MECHANISMS, counts, strict=True):
        given = login(kafka, mechanism)
        with Consumer(f"sessions-{mechanism}", auto_offset_reset="earliest", **given) as consumer:
            records = iter(consumer)
            assert [next(records).offset for _ in range(1 + sent)] == list(range(1 + sent))
    assert not [one.getMessage() for one in caplog.records]


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_wrong_password_is_told(kafka: KafkaWithLogins, mechanism: str) -> None:
    with (
        pytest.raises(AuthenticationFailedError, match=f"refuses a login as 'alice' with {mechanism}"),
        Admin(**login(kafka, mechanism, "wander")),
    ):
        pass


def test_mechanisms_that_kafka_does_not_offer_are_told(kafka: KafkaWithLogins) -> None:
    given = {**login(kafka, "PLAIN"), "sasl_plain_username": None, "sasl_plain_password": None}
    given |= {"sasl_mechanism": "OAUTHBEARER", "sasl_oauth_token_provider": lambda: "a.b.c"}
    with pytest.raises(UnsupportedSaslMechanismError, match="SCRAM-SHA-512"), Admin(**given):
        pass


def test_users_of_kafka_are_changed_and_described(kafka: KafkaWithLogins) -> None:
    with Admin(kafka.bootstrap_servers) as admin:
        admin.alter_user_scram_credentials([UserScramCredentialUpsertion("bob", "SCRAM-SHA-256", "b", iterations=5000)])
        until(lambda: credentials(admin, "bob"), "the broker knows bob")
        assert admin.describe_user_scram_credentials(["bob"]) == {
            "bob": (ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 5000),)
        }
        with pytest.raises(UnacceptableCredentialError):
            admin.alter_user_scram_credentials(
                [UserScramCredentialUpsertion("bob", "SCRAM-SHA-256", "b", iterations=1)]
            )
        admin.alter_user_scram_credentials([UserScramCredentialDeletion("bob", "SCRAM-SHA-256")])
        until(lambda: not credentials(admin, "bob"), "the broker has forgotten bob")
        with pytest.raises(ResourceNotFoundError):
            admin.describe_user_scram_credentials(["bob"])
