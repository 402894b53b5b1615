"""`ottla quota`: what it sets, removes, lists and refuses."""

import json
from collections.abc import Iterator

import pytest
from typer import Typer
from typer.testing import CliRunner, Result

from ottla.cli.commands import register
from ottla.client.admin import ClientQuotaEntity, QuotaDefault
from ottla.errors import InvalidRequestError
from ottla.sync import Admin
from ottla.testing import TestBroker


@pytest.fixture(scope="module")
def server() -> Iterator[TestBroker]:
    with TestBroker() as running:
        yield running


def _quota(server: TestBroker, *words: str) -> Result:
    app = Typer()
    register(app)
    return CliRunner().invoke(app, ["quota", *words, "--bootstrap", server.bootstrap_servers])


def test_quotas_are_set_listed_and_removed(server: TestBroker) -> None:
    assert _quota(server, "list").output == "there are no quotas\n"
    assert _quota(server, "set", "--user", "alice", "--client-id-default", "--produce", "1e6").exit_code == 0
    assert _quota(server, "set", "--ip", "10.0.0.1", "--connection-rate", "5").exit_code == 0
    listed = json.loads(_quota(server, "list", "--json").stdout)
    assert listed == [
        {"entity": {"client-id": None, "user": "alice"}, "quotas": {"producer_byte_rate": 1e6}},
        {"entity": {"ip": "10.0.0.1"}, "quotas": {"connection_creation_rate": 5.0}},
    ]
    table = _quota(server, "list").stdout
    assert "client-id (default), user 'alice'" in table
    assert "1,000,000" in table
    for words in (["--user", "alice", "--client-id-default"], ["--ip", "::ffff:10.0.0.1"]):
        assert _quota(server, "remove", *words).exit_code == 0
    assert _quota(server, "list").output == "there are no quotas\n"
    assert "there are no quotas of user 'alice'" in _quota(server, "remove", "--user", "alice").output


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["set", "--user", "alice"], "say what to limit"),
        (["set", "--produce", "5"], "say whom it is for: --user, --client-id, both, or --ip"),
        (["set", "--user", "User:alice", "--produce", "5"], "call the user 'alice'; write 'alice' here"),
        (["set", "--user", "a", "--produce", "0"], "--produce = 0.0: a limit is above 0; remove the quota"),
        (
            ["set", "--user", "a", "--connection-rate", "5"],
            "there is no quota --connection-rate for users and client ids; there is --produce, --fetch",
        ),
        (["set", "--user", "a", "--user-default", "--produce", "5"], "two different things"),
        (
            ["set", "--ip-default", "--fetch", "5"],
            "no quota --fetch for an address; there is --connection-rate",
        ),
        (["set", "--ip", "here", "--connection-rate", "5"], "is no address"),
        (["remove", "--user", "a", "--ip", "10.0.0.1"], "both, or an ip, and not for ip and user"),
    ],
)
def test_mistakes_are_said_before_anything_is_sent(server: TestBroker, words: list[str], complaint: str) -> None:
    result = _quota(server, *words)
    assert result.exit_code == 2
    assert complaint in " ".join(result.output.replace("│", " ").split())


def test_what_a_broker_refuses_is_told_in_words(server: TestBroker) -> None:
    entity = ClientQuotaEntity(user="alice", client_id=QuotaDefault.DEFAULT)
    with Admin(server.bootstrap_servers) as admin, pytest.raises(InvalidRequestError) as refused:
        admin.alter_client_quotas({entity: {"connection_creation_rate": 5}})
    said = "quotas of client-id (default), user 'alice': there is no quota 'connection_creation_rate' for users and"
    assert refused.value.message.startswith(said)


def test_a_quota_of_such_a_name_that_others_have_set_can_be_removed(server: TestBroker) -> None:
    with Admin(server.bootstrap_servers) as admin:
        admin.alter_client_quotas({ClientQuotaEntity(user="User:alice"): {"producer_byte_rate": 1e6}})
    assert "removed producer_byte_rate of user 'User:alice'" in _quota(server, "remove", "--user", "User:alice").output
    again = _quota(server, "remove", "--user", "User:alice")
    assert (again.exit_code, "write 'alice' here" in again.output) == (2, True)
