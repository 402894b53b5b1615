"""What is sent to the same machine is not paced; what a network lies between is sent as the machine is set."""

import asyncio
import socket
from typing import Any

import pytest

from ottla.net import Reply, ServerConnection, connection, pacing, serving
from ottla.net.connection import Connection
from ottla.net.serving import Handler
from ottla.wire.api.metadata import MetadataRequest
from tests.unit.net.loops import LoopFactory, each_loop, run
from tests.unit.net.peers import listening, metadata, offering

pytestmark = pytest.mark.skipif(not hasattr(socket, "TCP_CONGESTION"), reason="not told by this system")

NOT_PACED = pacing.NOT_PACED.decode()


def name_of(connected: Any) -> str:
    name: bytes = connected.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
    return name.rstrip(b"\0").decode()


@pytest.fixture
def usual(monkeypatch: pytest.MonkeyPatch) -> str:
    """What connections of this machine use, which is taken for something that paces."""
    with socket.socket() as new:
        name = name_of(new)
    if name == NOT_PACED:
        pytest.skip(f"connections of this machine use {name} anyway")
    monkeypatch.setattr(pacing, "PACED", name.encode())
    return name


def names_at_both_ends(loop_factory: LoopFactory) -> tuple[str, str]:
    """What a broker sends by, and what a client does."""
    found: list[str] = []
    handler: Handler = offering({18: 4, 3: 12}, metadata)

    def noting(connection: ServerConnection, frame: bytes | bytearray) -> Reply:
        found.append(name_of(connection._transport.get_extra_info("socket")))
        return handler(connection, frame)

    async def story() -> None:
        async with listening(noting) as listener:
            connection = await Connection.open(*listener.address)
            assert await connection.request(MetadataRequest())
            found.append(name_of(connection._transport.get_extra_info("socket")))
            await connection.close()

    run(loop_factory, story())
    return found[0], found[-1]


@each_loop
def test_on_one_machine_neither_side_is_paced(usual: str, loop_factory: LoopFactory) -> None:
    assert names_at_both_ends(loop_factory) == (NOT_PACED, NOT_PACED)


@each_loop
def test_where_only_this_machine_can_connect_connections_begin_so(
    usual: str, loop_factory: LoopFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (serving, connection):
        monkeypatch.setattr(module, "stop_pacing_if_near", lambda transport: None)
    assert names_at_both_ends(loop_factory) == (NOT_PACED, usual)


@each_loop
def test_whom_a_network_lies_between_is_sent_to_as_the_machine_is_set(
    usual: str, loop_factory: LoopFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pacing, "_is_loopback", lambda address: False)
    monkeypatch.setattr(pacing, "is_on_this_machine", lambda own, peer: False)
    assert names_at_both_ends(loop_factory) == (usual, usual)


@each_loop
def test_where_nothing_is_paced_nothing_is_changed(loop_factory: LoopFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pacing, "PACED", b"there-is-none")
    with socket.socket() as new:
        usual = name_of(new)
    assert names_at_both_ends(loop_factory) == (usual, usual)


@each_loop
def test_a_system_that_lets_nobody_choose_sends_as_it_always_did(
    usual: str, loop_factory: LoopFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pacing, "NOT_PACED", b"there-is-none")
    assert names_at_both_ends(loop_factory) == (usual, usual)


def test_a_listener_for_all_addresses_leaves_connections_as_the_machine_has_them(usual: str) -> None:
    with socket.create_server(("0.0.0.0", 0)) as everywhere, socket.create_server(("127.0.0.1", 0)) as here:
        for listening in (everywhere, here):
            pacing.listen_without_pacing(listening)
        assert (name_of(everywhere), name_of(here)) == (usual, NOT_PACED)


def test_a_transport_without_a_socket_is_left_alone() -> None:
    pacing.stop_pacing_if_near(asyncio.Transport({"sockname": ("::1", 1), "peername": ("::1", 2)}))


def test_addresses_of_one_machine_are_told_from_those_of_two() -> None:
    for own, peer, near in (
        (("::1", 1, 0, 0), ("::1", 2, 0, 0), True),
        (("127.0.1.1", 1), ("127.0.0.1", 2), True),
        (("10.0.0.1", 1), ("10.0.0.1", 2), True),
        (("10.0.0.1", 1), ("127.0.0.1", 2), False),
        (("10.0.0.1", 1), ("10.0.0.2", 2), False),
        ("/a/path", "/a/path", False),
        (None, None, False),
    ):
        assert pacing.is_on_this_machine(own, peer) is near
