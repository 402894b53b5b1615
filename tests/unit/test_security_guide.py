"""What docs/security.md has people paste works: certificates, lists of revoked ones, and files for commands."""

import json
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import jwt
import pytest
import typer
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import ECAlgorithm
from typer.testing import CliRunner, Result

from ottla.cli.commands import register
from ottla.client.admin import UserScramCredentialUpsertion
from ottla.sync import Admin
from ottla.testing import TestBroker

GUIDE = (Path(__file__).parents[2] / "docs" / "security.md").read_text()
COMMANDS = GUIDE.split("\n## Commands\n")[1].split("\n## ")[0]
FILES = re.findall(r"```properties\n(.*?)```", COMMANDS, re.DOTALL)
OPENSSL = re.findall(r"```\n((?:openssl|printf) .*?)```", GUIDE, re.DOTALL)
KEY = ec.generate_private_key(ec.SECP256R1())

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="needs the openssl command")


def paste(folder: Path, block: str) -> None:
    # OpenSSL asks for the new key's password at the terminal.
    answered = block.replace('-subj "/CN=billing"', '-subj "/CN=billing" -passout pass:wonder')
    done = subprocess.run(["bash", "-ec", answered], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("guide")
    brokers, clients, _ = OPENSSL
    paste(found, brokers)
    paste(found, clients)
    return found


def settings(folder: Path) -> dict[str, str]:
    keys = [{**json.loads(ECAlgorithm.to_jwk(KEY.public_key())), "kid": "one"}]
    (folder / "keys.json").write_text(json.dumps({"keys": keys}))
    return {
        "listeners": "PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0,SASL_SSL://127.0.0.1:0",
        "ssl.keystore.location": str(folder / "broker.pem"),
        "listener.name.ssl.ssl.client.auth": "required",
        "ssl.truststore.location": str(folder / "ca.pem"),
        "sasl.enabled.mechanisms": "SCRAM-SHA-256,OAUTHBEARER",
        "sasl.oauthbearer.jwks.endpoint.url": (folder / "keys.json").as_uri(),
    }


@pytest.fixture(scope="module")
def broker(folder: Path) -> Iterator[TestBroker]:
    with TestBroker(settings(folder)) as running:
        with Admin(running.bootstrap_servers) as admin:
            admin.alter_user_scram_credentials([UserScramCredentialUpsertion("alice", "SCRAM-SHA-256", "wonder")])
        yield running


class Issuer(BaseHTTPRequestHandler):
    """Gives everybody who asks a token."""

    def do_POST(self) -> None:
        now = int(time.time())
        token = jwt.encode({"sub": "billing", "iat": now, "exp": now + 300}, KEY, "ES256", {"kid": "one"})
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps({"access_token": token}).encode())

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


def topics(broker: TestBroker, folder: Path, file: str) -> Result:
    """What `ottla topic list` says with a file of properties, pasted in the folder of the certificates."""
    (folder / "client.properties").write_text(file)
    protocol = re.findall(r"security\.protocol=(\S+)", file)[0]
    app = typer.Typer()
    register(app)
    words = ["topic", "list", "-b", str(broker.endpoints[protocol]), "--command-config", "client.properties"]
    return CliRunner().invoke(app, words)


def test_the_guide_shows_a_password_a_certificate_and_a_token() -> None:
    assert [set(re.findall("SCRAM|keystore|OAUTH", file)) for file in FILES] == [{"SCRAM"}, {"keystore"}, {"OAUTH"}]


@pytest.mark.parametrize("file", FILES, ids=["password", "certificate", "token"])
def test_a_file_of_the_guide_opens_the_door(
    broker: TestBroker, folder: Path, issuer: str, file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    listed = topics(broker, folder, file.replace("https://login.example/token", issuer))
    assert listed.exit_code == 0, listed.stderr
    refused = topics(broker, folder, file.replace("wonder", "wrong").replace("https://login.example", "file:///none"))
    assert refused.exit_code == 1


def test_a_certificate_that_is_revoked_as_the_guide_says_is_refused(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path / "guide"
    shutil.copytree(folder, here)
    monkeypatch.chdir(here)
    paste(here, OPENSSL[-1])
    with TestBroker({**settings(here), "ssl.crl.location": str(here / "revoked.pem")}) as strict:
        refused = topics(strict, here, FILES[1])
        assert refused.exit_code == 1
        assert "says that this client's certificate was revoked; get a new one" in refused.stderr
        assert "ssl.keystore.location" in refused.stderr
