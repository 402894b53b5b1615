"""A port for Prometheus and for whoever asks whether a broker is well: HTTP, in threads of its own.

A few short requests at a time are all there is to serve. Whoever comes when all places are taken gets that of the
longest one there, so nobody can keep others away by holding connections open.
"""

import logging
import socket
import socketserver
import threading
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, BinaryIO, NamedTuple, cast

MOST_CONNECTIONS = 8
MOST_REQUEST_BYTES = 16 * 1024
PATIENCE_S = 5.0
POLL_S = 0.1
"""How soon it notices that it is to close."""

TEXT = "text/plain; charset=utf-8"

log = logging.getLogger(__name__)


class Page(NamedTuple):
    """What is answered."""

    body: bytes
    content_type: str = TEXT
    status: HTTPStatus = HTTPStatus.OK


Answer = Callable[[str, str], Page | None]
"""The page for a path and an Accept header, made in the thread of its connection; None if there is none."""


class HttpPort:
    """Answers GET and HEAD requests on one address until it is closed.

    >>> port = HttpPort("127.0.0.1", 0, lambda path, accept: Page(path.encode()))
    >>> from urllib.request import urlopen
    >>> with urlopen(f"http://127.0.0.1:{port.port}/hello") as reply:
    ...     reply.read()
    b'/hello'
    >>> port.close()
    """

    def __init__(self, host: str, port: int, answer: Answer) -> None:
        family, *_, address = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[
            0
        ]
        self._server = _Server(family, cast("tuple[str, int]", address[:2]), answer)
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(POLL_S,), name="ottla-http", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Answer nobody more."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(socketserver.ThreadingMixIn, HTTPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 16

    def __init__(self, family: socket.AddressFamily, address: tuple[str, int], answer: Answer) -> None:
        self.address_family = family
        self.answer = answer
        self._lock = threading.Lock()
        self._open: dict[socket.socket, None] = {}
        super().__init__(address, _Handler)

    def server_bind(self) -> None:
        # HTTPServer's own would ask for the name of the address, which can take as long as a name server likes.
        socketserver.TCPServer.server_bind(self)

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            if len(self._open) >= MOST_CONNECTIONS:
                oldest = next(iter(self._open))
                del self._open[oldest]
                _hang_up(oldest)
            self._open[request] = None
        super().process_request(request, client_address)

    def close_request(self, request: Any) -> None:
        with self._lock:
            self._open.pop(request, None)
        super().close_request(request)

    def server_close(self) -> None:
        super().server_close()
        with self._lock:
            for request in self._open:
                _hang_up(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        log.debug("a request from %s failed", client_address, exc_info=True)


def _hang_up(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError as error:
        log.debug("a connection was gone already: %s", error)


class _Bounded:
    """A file of which no more is read than a request may have."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.left = MOST_REQUEST_BYTES

    def readline(self, size: int) -> bytes:
        line = self._file.readline(min(size, self.left))
        self.left -= len(line)
        return line

    def close(self) -> None:
        self._file.close()


class _Handler(BaseHTTPRequestHandler):
    timeout = PATIENCE_S
    server_version, sys_version = "ottla", ""

    def setup(self) -> None:
        super().setup()
        self._bounded = _Bounded(cast(BinaryIO, self.rfile))
        self.rfile = cast(Any, self._bounded)

    def parse_request(self) -> bool:
        if not super().parse_request():
            return False
        if self._bounded.left <= 0:
            self.send_error(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
            return False
        return True

    def do_GET(self) -> None:
        server = cast(_Server, self.server)
        page = server.answer(self.path.partition("?")[0], ",".join(self.headers.get_all("Accept") or ()))
        if page is None:
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        self.send_response(page.status)
        self.send_header("Content-Type", page.content_type)
        self.send_header("Content-Length", str(len(page.body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(page.body)

    def do_HEAD(self) -> None:
        self.do_GET()

    def log_message(self, format: str, *arguments: Any) -> None:
        log.debug("%s: %s", self.address_string(), format % arguments)
