"""Ottla's client with Apache Kafka's TLS: records go both ways, and what Kafka says is understood."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla import Consumer, Producer
from ottla.errors import ClientCertificateError, HandshakeCutError, SecurityProtocolError, UntrustedCertificateError
from tests.certificates import Authority, written
from tests.java import skip_without_maven
from tests.peers.kafka import KafkaBroker
from tests.peers.ports import ReservedPort

pytestmark = [pytest.mark.maven, skip_without_maven("no TLS with Apache Kafka was tried")]


class SecureKafka(KafkaBroker):
    """A broker with listeners for TLS, with and without clients' certificates, beside the plain one."""

    def __init__(self, folder: Path) -> None:
        self.secure, self.mutual = ReservedPort("127.0.0.1"), ReservedPort("127.0.0.1")
        self.authority = Authority()
        self.ca = written(folder, "ca.pem", self.authority.pem)
        self.store = written(folder, "broker.pem", self.authority.issue("broker").store)
        super().__init__()
        self._ports += [self.secure, self.mutual]

    def _all_settings(self) -> dict[str, str]:
        found = super()._all_settings()
        more = f",SSL://127.0.0.1:{self.secure.number},MUTUAL://127.0.0.1:{self.mutual.number}"
        return {
            **found,
            "listeners": found["listeners"] + more,
            "advertised.listeners": found["advertised.listeners"] + more,
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SSL:SSL,MUTUAL:SSL",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": self.store,
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": self.ca,
            "listener.name.mutual.ssl.client.auth": "required",
        }

    def options(self, port: int, client: str | None = None, **changes: Any) -> dict[str, Any]:
        """What a client is told."""
        found: dict[str, Any] = {
            "bootstrap_servers": f"127.0.0.1:{port}",
            "security_protocol": "SSL",
            "ssl_cafile": self.ca,
        }
        if client is not None:
            found["ssl_certfile"] = self.authority.issue(client).store.decode()
        return found | changes


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureKafka]:
    broker = SecureKafka(tmp_path_factory.mktemp("tls"))
    try:
        yield broker.start()
    finally:
        broker.close()


async def there_and_back(topic: str, options: dict[str, Any]) -> None:
    values = [b"%05d" % number * 200 for number in range(2000)]
    async with Producer(**options) as producer:
        for value in values:
            await producer.send(topic, value, partition=0)
    async with Consumer(topic, auto_offset_reset="earliest", group_id=topic, **options) as consumer:
        assert [(await consumer.getone()).value for _ in values] == values


def test_records_go_both_ways(kafka: SecureKafka) -> None:
    asyncio.run(asyncio.wait_for(there_and_back("plain", kafka.options(kafka.secure.number)), 60))
    asyncio.run(asyncio.wait_for(there_and_back("mutual", kafka.options(kafka.mutual.number, "alice")), 60))


def test_what_kafka_refuses_is_understood(kafka: SecureKafka) -> None:
    async def connect(options: dict[str, Any]) -> None:
        async with Producer(**options):
            pass

    stranger = Authority("Somebody else")
    refused: list[tuple[type[Exception], dict[str, Any]]] = [
        (ClientCertificateError, kafka.options(kafka.mutual.number)),
        (ClientCertificateError, kafka.options(kafka.mutual.number, ssl_certfile=stranger.issue("x").store.decode())),
        (UntrustedCertificateError, kafka.options(kafka.secure.number, ssl_cafile=stranger.pem.decode())),
        (SecurityProtocolError, {"bootstrap_servers": f"127.0.0.1:{kafka.secure.number}"}),
        (HandshakeCutError, kafka.options(kafka.port)),
    ]
    for kind, options in refused:
        with pytest.raises(kind) as caught:
            asyncio.run(connect(options))
        assert type(caught.value) is kind
