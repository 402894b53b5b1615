"""`df.write.format("ottla")` and `df.writeStream.format("ottla")` in a real Spark, against a real broker."""

import time
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from kafka.partitioner.default import murmur2
from pyspark.sql import DataFrame, SparkSession

from ottla import sync
from ottla.testing import TestBroker

NewTopicName = Callable[..., str]
Write = Callable[..., None]
Records = Callable[..., list[dict[str, Any]]]

HEADERS = (
    "array(named_struct('key', 'trace', 'value', cast('a1' AS BINARY)), named_struct('key', 'none', 'value', NULL))"
)


@pytest.fixture
def write(options: dict[str, str]) -> Write:
    """Writes a DataFrame, with options."""

    def save(rows: DataFrame, given: Mapping[str, str] | None = None, **named: str) -> None:
        rows.write.format("ottla").options(**{**options, **(given or {}), **named}).mode("append").save()

    return save


@pytest.fixture
def records(broker: TestBroker) -> Records:
    """What is in a topic."""

    def read(topic: str, *columns: str) -> list[dict[str, Any]]:
        table = sync.read_table(topic, bootstrap_servers=broker.bootstrap_servers, columns=columns or None)
        found: list[dict[str, Any]] = table.to_pylist()
        return found

    return read


def failure(action: Callable[[], Any]) -> str:
    """What a user is told, which must not take long."""
    started = time.monotonic()
    with pytest.raises(Exception) as caught:
        action()
    assert time.monotonic() - started < 20
    return str(caught.value)


# Rows.


def test_a_row_is_a_record(spark: SparkSession, new_topic: NewTopicName, write: Write, records: Records) -> None:
    topic = new_topic()
    rows = spark.sql(
        f"SELECT 'k' AS key, cast('v' AS BINARY) AS value, {HEADERS} AS headers UNION ALL SELECT NULL, NULL, NULL"
    )
    write(rows.coalesce(1), topic=topic)
    assert records(topic, "key", "value", "headers") == [
        {
            "key": b"k",
            "value": b"v",
            "headers": [{"key": "trace", "value": b"a1"}, {"key": "none", "value": None}],
        },
        {"key": None, "value": None, "headers": []},
    ]


def test_keys_go_where_the_java_client_sends_them(
    spark: SparkSession, new_topic: NewTopicName, write: Write, records: Records
) -> None:
    topic = new_topic(5)
    write(spark.range(300).selectExpr("concat('key-', id) AS key", "'v' AS value"), topic=topic)
    found = records(topic, "key", "partition")
    assert len(found) == 300
    for row in found:
        assert row["partition"] == (murmur2(row["key"]) & 0x7FFFFFFF) % 5


def test_a_partition_that_is_named_comes_before_the_key(
    spark: SparkSession, new_topic: NewTopicName, write: Write, records: Records
) -> None:
    topic = new_topic(3)
    rows = spark.sql(
        "SELECT 'a' AS key, 'named' AS value, 2 AS partition UNION ALL SELECT 'a', 'named', 0 "
        "UNION ALL SELECT 'a', 'by key', NULL"
    )
    write(rows, topic=topic)
    found = [(row["value"], row["partition"]) for row in records(topic, "value", "partition")]
    assert sorted(found) == [
        (b"by key", (murmur2(b"a") & 0x7FFFFFFF) % 3),
        (b"named", 0),
        (b"named", 2),
    ]


def test_each_row_goes_to_the_topic_that_it_names_unless_the_option_names_one(
    spark: SparkSession, new_topic: NewTopicName, write: Write, records: Records
) -> None:
    one, other, option = new_topic(), new_topic(), new_topic()
    rows = spark.range(100).selectExpr("cast(id AS STRING) AS value", f"if(id % 2 = 0, '{one}', '{other}') AS topic")
    write(rows)
    assert sorted(int(row["value"]) for row in records(one, "value")) == list(range(0, 100, 2))
    assert sorted(int(row["value"]) for row in records(other, "value")) == list(range(1, 100, 2))
    write(rows, topic=option)
    assert len(records(option, "value")) == 100
    assert len(records(one, "value")) == 50


def test_a_time_is_kept_only_if_that_is_asked_for(
    spark: SparkSession, new_topic: NewTopicName, write: Write, records: Records
) -> None:
    topic, kept = new_topic(), new_topic()
    rows = spark.sql(
        "SELECT 'then' AS value, timestamp_millis(1700000000123) AS timestamp UNION ALL SELECT 'now', NULL"
    )
    began_ms = time.time() * 1000
    write(rows, topic=topic)
    assert all(row["timestamp"].timestamp() * 1000 >= began_ms - 1 for row in records(topic, "timestamp"))
    write(rows, topic=kept, includeTimestamp="true")
    found = {row["value"]: row["timestamp"].timestamp() * 1000 for row in records(kept, "value", "timestamp")}
    assert round(found[b"then"]) == 1_700_000_000_123
    assert found[b"now"] >= began_ms - 1


def test_many_rows_arrive_once_each_and_in_the_order_of_their_partition(
    spark: SparkSession, new_topic: NewTopicName, write: Write, records: Records
) -> None:
    topic = new_topic(4)
    rows = spark.range(0, 50_000, numPartitions=1).selectExpr(
        "cast(id % 7 AS STRING) AS key", "cast(id AS STRING) AS value"
    )
    write(rows, {"kafka.compression.type": "lz4", "kafka.batch.size": "4096"}, topic=topic)
    numbers: dict[bytes, list[int]] = {}
    for row in records(topic, "key", "value"):
        numbers.setdefault(row["key"], []).append(int(row["value"]))
    assert sorted(number for run in numbers.values() for number in run) == list(range(50_000))
    assert all(run == sorted(run) for run in numbers.values())


def test_a_topic_is_created_if_the_broker_does_so(spark: SparkSession, write: Write, records: Records) -> None:
    write(spark.sql("SELECT 'v' AS value"), topic="not-there-before")
    assert [row["value"] for row in records("not-there-before", "value")] == [b"v"]


# Errors.


@pytest.mark.parametrize(
    ("select", "given", "said"),
    [
        ("SELECT 'v' AS value", {}, "no topic: set option topic, or add a column 'topic'"),
        ("SELECT 1 AS value", {"topic": "t"}, "column 'value' is of type int; it must be string or binary"),
        ("SELECT 'v' AS value, cast(NULL AS STRING) AS topic", {}, "null topic: a row has no topic"),
    ],
)
def test_what_is_wrong_with_rows_and_options_is_said(
    spark: SparkSession, write: Write, select: str, given: dict[str, str], said: str
) -> None:
    assert said in failure(lambda: write(spark.sql(select), given))


def test_a_topic_is_not_overwritten(spark: SparkSession, options: dict[str, str]) -> None:
    rows = spark.sql("SELECT 'v' AS value").write.format("ottla").options(**options, topic="kept")
    assert "records are only ever added to a topic; use mode append" in failure(rows.mode("overwrite").save)
    # Spark's own words. It has no such mode for sources in Python.
    assert 'Please use either the "Append"' in failure(rows.mode("errorifexists").save)


def test_a_topic_that_does_not_exist_is_named(spark: SparkSession, write: Write) -> None:
    with TestBroker({"auto.create.topics.enable": "false"}) as broker:
        given = {"kafka.bootstrap.servers": broker.bootstrap_servers}
        said = failure(lambda: write(spark.sql("SELECT 'v' AS value"), given, topic="nowhere"))
    assert "there is no topic 'nowhere'; create the topic first, or check its name" in said


# Streams.


def test_a_query_writes_every_row_and_goes_on_after_a_restart(
    spark: SparkSession,
    new_topic: NewTopicName,
    fill: Callable[..., None],
    options: dict[str, str],
    checkpoint: str,
    records: Records,
) -> None:
    source, sink = new_topic(2), new_topic(2)

    def run() -> None:
        rows = spark.readStream.format("ottla").options(**options, subscribe=source, startingOffsets="earliest").load()
        query = (
            rows.selectExpr("key", "upper(cast(value AS STRING)) AS value", f"'{sink}' AS topic")
            .writeStream.format("ottla")
            .options(**options, checkpointLocation=checkpoint)
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(60)
        assert query.exception() is None

    fill(source, [b"a", b"b"], partition=0)
    fill(source, [b"c"], partition=1)
    run()
    assert sorted(row["value"] for row in records(sink, "value")) == [b"A", b"B", b"C"]
    fill(source, [b"d"], partition=1)
    run()
    assert sorted(row["value"] for row in records(sink, "value")) == [b"A", b"B", b"C", b"D"]


def test_aggregates_are_written_whole_in_output_mode_complete(
    spark: SparkSession,
    new_topic: NewTopicName,
    fill: Callable[..., None],
    options: dict[str, str],
    checkpoint: str,
    records: Records,
) -> None:
    source, sink = new_topic(), new_topic()
    fill(source, [b"a", b"b", b"a"])
    rows = spark.readStream.format("ottla").options(**options, subscribe=source, startingOffsets="earliest").load()
    counted = rows.groupBy("value").count().selectExpr("value AS key", "cast(count AS STRING) AS value")
    writing = counted.writeStream.format("ottla").outputMode("complete").trigger(availableNow=True)
    query = writing.options(**options, topic=sink, checkpointLocation=checkpoint).start()
    assert query.awaitTermination(60)
    assert {row["key"]: row["value"] for row in records(sink, "key", "value")} == {b"a": b"2", b"b": b"1"}


def test_a_query_that_cannot_write_says_why(spark: SparkSession, options: dict[str, str], checkpoint: str) -> None:
    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 5).load()
    query = rows.writeStream.format("ottla").options(**options, checkpointLocation=checkpoint, topic="t").start()
    said = failure(lambda: query.awaitTermination(60))
    assert "column 'value' is of type bigint; it must be string or binary" in said
