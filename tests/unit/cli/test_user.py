"""`ottla user`, on a broker that runs and in the folder of one that does not."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from ottla.cli.commands import register
from ottla.cli.passwords import PASSWORD_VARIABLE
from ottla.errors import AuthenticationFailedError
from ottla.sync import Admin
from ottla.testing import TestBroker

PASSWORD = "wonder-4711"
SETTINGS = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    "connection.failed.authentication.delay.ms": "1",
}


def ottla(*words: str, stdin: str = "", **environment: str) -> Result:
    app = typer.Typer()
    register(app)
    result = CliRunner(env=environment).invoke(app, words, input=stdin)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert PASSWORD not in result.output
    return result


def listed(*where: str, **environment: str) -> list[tuple[str, str, int]]:
    found = ottla("user", "list", "--json", *where, **environment)
    assert found.exit_code == 0, found.output
    return [(one["user"], one["mechanism"], one["iterations"]) for one in json.loads(found.stdout)]


def words_of(refused: Result) -> str:
    """A complaint without the frame around it."""
    return " ".join(refused.stderr.replace("│", " ").split())


def log_in(broker: TestBroker, user: str, password: str, mechanism: str = "SCRAM-SHA-256") -> None:
    with Admin(
        broker.bootstrap_servers,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism=mechanism,
        sasl_plain_username=user,
        sasl_plain_password=password,
    ) as admin:
        admin.list_topics()


@pytest.fixture
def no_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(PASSWORD_VARIABLE, raising=False)


@pytest.mark.usefixtures("no_password")
def test_the_first_user_is_made_before_the_broker_starts(tmp_path: Path) -> None:
    made = ottla("user", "add", "admin", "--mechanism", "SCRAM-SHA-256", "--data", str(tmp_path), stdin=f"{PASSWORD}\n")
    assert (made.exit_code, made.stderr) == (0, "user admin can log in with SCRAM-SHA-256\n")
    assert listed("--data", str(tmp_path)) == [("admin", "SCRAM-SHA-256", 4096)]
    with TestBroker(SETTINGS, folder=str(tmp_path)) as broker:
        log_in(broker, "admin", PASSWORD)
        log_in(broker, "admin", PASSWORD, "PLAIN")
        with pytest.raises(AuthenticationFailedError):
            log_in(broker, "admin", PASSWORD, "SCRAM-SHA-512")
        refused = ottla("user", "list", "--data", str(tmp_path))
        assert refused.exit_code == 1
        assert "a broker runs on" in refused.stderr


@pytest.mark.usefixtures("no_password")
def test_users_of_a_folder_are_changed_and_deleted(tmp_path: Path) -> None:
    where = ("--data", str(tmp_path))
    both = ("--mechanism", "SCRAM-SHA-256", "--mechanism", "scram-sha-512", "--iterations", "8192")
    made = ottla("user", "add", "alice", *both, *where, stdin="another", OTTLA_PASSWORD=PASSWORD)
    assert made.exit_code == 0
    assert "the password of alice is the one in OTTLA_PASSWORD" in made.stderr
    assert listed(*where) == [("alice", "SCRAM-SHA-256", 8192), ("alice", "SCRAM-SHA-512", 8192)]
    assert ottla("user", "delete", "alice", "--mechanism", "SCRAM-SHA-512", *where).exit_code == 0
    assert listed(*where) == [("alice", "SCRAM-SHA-256", 8192)]
    again = ottla("user", "delete", "alice", "--mechanism", "SCRAM-SHA-512", *where)
    assert (again.exit_code, "alice has no password for SCRAM-SHA-512" in again.stderr) == (1, True)
    assert ottla("user", "delete", "alice", *where).exit_code == 0
    assert listed(*where) == []
    assert ottla("user", "list", *where).stderr == "there are no users\n"
    assert ottla("user", "delete", "alice", *where).exit_code == 1


@pytest.mark.parametrize("words", [("list",), ("delete", "alice")])
def test_a_folder_without_users_is_not_made_by_looking_for_them(tmp_path: Path, words: tuple[str, ...]) -> None:
    folder = tmp_path / "none"
    result = ottla("user", *words, "--data", str(folder))
    assert (result.exit_code, "is no data folder of a broker" in result.stderr) == (1, True)
    assert not folder.exists()


def test_a_folder_needs_no_connection_whatever_the_environment_says_of_one(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("security.protocol=SASL_PLAINTEXT\n")
    folder = ("--data", str(tmp_path / "data"))
    environment = {PASSWORD_VARIABLE: PASSWORD, "OTTLA_COMMAND_CONFIG": str(file)}
    assert ottla("user", "add", "admin", *folder, **environment).exit_code == 0
    assert listed(*folder, **environment) == [("admin", "SCRAM-SHA-256", 4096)]
    refused = ottla("user", "list", *folder, "--username", "admin", **environment)
    assert (refused.exit_code, "leave it out where --data is given" in words_of(refused)) == (2, True)


def test_a_file_that_names_nobody_leaves_that_to_the_command_line(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("security.protocol=SASL_PLAINTEXT\n")
    refused = ottla("user", "list", OTTLA_COMMAND_CONFIG=str(file))
    assert (refused.exit_code, "or give --username" in words_of(refused)) == (2, True)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestBroker]:
    folder = str(tmp_path_factory.mktemp("data"))
    before = os.environ.pop(PASSWORD_VARIABLE, None)
    ottla("user", "add", "admin", "--data", folder, stdin=PASSWORD)
    if before is not None:
        os.environ[PASSWORD_VARIABLE] = before
    with TestBroker(SETTINGS, folder=folder) as running:
        yield running


def test_users_of_a_broker_that_runs_are_added_and_deleted(broker: TestBroker) -> None:
    login = ("--username", "admin", "--security-protocol", "SASL_PLAINTEXT")
    environment = {"OTTLA_BOOTSTRAP": broker.bootstrap_servers, PASSWORD_VARIABLE: PASSWORD}
    # The variable is for the command's own login; the new password is on standard input.
    assert ottla("user", "add", "bob", *login, stdin="builder\n", **environment).exit_code == 0
    log_in(broker, "bob", "builder")
    assert listed(*login, **environment) == [("admin", "SCRAM-SHA-256", 4096), ("bob", "SCRAM-SHA-256", 4096)]
    assert ottla("user", "delete", "bob", *login, **environment).exit_code == 0
    with pytest.raises(AuthenticationFailedError):
        log_in(broker, "bob", "builder")
    again = ottla("user", "delete", "bob", *login, **environment)
    assert (again.exit_code, "RESOURCE_NOT_FOUND: there is no user 'bob'" in again.stderr) == (1, True)
    principal = ottla("user", "delete", "User:bob", *login, **environment)
    assert (principal.exit_code, "write 'bob' here" in principal.stderr) == (2, True)


def test_a_wrong_password_of_the_command_itself_is_told(broker: TestBroker) -> None:
    environment = {"OTTLA_BOOTSTRAP": broker.bootstrap_servers, PASSWORD_VARIABLE: "wrong"}
    refused = ottla("user", "list", "--username", "admin", "--security-protocol", "SASL_PLAINTEXT", **environment)
    assert refused.exit_code == 1
    assert f"{broker.bootstrap_servers} refuses a login as 'admin' with SCRAM-SHA-256" in refused.stderr


@pytest.mark.usefixtures("no_password")
@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("alice",), "there is no password for alice: OTTLA_PASSWORD is not set"),
        (("User:alice",), "call the user 'alice'; write 'alice' here"),
        (("alice", "--mechanism", "PLAIN"), "PLAIN has the same password as with SCRAM; give SCRAM-SHA-256 or"),
        (("alice", "--mechanism", "MD5"), "it must be one of SCRAM-SHA-256, SCRAM-SHA-512"),
        (("alice", "--iterations", "100"), "4096"),
        (("",), "the name is empty"),
        ((), "NAME"),
    ],
)
def test_mistakes_in_the_command_line_are_told(tmp_path: Path, words: tuple[str, ...], complaint: str) -> None:
    result = ottla("user", "add", *words, "--data", str(tmp_path))
    assert result.exit_code == 2
    assert complaint in words_of(result)
