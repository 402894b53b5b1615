"""TLS between the two ends of a connection: what is sent arrives, strangers are refused, and each is told why."""

import asyncio
import errno
import os
import socket
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from ottla.net import (
    Admission,
    BrokerUnreachableError,
    Connection,
    HandshakeCutError,
    Listener,
    ServerConnection,
)
from ottla.net import doorway as doorways
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
from ottla.ports import FileSlice, SystemDisk
from ottla.wire.api.api_versions import ApiVersionsResponse
from ottla.wire.frame import encode_response, read_request_prefix
from tests.certificates import Authority
from tests.unit.net.loops import LoopFactory, each_loop, run, until
from tests.unit.net.peers import Client, echo
from tests.unit.net.tls_world import TlsWorld

MEGABYTE = 1024 * 1024


@pytest.fixture
def world(tmp_path: Path) -> TlsWorld:
    return TlsWorld(tmp_path)


def broker(connection: ServerConnection, frame: bytes | bytearray) -> Any:
    """Answers ApiVersions, which is all that a connection asks when it opens."""
    prefix = read_request_prefix(frame)
    return encode_response(ApiVersionsResponse(), prefix.api_version, correlation_id=prefix.correlation_id)


def client_context(world: TlsWorld, **changes: Any) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=world.ca)
    for name, value in changes.items():
        setattr(context, name, value)
    return context


async def refused(opening: Awaitable[Connection]) -> BaseException:
    with pytest.raises(Exception) as caught:
        await (await opening).close()
    return caught.value


# What is sent arrives.


@each_loop
def test_large_requests_and_replies_go_through(loop_factory: LoopFactory, world: TlsWorld) -> None:
    async def story() -> None:
        body = bytes(range(256)) * (32 * 1024)
        async with world.listening(echo) as listener:
            client = await Client.connect(listener, ssl=client_context(world), server_hostname="localhost")
            client.send(body, b"after it")
            assert await client.receive() == body
            assert await client.receive() == b"after it"
            client.writer.close()

    run(loop_factory, story())


@each_loop
def test_a_file_goes_to_a_slow_reader_in_pieces(loop_factory: LoopFactory, world: TlsWorld, tmp_path: Path) -> None:
    async def story() -> None:
        file = SystemDisk(str(tmp_path)).open("segment", create=True)
        content = bytes(range(251)) * 64 * 1024
        file.append(content)

        def send_file(connection: ServerConnection, frame: bytes | bytearray) -> Any:
            return [len(content).to_bytes(4), FileSlice(file, 0, len(content))]

        async with world.listening(send_file) as listener:
            options = {"ssl": client_context(world), "server_hostname": "localhost", "limit": 64 * 1024}
            client = await Client.connect(listener, **options)
            client.send(b"the file, please")
            await until(lambda: listener.bytes_buffered > 0, "the transport has no more room")
            await client.reader.readexactly(4)
            received, most = b"", 0
            while len(received) < len(content):
                received += await client.reader.read(256 * 1024)
                most = max(most, listener.bytes_buffered)
            assert received == content
            assert 0 < most < 2 * MEGABYTE
            client.writer.close()

    run(loop_factory, story())


@each_loop
def test_requests_before_the_client_leaves_are_handled(loop_factory: LoopFactory, world: TlsWorld) -> None:
    async def story() -> None:
        seen: list[bytes] = []

        def note(connection: ServerConnection, frame: bytes | bytearray) -> None:
            seen.append(bytes(frame))

        async with world.listening(note) as listener:
            client = await Client.connect(listener, ssl=client_context(world), server_hostname="localhost")
            client.send(b"one", b"two")
            client.writer.close()
            await until(lambda: len(seen) == 2, "both requests are handled")
            await until(lambda: listener.connection_count == 0, "the connection is gone")

    run(loop_factory, story())


@each_loop
def test_a_listener_with_tls_is_reached_at_all_addresses_of_the_machine(
    loop_factory: LoopFactory, world: TlsWorld
) -> None:
    async def story() -> None:
        listener = Listener(echo, tls=await world.tls(world.settings()))
        _, port = await listener.start("", 0)
        for host in ("127.0.0.1", "::1"):
            if host == "::1" and not _has_ipv6():
                continue
            reader, writer = await asyncio.open_connection(
                host, port, ssl=client_context(world), server_hostname="localhost"
            )
            client = Client(reader, writer)
            client.send(b"hello")
            assert await client.receive() == b"hello"
            writer.close()
        await listener.stop()

    run(loop_factory, story())


def _has_ipv6() -> bool:
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


# Who the client is.


async def principals(world: TlsWorld, identities: list[Any], **settings: Any) -> list[str]:
    seen: list[str] = []

    def note(connection: ServerConnection, frame: bytes | bytearray) -> Any:
        seen.append(connection.principal)
        return broker(connection, frame)

    async with world.listening(note, **settings) as listener:
        for identity in identities:
            await (await world.connect(listener, identity)).close()
    return seen


@each_loop
def test_a_certificate_says_who_a_client_is(loop_factory: LoopFactory, world: TlsWorld) -> None:
    async def story() -> None:
        alice = world.authority.issue("alice", unit="Billing")
        seen = await principals(world, [alice, None], client_auth="requested")
        assert seen == ["User:CN=alice,OU=Billing,O=Shop", "User:ANONYMOUS"]
        rules = "RULE:^CN=(.*?),OU=Billing.*$/$1/U,DEFAULT"
        assert await principals(world, [alice], client_auth="required", rules=rules) == ["User:ALICE"]

    run(loop_factory, story())


@each_loop
def test_a_name_that_no_rule_knows_is_not_let_in(
    loop_factory: LoopFactory, world: TlsWorld, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        async with world.listening(broker, client_auth="required", rules="RULE:^CN=bob.*$/bob/") as listener:
            error = await refused(world.connect(listener, world.authority.issue("alice")))
            assert isinstance(error, Exception)
            await until(lambda: listener.connection_count == 0, "the connection is gone")

    run(loop_factory, story())
    assert "no rule makes a user of its certificate's name" in caplog.text


# Brokers that are not to be trusted.


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


# Clients that are not to be trusted.


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


# One side speaks TLS, the other does not.


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


# Strangers cost little.


@asynccontextmanager
async def strangers(listener: Listener, count: int, said: bytes) -> AsyncIterator[list[socket.socket]]:
    """Clients that say something and then nothing more."""
    loop = asyncio.get_running_loop()
    sockets = []
    try:
        for _ in range(count):
            one = socket.socket()
            one.setblocking(False)
            sockets.append(one)
            await loop.sock_connect(one, listener.address)
            await loop.sock_sendall(one, said)
        yield sockets
    finally:
        for one in sockets:
            one.close()


@each_loop
def test_a_handshake_that_never_ends_is_given_up_and_others_are_served_meanwhile(
    loop_factory: LoopFactory, world: TlsWorld, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(doorways, "HANDSHAKE_SECONDS", 0.5)
    beginning = bytes([22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3])

    async def story() -> None:
        admission = Admission()
        async with world.listening(broker, admission=admission) as listener:
            async with strangers(listener, 3, beginning) as waiting:
                connection = await world.connect(listener)
                assert listener.handshake_count == 3
                for one in waiting:
                    assert await asyncio.get_running_loop().sock_recv(one, 100) == b""
                await until(lambda: listener.handshake_count == 0, "all are given up")
                assert not connection.closed
                await connection.close()
            await until(lambda: listener.connection_count == 0, "all are gone")
            admission.limit = 1
            await (await world.connect(listener)).close()

    run(loop_factory, story())
    assert "it did not finish the TLS handshake in time" in caplog.text


@each_loop
def test_beyond_so_many_handshakes_the_oldest_is_given_up(
    loop_factory: LoopFactory, world: TlsWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doorways, "MOST_HANDSHAKES", 5)

    async def story() -> None:
        async with world.listening(broker) as listener, strangers(listener, 20, b"\x16") as waiting:
            await until(lambda: listener.handshake_count <= 5, "only the last ones are left")
            assert await asyncio.get_running_loop().sock_recv(waiting[0], 100) == b""
            await (await world.connect(listener)).close()

    run(loop_factory, story())


@each_loop
def test_who_is_beyond_the_limit_is_turned_away_before_the_handshake(
    loop_factory: LoopFactory, world: TlsWorld
) -> None:
    async def story() -> None:
        async with (
            world.listening(broker, admission=Admission(limit=2)) as listener,
            strangers(listener, 2, b"\x16"),
        ):
            await until(lambda: listener.handshake_count == 2, "both are there")
            error = await refused(world.connect(listener))
            assert type(error) is HandshakeCutError

    run(loop_factory, story())


@each_loop
def test_garbage_costs_one_connection_and_few_lines_of_the_log(
    loop_factory: LoopFactory, world: TlsWorld, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        async with world.listening(broker) as listener:
            async with strangers(listener, 50, b"\xff" * 1000) as senders:
                for one in senders:
                    # Either a word of farewell, or the end at once.
                    await _drained(one)
            await until(lambda: listener.handshake_count == 0, "all are gone")
            await (await world.connect(listener)).close()

    run(loop_factory, story())
    assert sum("does not speak TLS" in line for line in caplog.text.splitlines()) == doorways.REPORTS


async def _drained(one: socket.socket) -> None:
    try:
        while await asyncio.get_running_loop().sock_recv(one, 100):
            pass
    except ConnectionResetError:
        pass


@each_loop
def test_a_listener_stops_while_handshakes_are_under_way(loop_factory: LoopFactory, world: TlsWorld) -> None:
    async def story() -> None:
        async with world.listening(broker) as listener, strangers(listener, 2, b"\x16") as waiting:
            await until(lambda: listener.handshake_count == 2, "both are there")
            # Less than handshakes may take.
            async with asyncio.timeout(8):
                await listener.stop()
            for one in waiting:
                await _drained(one)
            with pytest.raises(ConnectionRefusedError):
                await asyncio.open_connection(*listener.address)

    run(loop_factory, story())


@each_loop
@pytest.mark.parametrize("turns", range(6))
def test_whoever_comes_while_a_listener_stops_is_turned_away_and_not_forgotten(
    loop_factory: LoopFactory, world: TlsWorld, turns: int
) -> None:
    async def story() -> None:
        async with world.listening(broker) as listener:
            with socket.create_connection(listener.address, timeout=10) as late:
                # How far it has come by then: in the queue, accepted, about to shake hands.
                for _ in range(turns):
                    await asyncio.sleep(0)
                await listener.stop()
                late.setblocking(False)
                await _drained(late)

    run(loop_factory, story())


# Versions, ciphers, and new certificates.


@each_loop
def test_only_the_versions_and_ciphers_that_are_set_are_on_offer(loop_factory: LoopFactory, world: TlsWorld) -> None:
    async def agreed(listener: Listener, **changes: Any) -> tuple[str, str]:
        context = client_context(world, **changes)
        _, writer = await asyncio.open_connection(*listener.address, ssl=context, server_hostname="localhost")
        found: ssl.SSLObject = writer.get_extra_info("ssl_object")
        writer.close()
        cipher = found.cipher()
        assert cipher is not None
        return found.version() or "", cipher[0]

    async def story() -> None:
        older = {"maximum_version": ssl.TLSVersion.TLSv1_2}
        async with world.listening(echo) as listener:
            assert (await agreed(listener))[0] == "TLSv1.3"
            assert (await agreed(listener, **older))[0] == "TLSv1.2"
        async with world.listening(echo, protocols=("TLSv1.3",)) as listener:
            with pytest.raises(ssl.SSLError, match=r"(?i)protocol.version"):
                await agreed(listener, **older)
        suite = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"
        async with world.listening(echo, ciphers=(suite,)) as listener:
            assert await agreed(listener) == ("TLSv1.2", "ECDHE-ECDSA-AES128-GCM-SHA256")

    run(loop_factory, story())


@each_loop
def test_a_changed_file_is_taken_into_use_and_a_broken_one_is_not(
    loop_factory: LoopFactory, world: TlsWorld, caplog: pytest.LogCaptureFixture
) -> None:
    async def shown(listener: Listener) -> int:
        _, writer = await asyncio.open_connection(
            *listener.address, ssl=client_context(world), server_hostname="localhost"
        )
        found: ssl.SSLObject = writer.get_extra_info("ssl_object")
        certificate = found.getpeercert()
        writer.close()
        assert certificate is not None
        return int(str(certificate["serialNumber"]), 16)

    async def story() -> None:
        async with world.listening(echo) as listener:
            assert listener.tls is not None
            refresh: Callable[[], Awaitable[bool]] = listener.tls.context.refresh
            assert await shown(listener) == world.broker.certificate.serial_number
            assert not await refresh()
            renewed = world.authority.issue("broker")
            world.file("broker.pem", renewed.store)
            assert await refresh()
            assert await shown(listener) == renewed.certificate.serial_number
            world.file("broker.pem", b"not a certificate")
            with pytest.raises(Exception, match="has no CERTIFICATE"):
                await refresh()
            assert not await refresh()
            assert await shown(listener) == renewed.certificate.serial_number

    run(loop_factory, story())


@each_loop
def test_a_client_takes_a_new_certificate_of_its_own_into_use(
    loop_factory: LoopFactory, world: TlsWorld, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        seen: list[str] = []

        def note(connection: ServerConnection, frame: bytes | bytearray) -> Any:
            seen.append(connection.principal)
            return broker(connection, frame)

        store = world.file("client.pem", world.authority.issue("alice").store)
        async with world.listening(note, client_auth="required", rules="RULE:^CN=(.*?),.*$/$1/") as listener:
            for name in ("bob", "nobody"):
                await (await world.connect(listener, ssl_certfile=store)).close()
                world.file("client.pem", world.authority.issue(name).store if name == "bob" else b"broken")
            await (await world.connect(listener, ssl_certfile=store)).close()
        assert seen == ["User:alice", "User:bob", "User:bob"]

    run(loop_factory, story())
    assert "changed files of TLS are not used" in caplog.text


@each_loop
def test_a_session_of_tls_is_not_resumed_beyond_the_end_of_the_clients_certificate(
    loop_factory: LoopFactory, world: TlsWorld, caplog: pytest.LogCaptureFixture
) -> None:
    """With TLS 1.2, where a client that resumes shows no certificate."""
    context = client_context(world, minimum_version=ssl.TLSVersion.TLSv1_2, maximum_version=ssl.TLSVersion.TLSv1_2)
    alice = world.authority.issue("alice")
    context.load_cert_chain(world.file("alice.pem", alice.store))

    def visit(address: tuple[str, int], session: ssl.SSLSession | None) -> tuple[bytes, bool | None, Any]:
        """What it answers, whether a session was resumed, and the session for the next time."""
        with (
            socket.create_connection(address, timeout=10) as plain,
            context.wrap_socket(plain, server_hostname="localhost", session=session) as secure,
        ):
            secure.sendall(b"\0\0\0\5hello")
            try:
                answer = secure.recv(5)
            except OSError:
                answer = b""
            return answer, secure.session_reused, secure.session

    async def story() -> None:
        def echo(connection: ServerConnection, frame: bytes | bytearray) -> Any:
            assert connection.principal == "User:CN=alice,O=Shop"
            return [bytes(frame)]

        async with world.listening(echo, client_auth="required") as listener:
            answer, resumed, session = await asyncio.to_thread(visit, listener.address, None)
            assert (answer, resumed) == (b"hello", False)
            assert (await asyncio.to_thread(visit, listener.address, session))[:2] == (b"hello", True)
            world.clock.ahead_ms = 2 * 60 * 60 * 1000
            assert (await asyncio.to_thread(visit, listener.address, session))[:2] == (b"", True)

    run(loop_factory, story())
    assert "its certificate has expired since that began" in caplog.text


@each_loop
@pytest.mark.parametrize(
    ("code", "pause_s", "message"),
    [
        (errno.ECONNABORTED, 3600.0, "cannot accept a connection: "),
        (errno.EMFILE, 0.01, "cannot accept connections for now: "),
    ],
)
def test_accepting_pauses_longer_for_lack_of_files_than_for_a_client_that_left(
    loop_factory: LoopFactory,
    world: TlsWorld,
    code: int,
    pause_s: float,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(doorways, "OUT_OF_FILES_SECONDS", pause_s)

    async def story() -> None:
        async with world.listening(broker) as listener:
            failures = [OSError(code, os.strerror(code)) for _ in range(3)]
            doorway = listener._doorways[0]
            doorway._socket = cast(socket.socket, _Failing(doorway._socket, failures))
            await (await world.connect(listener)).close()
            assert failures == []

    run(loop_factory, story())
    assert caplog.text.count(message + os.strerror(code)) == 3


@each_loop
def test_an_error_that_lasts_does_not_keep_the_event_loop_busy_and_counts_as_no_handshake(
    loop_factory: LoopFactory, world: TlsWorld, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(doorways, "REPORTS", 3)
    monkeypatch.setattr(doorways, "REPORT_SECONDS", 0.5)
    tries = 0

    class Broken:
        """A listening socket that accepts nobody any more."""

        def __init__(self, listening: socket.socket) -> None:
            self._socket = listening

        def accept(self) -> Any:
            nonlocal tries
            tries += 1
            raise OSError(errno.EPROTO, os.strerror(errno.EPROTO))

        def __getattr__(self, name: str) -> Any:
            return getattr(self._socket, name)

    async def story() -> None:
        async with world.listening(broker) as listener:
            doorway = listener._doorways[0]
            doorway._socket = cast(socket.socket, Broken(doorway._socket))
            _, writer = await asyncio.open_connection(*listener.address)
            began = time.monotonic()
            async with asyncio.timeout(10):
                while "more connections could not be accepted" not in caplog.text:
                    await asyncio.sleep(0.01)
            assert 3 < tries <= (time.monotonic() - began) / doorways.ERROR_SECONDS + 2
            assert listener.failed_count == 0
            writer.close()

    run(loop_factory, story())
    assert "handshake" not in caplog.text


class _Failing:
    """A listening socket that fails so often before it accepts somebody."""

    def __init__(self, listening: socket.socket, failures: list[OSError]) -> None:
        self._socket = listening
        self._failures = failures

    def accept(self) -> Any:
        if self._failures:
            raise self._failures.pop()
        return self._socket.accept()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._socket, name)
