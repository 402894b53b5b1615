"""JSON logs have who a client is in fields of their own: in whatever is told of one that did not get far."""

import json
import logging
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from ottla.client.admin import NewTopic
from ottla.cluster.credential import ScramMechanism
from ottla.errors import KafkaError
from ottla.metrics.logs import JsonFormatter
from ottla.sync import Admin
from ottla.testing import TestBroker
from ottla.wire.api.api_versions import ApiVersionsRequest
from ottla.wire.api.metadata import MetadataRequest
from tests.broker.sasl_client import SaslClient
from tests.broker.sasl_world import PASSWORD, add_users
from tests.certificates import Authority, written

Lines = Callable[[str], list[dict[str, Any]]]


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[TestBroker]:
    authority = Authority()
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
        "ssl.keystore.location": written(tmp_path, "broker.pem", authority.issue("broker").store),
        "ssl.truststore.location": written(tmp_path, "ca.pem", authority.pem),
        "ssl.client.auth": "required",
        "authorizer.class.name": "ottla",
        "super.users": "User:ANONYMOUS",
        "connection.failed.authentication.delay.ms": "0",
    }
    with TestBroker(settings) as running:
        add_users(running, ["alice"], [ScramMechanism.SCRAM_SHA_256])
        yield running


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Lines:
    """What was logged with some words in it, as JSON has it."""
    caplog.set_level(logging.DEBUG)

    def found(words: str) -> list[dict[str, Any]]:
        written = [json.loads(JsonFormatter().format(record)) for record in caplog.records]
        return [line for line in written if words in line["message"]]

    return found


def identity(line: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(line[name] for name in ("address", "principal", "client_id"))


def address_of(client: socket.socket) -> str:
    return "{}:{}".format(*client.getsockname())


def wait_for_the_end(client: socket.socket) -> None:
    with suppress(ConnectionResetError):
        while client.recv(100):
            pass


def test_a_failed_login_and_a_good_one(broker: TestBroker, lines: Lines) -> None:
    where = broker.endpoints["SASL_PLAINTEXT"]
    for mechanism in ("PLAIN", "SCRAM-SHA-256"):
        with SaslClient((where.host, where.port)) as one:
            one.plain("alice", "wrong") if mechanism == "PLAIN" else one.scram("alice", "wrong")
            assert one.is_closed()
            assert identity(lines("a login from")[-1]) == (address_of(one.socket), "User:ANONYMOUS", "raw")
    with SaslClient((where.host, where.port)) as one:
        assert one.plain("alice", PASSWORD + "alice").error_code == 0
        (told,) = lines("logged in from")
        assert identity(told) == (address_of(one.socket), "User:alice", "raw")


def test_a_request_before_a_login(broker: TestBroker, lines: Lines) -> None:
    where = broker.endpoints["SASL_PLAINTEXT"]
    with SaslClient((where.host, where.port)) as one:
        assert one.call(ApiVersionsRequest(), 0).error_code == 0
        one.send(MetadataRequest(topics=[]), 12)
        assert one.is_closed()
        (told,) = lines("Metadata before a login")
        assert identity(told) == (address_of(one.socket), "User:ANONYMOUS", "raw")


def test_a_handshake_of_tls_that_fails(broker: TestBroker, lines: Lines) -> None:
    with socket.create_connection(("127.0.0.1", broker.ports["SSL"]), timeout=30) as one:
        one.sendall(b"GET / HTTP/1.1\r\n\r\n")
        wait_for_the_end(one)
        (told,) = lines("does not speak TLS")
        assert identity(told) == (address_of(one), "User:ANONYMOUS", None)


def test_somebody_who_is_turned_away(lines: Lines) -> None:
    with (
        TestBroker({"max.connections": "0"}) as full,
        socket.create_connection((full.host, full.port), timeout=30) as one,
    ):
        wait_for_the_end(one)
        (told,) = lines("turning")
        assert identity(told) == (address_of(one), "User:ANONYMOUS", None)


def test_a_refusal_of_the_authorizer(broker: TestBroker, lines: Lines) -> None:
    login: dict[str, Any] = {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "SCRAM-SHA-256",
        "sasl_plain_username": "alice",
        "sasl_plain_password": PASSWORD + "alice",
    }
    where = broker.endpoints["SASL_PLAINTEXT"]
    with Admin(str(where), client_id="app", **login) as admin, pytest.raises(KafkaError):
        admin.create_topics([NewTopic("orders", 1)])
    (told,) = [line for line in lines("may not CREATE") if line["logger"] == "ottla.authorizer"]
    address, principal, client_id = identity(told)
    assert (principal, client_id) == ("User:alice", "app")
    assert address.startswith("127.0.0.1:")
