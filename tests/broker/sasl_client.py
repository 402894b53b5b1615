"""A client that logs in message by message, as a test says."""

import socket
import struct
from types import TracebackType
from typing import Any, Self

from ottla.cluster.credential import ScramMechanism
from ottla.net.sasl.scram_client import ScramClient
from ottla.wire import api
from ottla.wire.api.sasl_authenticate import SaslAuthenticateRequest
from ottla.wire.api.sasl_handshake import SaslHandshakeRequest
from ottla.wire.frame import decode_response, encode_request
from ottla.wire.schema import schema_of

TIMEOUT_S = 30


class ClosedError(Exception):
    """The broker closed the connection."""


class SaslClient:
    """One connection."""

    def __init__(self, address: tuple[str, int], source: str | None = None) -> None:
        come_from = None if source is None else (source, 0)
        self.socket = socket.create_connection(address, timeout=TIMEOUT_S, source_address=come_from)
        self._correlation_id = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.socket.close()

    def send_frame(self, frame: bytes) -> None:
        self.socket.sendall(struct.pack(">i", len(frame)) + frame)

    def frame(self) -> bytes:
        (size,) = struct.unpack(">i", self._exactly(4))
        return self._exactly(size)

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            try:
                more = self.socket.recv(size - len(data))
            except ConnectionResetError:
                more = b""
            if not more:
                raise ClosedError
            data += more
        return data

    def send(self, request: object, version: int) -> None:
        self._correlation_id += 1
        self.socket.sendall(
            b"".join(encode_request(request, version, correlation_id=self._correlation_id, client_id="raw"))
        )

    def call(self, request: object, version: int) -> Any:
        self.send(request, version)
        key = schema_of(type(request)).key
        assert key is not None
        return decode_response(api.response(key), version, self.frame())[1]

    def handshake(self, mechanism: str, version: int = 1) -> Any:
        return self.call(SaslHandshakeRequest(mechanism=mechanism), version)

    def authenticate(self, token: bytes, version: int = 2) -> Any:
        return self.call(SaslAuthenticateRequest(auth_bytes=token), version)

    def plain(self, user: str, password: str, version: int = 2) -> Any:
        """Log in with PLAIN; the last answer."""
        assert self.handshake("PLAIN").error_code == 0
        return self.authenticate(f"\0{user}\0{password}".encode(), version)

    def scram(self, user: str, password: str, mechanism: str = "SCRAM-SHA-256", nonce: str = "nonce") -> Any:
        """Log in with SCRAM; the last answer."""
        assert self.handshake(mechanism).error_code == 0
        found = ScramMechanism.named(mechanism)
        assert found is not None
        client = ScramClient(found, user, password, nonce)
        final = client.answer(self.authenticate(client.first()).auth_bytes)
        assert final is not None
        last = self.authenticate(final)
        if not last.error_code:
            assert client.answer(last.auth_bytes) is None
        return last

    def is_closed(self) -> bool:
        """Whether the broker has closed the connection, or does so now."""
        try:
            self.frame()
        except ClosedError:
            return True
        return False
