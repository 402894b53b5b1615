"""`ottla top`: what it shows of a broker at work."""

import io
import json
from collections.abc import Iterator

import confluent_kafka
import pytest
from rich.console import Console
from typer import Typer
from typer.testing import CliRunner, Result

from ottla.cli import top as top_command
from ottla.cli.commands import register
from ottla.cli.top_look import GroupLine, Look, Sample, compare
from ottla.testing import TestBroker

RECORDS = 10


@pytest.fixture(scope="module")
def server() -> Iterator[TestBroker]:
    with TestBroker({"ottla.metrics.listen": "127.0.0.1:0", "num.partitions": "2"}) as running:
        client = {"bootstrap.servers": running.bootstrap_servers}
        producer = confluent_kafka.Producer({**client, "client.id": "writer"})
        for number in range(RECORDS):
            producer.produce("orders", b"%d" % number, partition=number % 2)
        assert producer.flush(30) == 0
        reader = confluent_kafka.Consumer({**client, "client.id": "reader", "group.id": "readers"})
        reader.commit(offsets=[confluent_kafka.TopicPartition("orders", 0, 2)], asynchronous=False)
        yield running
        reader.close()


def _top(server: TestBroker, *words: str) -> Result:
    app = Typer()
    register(app)
    return CliRunner().invoke(app, ["top", "--bootstrap", server.bootstrap_servers, "--interval", "0.1", *words])


def test_json_has_topics_groups_and_lag(server: TestBroker) -> None:
    result = _top(server, "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    (topic,) = found["topics"]
    assert (topic["topic"], topic["partitions"], topic["records"]) == ("orders", 2, RECORDS)
    assert topic["bytes_in"] is None
    (group,) = found["groups"]
    assert (group["group"], group["state"], group["lag"], group["lag_growth"]) == ("readers", "Empty", 3, 0)
    assert found["clients"] is None


def test_with_metrics_there_are_clients_and_bytes(server: TestBroker) -> None:
    found = json.loads(_top(server, "--json", "--metrics", server.metrics_address).stdout)
    assert found["topics"][0]["bytes_in"] == 0
    clients = {client["client_id"]: client for client in found["clients"]}
    assert {"writer", "reader", "ottla"} <= clients.keys()
    assert clients["writer"]["principal"] == "User:ANONYMOUS"
    assert clients["ottla"]["requests"] > 0


def test_internal_topics_are_shown_if_asked_for(server: TestBroker) -> None:
    names = {topic["topic"] for topic in json.loads(_top(server, "--json", "--internal").stdout)["topics"]}
    assert names == {"orders", "__consumer_offsets"}


def test_where_there_is_no_terminal_one_picture_is_printed(server: TestBroker) -> None:
    result = _top(server, "--metrics", f"http://{server.metrics_address}/metrics")
    assert result.exit_code == 0, result.output
    for words in ("1 topic ", "1 group ", "orders", "readers", "writer", "lag 3 "):
        assert words in result.stdout


@pytest.mark.parametrize(
    ("address", "reason"),
    [("127.0.0.1:1", "Connection refused"), ("BROKER", "what answers there is no port for metrics")],
)
def test_metrics_that_do_not_answer_are_said_so(server: TestBroker, address: str, reason: str) -> None:
    where = server.bootstrap_servers if address == "BROKER" else address
    result = _top(server, "--once", "--metrics", where)
    assert result.exit_code == 1
    assert f"no metrics from {where}: {reason}; give the address that `ottla serve --metrics` was" in result.output


def test_rates_are_what_happened_between_two_looks_and_never_below_zero() -> None:
    def sample(value: float) -> Sample:
        return Sample("ottla_topic_bytes_in_total", {"topic": "a"}, value)

    before = Look(
        10.0, {"a": 1, "b": 1}, {"a": 100, "b": 900}, [GroupLine("g", "Stable", 1, [], 1, 50)], [sample(1000)]
    )
    now = Look(12.0, {"a": 1, "b": 1}, {"a": 300, "b": 5}, [GroupLine("g", "Stable", 1, [], 1, 10)], [sample(5000)])
    shown = compare(before, now)
    assert [(line.topic, line.records_in, line.bytes_in) for line in shown.topics] == [("a", 100, 2000), ("b", 0, 0)]
    assert shown.groups[0].lag_growth == -20


def test_a_small_screen_shows_the_busiest_and_says_how_many_are_left_out() -> None:
    before = Look(0.0, {f"topic-{number}": 1 for number in range(50)}, {"topic-49": 0})
    now = Look(1.0, before.partitions, {"topic-49": 7})
    console = Console(file=io.StringIO(), width=100)
    console.print(top_command._picture(compare(before, now), 24, "no answer, still trying"))
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    assert "50 topics, 46 not shown" in text
    assert "topic-49" in text
    assert "no answer, still trying" in text
