"""`ottla topic` and `ottla config`: what they do, print, and leave as exit codes."""

import json

import pytest

from tests.unit.client.fake_broker import FakeBroker

from .conftest import Ottla


def test_a_topic_goes_from_creation_to_deletion(ottla: Ottla, broker: FakeBroker) -> None:
    assert ottla("topic", "create", "orders", "-p", "3", "-c", "retention.ms=1000").exit_code == 0
    assert len(broker.topics["orders"].logs) == 3
    assert broker.topics["orders"].configs == {"retention.ms": "1000"}

    listed = ottla("topic", "list")
    assert [line.split() for line in listed.stdout.splitlines() if "orders" in line] == [["orders", "3", "1"]]

    described = ottla("topic", "describe", "orders")
    assert "orders" in described.stdout
    assert "retention.ms=1000" in described.stdout

    altered = ottla(
        "topic", "alter", "orders", "-p", "5", "-c", "cleanup.policy=compact", "--delete-config", "retention.ms"
    )
    assert altered.exit_code == 0
    assert len(broker.topics["orders"].logs) == 5
    assert broker.topics["orders"].configs == {"cleanup.policy": "compact"}

    assert ottla("topic", "delete", "orders").exit_code == 0
    assert broker.topics == {}


def test_json_is_one_document_on_stdout(ottla: Ottla, broker: FakeBroker) -> None:
    broker.create("a", 2)
    expected = {
        "name": "a",
        "topic_id": "AAAAAAAAAAAAAAAAAAAAAQ",
        "partitions": 2,
        "replication_factor": 1,
        "is_internal": False,
    }
    assert json.loads(ottla("topic", "list", "--json").stdout) == [expected]
    (described,) = json.loads(ottla("topic", "describe", "a", "--json").stdout)
    assert described["partition_details"][1]["partition"] == 1
    assert described["partition_details"][1]["isr"] == [1]


def test_a_failure_names_the_error_on_stderr_and_exits_with_1(ottla: Ottla, broker: FakeBroker) -> None:
    broker.create("a")
    result = ottla("topic", "create", "a")
    assert result.exit_code == 1
    assert result.stderr == "error: TOPIC_ALREADY_EXISTS: Topic 'a' already exists.\n"
    assert result.stdout == ""
    result = ottla("topic", "describe", "nope")
    assert (result.exit_code, result.stderr) == (1, "error: UNKNOWN_TOPIC_OR_PARTITION: there is no topic 'nope'\n")
    result = ottla("topic", "list", "-b", "127.0.0.1:1")
    assert result.exit_code == 1
    assert "NETWORK_EXCEPTION: cannot connect to 127.0.0.1:1" in result.stderr


def test_what_is_there_already_can_be_fine(ottla: Ottla, broker: FakeBroker) -> None:
    broker.create("a")
    assert ottla("topic", "create", "a", "b", "--if-not-exists").exit_code == 0
    assert set(broker.topics) == {"a", "b"}
    assert ottla("topic", "delete", "c", "a", "--if-exists").exit_code == 0
    assert set(broker.topics) == {"b"}
    assert ottla("topic", "delete", "c").exit_code == 1


@pytest.mark.parametrize(
    "words",
    [
        ("topic", "create"),
        ("topic", "create", "a", "-p", "0"),
        ("topic", "create", "a", "-c", "retention.ms"),
        ("topic", "alter", "a"),
        ("topic", "list", "--bootstrap", "nowhere:at:all:x"),
        ("config", "describe"),
        ("config", "describe", "--topic", "a", "--broker", "1"),
        ("config", "set", "--broker", "one", "a=b"),
        ("config", "set", "--topic", "a", "no equals sign"),
        ("config", "set", "--topic", "a"),
        ("consume", "a", "--from", "soon"),
        ("consume", "a", "--format", "%q"),
        ("consume", "a", "--count", "0"),
        ("produce", "a", "--acks", "2"),
        ("produce", "a", "--compression", "zip"),
        ("produce", "a", "--json", "-K", ":"),
        ("produce", "a", "-H", "=value"),
    ],
    ids=" ".join,
)
def test_a_mistake_in_the_command_line_exits_with_2(ottla: Ottla, words: tuple[str, ...]) -> None:
    result = ottla(*words)
    assert result.exit_code == 2
    assert result.stderr


def test_configs_of_topics_and_brokers_are_described_set_and_deleted(ottla: Ottla, broker: FakeBroker) -> None:
    broker.create("a")
    assert ottla("config", "set", "--topic", "a", "retention.ms=5", "cleanup.policy=compact,delete").exit_code == 0
    assert broker.topics["a"].configs == {"retention.ms": "5", "cleanup.policy": "compact,delete"}
    shown = ottla("config", "describe", "--topic", "a").stdout
    assert "retention.ms" in shown
    assert "dynamic topic" in shown
    assert "segment.bytes" not in shown
    assert "segment.bytes" in ottla("config", "describe", "--topic", "a", "--all").stdout
    assert ottla("config", "delete", "--topic", "a", "retention.ms").exit_code == 0
    assert broker.topics["a"].configs == {"cleanup.policy": "compact,delete"}

    assert ottla("config", "set", "--broker", "1", "log.retention.hours=1").exit_code == 0
    (entry,) = json.loads(ottla("config", "describe", "--broker", "1", "--json").stdout)
    assert (entry["name"], entry["value"], entry["source"]) == ("log.retention.hours", "1", "static broker")

    failed = ottla("config", "set", "--topic", "a", "bad.name=1")
    assert (failed.exit_code, failed.stderr) == (1, "error: INVALID_CONFIG: Unknown config name: bad.name\n")
    failed = ottla("config", "describe", "--broker", "7")
    assert (failed.exit_code, failed.stderr) == (1, "error: BROKER_NOT_AVAILABLE: there is no broker 7; there are 1\n")
