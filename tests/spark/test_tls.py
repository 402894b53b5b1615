"""Options of security reach the connections of Spark's tasks: what they do is done here without Spark."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.certificates import Authority, written

from ottla.client.cluster import Cluster
from ottla.client.options import ClientOptions
from ottla.spark.connections import connected
from ottla.spark.options import SourceOptions
from ottla.spark.pipeline.copying import prepare_topics, target_client
from ottla.spark.pipeline.load import load
from ottla.spark.producers import ProducerPool
from ottla.spark.sink_options import SinkOptions
from ottla.testing import TestBroker


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tls")


@pytest.fixture(scope="module")
def authority(folder: Path) -> Authority:
    return Authority()


@pytest.fixture(scope="module")
def broker(folder: Path, authority: Authority) -> Iterator[TestBroker]:
    settings = {
        "listeners": "SSL://127.0.0.1:0",
        "ssl.keystore.location": written(folder, "broker.pem", authority.issue("broker").store),
        "ssl.truststore.location": written(folder, "ca.pem", authority.pem),
        "ssl.client.auth": "required",
    }
    with TestBroker(settings) as running:
        yield running


@pytest.fixture
def options(broker: TestBroker, authority: Authority) -> dict[str, str]:
    """As texts, which travel with a query."""
    identity = authority.issue("spark")
    return {
        "kafka.bootstrap.servers": broker.bootstrap_servers,
        "kafka.security.protocol": "SSL",
        "kafka.ssl.truststore.type": "PEM",
        "kafka.ssl.truststore.certificates": authority.pem.decode(),
        "kafka.ssl.keystore.type": "PEM",
        "kafka.ssl.keystore.certificate.chain": identity.chain.decode(),
        "kafka.ssl.keystore.key": identity.key.decode(),
    }


async def _topics(cluster: Cluster) -> list[str]:
    return sorted(topic.name or "" for topic in (await cluster.metadata(None)).topics)


def test_the_source_and_the_sink_connect(options: dict[str, str]) -> None:
    sink = SinkOptions.parse({**options, "topic": "orders"})
    pool = ProducerPool()
    pool.get(sink.producer)
    source = SourceOptions.parse({**options, "subscribe": "orders"}, streaming=False)
    assert isinstance(connected(source.client, _topics), list)
    pool.discard(sink.producer)


def test_files_will_do_too(options: dict[str, str], folder: Path, authority: Authority) -> None:
    files = {
        "kafka.bootstrap.servers": options["kafka.bootstrap.servers"],
        "kafka.security.protocol": "SSL",
        "kafka.ssl.truststore.location": str(folder / "ca.pem"),
        "kafka.ssl.keystore.location": written(folder, "spark.pem", authority.issue("spark").store),
    }
    source = SourceOptions.parse({**files, "subscribe": "orders"}, streaming=False)
    assert isinstance(connected(source.client, _topics), list)


def test_a_copy_takes_the_options_of_each_side(options: dict[str, str]) -> None:
    source = SourceOptions.parse({**options, "subscribe": "orders"}, streaming=False).client
    connected(source, _create)
    prepare_topics(source, target_client(options), ["copied"])
    assert "copied" in connected(source, _topics)


async def _create(cluster: Cluster) -> None:
    await cluster.topic("copied", create=True)


def test_a_sink_on_the_sources_cluster_has_its_security(tmp_path: Path, options: dict[str, str]) -> None:
    lines = "\n".join(f"'{name}' = '''{value}'''" for name, value in options.items() if "bootstrap" not in name)
    text = f"""
name = "copy-orders"
checkpoint = "checkpoint"
[source]
bootstrap_servers = "{options["kafka.bootstrap.servers"]}"
topics = ["orders"]
[source.options]
{lines}
[[sink]]
topic = "orders-again"
"""
    path = tmp_path / "pipeline.toml"
    path.write_text(text)
    spec = load(path)
    assert spec.sinks[0].options["kafka.security.protocol"] == "SSL"
    assert isinstance(SinkOptions.parse(spec.sinks[0].options).producer, ClientOptions)
