"""Where commands get passwords from: the file, the variable, a terminal, standard input, in this order."""

import io
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import typer

from ottla.cli.passwords import PASSWORD_VARIABLE, login_password, new_password
from ottla.cli.security import security_from

from .terminal import at_terminal

Stdin = Callable[[str], None]


@pytest.fixture
def stdin(monkeypatch: pytest.MonkeyPatch) -> Stdin:
    """Standard input that is no terminal; nothing is in the variable."""
    monkeypatch.delenv(PASSWORD_VARIABLE, raising=False)

    def holds(text: str) -> None:
        monkeypatch.setattr(sys, "stdin", io.StringIO(text))

    holds("")
    return holds


def test_the_variable_goes_before_standard_input(stdin: Stdin, monkeypatch: pytest.MonkeyPatch) -> None:
    stdin("read\n")
    monkeypatch.setenv(PASSWORD_VARIABLE, "set")
    assert login_password("alice", stdin_is_data=False) == "set"
    assert new_password("alice", logged_in_as=None) == "set"
    assert sys.stdin.readline() == "read\n"


def test_a_login_and_a_new_user_take_a_line_of_standard_input_each(stdin: Stdin) -> None:
    stdin("first word\r\nsecond\n")
    assert login_password("admin", stdin_is_data=False) == "first word"
    assert new_password("alice", logged_in_as="admin") == "second"


def test_records_are_not_taken_for_a_password(stdin: Stdin) -> None:
    stdin("a record\n")
    with pytest.raises(typer.BadParameter) as refused:
        login_password("alice", stdin_is_data=True)
    assert refused.value.message == (
        "there is no password to log in as alice: OTTLA_PASSWORD is not set, and standard input is the data, and no "
        "terminal to ask at; set OTTLA_PASSWORD, or have the password in the file of --command-config"
    )
    assert sys.stdin.readline() == "a record\n"


@pytest.mark.parametrize(("variable", "is_said"), [(None, "not set"), ("", "empty")])
@pytest.mark.usefixtures("stdin")
def test_what_was_looked_at_is_told(monkeypatch: pytest.MonkeyPatch, variable: str | None, is_said: str) -> None:
    if variable is not None:
        monkeypatch.setenv(PASSWORD_VARIABLE, variable)
    looked = f"OTTLA_PASSWORD is {is_said}, standard input is no terminal to ask at, and there is no line in it"
    with pytest.raises(typer.BadParameter, match=f"to log in as alice: {looked}; set OTTLA_PASSWORD, or write it"):
        login_password("alice", stdin_is_data=False)
    with pytest.raises(typer.BadParameter, match=f"no password for alice: {looked}; write it to standard input, or"):
        new_password("alice", logged_in_as=None)


@pytest.mark.usefixtures("stdin")
def test_a_variable_that_the_login_has_taken_is_not_called_unset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PASSWORD_VARIABLE, "the admin's")
    with pytest.raises(typer.BadParameter) as refused:
        new_password("alice", logged_in_as="admin")
    assert refused.value.message == (
        "there is no password for alice: OTTLA_PASSWORD is for the login as admin, standard input is no terminal to "
        "ask at, and there is no line in it; write it to standard input"
    )


def properties(folder: Path, *lines: str) -> Path:
    path = folder / "client.properties"
    path.write_text("\n".join(["security.protocol=SASL_PLAINTEXT", *lines]))
    return path


def test_the_files_password_is_for_the_files_user(
    stdin: Stdin, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stdin("read\n")
    monkeypatch.setenv(PASSWORD_VARIABLE, "set")
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    jaas = f'sasl.jaas.config={module} required username="alice" password="filed";'
    path = properties(tmp_path, "sasl.mechanism=SCRAM-SHA-512", jaas)
    found = [security_from(command_config=path, username=user) for user in (None, "alice", "bob")]
    assert [(one.sasl_plain_username, one.sasl_plain_password) for one in found] == [
        ("alice", "filed"),
        ("alice", "filed"),
        ("bob", "set"),
    ]
    assert {one.sasl_mechanism for one in found} == {"SCRAM-SHA-512"}


def test_a_file_may_leave_the_user_to_the_command_line(
    stdin: Stdin, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stdin("")
    monkeypatch.setenv(PASSWORD_VARIABLE, "set")
    found = security_from(command_config=properties(tmp_path), username="alice")
    assert (found.security_protocol, found.sasl_mechanism) == ("SASL_PLAINTEXT", "SCRAM-SHA-256")
    assert (found.sasl_plain_username, found.sasl_plain_password) == ("alice", "set")


@pytest.mark.usefixtures("stdin")
def test_a_file_without_a_user_asks_for_one(tmp_path: Path) -> None:
    path = properties(tmp_path, "sasl.mechanism=SCRAM-SHA-256")
    with pytest.raises(typer.BadParameter, match="to it, or give --username"):
        security_from(command_config=path)


@pytest.mark.usefixtures("stdin")
def test_nobody_gives_a_user_beside_a_token(tmp_path: Path) -> None:
    token = "sasl.oauthbearer.token.endpoint.url=file:///token"
    path = properties(tmp_path, "sasl.mechanism=OAUTHBEARER", token)
    assert security_from(command_config=path).sasl_mechanism == "OAUTHBEARER"
    with pytest.raises(typer.BadParameter, match="whose token names the user; leave --username out"):
        security_from(command_config=path, username="alice")


def test_a_terminal_is_asked_twice_for_a_new_password_and_shows_none(tmp_path: Path) -> None:
    answers = {"New password of alice": "wonder-4711", "Repeat for confirmation": "wonder-4711"}
    added = at_terminal("user", "add", "alice", "--data", str(tmp_path), answers=answers)
    assert added.exit_code == 0, added.screen
    assert "user alice can log in with SCRAM-SHA-256" in added.screen
    assert "4711" not in added.screen


def test_a_terminal_is_asked_for_the_password_of_a_login() -> None:
    login = ("--username", "alice", "--security-protocol", "SASL_PLAINTEXT")
    nowhere = ("--bootstrap", "127.0.0.1:1", "--timeout-ms", "100")
    asked = at_terminal("topic", "list", *login, *nowhere, answers={"Password of alice": "wonder-4711"})
    assert asked.exit_code == 1
    assert "cannot connect to 127.0.0.1:1" in asked.screen
    assert "4711" not in asked.screen
