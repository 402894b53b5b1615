"""A broker with users and rules of access, and other people's clients that log in to it."""

from typing import Any

from ottla.sync import Admin
from ottla.testing import TestBroker

USERS = ("root", "alice", "bob")

SETTINGS = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        + " ".join(f'user_{name}="{name}-secret"' for name in USERS)
        + ";"
    ),
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:root",
    "auto.create.topics.enable": "false",
}


def confluent(broker: TestBroker, user: str, **more: Any) -> dict[str, Any]:
    """What librdkafka is configured with."""
    return {
        "bootstrap.servers": broker.bootstrap_servers,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": user,
        "sasl.password": f"{user}-secret",
        "log_level": 0,
        **{name.replace("_", "."): value for name, value in more.items()},
    }


def python(broker: TestBroker, user: str) -> dict[str, Any]:
    """What kafka-python, aiokafka and Ottla itself are configured with."""
    return {
        "bootstrap_servers": broker.bootstrap_servers,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": user,
        "sasl_plain_password": f"{user}-secret",
    }


def admin(broker: TestBroker, user: str = "root") -> Admin:
    """Ottla's own, which is tried elsewhere."""
    return Admin(**python(broker, user))
