"""Every client over TLS, and what they do when a broker is no longer to be trusted."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla import Admin, Consumer, Producer, read_table, sync
from ottla.client.admin import NewTopic
from ottla.errors import (
    BrokerUnreachableError,
    HandshakeCutError,
    SecurityProtocolError,
    TlsSettingsError,
    UntrustedCertificateError,
)
from ottla.testing import TestBroker
from tests.certificates import Authority, written


@pytest.fixture
def authority() -> Authority:
    return Authority()


@pytest.fixture
def broker(authority: Authority, tmp_path: Path) -> Iterator[TestBroker]:
    settings = {
        "listeners": "SSL://127.0.0.1:0,PLAINTEXT://127.0.0.1:0",
        "ssl.keystore.location": written(tmp_path, "broker.pem", authority.issue("broker").store),
    }
    with TestBroker(settings) as running:
        yield running


@pytest.fixture
def options(broker: TestBroker, authority: Authority) -> dict[str, Any]:
    return {
        "bootstrap_servers": broker.bootstrap_servers,
        "security_protocol": "SSL",
        "ssl_cafile": authority.pem.decode(),
    }


def test_all_clients_take_the_same_options(options: dict[str, Any]) -> None:
    async def story() -> None:
        async with Admin(**options) as admin:
            await admin.create_topics([NewTopic("orders", num_partitions=1)])
        async with Producer(**options) as producer:
            await producer.send_and_wait("orders", b"one")
        async with Consumer("orders", auto_offset_reset="earliest", group_id="g", **options) as consumer:
            assert (await consumer.getone()).value == b"one"
        assert (await read_table("orders", columns=["value"], **options)).to_pydict() == {"value": [b"one"]}

    asyncio.run(story())


def test_all_clients_without_asyncio_take_them_too(options: dict[str, Any]) -> None:
    with sync.Admin(**options) as admin:
        admin.create_topics([NewTopic("orders", num_partitions=1)])
    with sync.Producer(**options) as producer:
        producer.send("orders", b"one").result()
    with sync.Consumer("orders", auto_offset_reset="earliest", **options) as consumer:
        assert next(consumer).value == b"one"
    assert sync.read_table("orders", columns=["value"], **options).to_pydict() == {"value": [b"one"]}


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"ssl_cafile": None}, UntrustedCertificateError),
        ({"ssl_cafile": "/none.pem"}, TlsSettingsError),
        ({"ssl_cafile": None, "security_protocol": "PLAINTEXT"}, SecurityProtocolError),
    ],
)
def test_starting_fails_at_once_with_an_error_that_says_why(
    options: dict[str, Any], changes: dict[str, Any], kind: type[Exception]
) -> None:
    async def story() -> None:
        for client in (Producer, Consumer, Admin):
            with pytest.raises(kind) as caught:
                await client(**(options | changes)).start()
            assert type(caught.value) is kind

    asyncio.run(asyncio.wait_for(story(), 5))


def test_tls_to_a_plain_port_fails_at_once_whichever_address_is_tried(
    broker: TestBroker, options: dict[str, Any]
) -> None:
    plain = str(broker.endpoints["PLAINTEXT"])

    async def story() -> None:
        with pytest.raises(HandshakeCutError, match="set security_protocol to 'PLAINTEXT'"):
            await Admin(**(options | {"bootstrap_servers": plain})).start()
        with pytest.raises(BrokerUnreachableError) as caught:
            await Admin(**(options | {"bootstrap_servers": f"127.0.0.1:1,{plain}"})).start()
        assert "cannot connect to 127.0.0.1:1" in str(caught.value)
        assert "closed the connection during the TLS handshake" in str(caught.value)

    asyncio.run(asyncio.wait_for(story(), 5))


def test_a_broker_that_comes_back_with_a_strangers_certificate_is_not_used(
    broker: TestBroker, options: dict[str, Any], tmp_path: Path
) -> None:
    async def story() -> None:
        producer = await Producer(**options).start()
        await producer.send_and_wait("orders", b"one")
        consumer = await Consumer("orders", auto_offset_reset="earliest", **options).start()
        assert (await consumer.getone()).value == b"one"
        await asyncio.to_thread(broker.stop)
        written(tmp_path, "broker.pem", Authority("Somebody else").issue("broker").store)
        await asyncio.to_thread(broker.start)
        with pytest.raises(UntrustedCertificateError):
            await producer.send_and_wait("orders", b"two")
        with pytest.raises(UntrustedCertificateError):
            await consumer.getone()
        await producer.stop()
        await consumer.stop()

    asyncio.run(asyncio.wait_for(story(), 20))
