"""Servers that send on to other addresses: followed where nothing is lost by it."""

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.error import URLError

import pytest

from ottla.client.oauth import ClientCredentials
from ottla.net.sasl.errors import TokenError
from ottla.net.web import MOST_BYTES, read_address
from tests.certificates import Authority, written


class Server(ThreadingHTTPServer):
    """Answers with a text, or sends on to another address."""

    text = b"keys"
    other: str | None = None

    def __init__(self, context: ssl.SSLContext | None) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.visits: list[str | None] = []
        scheme = "http" if context is None else "https"
        if context is not None:
            self.socket = context.wrap_socket(self.socket, server_side=True)
        self.address = f"{scheme}://127.0.0.1:{self.server_address[1]}/"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.visits.append(self.headers["Authorization"])
        self.send_response(200 if self.server.other is None else 302)
        if self.server.other is not None:
            self.send_header("Location", self.server.other)
        self.send_header("Content-Length", str(len(self.server.text)))
        self.end_headers()
        self.wfile.write(self.server.text)

    def do_POST(self) -> None:
        self.do_GET()

    def log_message(self, *args: object) -> None:
        """Say nothing."""


@contextmanager
def serving(context: ssl.SSLContext | None = None) -> Iterator[Server]:
    with Server(context) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    """For a server whom this process trusts."""
    authority = Authority()
    monkeypatch.setenv("SSL_CERT_FILE", written(tmp_path, "ca.pem", authority.pem))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(written(tmp_path, "server.pem", authority.issue("server").store))
    return context


def test_nobody_is_led_from_tls_to_an_address_without(tls: ssl.SSLContext) -> None:
    with serving(tls) as secure, serving() as plain:
        assert read_address(secure.address) == b"keys"
        secure.other = plain.address + "?secret=4711"
        with pytest.raises(URLError, match="which has no TLS; give an address that has") as refused:
            read_address(secure.address)
        assert "4711" not in str(refused.value)
        assert plain.visits == []


def test_other_ways_are_followed(tls: ssl.SSLContext) -> None:
    with serving(tls) as secure, serving(tls) as other, serving() as plain:
        plain.other, secure.other = secure.address, other.address
        assert read_address(plain.address) == b"keys"
        assert (len(plain.visits), len(secure.visits), len(other.visits)) == (1, 1, 1)


@pytest.mark.parametrize("address", ["ftp://127.0.0.1/keys", "file:///etc/hostname"])
def test_a_server_cannot_send_on_to_what_is_no_web_server(address: str) -> None:
    with serving() as plain:
        plain.other = address
        with pytest.raises(OSError, match=r"no TLS|not allowed"):
            read_address(plain.address)


def test_a_secret_is_taken_to_no_other_address() -> None:
    with serving() as first, serving() as second:
        first.other = second.address
        provider = ClientCredentials(token_endpoint_url=first.address, client_id="billing", client_secret="s-4711")
        with pytest.raises(TokenError, match="to which no secret is taken"):
            provider.token()
        assert len(first.visits) == 1
        assert second.visits == []


def test_what_has_no_end_is_not_read() -> None:
    with serving() as server:
        server.text = b"x" * (MOST_BYTES + 1)
        with pytest.raises(ValueError, match="more than 1048576 bytes"):
            read_address(server.address)
