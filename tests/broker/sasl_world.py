"""A broker where one logs in, and clients that do so message by message."""

from collections.abc import Iterable
from itertools import product

from ottla.client.admin import UserScramCredentialUpsertion
from ottla.cluster.credential import ScramMechanism
from ottla.sync import Admin
from ottla.testing import TestBroker
from ottla.wire.errors import ErrorCode
from tests.broker.sasl_client import SaslClient

PASSWORD = "wonder-4711"
FAILED = ErrorCode.SASL_AUTHENTICATION_FAILED
SETTINGS = {
    "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
        'org.apache.kafka.common.security.plain.PlainLoginModule required user_carol="carols-password";'
    ),
    "connection.failed.authentication.delay.ms": "20",
}


def started(**settings: str) -> TestBroker:
    broker = TestBroker({**SETTINGS, **{name.replace("_", "."): value for name, value in settings.items()}}).start()
    add_users(broker, ["alice", "bob"], ScramMechanism)
    return broker


def add_users(broker: TestBroker, names: Iterable[str], mechanisms: Iterable[ScramMechanism]) -> None:
    """Add users, whose passwords end with their names, or give them these."""
    wanted = list(product(names, mechanisms))
    with Admin(broker.bootstrap_servers) as admin:
        admin.alter_user_scram_credentials(
            [UserScramCredentialUpsertion(user, mechanism, PASSWORD + user) for user, mechanism in wanted]
        )


def connected(broker: TestBroker, source: str | None = None) -> SaslClient:
    where = broker.endpoints["SASL_PLAINTEXT"]
    return SaslClient((where.host, where.port), source)
