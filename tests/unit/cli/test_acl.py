"""`ottla acl` against a broker that has rules of access."""

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from ottla.cli.commands import register
from ottla.client.admin import (
    ACL,
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
)
from ottla.sync import Admin
from ottla.testing import TestBroker

from .conftest import Ottla

RULED = {"authorizer.class.name": "ottla", "super.users": "User:ANONYMOUS"}

Row = tuple[str, ...]


@pytest.fixture(scope="module")
def ruled() -> Iterator[TestBroker]:
    with TestBroker(RULED) as running:
        yield running


@pytest.fixture
def ottla(ruled: TestBroker, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ottla]:
    """Run `ottla WORDS...` in this process; no rules are left after the test."""
    monkeypatch.setenv("OTTLA_BOOTSTRAP", ruled.bootstrap_servers)
    app = typer.Typer()
    register(app)

    def run(*words: str) -> Result:
        result = CliRunner().invoke(app, words)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    yield run
    everything = ResourcePatternFilter(ResourceType.ANY, None, ACLResourcePatternType.ANY)
    with Admin(ruled.bootstrap_servers) as admin:
        admin.delete_acls([ACLFilter(None, None, ACLOperation.ANY, ACLPermissionType.ANY, everything)])


def rules(ottla: Ottla, *words: str) -> set[Row]:
    found = ottla("acl", "list", "--json", *words)
    assert found.exit_code == 0, found.stderr
    return {tuple(row.values()) for row in json.loads(found.stdout)}


def test_rules_are_added_shown_and_removed(ottla: Ottla) -> None:
    added = ottla(
        *("acl", "add", "--topic", "orders", "--operation", "Read", "--operation", "alter-configs"),
        *("--allow-principal", "User:alice", "--allow-host", "10.0.0.1", "--deny-principal", "User:bob"),
    )
    assert added.exit_code == 0, added.stderr
    assert "added: ALLOW READ on topic 'orders' to User:alice from 10.0.0.1\n" in added.stderr
    about = ("TOPIC", "orders", "LITERAL")
    alice = {(*about, "User:alice", "10.0.0.1", one, "ALLOW") for one in ("READ", "ALTER_CONFIGS")}
    bob = {(*about, "User:bob", "*", one, "DENY") for one in ("READ", "ALTER_CONFIGS")}
    assert rules(ottla) == alice | bob
    assert rules(ottla, "--principal", "User:bob") == bob
    assert rules(ottla, "--topic", "payments") == set()
    assert ottla("acl", "list", "--topic", "payments").stderr == "there are no such rules\n"

    shown = ottla("acl", "list", "--topic", "orders")
    assert [line.split() for line in shown.stdout.splitlines() if "bob" in line] == [list(row) for row in sorted(bob)]

    removed = ottla("acl", "remove", "--topic", "orders", "--allow-principal", "User:alice", "--allow-host", "10.0.0.1")
    assert removed.exit_code == 0
    assert removed.stderr.count("removed: ALLOW") == 2
    assert rules(ottla) == bob
    assert "there are no such rules" in ottla("acl", "remove", "--topic", "payments").stderr


def test_a_producer_gets_what_it_needs(ottla: Ottla) -> None:
    ottla(
        *("acl", "add", "--producer", "--idempotent", "--topic", "orders", "--transactional-id", "payment"),
        *("--allow-principal", "User:alice"),
    )
    assert {(row[0], row[1], row[5]) for row in rules(ottla)} == {
        ("TOPIC", "orders", "WRITE"),
        ("TOPIC", "orders", "DESCRIBE"),
        ("TOPIC", "orders", "CREATE"),
        ("TRANSACTIONAL_ID", "payment", "WRITE"),
        ("TRANSACTIONAL_ID", "payment", "DESCRIBE"),
        ("CLUSTER", "kafka-cluster", "IDEMPOTENT_WRITE"),
    }


def test_a_consumer_gets_what_it_needs_also_for_prefixes(ottla: Ottla) -> None:
    ottla(
        *("acl", "add", "--consumer", "--topic", "orders-", "--group", "readers-", "--resource-pattern-type"),
        *("prefixed", "--allow-principal", "User:alice"),
    )
    assert {row[:3] + row[5:6] for row in rules(ottla)} == {
        ("TOPIC", "orders-", "PREFIXED", "READ"),
        ("TOPIC", "orders-", "PREFIXED", "DESCRIBE"),
        ("GROUP", "readers-", "PREFIXED", "READ"),
    }
    concerned = rules(ottla, "--topic", "orders-eu", "--resource-pattern-type", "match")
    assert {row[0] for row in concerned} == {"TOPIC"}
    assert rules(ottla, "--topic", "orders-eu") == set()
    again = ("--resource-pattern-type", "prefixed", "--allow-principal", "User:alice")
    ottla("acl", "remove", "--consumer", "--topic", "orders-", "--group", "readers-", *again)
    assert rules(ottla) == set()


def test_all_operations_on_the_cluster_are_one_rule(ottla: Ottla) -> None:
    assert ottla("acl", "add", "--cluster", "--allow-principal", "User:boss").exit_code == 0
    assert rules(ottla, "--cluster") == {("CLUSTER", "kafka-cluster", "LITERAL", "User:boss", "*", "ALL", "ALLOW")}


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--topic", "orders"), "who? give --allow-principal"),
        (("--allow-principal", "User:alice"), "about what?"),
        (("--topic", "orders", "--allow-principal", "alice"), "write it with its kind"),
        (("--topic", "orders", "--allow-host", "10.0.0.1"), "of whom?"),
        (
            ("--topic", "orders", "--allow-principal", "User:a", "--operation", "Fly"),
            "'Fly' is no operation of a topic",
        ),
        (("--group", "a", "--allow-principal", "User:a", "--operation", "Write"), "those are ALL, READ, DELETE"),
        (("--topic", "a", "--allow-principal", "User:a", "--allow-host", "10.0.0.0/8"), "'10.0.0.0/8' is no address"),
        (("--topic", "a", "--deny-principal", "User:a", "--deny-host", "localhost"), "for --deny-host: 'localhost' is"),
        (
            ("--topic", "orders-*", "--allow-principal", "User:a"),
            "for all that begin with 'orders-' write --topic orders- --resource-pattern-type prefixed",
        ),
        (
            ("--topic", "*", "--resource-pattern-type", "prefixed", "--deny-principal", "User:a"),
            "for all topics write --topic '*' --resource-pattern-type literal",
        ),
        (("--topic", "a", "--allow-principal", "User:a", "--idempotent"), "it goes with --producer"),
        (("--producer", "--allow-principal", "User:a"), "give --topic"),
        (("--consumer", "--topic", "a", "--allow-principal", "User:a"), "give --topic and --group"),
        (
            ("--producer", "--topic", "a", "--operation", "Read", "--allow-principal", "User:a"),
            "--producer and --consumer say",
        ),
        (
            ("--topic", "a", "--resource-pattern-type", "match", "--allow-principal", "User:a"),
            "a rule itself is literal or prefixed",
        ),
    ],
)
def test_what_makes_no_sense_is_a_mistake_in_the_command_line(
    ottla: Ottla, words: tuple[str, ...], complaint: str
) -> None:
    result = ottla("acl", "add", *words)
    assert result.exit_code == 2
    unwrapped = " ".join(result.stderr.replace("│", " ").split())
    assert complaint in unwrapped
    assert rules(ottla) == set()


def test_a_rule_with_a_star_in_a_topics_name_that_others_have_made_can_be_removed(
    ottla: Ottla, ruled: TestBroker
) -> None:
    rule = ACL(
        "User:a", "*", ACLOperation.READ, ACLPermissionType.ALLOW, ResourcePattern(ResourceType.TOPIC, "orders-*")
    )
    with Admin(ruled.bootstrap_servers) as admin:
        admin.create_acls([rule])
    assert rules(ottla, "--topic", "orders-*") == {("TOPIC", "orders-*", "LITERAL", "User:a", "*", "READ", "ALLOW")}
    assert "removed: ALLOW READ" in ottla("acl", "remove", "--topic", "orders-*").stderr
    assert rules(ottla) == set()


@pytest.mark.parametrize("words", [("list", "--principal", "alice"), ("remove", "--deny-principal", "alice")])
def test_a_principal_without_its_kind_is_not_looked_for_in_vain(ottla: Ottla, words: tuple[str, ...]) -> None:
    result = ottla("acl", *words)
    assert result.exit_code == 2
    assert "as in User:alice" in " ".join(result.stderr.replace("│", " ").split())


def test_all_rules_at_once_are_not_removed_by_mistake(ottla: Ottla) -> None:
    result = ottla("acl", "remove")
    assert result.exit_code == 2
    assert "which rules?" in result.stderr


def test_a_broker_without_rules_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    app = typer.Typer()
    register(app)
    with TestBroker() as plain:
        monkeypatch.setenv("OTTLA_BOOTSTRAP", plain.bootstrap_servers)
        result = CliRunner().invoke(app, ["acl", "list"])
    assert result.exit_code == 1
    assert result.stderr.startswith("error: SECURITY_DISABLED: everybody may do everything here")


GUIDE = (
    (Path(__file__).parents[3] / "docs" / "security.md")
    .read_text()
    .split("\n## Who may do what\n")[1]
    .split("\n## ")[0]
)


def test_the_commands_of_the_guide_do_what_they_say(ottla: Ottla) -> None:
    commands = [shlex.split(line)[1:] for line in GUIDE.splitlines() if line.startswith("ottla acl ")]
    assert len(commands) >= 5
    for words in commands:
        done = ottla(*words)
        assert done.exit_code == 0, done.stderr
        assert "there are no such rules" not in done.stderr
    assert {row[3] for row in rules(ottla)} == {"User:bob"}


def test_the_program_of_the_guide_makes_a_rule(ottla: Ottla, ruled: TestBroker) -> None:
    (block,) = re.findall(r"```python\n(.*?)```", GUIDE.split("\n## ")[0], re.DOTALL)
    exec(block.replace("localhost:9092", ruled.bootstrap_servers), {})  # noqa: S102
    assert rules(ottla) == {("TOPIC", "orders", "LITERAL", "User:alice", "*", "READ", "ALLOW")}
