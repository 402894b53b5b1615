"""What commands say to those who may not do something, and that the advice helps."""

import shlex
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from ottla.cli.access import on_topics, refusal
from ottla.cli.commands import register
from ottla.cli.people import principal_of
from ottla.client.admin import (
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    NewTopic,
    ResourcePatternFilter,
    ResourceType,
)
from ottla.client.types import TopicPartition
from ottla.errors import TopicAlreadyExistsError
from ottla.net.security import Security
from ottla.sync import Admin
from ottla.testing import TestBroker
from ottla.wire.errors import ErrorCode, KafkaError
from tests.certificates import Authority, written

PASSWORD = "wonder-4711"
SETTINGS = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
    "authorizer.class.name": "ottla",
    "super.users": "User:admin",
}

Ottla = Callable[..., Result]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestBroker]:
    folder = str(tmp_path_factory.mktemp("data"))
    for user in ("admin", "bob"):
        assert run("user", "add", user, "--data", folder).exit_code == 0
    with TestBroker(SETTINGS, folder=folder) as running:
        yield running


def run(*words: str, stdin: bytes | str = "") -> Result:
    app = typer.Typer()
    register(app)
    result = CliRunner(env={"OTTLA_PASSWORD": PASSWORD, "COLUMNS": "300"}).invoke(app, words, input=stdin)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.fixture(scope="module")
def admin(broker: TestBroker) -> Iterator[Admin]:
    with Admin(
        broker.bootstrap_servers,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="SCRAM-SHA-256",
        sasl_plain_username="admin",
        sasl_plain_password=PASSWORD,
    ) as running:
        yield running


@pytest.fixture
def ottla(broker: TestBroker, admin: Admin) -> Iterator[Ottla]:
    """Run `ottla WORDS...` as somebody; there are a topic and a group, and no rules are left after the test."""

    def run_as(user: str, *words: str, stdin: bytes | str = "") -> Result:
        login = ("--username", user, "--security-protocol", "SASL_PLAINTEXT", "-b", broker.bootstrap_servers)
        return run(*words, *login, stdin=stdin)

    with suppress(TopicAlreadyExistsError):
        admin.create_topics([NewTopic("orders", 1)])
    admin.alter_consumer_group_offsets("readers", {TopicPartition("orders", 0): 0})
    yield run_as
    everything = ResourcePatternFilter(ResourceType.ANY, None, ACLResourcePatternType.ANY)
    admin.delete_acls([ACLFilter(None, None, ACLOperation.ANY, ACLPermissionType.ANY, everything)])


def advice(refused: Result) -> list[str]:
    """The command that is to help."""
    last = refused.stderr.splitlines()[-1]
    _, found, command = last.partition("an administrator allows it with: ottla ")
    assert found, refused.stderr
    return shlex.split(command)


def allow(ottla: Ottla, operation: str, topic: str) -> None:
    rule = ("--allow-principal", "User:bob", "--operation", operation, "--topic", topic)
    assert ottla("admin", "acl", "add", *rule).exit_code == 0


@pytest.mark.parametrize(
    ("command", "lacking"),
    [
        ("produce orders", ["WRITE (and CREATE if there is no such topic yet) on topic 'orders'"]),
        ("consume orders --exit-at-end", ["READ on topic 'orders'"]),
        ("topic create fresh", ["CREATE on topic 'fresh'"]),
        ("topic describe orders", ["DESCRIBE on topic 'orders'"]),
        ("topic alter orders --partitions 9", ["ALTER on topic 'orders'"]),
        ("topic alter orders --config retention.ms=1000", ["ALTER_CONFIGS on topic 'orders'"]),
        ("topic delete orders", ["DELETE on topic 'orders'"]),
        ("config describe --topic orders", ["DESCRIBE_CONFIGS on topic 'orders'"]),
        ("config set --topic orders retention.ms=1000", ["ALTER_CONFIGS on topic 'orders'"]),
        ("config describe --broker 1", ["DESCRIBE_CONFIGS on the cluster"]),
        ("config delete --broker 1 log.retention.ms", ["ALTER_CONFIGS on the cluster"]),
        ("group describe readers", ["DESCRIBE on group 'readers'"]),
        ("group reset readers --topic orders --to-latest", ["READ on group 'readers'", "READ on topic 'orders'"]),
        ("group delete readers", ["DELETE on group 'readers'"]),
        ("group delete readers --topic orders", ["READ on topic 'orders'", "DELETE on group 'readers'"]),
        ("acl list", ["DESCRIBE on the cluster"]),
        ("acl add --topic orders --allow-principal User:eve", ["ALTER on the cluster"]),
        ("acl remove --topic orders --allow-principal User:eve", ["ALTER on the cluster"]),
        ("user list", ["DESCRIBE on the cluster"]),
        ("user add eve", ["ALTER on the cluster"]),
        ("quota list", ["DESCRIBE_CONFIGS on the cluster"]),
        ("quota set --user eve --produce 1000", ["ALTER_CONFIGS on the cluster"]),
        ("quota remove --user eve", ["ALTER_CONFIGS on the cluster"]),
    ],
)
def test_a_refusal_names_user_operation_and_resource_and_what_it_advises_helps(
    ottla: Ottla, command: str, lacking: list[str]
) -> None:
    for missing in lacking:
        refused = ottla("bob", *command.split(), stdin="two apples\n")
        assert refused.exit_code == 1
        assert f"User:bob needs {missing}" in refused.stderr
        granted = ottla("admin", *advice(refused))
        assert granted.exit_code == 0, granted.stderr
    allowed = ottla("bob", *command.split(), stdin="two apples\n")
    assert allowed.exit_code == 0, allowed.stderr


def test_a_producer_that_may_only_read_is_told_of_the_topic(ottla: Ottla) -> None:
    allow(ottla, "read", "orders")
    refused = ottla("bob", "produce", "orders", stdin="two apples\n")
    said, _ = refused.stderr.splitlines()
    assert said.startswith("error: User:bob needs WRITE (and CREATE if there is no such topic yet) on topic 'orders' (")
    assert shlex.join(advice(refused)) == "acl add --allow-principal User:bob --operation Write --topic orders"


def test_a_producer_that_may_not_make_its_topic_is_told_of_that_too(ottla: Ottla) -> None:
    allow(ottla, "write", "missing")
    refused = ottla("bob", "produce", "missing", stdin="two apples\n")
    assert refused.exit_code == 1
    assert "needs WRITE (and CREATE if there is no such topic yet) on topic 'missing'\n" in refused.stderr


def test_a_consumer_that_may_only_look_is_told_that_it_may_not_read(ottla: Ottla) -> None:
    assert ottla("admin", "produce", "orders", stdin="two apples\n").exit_code == 0
    allow(ottla, "describe", "orders")
    refused = ottla("bob", "consume", "orders", "--exit-at-end")
    assert refused.exit_code == 1
    assert "TOPIC_AUTHORIZATION_FAILED: User:bob needs READ on topic 'orders'\n" in refused.stderr


def test_a_reader_sees_a_topic_without_its_configs(ottla: Ottla) -> None:
    allow(ottla, "read", "orders")
    seen = ottla("bob", "topic", "describe", "orders")
    assert seen.exit_code == 0
    assert "partition" in seen.stdout
    assert "no configs: TOPIC_AUTHORIZATION_FAILED: User:bob needs DESCRIBE_CONFIGS on topic 'orders'" in seen.stderr


def test_of_several_only_those_that_failed_are_named(ottla: Ottla) -> None:
    allow(ottla, "create", "first")
    refused = ottla("bob", "topic", "create", "first", "second", "--if-not-exists")
    assert "User:bob needs CREATE on topic 'second'\n" in refused.stderr
    assert advice(refused)[-2:] == ["--topic", "second"]


def test_advice_can_be_pasted_whatever_the_name_is(ottla: Ottla) -> None:
    refused = ottla("bob", "group", "delete", "my $group")
    assert refused.stderr.endswith(" --operation Delete --group 'my $group'\n")


def test_other_errors_are_not_about_access() -> None:
    error = KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "there is no topic 'orders'")
    assert refusal(error, [on_topics(ACLOperation.READ, ["orders"])], Security()) is None


def test_a_certificates_owner_is_named_as_brokers_do(tmp_path: Path) -> None:
    alice = Authority().issue("alice", unit="Services")
    file = written(tmp_path, "alice.pem", alice.store)
    for certificate in (file, alice.chain.decode()):
        found = principal_of(Security(security_protocol="SSL", ssl_certfile=certificate))
        assert found == "User:CN=alice,OU=Services,O=Shop"
    for wrong in ("none.pem", written(tmp_path, "empty.pem", b"")):
        assert principal_of(Security(security_protocol="SSL", ssl_certfile=wrong)) is None


def test_whom_a_token_names_only_the_broker_knows() -> None:
    security = Security(
        security_protocol="SASL_SSL", sasl_mechanism="OAUTHBEARER", sasl_oauth_token_provider=lambda: "a.b.c"
    )
    error = KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "topic 'orders'")
    said = refusal(error, [on_topics(ACLOperation.READ, ["orders"])], security)
    assert said is not None
    assert "the user whom the broker takes this for needs READ on topic 'orders'" in said
    assert "--allow-principal User:NAME" in said
