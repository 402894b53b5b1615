"""What a broker tells of itself over HTTP, with real clients at work."""

import asyncio
import json
import logging
import re
import socket
import threading
import time
from base64 import b64encode
from collections.abc import Iterator
from http import HTTPStatus
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import confluent_kafka
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_openmetrics
from prometheus_client.parser import text_string_to_metric_families

from ottla.broker.gauges import ROWS_PER_TURN, Gauges
from ottla.broker.server import Server
from ottla.client.admin import Admin, NewTopic, UserScramCredentialUpsertion
from ottla.config.broker import BrokerConfig
from ottla.metrics import clients as metrics_clients
from ottla.metrics.family import Family
from ottla.metrics.logs import JsonFormatter
from ottla.sync import Admin as SyncAdmin
from ottla.testing import TestBroker
from ottla.wire.api import MODULES, api_name
from ottla.wire.api.api_versions import ApiVersionsRequest
from ottla.wire.api.metadata import MetadataRequest
from ottla.wire.errors import KafkaError
from ottla.wire.frame import encode_request
from tests.waiting import until

Values = dict[tuple[str, frozenset[tuple[str, str]]], float]

DASHBOARD = Path(__file__).parents[2] / "examples" / "metrics" / "grafana.json"
DOCUMENT = Path(__file__).parents[2] / "docs" / "metrics.md"
METRIC = re.compile(r"\b(?:ottla|process)_[a-z_]+[a-z]\b")


@pytest.fixture
def broker() -> Iterator[TestBroker]:
    with TestBroker({"ottla.metrics.listen": "127.0.0.1:0"}) as running:
        yield running


def get(broker: TestBroker, path: str) -> tuple[int, str]:
    try:
        with urlopen(f"http://{broker.metrics_address}{path}", timeout=30) as reply:
            return reply.status, reply.read().decode()
    except HTTPError as error:
        with error:
            return error.code, error.read().decode()


def scrape(broker: TestBroker) -> Values:
    status, text = get(broker, "/metrics")
    assert status == HTTPStatus.OK
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def value(values: Values, name: str, **labels: object) -> float | None:
    return values.get((name, frozenset((key, str(one)) for key, one in labels.items())))


def produce(broker: TestBroker, topic: str, count: int, client_id: str = "writer") -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap_servers, "client.id": client_id})
    for number in range(count):
        producer.produce(topic, b"record %d" % number)
    assert producer.flush(30) == 0


def test_requests_bytes_and_lag_are_those_of_the_clients(broker: TestBroker) -> None:
    produce(broker, "orders", 100)
    settings = {"client.id": "reader", "group.id": "readers", "auto.offset.reset": "earliest"}
    consumer = confluent_kafka.Consumer({"bootstrap.servers": broker.bootstrap_servers, **settings})
    consumer.subscribe(["orders"])
    first = consumer.consume(40, 30)
    assert len(first) == 40
    consumer.commit(message=first[-1], asynchronous=False)

    values = scrape(broker)

    assert value(values, "ottla_topic_records_in_total", topic="orders") == 100
    size = value(values, "ottla_topic_bytes_in_total", topic="orders")
    assert size is not None
    assert size > 800
    assert value(values, "ottla_partition_size_bytes", topic="orders", partition=0) == size
    assert value(values, "ottla_topic_bytes_out_total", topic="orders") == size
    assert value(values, "ottla_partition_end_offset", topic="orders", partition=0) == 100
    assert value(values, "ottla_group_lag_records", group="readers", topic="orders", partition=0) == 60
    assert value(values, "ottla_group_members", group="readers") == 1
    assert value(values, "ottla_groups", type="classic", state="Stable") == 1
    produced = value(values, "ottla_request_seconds_count", api="Produce")
    assert produced is not None
    assert produced >= 1
    assert value(values, "ottla_request_seconds_bucket", api="Produce", le="+Inf") == produced
    writer = {"principal": "User:ANONYMOUS", "client_id": "writer"}
    bytes_in = value(values, "ottla_client_request_bytes_total", **writer)
    assert bytes_in is not None
    assert bytes_in > size
    assert (value(values, "ottla_client_connections", principal="User:ANONYMOUS", client_id="reader") or 0) >= 1
    consumer.close()


def test_errors_are_counted_by_api_and_code(broker: TestBroker) -> None:
    async def create_twice() -> None:
        async with Admin(broker.bootstrap_servers) as admin:
            await admin.create_topics([NewTopic("orders", 1)])
            await admin.create_topics([NewTopic("orders", 1)])

    with pytest.raises(Exception, match="TOPIC_ALREADY_EXISTS"):
        asyncio.run(create_twice())
    values = scrape(broker)
    assert value(values, "ottla_request_errors_total", api="CreateTopics", error="TOPIC_ALREADY_EXISTS") == 1


def test_a_request_that_waits_is_seen_waiting_and_a_connection_as_long_as_it_lasts(broker: TestBroker) -> None:
    produce(broker, "orders", 1)
    settings = {"group.id": "g", "fetch.wait.max.ms": 30_000, "client.id": "patient", "auto.offset.reset": "earliest"}
    consumer = confluent_kafka.Consumer({"bootstrap.servers": broker.bootstrap_servers, **settings})
    consumer.assign([confluent_kafka.TopicPartition("orders", 0, 0)])
    assert consumer.consume(1, 30)
    deadline = time.monotonic() + 30
    while value(scrape(broker), "ottla_requests_waiting", api="Fetch") != 1:
        assert time.monotonic() < deadline
    consumer.close()
    while value(scrape(broker), "ottla_connections", listener="PLAINTEXT") != 0:
        assert time.monotonic() < deadline
    values = scrape(broker)
    assert value(values, "ottla_requests_waiting", api="Fetch") == 0
    assert value(values, "ottla_client_connections", principal="User:ANONYMOUS", client_id="patient") == 0


def test_openmetrics_is_spoken_too(broker: TestBroker) -> None:
    produce(broker, "orders", 1)
    request = Request(f"http://{broker.metrics_address}/metrics")
    request.add_header("Accept", "application/openmetrics-text; version=1.0.0")
    with urlopen(request, timeout=30) as reply:
        assert reply.headers["Content-Type"].startswith("application/openmetrics-text")
        names = {family.name for family in read_openmetrics(reply.read().decode())}  # type: ignore[no-untyped-call]
    assert {"ottla_request_seconds", "ottla_topic_records_in", "process_resident_memory_bytes"} <= names


def test_made_up_client_ids_take_no_more_memory_than_there_are_places(broker: TestBroker) -> None:
    host, port = broker.bootstrap_servers.split(":")
    count = 3 * metrics_clients.MOST_CLIENTS
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        replies = connection.makefile("rb")
        for number in range(count):
            request = encode_request(
                MetadataRequest(topics=[]), 1, correlation_id=number, client_id=f"made-up-{number}" + "x" * 1000
            )
            connection.sendall(b"".join(request))
            replies.read(int.from_bytes(replies.read(4), "big"))
        values = scrape(broker)
    seen = [dict(labels)["client_id"] for name, labels in values if name == "ottla_client_requests_total"]
    assert len(seen) <= metrics_clients.MOST_CLIENTS + 1
    assert max(map(len, seen)) <= metrics_clients.LONGEST_ID
    assert any(client_id.startswith(f"made-up-{count - 1}x") for client_id in seen)
    total = value(values, "ottla_request_bytes_total")
    assert total is not None
    assert total > count * 1000


def test_a_broker_is_ready_while_it_serves_and_alive_before(tmp_path: Path) -> None:
    async def story() -> None:
        settings = {
            "listeners": "PLAINTEXT://127.0.0.1:0",
            "log.dirs": str(tmp_path),
            "ottla.metrics.listen": "127.0.0.1:0",
        }
        server = Server(BrokerConfig(settings))
        seen: list[tuple[str, int]] = []

        async def ask(path: str) -> int:
            assert server.sight is not None
            url = f"http://{server.sight.address}{path}"

            def fetch() -> int:
                try:
                    with urlopen(url, timeout=30) as reply:
                        return int(reply.status)
                except HTTPError as error:
                    with error:
                        return error.code

            return await asyncio.to_thread(fetch)

        start = server._start

        async def start_slowly() -> None:
            seen.extend([("/ready", await ask("/ready")), ("/live", await ask("/live"))])
            seen.append(("/metrics", await ask("/metrics")))
            await start()

        server._start = start_slowly  # type: ignore[method-assign]
        await server.start()
        assert seen == [("/ready", 503), ("/live", 200), ("/metrics", 200)]
        assert await ask("/ready") == 200
        await server.stop()
        assert server.sight is None

    asyncio.run(story())


def test_an_event_loop_that_hangs_is_neither_ready_nor_alive(
    broker: TestBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert get(broker, "/live") == (HTTPStatus.OK, "alive\n")
    hanging, done = threading.Event(), threading.Event()

    def hang() -> None:
        hanging.set()
        done.wait(30)

    assert broker._loop is not None
    broker._loop.call_soon_threadsafe(hang)
    hanging.wait()
    try:
        monkeypatch.setattr("ottla.broker.sight.TURN_S", 0.2)
        assert get(broker, "/live") == (HTTPStatus.SERVICE_UNAVAILABLE, "stalled\n")
        assert get(broker, "/ready") == (HTTPStatus.SERVICE_UNAVAILABLE, "stalled\n")
    finally:
        monkeypatch.undo()
        done.set()
    assert get(broker, "/ready") == (HTTPStatus.OK, "ready\n")


def test_scraping_thousands_of_partitions_does_not_hold_up_the_event_loop(
    broker: TestBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def create() -> None:
        async with Admin(broker.bootstrap_servers, request_timeout_ms=120_000) as admin:
            await admin.create_topics([NewTopic(f"topic-{number}", 500) for number in range(6)])

    asyncio.run(create())
    looks: list[list[float]] = []
    """For each look around, when the event loop came round."""
    look = Gauges.look

    async def watched(gauges: Gauges) -> list[Family]:
        turns: list[float] = []
        looks.append(turns)
        looking = asyncio.create_task(look(gauges))
        while not looking.done():
            turns.append(time.perf_counter())
            await asyncio.sleep(0)
        turns.append(time.perf_counter())
        return await looking

    monkeypatch.setattr(Gauges, "look", watched)
    for _ in range(5):
        assert value(scrape(broker), "ottla_partitions") == 3000
    # It is done in pieces, with turns of others between them.
    assert min(len(one) for one in looks) > 3000 / ROWS_PER_TURN
    # Whatever blocks the event loop does so each time; a busy machine, or a search for garbage, does not.
    longest = [max(later - sooner for sooner, later in pairwise(one)) for one in looks]
    assert min(longest) < 0.1


def test_a_broker_that_cannot_start_leaves_no_port_open(tmp_path: Path) -> None:
    seen: list[int] = []

    async def story() -> None:
        settings = {
            "listeners": "SSL://127.0.0.1:0",
            "log.dirs": str(tmp_path),
            "ottla.metrics.listen": "127.0.0.1:0",
        }
        server = Server(BrokerConfig(settings))
        start = server._start

        async def start_with_an_eye_on_the_port() -> None:
            assert server.sight is not None
            seen.append(int(server.sight.address.rpartition(":")[2]))
            _, writer = await asyncio.open_connection("127.0.0.1", seen[0])
            writer.close()
            await start()

        server._start = start_with_an_eye_on_the_port  # type: ignore[method-assign]
        with pytest.raises(KafkaError, match=r"ssl.keystore.location: is not set"):
            await server.start()

    asyncio.run(story())
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", seen[0]), timeout=30)


def test_librdkafka_asks_at_once_what_is_wanted_and_pushes_nothing_unless_asked_to(
    broker: TestBroker, caplog: pytest.LogCaptureFixture
) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap_servers})
    producer.produce("orders", b"one")
    assert producer.flush(30) == 0
    deadline = time.monotonic() + 30
    while value(values := scrape(broker), "ottla_request_seconds_count", api="GetTelemetrySubscriptions") is None:
        assert time.monotonic() < deadline
    assert value(values, "ottla_request_seconds_count", api="GetTelemetrySubscriptions") == 1
    assert value(values, "ottla_request_seconds_count", api="PushTelemetry") is None
    assert value(values, "ottla_telemetry_clients") == 1
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


def test_librdkafka_pushes_what_is_asked_for_and_says_when_it_is_the_last(caplog: pytest.LogCaptureFixture) -> None:
    settings = {
        "ottla.metrics.listen": "127.0.0.1:0",
        "ottla.telemetry.metrics": "*",
        "ottla.telemetry.interval.ms": "200",
    }
    caplog.set_level(logging.DEBUG, "ottla.telemetry")
    with TestBroker(settings) as broker:
        client = {"bootstrap.servers": broker.bootstrap_servers, "client.id": "teller"}
        producer = confluent_kafka.Producer(client)
        producer.produce("orders", b"one")
        producer.flush(30)
        deadline = time.monotonic() + 30
        while (value(scrape(broker), "ottla_events_total", event="telemetry_pushed") or 0) < 2:
            assert time.monotonic() < deadline
        del producer
        while not any("its last" in message for message in caplog.messages):
            assert time.monotonic() < deadline
        values = scrape(broker)
    assert (value(values, "ottla_telemetry_bytes_total") or 0) > 0
    assert value(values, "ottla_events_total", event="telemetry_refused") is None


def test_users_are_told_apart_and_their_passwords_told_nobody(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    password, wrong = "wonder-4711", "guessed-0815"
    settings = {
        "ottla.metrics.listen": "127.0.0.1:0",
        "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
        "connection.failed.authentication.delay.ms": "0",
    }
    with TestBroker(settings) as broker:
        with SyncAdmin(broker.bootstrap_servers) as admin:
            admin.alter_user_scram_credentials([UserScramCredentialUpsertion("alice", "SCRAM-SHA-256", password)])
        endpoint = broker.endpoints["SASL_PLAINTEXT"]
        address = f"{endpoint.host}:{endpoint.port}"
        for mechanism in ("PLAIN", "SCRAM-SHA-256"):
            login: dict[str, Any] = {
                "security_protocol": "SASL_PLAINTEXT",
                "sasl_mechanism": mechanism,
                "sasl_plain_username": "alice",
            }
            with SyncAdmin(address, client_id="app", sasl_plain_password=password, **login) as admin:
                admin.create_topics([NewTopic(f"topic-{mechanism}", 1)])
            with pytest.raises(KafkaError), SyncAdmin(address, sasl_plain_password=wrong, **login):
                pass
        values = scrape(broker)
        text = get(broker, "/metrics")[1]
    assert (value(values, "ottla_client_requests_total", principal="User:alice", client_id="app") or 0) >= 2
    assert (value(values, "ottla_events_total", event="authentication_failed") or 0) >= 2
    told = [vars(record).get("principal") for record in caplog.records if record.name == "ottla.audit"]
    assert told == ["User:ANONYMOUS", "User:alice", "User:alice"]
    words = text + "".join(JsonFormatter().format(record) for record in caplog.records)
    for secret in (password, wrong):
        assert secret not in words
        assert b64encode(secret.encode()).decode()[:-2] not in words


def test_client_ids_of_strangers_take_no_place_of_a_client_that_is_known() -> None:
    settings = {"ottla.metrics.listen": "127.0.0.1:0", "listeners": "SASL_PLAINTEXT://127.0.0.1:0"}
    with TestBroker(settings) as broker:
        host, port = broker.bootstrap_servers.split(":")
        with socket.create_connection((host, int(port)), timeout=30) as connection:
            replies = connection.makefile("rb")
            for number in range(50):
                request = encode_request(ApiVersionsRequest(), 0, correlation_id=number, client_id=f"made-up-{number}")
                connection.sendall(b"".join(request))
                replies.read(int.from_bytes(replies.read(4), "big"))
            values = scrape(broker)
        seen = {
            dict(labels)["client_id"]: found
            for (name, labels), found in values.items()
            if name == "ottla_client_requests_total"
        }
        assert seen == {metrics_clients.STRANGERS: 50}


@pytest.mark.parametrize("file", [DASHBOARD, DOCUMENT], ids=["dashboard", "document"])
def test_what_is_written_about_metrics_names_those_that_there_are(broker: TestBroker, file: Path) -> None:
    produce(broker, "orders", 1)
    _, text = get(broker, "/metrics")
    there = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE ottla_")}
    words = json.dumps(json.loads(file.read_text())) if file.suffix == ".json" else file.read_text()
    named = _names_in(words)
    assert named
    assert {name for name in named if _family(name) not in there} == set()
    if file is DOCUMENT:
        assert there - {_family(name) for name in named} == set(), "metrics that nobody has described"


def test_the_dashboard_asks_for_labels_that_its_metrics_have(broker: TestBroker) -> None:
    """A sum by a label that there is not is one line, and a choice by one is empty: nobody is told what is wrong."""
    produce(broker, "orders", 1)
    settings = {"group.id": "readers", "auto.offset.reset": "earliest"}
    consumer = confluent_kafka.Consumer({"bootstrap.servers": broker.bootstrap_servers, **settings})
    consumer.subscribe(["orders"])
    assert consumer.consume(1, 30)
    consumer.commit(asynchronous=False)
    with SyncAdmin(broker.bootstrap_servers) as admin, pytest.raises(KafkaError):
        admin.create_topics([NewTopic("orders", 1)])
    # librdkafka asks which metrics are wanted, and that is an event.
    asked = ("ottla_events_total", frozenset({("event", "telemetry_asked")}))
    values = until(lambda: found if asked in (found := scrape(broker)) else {})
    consumer.close()
    labels_of: dict[str, set[str]] = {}
    for name, labels in values:
        labels_of.setdefault(name, {"instance"}).update(label for label, _ in labels)
    apis = {api_name(key) for key in MODULES}
    queries = list(_queries(json.loads(DASHBOARD.read_text())))
    assert queries
    for expression, legend in queries:
        there = set.union(*(labels_of.get(name, set()) for name in re.findall(METRIC, expression)))
        grouped = {one for found in re.findall(r"\bby \(([^)]*)\)", expression) for one in re.split(", *", found)}
        chosen = re.findall(r'(\w+)(?:=|!=|=~|!~)"([^"]*)"', expression)
        assert grouped | {label for label, _ in chosen} <= there, expression
        assert set(re.findall(r"\{\{(\w+)\}\}", legend)) <= (grouped or there), f"{legend!r} of {expression}"
        assert {one for label, names in chosen if label == "api" for one in names.split("|")} <= apis, expression


def _queries(panel: Any) -> Iterator[tuple[str, str]]:
    """What panels ask for, with what they call it."""
    if isinstance(panel, dict):
        if "expr" in panel:
            yield panel["expr"], panel["legendFormat"]
        panel = list(panel.values())
    if isinstance(panel, list):
        for one in panel:
            yield from _queries(one)


def _names_in(text: str) -> set[str]:
    return {name for name in re.findall(METRIC, text) if name.startswith("ottla_")}


def _family(name: str) -> str:
    for suffix in ("_bucket", "_count", "_sum"):
        name = name.removesuffix(suffix)
    return name
