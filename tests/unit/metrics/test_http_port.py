"""The HTTP port: what it answers, and that nobody can take it from others."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from http import HTTPStatus
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from ottla.metrics import http_port
from ottla.metrics.http_port import HttpPort, Page


def _answer(path: str, accept: str) -> Page | None:
    return Page(f"{path} {accept}".encode()) if path == "/here" else None


@pytest.fixture
def port() -> Iterator[int]:
    served = HttpPort("127.0.0.1", 0, _answer)
    yield served.port
    served.close()


def _connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=10)


def _ask(port: int, request: bytes) -> bytes:
    with _connect(port) as connection:
        connection.sendall(request)
        connection.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: connection.recv(65536), b""))


def test_pages_are_found_by_path_whatever_the_query(port: int) -> None:
    with urlopen(f"http://127.0.0.1:{port}/here?name=value") as reply:
        assert reply.read() == b"/here "


def test_whoever_asks_for_headers_gets_no_page(port: int) -> None:
    """As some do that only look whether all is well."""
    found, _, body = _ask(port, b"HEAD /here HTTP/1.0\r\n\r\n").partition(b"\r\n\r\n")
    assert found.startswith(b"HTTP/1.0 200 ")
    assert b"Content-Length: 6\r\n" in found + b"\r\n"
    assert body == b""


def test_what_is_not_there_is_not_found(port: int) -> None:
    with pytest.raises(HTTPError) as caught:
        urlopen(f"http://127.0.0.1:{port}/there")
    assert caught.value.code == HTTPStatus.NOT_FOUND
    caught.value.close()


def test_only_get_is_answered(port: int) -> None:
    assert _ask(port, b"POST /here HTTP/1.0\r\n\r\n").startswith(b"HTTP/1.0 501 ")


def test_headers_without_end_are_refused(port: int) -> None:
    # No more than is read: what is left unread would reset the connection, and the reply might be lost.
    request = (b"GET /here HTTP/1.0\r\nX-Long: " + b"x" * http_port.MOST_REQUEST_BYTES)[: http_port.MOST_REQUEST_BYTES]
    assert _ask(port, request).startswith(b"HTTP/1.0 431 ")


def test_bytes_that_are_no_http_get_an_error(port: int) -> None:
    assert b"Bad request" in _ask(port, b"\x16\x03\x01\x02\x00\x01\x00 \x01\xfc\r\n\r\n")


def test_those_who_hold_connections_open_keep_nobody_away(port: int) -> None:
    with ExitStack() as stack:
        held = [stack.enter_context(_connect(port)) for _ in range(3 * http_port.MOST_CONNECTIONS)]
        for connection in held:
            connection.sendall(b"GET /here HTT")
        with urlopen(f"http://127.0.0.1:{port}/here") as reply:
            assert reply.status == HTTPStatus.OK
        assert held[0].recv(1) == b"", "the one that was there first had to go"


def test_a_port_that_is_taken_is_an_error(port: int) -> None:
    with pytest.raises(OSError, match="in use"):
        HttpPort("127.0.0.1", port, _answer)
