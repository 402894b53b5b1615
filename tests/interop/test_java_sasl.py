"""Java's producer and consumer log in: new ones in SaslAuthenticate requests, old ones with bare messages."""

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

from ottla.client.admin import ScramMechanism, UserScramCredentialUpsertion
from ottla.record import Record
from ottla.sync import Admin
from ottla.testing import TestBroker
from tests.java import skip_without_maven

from .java_client import JavaClient, release

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


@pytest.fixture(scope="module")
def broker() -> Iterator[TestBroker]:
    """A broker with a user alice."""
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms": ",".join(MODULES),
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
