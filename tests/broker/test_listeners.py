"""Listeners by name: each tells its own addresses, has its own certificate, and takes new ones while it runs."""

import asyncio
import logging
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from ottla import Admin
from ottla.client.admin import ConfigResource, ConfigResourceType
from ottla.cluster.credential import ScramMechanism
from ottla.errors import AuthenticationFailedError, InvalidConfigError, KafkaError
from ottla.net import Connection, Security
from ottla.sync import Admin as SyncAdmin
from ottla.testing import TestBroker
from ottla.wire.api.describe_cluster import DescribeClusterRequest
from ottla.wire.api.find_coordinator import FindCoordinatorRequest
from ottla.wire.api.metadata import MetadataRequest
from tests.broker.sasl_world import PASSWORD, add_users
from tests.certificates import Authority, Identity, written
from tests.waiting import until

NODE = 1


class Files:
    """An authority, and the store of a broker that it vouches for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.authority = Authority()
        self.ca = written(folder, "ca.pem", self.authority.pem)
        self.first = self.renew("broker.pem")
        self.store = str(folder / "broker.pem")

    def renew(self, name: str) -> Identity:
        identity = self.authority.issue("broker")
        written(self.folder, name, identity.store)
        return identity


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


@pytest.fixture
def broker(files: Files) -> Iterator[TestBroker]:
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:0,CLIENTS://127.0.0.1:0",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CLIENTS:SSL",
        "advertised.listeners": "PLAINTEXT://inside.example:19092,CLIENTS://localhost:0",
        "listener.name.clients.ssl.keystore.location": files.store,
        "ssl.refresh.interval.ms": "20",
    }
    with TestBroker(settings) as running:
        yield running


def secure(files: Files) -> dict[str, Any]:
    return {"security_protocol": "SSL", "ssl_cafile": files.ca}


def serial(address: tuple[str, int], files: Files) -> int:
    """The number of the certificate that new connections are shown."""
    pem = ssl.get_server_certificate(address, ca_certs=files.ca, timeout=10)
    return x509.load_pem_x509_certificate(pem.encode()).serial_number


async def told(host: str, port: int, security: Security) -> list[tuple[str, int]]:
    """The addresses that each request which names brokers gives."""
    connection = await Connection.open(host, port, security=security)
    try:
        metadata = await connection.request(MetadataRequest(topics=[]))
        cluster = await connection.request(DescribeClusterRequest())
        coordinator = await connection.request(FindCoordinatorRequest(key="g", coordinator_keys=["g"]))
        older = await connection.request(FindCoordinatorRequest(key="g"), version=2)
        found = [*metadata.brokers, *cluster.brokers, *coordinator.coordinators, older]
        return [(one.host, one.port) for one in found]
    finally:
        await connection.close()


def test_each_listener_tells_its_own_addresses(broker: TestBroker, files: Files) -> None:
    ports = broker.ports
    inside = asyncio.run(told("127.0.0.1", ports["PLAINTEXT"], Security()))
    outside = asyncio.run(told("localhost", ports["CLIENTS"], Security(**secure(files))))
    assert set(inside) == {("inside.example", 19092)}
    assert set(outside) == {("localhost", ports["CLIENTS"])}
    assert len(inside) == len(outside) == 4


def refuse(settings: dict[str, str]) -> None:
    with TestBroker(settings):
        pass


def test_an_advertised_address_of_no_listener_is_refused() -> None:
    settings = {"listeners": "PLAINTEXT://127.0.0.1:0", "advertised.listeners": "OUTSIDE://example:9092"}
    with pytest.raises(KafkaError, match="there is no listener OUTSIDE, but PLAINTEXT"):
        refuse(settings)


def test_a_listener_without_a_protocol_is_refused() -> None:
    with pytest.raises(KafkaError, match=r"has no protocol for listener CLIENTS; add CLIENTS:PROTOCOL"):
        refuse({"listeners": "CLIENTS://127.0.0.1:0"})


def test_a_listener_with_tls_needs_a_certificate() -> None:
    with pytest.raises(KafkaError, match=r"ssl.keystore.location: is not set, but listener SSL has TLS"):
        refuse({"listeners": "SSL://127.0.0.1:0"})


def test_a_broker_that_could_not_start_gives_its_folder_back(tmp_path: Path) -> None:
    with pytest.raises(KafkaError):
        TestBroker({"listeners": "SSL://127.0.0.1:0"}, folder=str(tmp_path)).start()
    with TestBroker(folder=str(tmp_path)) as broker:
        assert broker.port


# New certificates.


def test_a_renewed_file_is_taken_into_use_and_connections_stay(broker: TestBroker, files: Files) -> None:
    address = ("localhost", broker.ports["CLIENTS"])

    async def story() -> None:
        async with Admin(f"localhost:{address[1]}", **secure(files)) as admin:
            assert await asyncio.to_thread(serial, address, files) == files.first.certificate.serial_number
            renewed = files.renew("broker.pem")
            await asyncio.to_thread(
                until, lambda: serial(address, files) == renewed.certificate.serial_number, "the new one is shown"
            )
            assert await admin.list_topics() == []

    asyncio.run(story())


def test_a_broken_file_is_told_and_the_old_certificate_stays(
    broker: TestBroker, files: Files, caplog: pytest.LogCaptureFixture
) -> None:
    address = ("localhost", broker.ports["CLIENTS"])
    with caplog.at_level(logging.INFO, "ottla.broker"):
        written(files.folder, "broker.pem", b"-----BEGIN NOTHING-----")
        until(lambda: "the changed files of listener CLIENTS are not used" in caplog.text, "the log says it")
        assert serial(address, files) == files.first.certificate.serial_number
        renewed = files.renew("broker.pem")
        until(lambda: serial(address, files) == renewed.certificate.serial_number, "the repaired one is shown")
    assert caplog.text.count("are not used") == 1


def alter(broker: TestBroker, files: Files, changes: dict[str, str | None]) -> None:
    async def story() -> None:
        async with Admin(f"localhost:{broker.ports['CLIENTS']}", **secure(files)) as admin:
            await admin.alter_configs([ConfigResource(ConfigResourceType.BROKER, str(NODE), changes)])

    asyncio.run(story())


def test_configs_of_tls_are_changed_while_the_broker_runs(broker: TestBroker, files: Files) -> None:
    address = ("localhost", broker.ports["CLIENTS"])
    other = files.renew("other.pem")
    name = "listener.name.clients.ssl.keystore.location"
    alter(broker, files, {name: str(files.folder / "other.pem")})
    assert serial(address, files) == other.certificate.serial_number
    alter(broker, files, {name: None})
    assert serial(address, files) == files.first.certificate.serial_number


def test_a_changed_config_that_will_not_do_is_refused_and_not_kept(broker: TestBroker, files: Files) -> None:
    address = ("localhost", broker.ports["CLIENTS"])
    for changes, said in (
        ({"listener.name.clients.ssl.keystore.location": "/none.pem"}, "cannot be read: no such file"),
        ({"listener.name.clients.ssl.client.auth": "required"}, "nobody is trusted; set ssl.truststore.location"),
        ({"ssl.principal.mapping.rules": "MINE"}, "'MINE' is no rule"),
        ({"ssl.cipher.suites": "TLS_NONE_WITH_NOTHING"}, "has no cipher of TLS 1.2 that is known here"),
    ):
        with pytest.raises(InvalidConfigError, match=said.replace(".", r"\.")):
            alter(broker, files, dict(changes))
    assert serial(address, files) == files.first.certificate.serial_number
    broker.stop()
    broker.start()
    assert serial(("localhost", broker.ports["CLIENTS"]), files) == files.first.certificate.serial_number


def test_clients_must_show_a_certificate_from_the_moment_that_it_is_set(broker: TestBroker, files: Files) -> None:
    address = ("localhost", broker.ports["CLIENTS"])
    changes: dict[str, str | None] = {
        "listener.name.clients.ssl.truststore.location": files.ca,
        "listener.name.clients.ssl.client.auth": "required",
    }
    alter(broker, files, changes)

    async def come(**more: Any) -> None:
        security = Security(**{**secure(files), **more})
        await (await Connection.open(*address, security=security)).close()

    with pytest.raises(KafkaError, match="set ssl_certfile and ssl_keyfile"):
        asyncio.run(come())
    asyncio.run(come(ssl_certfile=files.store))


def test_who_has_no_name_by_his_certificate_is_told_where_to_look(broker: TestBroker, files: Files) -> None:
    changes: dict[str, str | None] = {
        "listener.name.clients.ssl.truststore.location": files.ca,
        "listener.name.clients.ssl.client.auth": "required",
        "listener.name.clients.ssl.principal.mapping.rules": "RULE:^CN=somebody else$/x/",
    }
    alter(broker, files, changes)
    with (
        pytest.raises(
            KafkaError, match=r"whose ssl\.principal\.mapping\.rules do not fit the certificate of ssl_certfile"
        ),
        SyncAdmin(f"localhost:{broker.ports['CLIENTS']}", **secure(files), ssl_certfile=files.store) as admin,
    ):
        admin.list_topics()


def test_secrets_of_tls_are_never_shown(files: Files) -> None:
    identity = files.authority.issue("broker")
    settings = {
        "listeners": "SSL://127.0.0.1:0",
        "ssl.keystore.certificate.chain": identity.chain.decode(),
        "ssl.keystore.key": identity.encrypted_key("hidden").decode(),
        "ssl.key.password": "hidden",
    }

    async def story(address: str) -> dict[str, Any]:
        async with Admin(address, **secure(files)) as admin:
            resource = ConfigResource(ConfigResourceType.BROKER, str(NODE))
            return (await admin.describe_configs([resource]))[resource]

    with TestBroker(settings) as broker:
        found = asyncio.run(story(broker.bootstrap_servers))
    for name in ("ssl.keystore.key", "ssl.key.password", "ssl.keystore.certificate.chain"):
        assert found[name].value is None
        assert found[name].is_sensitive


# Certificates of clients where they log in, too.


@pytest.fixture
def sides(files: Files) -> dict[str, str]:
    """Settings of a broker where clients show certificates at one listener and log in at another."""
    return {
        "listeners": "PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0,SASL_SSL://127.0.0.1:0",
        "ssl.keystore.location": files.store,
        "ssl.truststore.location": files.ca,
        "connection.failed.authentication.delay.ms": "0",
    }


def come(broker: TestBroker, files: Files, listener: str, **more: Any) -> None:
    """Connect to a listener, and log in as alice where that is asked for."""
    options: dict[str, Any] = {"security_protocol": listener, "ssl_cafile": files.ca}
    if listener.startswith("SASL"):
        options |= {"sasl_mechanism": "SCRAM-SHA-256", "sasl_plain_username": "alice"}
        options |= {"sasl_plain_password": PASSWORD + "alice"}
    security = Security(**{**options, **more})

    async def visit() -> None:
        await (await Connection.open("localhost", broker.ports[listener], security=security)).close()

    asyncio.run(visit())


def test_client_auth_for_all_listeners_is_not_for_those_where_clients_log_in_and_that_is_told_once(
    files: Files, sides: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    said = "ssl.client.auth = required does not count for listener SASL_SSL"
    with TestBroker({**sides, "ssl.client.auth": "required"}) as broker:
        add_users(broker, ["alice"], [ScramMechanism.SCRAM_SHA_256])
        come(broker, files, "SASL_SSL")
        with pytest.raises(KafkaError, match="set ssl_certfile"):
            come(broker, files, "SSL")
        come(broker, files, "SSL", ssl_certfile=files.store)
        alter_plainly(broker, {"message.max.bytes": "5000"})
    (told,) = [one for one in caplog.messages if one.startswith(said)]
    assert "set listener.name.sasl_ssl.ssl.client.auth if they are to" in told


def test_client_auth_that_is_set_later_is_not_for_listeners_where_clients_log_in_either(
    files: Files, sides: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    with TestBroker(sides) as broker:
        add_users(broker, ["alice"], [ScramMechanism.SCRAM_SHA_256])
        assert "does not count" not in caplog.text
        alter_plainly(broker, {"ssl.client.auth": "required"})
        assert caplog.text.count("ssl.client.auth = required does not count for listener SASL_SSL") == 1
        come(broker, files, "SASL_SSL")
        with pytest.raises(KafkaError, match="set ssl_certfile"):
            come(broker, files, "SSL")


def test_client_auth_of_a_listener_where_clients_log_in_takes_a_certificate_and_a_login(
    files: Files, sides: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    with TestBroker({**sides, "listener.name.sasl_ssl.ssl.client.auth": "required"}) as broker:
        add_users(broker, ["alice"], [ScramMechanism.SCRAM_SHA_256])
        come(broker, files, "SSL")
        with pytest.raises(KafkaError, match="set ssl_certfile"):
            come(broker, files, "SASL_SSL")
        come(broker, files, "SASL_SSL", ssl_certfile=files.store)
        with pytest.raises(AuthenticationFailedError):
            come(broker, files, "SASL_SSL", ssl_certfile=files.store, sasl_plain_password="wrong")
    assert "does not count" not in caplog.text


def alter_plainly(broker: TestBroker, changes: dict[str, str | None]) -> None:
    with SyncAdmin(broker.bootstrap_servers) as admin:
        admin.alter_configs([ConfigResource(ConfigResourceType.BROKER, str(NODE), changes)])
