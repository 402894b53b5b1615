"""Kafka's own tools and clients: quotas that they set and obey, and the metrics that they are asked for."""

import time
from collections.abc import Iterator
from functools import partial
from urllib.request import urlopen

import pytest

from ottla.testing import TestBroker
from tests.java import skip_without_maven

from .java_tools import JavaTools

pytestmark = [pytest.mark.maven, skip_without_maven("Kafka's own clients tried no quotas and pushed no metrics")]


NAME = "perf-producer-client"
"""What the performance test calls itself."""


@pytest.fixture(scope="module")
def broker() -> Iterator[TestBroker]:
    settings = {
        "ottla.metrics.listen": "127.0.0.1:0",
        "ottla.telemetry.metrics": "org.apache.kafka.producer.",
        "ottla.telemetry.interval.ms": "200",
        "quota.window.num": "2",
    }
    with TestBroker(settings) as started:
        yield started


@pytest.fixture
def here(broker: TestBroker) -> tuple[str, str]:
    return "--bootstrap-server", broker.bootstrap_servers


def _event(broker: TestBroker, name: str) -> float:
    with urlopen(f"http://{broker.metrics_address}/metrics", timeout=30) as reply:
        for line in reply.read().decode().splitlines():
            if line.startswith(f'ottla_events_total{{event="{name}"}}'):
                return float(line.split()[-1])
    return 0.0


def test_kafka_configs_sets_describes_and_removes_quotas(tools: JavaTools, here: tuple[str, str]) -> None:
    configs = partial(tools.run, "kafka-configs", *here)
    limits = ("--add-config", "producer_byte_rate=1024,request_percentage=25")
    configs("--alter", "--entity-type", "users", "--entity-name", "alice", *limits)
    configs("--alter", "--entity-type", "users", "--entity-default", "--add-config", "consumer_byte_rate=2048")
    both = ("--entity-type", "users", "--entity-name", "alice", "--entity-type", "clients", "--entity-name", "app")
    configs("--alter", *both, "--add-config", "consumer_byte_rate=4096")
    configs(
        *("--alter", "--entity-type", "ips", "--entity-name", "10.0.0.1"),
        *("--add-config", "connection_creation_rate=7"),
    )
    described = configs("--describe", "--entity-type", "users", "--entity-name", "alice")
    assert "Quota configs for user-principal 'alice' are " in described
    assert "producer_byte_rate=1024.0" in described
    assert "request_percentage=25.0" in described
    assert "consumer_byte_rate=4096.0" in configs("--describe", *both)
    assert "consumer_byte_rate=2048.0" in configs("--describe", "--entity-type", "users", "--entity-default")
    assert "connection_creation_rate=7.0" in configs("--describe", "--entity-type", "ips")
    configs(
        *("--alter", "--entity-type", "users", "--entity-name", "alice"),
        *("--delete-config", "producer_byte_rate,request_percentage"),
    )
    assert "1024" not in configs("--describe", "--entity-type", "users")


def test_a_producer_in_java_waits_as_it_is_told_and_pushes_the_metrics_that_it_is_asked_for(
    tools: JavaTools, broker: TestBroker, here: tuple[str, str], topic: str
) -> None:
    limit = ("--add-config", "producer_byte_rate=100000")
    tools.run("kafka-configs", *here, "--alter", "--entity-type", "clients", "--entity-name", NAME, *limit)
    load = ("--num-records", "500", "--record-size", "1000", "--throughput", "-1")
    options = ("--command-property", "batch.size=10000")
    begun = time.monotonic()
    printed = tools.run("kafka-producer-perf-test", *here, "--topic", topic, *load, *options)
    assert "500 records sent" in printed
    # Half a megabyte, of which a second's worth goes at once.
    assert time.monotonic() - begun > 3
    assert _event(broker, "throttled") > 0
    assert _event(broker, "telemetry_pushed") > 0
    assert _event(broker, "telemetry_refused") == 0
