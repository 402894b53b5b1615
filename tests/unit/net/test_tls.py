"""TLS between the two ends of a connection: what is sent arrives, and it is known who sent it."""

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from ottla.net import Listener, ServerConnection
from ottla.ports import FileSlice, SystemDisk
from tests.unit.net.loops import LoopFactory, each_loop, run
from tests.unit.net.peers import Client, echo
from tests.unit.net.tls_world import TlsWorld, broker, client_context, refused
from tests.waiting import eventually

MEGABYTE = 1024 * 1024


@pytest.fixture
def world(tmp_path: Path) -> TlsWorld:
    return TlsWorld(tmp_path)


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
            await eventually(lambda: listener.bytes_buffered > 0, "the transport has no more room")
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
            await eventually(lambda: len(seen) == 2, "both requests are handled")
            await eventually(lambda: listener.connection_count == 0, "the connection is gone")

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
@pytest.mark.parametrize("name", ["alice", "al\nice"])
def test_a_name_that_no_rule_knows_is_not_let_in_and_the_log_has_it_in_one_line(
    loop_factory: LoopFactory, world: TlsWorld, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    async def story() -> None:
        async with world.listening(broker, client_auth="required", rules="RULE:^CN=bob.*$/bob/") as listener:
            error = await refused(world.connect(listener, world.authority.issue(name, unit="x" * 60)))
            assert isinstance(error, Exception)
            await eventually(lambda: listener.connection_count == 0, "the connection is gone")

    run(loop_factory, story())
    (told, *_) = [one for one in caplog.messages if "no rule of ssl.principal.mapping.rules fits" in one]
    assert repr(f"CN={name},OU={'x' * 60},O=Shop") in told
    assert "\n" not in told


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
