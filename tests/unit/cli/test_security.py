"""Commands over TLS: options, files of properties, and what is said when it does not work."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from ottla.cli.commands import register
from ottla.cli.security import security_from
from ottla.cli.serve import settings
from ottla.testing import TestBroker
from tests.certificates import Authority, written

Run = Callable[..., Result]


class Files:
    """What the broker and a client have."""

    def __init__(self, folder: Path) -> None:
        authority = Authority()
        self.folder = folder
        self.ca = written(folder, "ca.pem", authority.pem)
        self.store = written(folder, "broker.pem", authority.issue("broker").store)
        alice = authority.issue("alice")
        self.certificate = written(folder, "alice.crt", alice.chain)
        self.key = written(folder, "alice.key", alice.key)
        self.locked = written(folder, "locked.pem", alice.chain + alice.encrypted_key("hidden"))
        lines = f"security.protocol=SSL\nssl.truststore.location={self.ca}\n"
        self.properties = written(folder, "trusting.properties", lines.encode())


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return Files(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def broker(files: Files) -> Iterator[TestBroker]:
    configs = {
        "listeners": "SSL://127.0.0.1:0",
        "ssl.keystore.location": files.store,
        "ssl.truststore.location": files.ca,
        "ssl.client.auth": "required",
    }
    with TestBroker(configs) as running:
        yield running


@pytest.fixture
def ottla(broker: TestBroker) -> Run:
    app = typer.Typer()
    register(app)

    def run(*words: str, stdin: bytes = b"") -> Result:
        return CliRunner().invoke(app, [*words, "-b", broker.bootstrap_servers], input=stdin)

    return run


def test_commands_take_files_as_options(ottla: Run, files: Files) -> None:
    secure = ("--ca", files.ca, "--cert", files.certificate, "--key", files.key)
    assert ottla("topic", "create", "orders", *secure).exit_code == 0
    assert ottla("produce", "orders", *secure, stdin=b"one\ntwo\n").exit_code == 0
    assert ottla("consume", "orders", "--count", "2", *secure).stdout_bytes == b"one\ntwo\n"
    assert "orders" in ottla("topic", "list", *secure).stdout
    assert ottla("group", "list", *secure).exit_code == 0
    assert ottla("config", "describe", "--topic", "orders", *secure).exit_code == 0


def test_commands_take_a_file_of_properties_as_kafkas_do(
    ottla: Run, files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = written(files.folder, "alice.pem", Path(files.key).read_bytes() + Path(files.certificate).read_bytes())
    lines = [
        "# as for kafka-topics.sh",
        "security.protocol=SSL",
        f"ssl.truststore.location={files.ca}",
        "ssl.truststore.type=PEM",
        f"ssl.keystore.location={store}",
        "ssl.keystore.type=PEM",
    ]
    path = written(files.folder, "client.properties", "\n".join(lines).encode())
    assert ottla("topic", "list", "--command-config", path).exit_code == 0
    monkeypatch.setenv("OTTLA_COMMAND_CONFIG", path)
    assert ottla("topic", "list").exit_code == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "speaks TLS; set --security-protocol to 'SSL'"),
        (("--security-protocol", "SSL"), "; set --ca to the certificate of the authority that signed it"),
        (("--ca", "CA"), "set --cert and --key"),
        (("--ca", "/none.pem"), "--ca: '/none.pem' cannot be read: no such file or directory"),
        (
            ("--ca", "CA", "--cert", "LOCKED"),
            "give its password too, as ssl.key.password in a file for --command-config",
        ),
        (("--ca", "CA", "--cert", "CA"), "has no PRIVATE KEY; it must have a part that begins with"),
        (("--ca", "CA", "--cert", "CA"), ", or the key be given as --key\n"),
        (("--command-config", "PROPERTIES"), "set ssl.keystore.location and ssl.keystore.key"),
        (("--command-config", "PROPERTIES", "--cert", "LOCKED"), "give its password too, as ssl.key.password"),
    ],
)
def test_what_fails_is_told_in_one_line(ottla: Run, files: Files, words: tuple[str, ...], said: str) -> None:
    given = {"CA": files.ca, "LOCKED": files.locked, "PROPERTIES": files.properties}
    result = ottla("topic", "list", *[given.get(word, word) for word in words])
    assert result.exit_code == 1
    assert said in result.stderr
    assert "ssl_" not in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--security-protocol", "TLS"), "--security-protocol is 'TLS'; it must be one of PLAINTEXT, SSL"),
        (("--key", "key.pem"), "--key is set without --cert"),
        (("--ca", "ca.pem", "--security-protocol", "PLAINTEXT"), "--ca is set, but --security-protocol is 'PLAINTEXT'"),
        (("--command-config", "/none.properties"), "/none.properties: No such file or directory"),
        (
            ("--security-protocol", "SASL_SSL", "--sasl-mechanism", "PLAIN"),
            "--username is not set; PLAIN needs --username",
        ),
        (
            ("--security-protocol", "SASL_SSL", "--sasl-mechanism", "OAUTHBEARER"),
            "sasl.oauthbearer.token.endpoint.url in a file for --command-config is not set",
        ),
        (("--username", "User:alice"), "call the user 'alice'; write 'alice' here"),
        (
            ("--username", "alice", "--security-protocol", "SSL"),
            "--username is set, but --security-protocol is 'SSL'; set --security-protocol to 'SASL_SSL', or to",
        ),
        (
            ("--username", "alice", "--security-protocol", "SASL_PLAINTEXT", "--ca", "ca.pem"),
            "--ca is set, but --security-protocol is 'SASL_PLAINTEXT'; set --security-protocol to 'SASL_SSL'",
        ),
    ],
)
def test_options_that_do_not_go_together_are_a_mistake_in_the_command_line(
    ottla: Run, words: tuple[str, ...], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.setenv("OTTLA_PASSWORD", "hidden")
    result = ottla("topic", "list", *words)
    assert result.exit_code == 2
    assert said in " ".join(result.stderr.split())


def test_options_go_before_the_file(tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_text("security.protocol=SSL\nssl.truststore.location=file.pem\nssl.key.password=hidden\n")
    found = security_from(command_config=path, ca=Path("option.pem"))
    assert (found.ssl_cafile, found.ssl_password) == ("option.pem", "hidden")


def test_a_password_comes_from_the_environment_and_never_from_the_command_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OTTLA_PASSWORD", "hidden")
    found = security_from(username="alice", ca=Path("ca.pem"))
    assert (found.security_protocol, found.sasl_mechanism) == ("SASL_SSL", "SCRAM-SHA-256")
    assert (found.sasl_plain_username, found.sasl_plain_password) == ("alice", "hidden")
    with pytest.raises(typer.BadParameter, match="--security-protocol SASL_SSL, or SASL_PLAINTEXT"):
        security_from(username="alice")


def test_a_broker_listens_at_several_addresses_each_with_its_own_to_tell() -> None:
    config = settings(
        None, [], ["PLAINTEXT://:0", "SSL://127.0.0.1:9093"], ["SSL://broker-1:9093", "PLAINTEXT://inside:9092"], None
    )
    assert [str(one) for one in config.listener_addresses()] == ["PLAINTEXT://:0", "SSL://127.0.0.1:9093"]
    assert [str(one) for one in config.advertised_addresses()] == ["SSL://broker-1:9093", "PLAINTEXT://inside:9092"]


def test_what_one_listener_tells_needs_no_name() -> None:
    config = settings(None, [], ["SSL://:9093"], ["broker-1:9093"], None)
    assert [str(one) for one in config.advertised_addresses()] == ["SSL://broker-1:9093"]
