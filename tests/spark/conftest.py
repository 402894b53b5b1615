"""One Spark and one broker for all tests of a module."""

import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from ottla import sync
from ottla.client.admin import NewTopic
from ottla.testing import TestBroker

pytest.importorskip("pyspark")

from pyspark.sql import SparkSession

from ottla.spark.kafka_format import enable_kafka_format

Records = Sequence[bytes | None]


@pytest.fixture(scope="session")
def spark_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Spark in this process, on two cores."""
    folder = tmp_path_factory.mktemp("spark")
    patch = pytest.MonkeyPatch()
    patch.setenv("PYSPARK_PYTHON", sys.executable)
    patch.setenv("PYSPARK_DRIVER_PYTHON", sys.executable)
    session = (
        # Code for the official connector runs in the same session.
        enable_kafka_format(SparkSession.builder)
        .master("local[2]")
        .appName("ottla-tests")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .config("spark.local.dir", str(folder / "local"))
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()
    patch.undo()


@pytest.fixture
def spark(spark_session: SparkSession) -> Iterator[SparkSession]:
    """Spark, with no query left running afterwards."""
    yield spark_session
    for query in spark_session.streams.active:
        query.stop()


@pytest.fixture(scope="module")
def broker() -> Iterator[TestBroker]:
    """A broker for the tests of a module."""
    with TestBroker() as broker:
        yield broker


@pytest.fixture(scope="module")
def admin(broker: TestBroker) -> Iterator[sync.Admin]:
    """For topics."""
    with sync.Admin(bootstrap_servers=broker.bootstrap_servers) as admin:
        yield admin


@pytest.fixture(scope="module")
def producer(broker: TestBroker) -> Iterator[sync.Producer]:
    """For records."""
    with sync.Producer(bootstrap_servers=broker.bootstrap_servers) as producer:
        yield producer


@pytest.fixture
def new_topic(admin: sync.Admin) -> Callable[..., str]:
    """Makes a topic with a name of its own."""

    def make(partitions: int = 1, prefix: str = "orders", **configs: str) -> str:
        name = f"{prefix}-{uuid4().hex[:8]}"
        given = {key.replace("_", "."): value for key, value in configs.items()}
        # Records of tests are of any time, and on a slow machine tests last until brokers look for old ones.
        given.setdefault("retention.ms", "-1")
        admin.create_topics([NewTopic(name, num_partitions=partitions, topic_configs=given)])
        return name

    return make


@pytest.fixture
def fill(producer: sync.Producer) -> Callable[..., None]:
    """Sends values to a partition of a topic, and waits until they are there."""

    def send(topic: str, values: Records, partition: int = 0, **options: Any) -> None:
        for delivery in [producer.send(topic, value, partition=partition, **options) for value in values]:
            delivery.get()

    return send


@pytest.fixture
def options(broker: TestBroker) -> dict[str, str]:
    """What every query needs."""
    return {"kafka.bootstrap.servers": broker.bootstrap_servers}


@pytest.fixture
def checkpoint(tmp_path: Path) -> str:
    """Where a query keeps its progress."""
    return str(tmp_path / "checkpoint")
