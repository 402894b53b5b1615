"""Logins by the Java client's names, and tokens from an authorization server."""

import json
import pickle
import threading
from base64 import b64encode
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from urllib.parse import parse_qs

import pytest

from ottla.client.java_security import java_security
from ottla.client.oauth import ClientCredentials
from ottla.net.sasl.errors import TokenError

PACKAGE = "org.apache.kafka.common.security"
SCRAM = f'{PACKAGE}.scram.ScramLoginModule required username="alice" password="wonder;=\\"4711";'
PLAIN = f'{PACKAGE}.plain.PlainLoginModule required username="alice" password="wonder-4711";'
OAUTH = f'{PACKAGE}.oauthbearer.OAuthBearerLoginModule required clientId="billing" clientSecret="s-4711" scope="all";'


def properties(mechanism: str, jaas: str, **others: str) -> dict[str, str]:
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": jaas,
        **{name.replace("_", "."): value for name, value in others.items()},
    }


@pytest.mark.parametrize(
    ("mechanism", "jaas", "password"),
    [
        ("SCRAM-SHA-256", SCRAM, 'wonder;="4711'),
        ("SCRAM-SHA-512", SCRAM, 'wonder;="4711'),
        ("PLAIN", PLAIN, "wonder-4711"),
    ],
)
def test_name_and_password_are_taken_from_the_login_module(mechanism: str, jaas: str, password: str) -> None:
    found = java_security(properties(mechanism, jaas))
    assert found.sasl_mechanism == mechanism
    assert (found.sasl_plain_username, found.sasl_plain_password) == ("alice", password)


def test_logins_count_only_with_a_protocol_that_has_them() -> None:
    assert not java_security({**properties("PLAIN", PLAIN), "security.protocol": "PLAINTEXT"}).uses_sasl


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        (properties("GSSAPI", SCRAM), "kafka.sasl.mechanism is 'GSSAPI'"),
        ({"security.protocol": "SASL_SSL"}, "kafka.sasl.mechanism is missing"),
        (properties("PLAIN", SCRAM), "is for ScramLoginModule, but kafka.sasl.mechanism is PLAIN"),
        (properties("PLAIN", PLAIN[:-1]), "semicolon"),
        (properties("PLAIN", PLAIN.replace('password="wonder-4711"', "")), "no password"),
        (properties("PLAIN", ""), "no username"),
        (properties("OAUTHBEARER", OAUTH), "token.endpoint.url"),
        (
            properties(
                "OAUTHBEARER", OAUTH.replace("clientSecret", "secret"), sasl_oauthbearer_token_endpoint_url="http://x"
            ),
            "secret is missing",
        ),
    ],
)
def test_what_is_wrong_is_told_without_secrets(wrong: dict[str, str], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint) as refused:
        java_security(wrong, "kafka.")
    assert "4711" not in str(refused.value)


class Issuer(BaseHTTPRequestHandler):
    """Gives a token to a client that says who it is."""

    def do_POST(self) -> None:
        form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        right = self.headers["Authorization"] == f"Basic {b64encode(b'billing:s-4711').decode()}"
        is_good = right and form == {"grant_type": ["client_credentials"], "scope": ["all"]}
        self.send_response(200 if is_good else 401)
        self.end_headers()
        self.wfile.write(json.dumps({"access_token": "a.b.c", "expires_in": 60} if is_good else {}).encode())

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def issuer() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Issuer) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/token"
        server.shutdown()
        thread.join()


def test_a_token_is_fetched_as_java_fetches_it(issuer: str) -> None:
    found = java_security(properties("OAUTHBEARER", OAUTH, sasl_oauthbearer_token_endpoint_url=issuer))
    provider = found.sasl_oauth_token_provider
    assert provider.token() == "a.b.c"
    assert pickle.loads(pickle.dumps(found)) == found
    assert "s-4711" not in repr(provider)


def test_a_server_that_gives_no_token_is_told(issuer: str) -> None:
    wrong = ClientCredentials(token_endpoint_url=issuer, client_id="billing", client_secret="wrong", scope="all")
    with pytest.raises(TokenError, match=r"no token from http://127\.0\.0\.1: it answers 401 Unauthorized"):
        wrong.token()


@pytest.mark.parametrize(
    ("content", "complaint"),
    [(None, "no such file or directory"), (b" ", "what it gives is empty"), (b"\xff\xfe4711", "is no token")],
)
def test_a_file_without_a_token_is_told_and_not_shown(tmp_path: Path, content: bytes | None, complaint: str) -> None:
    file = tmp_path / "token"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(TokenError, match=complaint) as refused:
        ClientCredentials(token_endpoint_url=file.as_uri()).token()
    assert str(file) in str(refused.value)
    assert "4711" not in str(refused.value)


def test_a_server_that_is_not_there_is_told_without_the_rest_of_its_address() -> None:
    wrong = ClientCredentials(
        token_endpoint_url="http://127.0.0.1:1/token?secret=4711", client_id="billing", client_secret="s-4711"
    )
    with pytest.raises(TokenError, match=r"no token from http://127\.0\.0\.1: connection refused") as refused:
        wrong.token()
    assert "4711" not in str(refused.value)


def test_a_token_may_be_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("a.b.c\n")
    assert ClientCredentials(token_endpoint_url=file.as_uri()).token() == "a.b.c"
