"""Code that was written for the official connector, as it is in its documentation, without its jar."""

import shutil
import subprocess
import zipfile
from collections.abc import Callable

import pytest
from pyspark.sql import SparkSession
from tests.spark.kafka_jar import compiled

from ottla.spark.kafka_format import enable_kafka_format, kafka_jar
from ottla.testing import TestBroker

NewTopicName = Callable[..., str]


def test_batches_are_written_and_read(spark: SparkSession, broker: TestBroker, new_topic: NewTopicName) -> None:
    servers, topic = broker.bootstrap_servers, new_topic(2)
    df = spark.range(10).selectExpr("CAST(id AS STRING) AS key", "CONCAT('value-', id) AS value")

    df.selectExpr("CAST(key AS STRING)", "CAST(value AS STRING)").write.format("kafka").option(
        "kafka.bootstrap.servers", servers
    ).option("topic", topic).save()

    read = (
        spark.read.format("kafka")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("endingOffsets", "latest")
        .load()
    )
    found = read.selectExpr("CAST(key AS STRING)", "CAST(value AS STRING)").collect()
    assert sorted(map(tuple, found)) == [(str(number), f"value-{number}") for number in range(10)]


def test_streams_are_read_and_written(
    spark: SparkSession, broker: TestBroker, new_topic: NewTopicName, fill: Callable[..., None], checkpoint: str
) -> None:
    servers, source, sink = broker.bootstrap_servers, new_topic(2), new_topic()
    fill(source, [b"one", b"two"], partition=1)
    df = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", source)
        .option("startingOffsets", "earliest")
        .load()
    )
    query = (
        df.selectExpr("CAST(key AS STRING)", "CAST(value AS STRING)")
        .writeStream.format("kafka")
        .option("kafka.bootstrap.servers", servers)
        .option("topic", sink)
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(60)
    written = spark.read.format("kafka").option("kafka.bootstrap.servers", servers).option("subscribe", sink).load()
    assert [bytes(row.value) for row in written.orderBy("offset").collect()] == [b"one", b"two"]


def test_a_query_in_output_mode_update_adds_what_has_changed(
    spark: SparkSession, options: dict[str, str], new_topic: NewTopicName, fill: Callable[..., None], checkpoint: str
) -> None:
    source, sink = new_topic(), new_topic()
    fill(source, [b"a", b"b", b"a"])
    rows = spark.readStream.format("kafka").options(**options, subscribe=source, startingOffsets="earliest").load()
    counted = rows.groupBy("value").count().selectExpr("value AS key", "cast(count AS STRING) AS value")
    writing = counted.writeStream.format("kafka").outputMode("update").trigger(availableNow=True)
    query = writing.options(**options, topic=sink, checkpointLocation=checkpoint).start()
    assert query.awaitTermination(60)
    written = spark.read.format("kafka").options(**options, subscribe=sink).load().collect()
    assert sorted((bytes(row.key), bytes(row.value)) for row in written) == [(b"a", b"2"), (b"b", b"1")]


def test_sql_reads_it(
    spark: SparkSession, broker: TestBroker, new_topic: NewTopicName, fill: Callable[..., None]
) -> None:
    topic = new_topic()
    fill(topic, [b"one"])
    spark.sql(
        "CREATE TEMPORARY VIEW orders USING kafka "
        f"OPTIONS ('kafka.bootstrap.servers' '{broker.bootstrap_servers}', subscribe '{topic}')"
    )
    assert spark.sql("SELECT CAST(value AS STRING) FROM orders").collect()[0][0] == "one"
    spark.catalog.dropTempView("orders")


@pytest.mark.parametrize("mode", ["append", "errorifexists"])
def test_the_modes_of_the_official_connector_are_taken(
    spark: SparkSession, broker: TestBroker, new_topic: NewTopicName, mode: str
) -> None:
    writing = spark.sql("SELECT 'v' AS value").write.format("kafka").option("topic", new_topic())
    writing.option("kafka.bootstrap.servers", broker.bootstrap_servers).mode(mode).save()


@pytest.mark.parametrize("mode", ["overwrite", "ignore"])
def test_other_modes_are_refused(spark: SparkSession, broker: TestBroker, mode: str) -> None:
    writing = spark.sql("SELECT 'v' AS value").write.format("kafka").option("topic", "kept")
    with pytest.raises(Exception, match="records are only ever added to a topic"):
        writing.option("kafka.bootstrap.servers", broker.bootstrap_servers).mode(mode).save()


def test_what_is_wrong_is_said_as_for_ottlas_own_format(spark: SparkSession, broker: TestBroker) -> None:
    writing = spark.sql("SELECT 'v' AS value").write.format("kafka")
    with pytest.raises(Exception, match="no topic: set option topic, or add a column 'topic'"):
        writing.option("kafka.bootstrap.servers", broker.bootstrap_servers).save()


def test_the_jar_is_added_to_those_of_the_user() -> None:
    builder = SparkSession.Builder().config("spark.jars", "/some/other.jar")
    enable_kafka_format(enable_kafka_format(builder))
    assert builder._options["spark.jars"] == f"/some/other.jar,{kafka_jar()}"


def test_the_jar_holds_what_its_source_says() -> None:
    javac = shutil.which("javac")
    if javac is None or " 17." not in subprocess.run([javac, "-version"], capture_output=True, text=True).stdout:
        pytest.skip("NO javac 17 ON THE PATH: the jar is not compared with its source")
    with zipfile.ZipFile(kafka_jar()) as jar:
        held = {name: jar.read(name) for name in jar.namelist()}
    assert held == compiled(), "run `python -m tests.spark.kafka_jar`"
