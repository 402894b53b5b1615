"""Who is trusted and who is not, and whether both speak TLS at all: each is told what is wrong."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from ottla.net import BrokerUnreachableError, Connection, HandshakeCutError, Listener
from ottla.net.pem import Pem
from ottla.net.tls_errors import (
    CertificateExpiredError,
    CertificateRevokedError,
    ClientCertificateError,
    SecurityProtocolError,
    SslAuthenticationError,
    UntrustedCertificateError,
    WrongHostnameError,
)
from tests.certificates import Authority
from tests.unit.net.loops import LoopFactory, each_loop, run
from tests.unit.net.tls_world import TlsWorld, broker, client_context, refused


@pytest.fixture
def world(tmp_path: Path) -> TlsWorld:
    return TlsWorld(tmp_path)


@each_loop
@pytest.mark.parametrize(
    ("bad", "kind", "said"),
    [
        ("expired", CertificateExpiredError, "has expired"),
        ("untrusted", UntrustedCertificateError, "set ssl_cafile"),
        ("elsewhere", WrongHostnameError, "is for another host"),
        ("revoked", CertificateRevokedError, "was revoked"),
    ],
)
def test_a_client_refuses_a_broker_whose_certificate_is_bad(
    loop_factory: LoopFactory, world: TlsWorld, bad: str, kind: type[Exception], said: str
) -> None:
    issuer = Authority("Somebody else") if bad == "untrusted" else world.authority
    hosts = ["elsewhere.example"] if bad == "elsewhere" else ["localhost", "127.0.0.1"]
    identity = issuer.issue("broker", hosts=hosts, expired=bad == "expired")
    world.broker_store = world.file("bad.pem", identity.store)
    changes: dict[str, Any] = (
        {"ssl_crlfile": world.file("crl.pem", world.authority.revoked(identity))} if bad == "revoked" else {}
    )

    async def story() -> None:
        async with world.listening(broker) as listener:
            error = await refused(world.connect(listener, **changes))
            assert type(error) is kind
            assert isinstance(error, SslAuthenticationError)
            assert not error.retriable
            assert said in str(error)
            assert f"{listener.address[0]}:{listener.address[1]}" in str(error)

    run(loop_factory, story())


@each_loop
def test_a_wrong_host_is_let_pass_if_it_is_not_to_be_looked_at(loop_factory: LoopFactory, world: TlsWorld) -> None:
    world.broker_store = world.file("b.pem", world.authority.issue("b", hosts=["elsewhere.example"]).store)

    async def story() -> None:
        async with world.listening(broker) as listener:
            await (await world.connect(listener, ssl_check_hostname=False)).close()

    run(loop_factory, story())


@each_loop
def test_a_list_of_revoked_certificates_lets_others_pass(loop_factory: LoopFactory, world: TlsWorld) -> None:
    revoked = world.file("crl.pem", world.authority.revoked(world.authority.issue("other")))

    async def story() -> None:
        async with world.listening(broker) as listener:
            await (await world.connect(listener, ssl_crlfile=revoked)).close()

    run(loop_factory, story())


@each_loop
def test_a_context_of_ones_own_is_used(loop_factory: LoopFactory, world: TlsWorld) -> None:
    async def story() -> None:
        async with world.listening(broker) as listener:
            await (await world.connect(listener, ssl_cafile=None, ssl_context=client_context(world))).close()

    run(loop_factory, story())


@each_loop
@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
@pytest.mark.parametrize(
    ("bad", "said", "logged"),
    [
        ("none", "set ssl_certfile", "it has no certificate, which ssl.client.auth=required asks for"),
        ("expired", "has expired", "its certificate is refused: certificate has expired"),
        ("untrusted", "was signed by nobody whom it trusts", "its certificate is refused: unable to get local issuer"),
        ("revoked", "was revoked", "its certificate is refused: certificate revoked"),
    ],
)
def test_a_broker_refuses_a_client_whose_certificate_is_bad_and_says_why(
    loop_factory: LoopFactory,
    world: TlsWorld,
    version: str,
    bad: str,
    said: str,
    logged: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    issuer = Authority("Somebody else") if bad == "untrusted" else world.authority
    identity = issuer.issue("alice", expired=bad == "expired")
    revoked = Pem("ssl.crl.location", world.file("crl.pem", world.authority.revoked(identity)))
    changes: dict[str, Any] = {"client_auth": "required", "protocols": (version,)}
    if bad == "revoked":
        changes["revoked"] = revoked

    async def story() -> None:
        async with world.listening(broker, **changes) as listener:
            error = await refused(world.connect(listener, None if bad == "none" else identity))
            assert type(error) is ClientCertificateError
            assert said in str(error)
            assert listener.connection_count == 0

    run(loop_factory, story())
    assert logged in caplog.text


@each_loop
def test_plain_text_on_a_port_of_tls_fails_at_once_and_says_what_to_do(
    loop_factory: LoopFactory, world: TlsWorld, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        async with world.listening(broker) as listener:
            error = await refused(Connection.open(*listener.address, timeout_ms=5_000))
            assert type(error) is SecurityProtocolError
            assert "speaks TLS; set security_protocol to 'SSL'" in str(error)

    run(loop_factory, story())
    assert "it does not speak TLS, which this listener asks for" in caplog.text


@each_loop
def test_tls_on_a_plain_port_fails_at_once_and_says_what_to_do(
    loop_factory: LoopFactory, world: TlsWorld, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        listener = Listener(broker)
        await listener.start("127.0.0.1", 0)
        error = await refused(world.connect(listener))
        assert type(error) is HandshakeCutError
        assert isinstance(error, BrokerUnreachableError)
        assert "set security_protocol to 'PLAINTEXT'" in str(error)
        await listener.stop()

    run(loop_factory, story())
    assert "it begins like TLS, which is not spoken here" in caplog.text


@each_loop
def test_somebody_who_answers_tls_with_something_else_is_named(loop_factory: LoopFactory, world: TlsWorld) -> None:
    async def story() -> None:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read(1)
            writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            writer.close()

        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        host, port = server.sockets[0].getsockname()
        error = await refused(Connection.open(host, port, security=world.security(), timeout_ms=5_000))
        assert type(error) is SecurityProtocolError
        assert "does not speak TLS" in str(error)
        server.close()

    run(loop_factory, story())
