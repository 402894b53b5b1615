"""TLS with other people's clients and Ottla's: records go both ways, and neither side trusts whom it should not."""

import logging
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla.net import doorway
from ottla.record import Record
from ottla.testing import TestBroker
from tests.certificates import Authority, written
from tests.java import skip_without_maven

from .java_client import NEWEST, JavaClient
from .samples import NOW_MS
from .tls_clients import Credentials, TlsClient, each_client

BAD_BROKERS = ("expired", "untrusted", "elsewhere", "revoked")
BAD_CLIENTS = ("none", "expired", "untrusted", "revoked")


class World:
    """A broker with a listener for each kind of trouble, and files for clients."""

    def __init__(self, folder: Path) -> None:
        self.authority, self.stranger = Authority("Ours"), Authority("Theirs")
        self._folder = folder
        brokers = {
            "good": self.authority.issue("broker"),
            "expired": self.authority.issue("broker", expired=True),
            "untrusted": self.stranger.issue("broker"),
            "elsewhere": self.authority.issue("broker", hosts=["elsewhere.example"]),
            "revoked": self.authority.issue("broker"),
        }
        clients = {
            "good": self.authority.issue("alice"),
            "expired": self.authority.issue("alice", expired=True),
            "untrusted": self.stranger.issue("alice"),
            "revoked": self.authority.issue("alice"),
        }
        self.ca = self._file("ca.pem", self.authority.pem)
        self.crl = self._file("crl.pem", self.authority.revoked(brokers["revoked"], clients["revoked"]))
        stores = {name: self._file(f"broker-{name}.pem", one.store) for name, one in brokers.items()}
        self._clients = {
            name: (self._file(f"{name}.crt", one.chain), self._file(f"{name}.key", one.key))
            for name, one in clients.items()
        }
        names = ["SSL", "MUTUAL", *(name.upper() for name in BAD_BROKERS)]
        self.settings = {
            "listeners": ",".join(f"{name}://127.0.0.1:0" for name in names),
            "listener.security.protocol.map": ",".join(f"{name}:SSL" for name in names),
            "ssl.keystore.location": stores["good"],
            "listener.name.mutual.ssl.client.auth": "required",
            "listener.name.mutual.ssl.truststore.location": self.ca,
            "listener.name.mutual.ssl.crl.location": self.crl,
            **{f"listener.name.{name}.ssl.keystore.location": stores[name] for name in BAD_BROKERS},
        }

    def java_settings(self, client: str) -> dict[str, Any]:
        """What Java's client is told; its stores are PEM files too."""
        found = {
            "security_protocol": "SSL",
            "ssl_truststore_type": "PEM",
            "ssl_truststore_location": self.ca,
        }
        if client != "none":
            certificate, key = (Path(name).read_bytes() for name in self._clients[client])
            store = self._file(f"{client}.store", key + certificate)
            found |= {"ssl_keystore_type": "PEM", "ssl_keystore_location": store}
        return found

    def _file(self, name: str, data: bytes) -> str:
        return written(self._folder, name, data)

    def files(self, client: str = "none", *, revoked: str | None = None) -> Credentials:
        certificate, key = self._clients.get(client, (None, None))
        return Credentials(self.ca, certificate, key, revoked)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def broker(world: World) -> Iterator[TestBroker]:
    with pytest.MonkeyPatch.context() as patch:
        # A client that tries again and again would use up the lines of the next test.
        patch.setattr(doorway, "REPORTS", 1_000_000)
        running = TestBroker(world.settings).start()
    yield running
    running.close()


@each_client
@pytest.mark.parametrize("listener", ["SSL", "MUTUAL"])
def test_records_go_both_ways(client: TlsClient, listener: str, world: World, broker: TestBroker, topic: str) -> None:
    address = str(broker.endpoints[listener])
    files = world.files("good" if listener == "MUTUAL" else "none")
    values = [b"%05d" % number * 500 for number in range(400)] + [b"x" * 900_000]
    client.write(address, files, topic, values)
    assert client.read(address, files, topic, len(values)) == values


@each_client
@pytest.mark.parametrize("trouble", BAD_BROKERS)
def test_a_client_refuses_a_broker_that_is_not_to_be_trusted(
    client: TlsClient, trouble: str, world: World, broker: TestBroker
) -> None:
    files = world.files(revoked=world.crl if trouble == "revoked" else None)
    said = client.refusal(str(broker.endpoints[trouble.upper()]), files)
    if client.name == "ottla":
        kinds = {
            "expired": "CertificateExpiredError",
            "untrusted": "UntrustedCertificateError",
            "elsewhere": "WrongHostnameError",
            "revoked": "CertificateRevokedError",
        }
        assert said.startswith(kinds[trouble])


@each_client
@pytest.mark.parametrize("trouble", BAD_CLIENTS)
def test_the_broker_refuses_a_client_that_is_not_to_be_trusted(
    client: TlsClient,
    trouble: str,
    world: World,
    broker: TestBroker,
    caplog: pytest.LogCaptureFixture,
) -> None:
    reasons = {
        "none": "it has no certificate",
        "expired": "certificate has expired",
        "untrusted": "unable to get local issuer certificate",
        "revoked": "certificate revoked",
    }
    with caplog.at_level(logging.WARNING, "ottla"):
        said = client.refusal(str(broker.endpoints["MUTUAL"]), world.files(trouble))
        # The broker tells the client first, and the log then.
        deadline = time.monotonic() + 30
        while reasons[trouble] not in caplog.text:
            assert time.monotonic() < deadline, caplog.text
            time.sleep(0.01)
    if client.name == "ottla":
        assert said.startswith("ClientCertificateError")
    if client.name == "confluent-kafka":
        assert "ssl" in said.lower()


@pytest.mark.maven
@skip_without_maven("Java's clients did not try TLS")
@pytest.mark.parametrize("java", [NEWEST, "3.9.2"], indirect=True)
def test_java_writes_and_reads_and_is_refused_without_a_certificate(
    java: JavaClient, world: World, broker: TestBroker, topic: str
) -> None:
    for listener, client in (("SSL", "none"), ("MUTUAL", "good")):
        address, settings = str(broker.endpoints[listener]), world.java_settings(client)
        place = f"{topic}-{listener}"
        records = [Record(number, NOW_MS, None, b"%04d" % number * 1000) for number in range(100)]
        assert java.produce(address, place, records, **settings) == list(range(100))
        found = java.consume(address, place, 100, **settings).records
        assert [record.value for record in found] == [record.value for record in records]
    for trouble in BAD_CLIENTS:
        outcome = java.produce(
            str(broker.endpoints["MUTUAL"]),
            topic,
            [Record(0, NOW_MS, None, b"x")],
            max_block_ms=5000,
            **world.java_settings(trouble),
        )
        assert "SslAuthenticationException" in str(outcome[0])
