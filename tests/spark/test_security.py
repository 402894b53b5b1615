"""Spark jobs over TLS, with a login or a certificate: in batches and as streams, and with a wrong password."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from tests.certificates import Authority, written

from ottla import sync
from ottla.client.admin import ScramMechanism, UserScramCredentialUpsertion
from ottla.testing import TestBroker

PASSWORD, WRONG_PASSWORD = "wonder-4711", "wander-0815"
SOON_S = 20.0
"""Spark takes some seconds over anything, on a slow machine; a client that tried again would take minutes."""


def scram(password: str) -> str:
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    return f'{module} required username="alice" password="{password}";'


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory, authority: Authority) -> Iterator[TestBroker]:
    """A broker with a user alice, a listener that asks for a login and one that asks for a certificate."""
    folder = tmp_path_factory.mktemp("security")
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:0,SASL_SSL://127.0.0.1:0,SSL://127.0.0.1:0",
        "sasl.enabled.mechanisms": "SCRAM-SHA-512",
        "ssl.keystore.location": written(folder, "broker.pem", authority.issue("broker").store),
        "listener.name.ssl.ssl.client.auth": "required",
        "listener.name.ssl.ssl.truststore.location": written(folder, "ca.pem", authority.pem),
        "authorizer.class.name": "ottla",
        "super.users": "User:ANONYMOUS;User:alice;User:CN=alice,O=Shop",
    }
    with TestBroker(settings) as running:
        with sync.Admin(running.bootstrap_servers) as admin:
            alice = UserScramCredentialUpsertion("alice", ScramMechanism.SCRAM_SHA_512, PASSWORD)
            admin.alter_user_scram_credentials([alice])
        yield running


@pytest.fixture
def secure(request: pytest.FixtureRequest, broker: TestBroker, authority: Authority) -> dict[str, str]:
    """Options of the security protocol that a test asks for, as texts, which travel to the tasks."""
    protocol: str = request.param
    found = {
        "kafka.bootstrap.servers": str(broker.endpoints[protocol]),
        "kafka.security.protocol": protocol,
        "kafka.ssl.truststore.type": "PEM",
        "kafka.ssl.truststore.certificates": authority.pem.decode(),
    }
    if protocol == "SASL_SSL":
        return {**found, "kafka.sasl.mechanism": "SCRAM-SHA-512", "kafka.sasl.jaas.config": scram(PASSWORD)}
    identity = authority.issue("alice")
    return {
        **found,
        "kafka.ssl.keystore.type": "PEM",
        "kafka.ssl.keystore.certificate.chain": identity.chain.decode(),
        "kafka.ssl.keystore.key": identity.key.decode(),
    }


each_protocol = pytest.mark.parametrize("secure", ["SASL_SSL", "SSL"], indirect=True)
with_login = pytest.mark.parametrize("secure", ["SASL_SSL"], indirect=True)


def values(spark: SparkSession, options: dict[str, str], topic: str) -> list[bytes]:
    frame = spark.read.format("ottla").options(**options, subscribe=topic).load()
    return sorted(bytes(row.value) for row in frame.select("value").collect())


@each_protocol
def test_batches_are_written_and_read_and_a_stream_copies_them(
    spark: SparkSession, secure: dict[str, str], new_topic: Callable[..., str], checkpoint: str
) -> None:
    first, second = new_topic(2), new_topic(2)
    numbers = spark.range(100).selectExpr("CAST(id AS STRING) AS value")
    numbers.write.format("ottla").mode("append").options(**secure, topic=first).save()
    expected = sorted(b"%d" % number for number in range(100))
    assert values(spark, secure, first) == expected
    stream = spark.readStream.format("ottla").options(**secure, subscribe=first, startingOffsets="earliest").load()
    copying = stream.select("key", "value").writeStream.format("ottla").options(**secure, topic=second)
    query = copying.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
    assert query.awaitTermination(120)
    assert query.exception() is None
    assert values(spark, secure, second) == expected


@with_login
def test_a_wrong_password_fails_reading_writing_and_streaming_soon_and_is_not_shown(
    spark: SparkSession, secure: dict[str, str], new_topic: Callable[..., str], checkpoint: str, tmp_path: Path
) -> None:
    topic = new_topic()
    wrong = {**secure, "kafka.sasl.jaas.config": scram(WRONG_PASSWORD)}
    numbers = spark.range(1).selectExpr("CAST(id AS STRING) AS value")

    def streaming() -> None:
        stream = spark.readStream.format("ottla").options(**wrong, subscribe=topic).load()
        writer = stream.writeStream.format("noop").option("checkpointLocation", checkpoint)
        writer.trigger(availableNow=True).start().awaitTermination(120)

    for job in (
        lambda: values(spark, wrong, topic),
        lambda: numbers.write.format("ottla").mode("append").options(**wrong, topic=topic).save(),
        streaming,
    ):
        began = time.monotonic()
        with pytest.raises(PySparkException) as failed:
            job()
        said = str(failed.value)
        assert "refuses a login as 'alice' with SCRAM-SHA-512" in said
        assert "check user name, password and mechanism" in said
        assert WRONG_PASSWORD not in said
        assert time.monotonic() - began < SOON_S
    assert values(spark, secure, topic) == []
    written_down = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert written_down
    assert not [data for data in written_down if WRONG_PASSWORD.encode() in data]
