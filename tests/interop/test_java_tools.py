"""Kafka's command-line tools on a broker by Ottla."""

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import TIMESTAMP_CREATE_TIME

from ottla.broker.apis import SERVED, served_versions
from ottla.record import Codec, Record
from ottla.testing import TestBroker
from tests.java import skip_without_maven

from . import confluent
from .java_tools import JavaTools
from .samples import NOW_MS

pytestmark = [pytest.mark.maven, skip_without_maven("Kafka's command-line tools tried nothing on the broker")]

BROKER_ID = 1
Run = Callable[..., str]


@pytest.fixture(scope="module")
def broker() -> Iterator[TestBroker]:
    with TestBroker() as started:
        yield started


@pytest.fixture
def here(broker: TestBroker) -> tuple[str, str]:
    """The option that all tools have."""
    return "--bootstrap-server", broker.bootstrap_servers


@pytest.fixture
def topics(tools: JavaTools, here: tuple[str, str]) -> Run:
    return partial(tools.run, "kafka-topics", *here)


def test_kafka_topics_creates_describes_alters_and_deletes(
    tools: JavaTools, topics: Run, here: tuple[str, str], topic: str
) -> None:
    assert f"Created topic {topic}." in topics(
        "--create", "--topic", topic, "--partitions", "2", "--config", "retention.ms=100000000"
    )
    described = topics("--describe", "--topic", topic)
    assert "PartitionCount: 2\tReplicationFactor: 1\tConfigs: retention.ms=100000000" in described
    assert described.count(f"Leader: {BROKER_ID}\tReplicas: {BROKER_ID}\tIsr: {BROKER_ID}") == 2
    topics("--alter", "--topic", topic, "--partitions", "3")
    assert "PartitionCount: 3" in topics("--describe", "--topic", topic)
    assert topic in topics("--list").splitlines()
    assert topics("--describe", "--under-replicated-partitions") == ""
    again = tools.try_run("kafka-topics", *here, "--create", "--topic", topic)
    assert (again.status, "exists already" in again.output) == (1, True)
    topics("--delete", "--topic", topic)
    assert topic not in topics("--list").splitlines()
    assert tools.try_run("kafka-topics", *here, "--describe", "--topic", topic).status == 1


def test_kafka_configs_alters_and_describes_a_topic(
    tools: JavaTools, topics: Run, here: tuple[str, str], topic: str
) -> None:
    topics("--create", "--topic", topic)
    configs = partial(tools.run, "kafka-configs", *here)
    configs("--alter", "--topic", topic, "--add-config", "max.message.bytes=12345,cleanup.policy=[compact,delete]")
    described = configs("--describe", "--topic", topic)
    assert "max.message.bytes=12345 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:max.message.bytes=12345" in described
    assert "cleanup.policy=compact,delete " in described
    configs("--alter", "--topic", topic, "--delete-config", "max.message.bytes")
    assert "max.message.bytes" not in configs("--describe", "--topic", topic)
    assert "max.message.bytes=1048588 " in configs("--describe", "--topic", topic, "--all")
    wrong = tools.try_run("kafka-configs", *here, "--alter", "--topic", topic, "--add-config", "retention.ms=soon")
    assert (wrong.status, "not a whole number" in wrong.errors) == (1, True)


def test_kafka_configs_alters_and_describes_the_brokers(tools: JavaTools, here: tuple[str, str]) -> None:
    configs = partial(tools.run, "kafka-configs", *here)
    defaults = ("--entity-type", "brokers", "--entity-default")
    configs("--alter", *defaults, "--add-config", "log.retention.ms=86400000")
    assert "log.retention.ms=86400000 " in configs("--describe", *defaults)
    configs("--alter", *defaults, "--delete-config", "log.retention.ms")
    assert "log.retention.ms" not in configs("--describe", *defaults)
    assert "auto.create.topics.enable=true " in configs("--describe", "--broker", str(BROKER_ID), "--all")


def test_the_console_producer_writes_what_the_console_consumer_and_confluent_kafka_read(
    tools: JavaTools, broker: TestBroker, here: tuple[str, str], topic: str
) -> None:
    lines = "".join(f"trace:{n}\tkey {n}\tvalue {n}\n" for n in range(20))
    properties = ("parse.key=true", "parse.headers=true")
    written = [option for each in properties for option in ("--reader-property", each)]
    tools.run("kafka-console-producer", *here, "--topic", topic, *written, "--compression-codec", "zstd", stdin=lines)
    found = confluent.read((broker.host, broker.port), topic, 20, timestamp_type=TIMESTAMP_CREATE_TIME)
    assert [(r.offset, r.key, r.value, list(r.headers)) for r in found] == [
        (n, b"key %d" % n, b"value %d" % n, [("trace", b"%d" % n)]) for n in range(20)
    ]
    printed = ("print.key=true", "print.headers=true")
    shown = [option for each in printed for option in ("--formatter-property", each)]
    read = partial(tools.try_run, "kafka-console-consumer", *here, "--topic", topic, "--partition", "0", *shown)
    ran = read("--offset", "earliest", "--max-messages", "20")
    assert (ran.status, ran.output) == (0, lines)
    assert "Processed a total of 20 messages" in ran.errors
    ran = read("--offset", "17", "--max-messages", "3", "--isolation-level", "read_committed")
    assert ran.output == "".join(lines.splitlines(keepends=True)[17:])


def test_offsets_are_got_and_records_deleted(
    tools: JavaTools, broker: TestBroker, here: tuple[str, str], topic: str, tmp_path: Path
) -> None:
    originals = [Record(n, NOW_MS + n, None, b"tick") for n in range(10)]
    confluent.write((broker.host, broker.port), topic, originals, Codec.LZ4)
    offsets = partial(tools.run, "kafka-get-offsets", *here, "--topic", topic)
    assert offsets() == f"{topic}:0:10\n"
    assert offsets("--time", "earliest") == f"{topic}:0:0\n"
    assert offsets("--time", "max-timestamp") == f"{topic}:0:9\n"
    assert offsets("--time", str(NOW_MS + 4)) == f"{topic}:0:4\n"
    wanted = tmp_path / "wanted.json"
    partitions = [{"topic": topic, "partition": 0, "offset": 7}]
    wanted.write_text(json.dumps({"version": 1, "partitions": partitions}))
    deleted = tools.run("kafka-delete-records", *here, "--offset-json-file", str(wanted))
    assert f"partition: {topic}-0\tlow_watermark: 7" in deleted
    assert offsets("--time", "earliest") == f"{topic}:0:7\n"


def test_kafka_log_dirs_says_how_large_partitions_are(
    tools: JavaTools, broker: TestBroker, here: tuple[str, str], topic: str
) -> None:
    confluent.write((broker.host, broker.port), topic, [Record(0, NOW_MS, None, b"tick")], Codec.NONE)
    described = tools.run("kafka-log-dirs", *here, "--describe", "--topic-list", topic)
    ((folder,),) = [found["logDirs"] for found in json.loads(described.splitlines()[-1])["brokers"]]
    assert Path(folder["logDir"]) == Path(broker.folder)
    size = (Path(broker.folder) / f"{topic}-0" / f"{0:020}.log").stat().st_size
    assert folder["partitions"] == [{"partition": f"{topic}-0", "size": size, "offsetLag": 0, "isFuture": False}]


def test_the_cluster_is_known(tools: JavaTools, broker: TestBroker, here: tuple[str, str]) -> None:
    identity = tools.run("kafka-cluster", "cluster-id", *here)
    assert len(identity.removeprefix("Cluster ID: ").strip()) == 22
    endpoints = tools.run("kafka-cluster", "list-endpoints", *here)
    assert endpoints.splitlines()[1].split()[:3] == [str(BROKER_ID), broker.host, str(broker.port)]


def test_kafka_broker_api_versions_sees_the_apis_that_are_served(tools: JavaTools, here: tuple[str, str]) -> None:
    printed = tools.run("kafka-broker-api-versions", *here)
    for key in SERVED:
        versions = served_versions(key)
        several = f"{versions.first} to {versions.last}"
        expected = several if versions.first != versions.last else str(versions.first)
        assert f"({key}): {expected} [usable: " in printed


def test_the_performance_test_writes_and_its_producer_is_seen(
    tools: JavaTools, broker: TestBroker, here: tuple[str, str], topic: str
) -> None:
    load = ("--num-records", "5000", "--record-size", "100", "--throughput", "-1")
    printed = tools.run("kafka-producer-perf-test", *here, "--topic", topic, *load)
    assert "5000 records sent" in printed
    assert tools.run("kafka-get-offsets", *here, "--topic", topic) == f"{topic}:0:5000\n"
    producers = tools.run("kafka-transactions", *here, "describe-producers", "--topic", topic, "--partition", "0")
    heading, producer = producers.splitlines()
    assert dict(zip(heading.split(), producer.split(), strict=True))["LastSequence"] == "4999"
