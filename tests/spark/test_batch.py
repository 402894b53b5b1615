"""`spark.read.format("ottla")` in a real Spark, against a real broker."""

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from ottla import sync
from ottla.client.types import TopicPartition
from ottla.testing import TestBroker

NewTopicName = Callable[..., str]
Fill = Callable[..., None]
Read = Callable[..., DataFrame]


@pytest.fixture
def read(spark: SparkSession, options: dict[str, str]) -> Read:
    """A DataFrame of a topic, with options; names that begin with `kafka` are written with underscores."""

    def make(**given: Any) -> DataFrame:
        named = {name.replace("_", ".") if name.startswith("kafka_") else name: given[name] for name in given}
        reader = spark.read.format("ottla").options(**{**options, **named})
        return reader.load()

    return make


def values(found: DataFrame) -> list[bytes | None]:
    rows = found.select("partition", "offset", "value").collect()
    return [None if row.value is None else bytes(row.value) for row in sorted(rows, key=lambda row: row[:2])]


def failure(found: Callable[[], Any]) -> str:
    """What a user is told, which must not take long."""
    started = time.monotonic()
    with pytest.raises(Exception) as caught:
        found()
    assert time.monotonic() - started < 20
    return str(caught.value)


# Rows.


def test_a_record_is_a_row_of_the_official_connectors_columns(
    read: Read, new_topic: NewTopicName, producer: sync.Producer
) -> None:
    topic = new_topic(2)
    headers = [("trace", b"a1"), ("empty", None)]
    producer.send(topic, b"two", key=b"k", partition=1, timestamp_ms=1_700_000_000_123, headers=headers).get()
    producer.send(topic, None, partition=0, timestamp_ms=1_700_000_000_456).get()
    found = read(subscribe=topic, includeHeaders="true")
    assert found.schema.simpleString() == (
        "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,timestamp:timestamp,timestampType:int,"
        "headers:array<struct<key:string,value:binary>>>"
    )
    none, two = sorted(found.collect(), key=lambda row: row.partition)
    assert (none.key, none.value, none.topic, none.partition, none.offset) == (None, None, topic, 0, 0)
    assert none.headers is None, "no headers are null"
    assert (bytes(two.key), bytes(two.value), two.partition, two.offset, two.timestampType) == (b"k", b"two", 1, 0, 0)
    assert two.timestamp.astimezone(UTC) == datetime(2023, 11, 14, 22, 13, 20, 123_000, tzinfo=UTC)
    assert [(one.key, one.value and bytes(one.value)) for one in two.headers] == [("trace", b"a1"), ("empty", None)]


def test_timestamps_of_the_broker_are_marked(read: Read, new_topic: NewTopicName, fill: Fill) -> None:
    topic = new_topic(message_timestamp_type="LogAppendTime")
    fill(topic, [b"one"])
    assert [row.timestampType for row in read(subscribe=topic).collect()] == [1]


def test_headers_are_no_column_unless_asked_for(read: Read, new_topic: NewTopicName) -> None:
    assert "headers" not in read(subscribe=new_topic()).columns


def test_a_narrower_schema_leaves_columns_out(
    spark: SparkSession, options: dict[str, str], new_topic: NewTopicName, fill: Fill
) -> None:
    topic = new_topic()
    fill(topic, [b"one", b"two"])
    reader = spark.read.format("ottla").options(**options, subscribe=topic)
    assert reader.schema("timestampType int, value binary").load().collect() == [(0, b"one"), (0, b"two")]
    assert reader.schema("topic string").load().count() == 2


def test_a_schema_with_another_type_is_refused(
    spark: SparkSession, options: dict[str, str], new_topic: NewTopicName
) -> None:
    reader = spark.read.format("ottla").options(**options, subscribe=new_topic())
    told = failure(reader.schema("value string").load().collect)
    assert "column value is string in the schema, but binary in topics; leave the type, and cast it in a query" in told


def test_an_empty_topic_has_no_rows(read: Read, new_topic: NewTopicName) -> None:
    assert read(subscribe=new_topic(3)).collect() == []


def test_sql_finds_the_source_by_its_name(
    spark: SparkSession, options: dict[str, str], new_topic: NewTopicName, fill: Fill
) -> None:
    topic = new_topic()
    fill(topic, [b"one"])
    listed = ", ".join(f"'{name}' '{value}'" for name, value in {**options, "subscribe": topic}.items())
    spark.sql(f"CREATE TEMPORARY VIEW orders_view USING ottla OPTIONS ({listed})")
    try:
        assert spark.sql("SELECT CAST(value AS STRING) FROM orders_view").collect() == [("one",)]
    finally:
        spark.catalog.dropTempView("orders_view")


def test_large_topics_come_whole(read: Read, new_topic: NewTopicName, producer: sync.Producer) -> None:
    topic = new_topic(3)
    for index in range(60_000):
        producer.send(topic, b"%d" % index, partition=index % 3)
    producer.flush()
    found = read(subscribe=topic).selectExpr("CAST(CAST(value AS STRING) AS LONG) AS number", "offset", "partition")
    row = found.selectExpr(
        "count(*)", "count(DISTINCT number)", "sum(number)", "min(number = offset * 3 + partition)"
    ).first()
    assert row == (60_000, 60_000, 60_000 * 59_999 // 2, True)


# Which topics.


def test_topics_by_name_by_pattern_and_by_partition(read: Read, new_topic: NewTopicName, fill: Fill) -> None:
    one, two, other = new_topic(2, prefix="some"), new_topic(prefix="some"), new_topic(prefix="other")
    for topic, value in ((one, b"1"), (two, b"2"), (other, b"3")):
        fill(topic, [value])
    fill(one, [b"1b"], partition=1)
    by_name = read(subscribe=f"{one}, {other}")
    assert sorted(values(by_name), key=str) == [b"1", b"1b", b"3"]
    assert set(values(read(subscribePattern="some-.*"))) >= {b"1", b"1b", b"2"}
    assert values(read(subscribePattern="ome-.*")) == [], "a pattern matches whole names"
    assert values(read(assign=json.dumps({one: [1]}))) == [b"1b"]


def test_a_topic_that_does_not_exist_is_named(read: Read) -> None:
    told = failure(lambda: read(subscribe="nowhere").count())
    assert "there is no topic 'nowhere'; create the topic first, or check its name" in told


def test_a_partition_that_does_not_exist_is_named(read: Read, new_topic: NewTopicName) -> None:
    topic = new_topic(2)
    told = failure(lambda: read(assign=json.dumps({topic: [1, 2]})).count())
    assert f"option assign names partitions that do not exist: {topic}-2" in told


def test_a_broker_that_does_not_answer_is_named(spark: SparkSession) -> None:
    reader = spark.read.format("ottla").options(**{"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "orders"})
    told = failure(reader.load().count)
    assert "cannot connect to 127.0.0.1:1" in told
    assert "see whether a broker runs there, and whether the address is right" in told


def test_a_wrong_option_is_told_when_the_dataframe_is_made(read: Read) -> None:
    with pytest.raises(AnalysisException, match="there is no option startingoffset; did you mean startingOffsets"):
        read(subscribe="orders", startingOffset="earliest")
    with pytest.raises(AnalysisException, match="no topic is chosen; set one of the options subscribe"):
        read()


def test_security_that_there_is_not_is_named(read: Read) -> None:
    with pytest.raises(AnalysisException, match=r"kafka.security.protocol is 'TLS'; it must be one of PLAINTEXT, SSL"):
        read(subscribe="orders", kafka_security_protocol="TLS")


# From where to where.


@pytest.fixture
def numbered(new_topic: NewTopicName, producer: sync.Producer) -> str:
    """A topic of two partitions with ten records each, a second between them."""
    topic = new_topic(2)
    for index in range(10):
        for partition in (0, 1):
            producer.send(topic, b"%d-%d" % (partition, index), partition=partition, timestamp_ms=1_000 * index)
    producer.flush()
    return topic


def expected(first: range, second: range) -> list[bytes]:
    return [b"%d-%d" % (partition, index) for partition, found in enumerate((first, second)) for index in found]


@pytest.mark.parametrize(
    ("given", "first", "second"),
    [
        ({}, range(10), range(10)),
        ({"startingOffsets": "earliest", "endingOffsets": "latest"}, range(10), range(10)),
        ({"startingOffsets": {"0": 3, "1": -2}}, range(3, 10), range(10)),
        ({"startingOffsets": {"0": 3, "1": 9}, "endingOffsets": {"0": 5, "1": -1}}, range(3, 5), range(9, 10)),
        ({"startingOffsets": {"0": 5, "1": 0}, "endingOffsets": {"0": 5, "1": 1}}, range(0), range(1)),
        ({"startingTimestamp": "4000"}, range(4, 10), range(4, 10)),
        ({"startingTimestamp": "3500", "startingOffsets": "earliest"}, range(4, 10), range(4, 10)),
        ({"startingOffsetsByTimestamp": {"0": 8000, "1": 1}}, range(8, 10), range(1, 10)),
        ({"startingOffsetsByTimestamp": {"0": 1, "1": 2}, "startingTimestamp": "9000"}, range(9, 10), range(9, 10)),
        ({"endingTimestamp": "2000"}, range(2), range(2)),
        ({"endingTimestamp": "99000"}, range(10), range(10)),
        ({"endingOffsetsByTimestamp": {"0": 1000, "1": 99000}, "endingOffsets": "latest"}, range(1), range(10)),
        ({"startingTimestamp": "99000", "startingOffsetsByTimestampStrategy": "latest"}, range(0), range(0)),
    ],
)
def test_where_reading_begins_and_ends(
    read: Read, numbered: str, given: dict[str, Any], first: range, second: range
) -> None:
    options = {
        name: json.dumps({numbered: value}) if isinstance(value, dict) else value for name, value in given.items()
    }
    assert values(read(subscribe=numbered, **options)) == expected(first, second)


def test_a_time_after_the_last_record_is_an_error(read: Read, numbered: str) -> None:
    told = failure(lambda: read(subscribe=numbered, startingTimestamp="99000").count())
    assert f"option startingTimestamp: no record of {numbered}-0, {numbered}-1 is at or after 99000 ms" in told
    assert "set startingOffsetsByTimestampStrategy to latest" in told


def test_offsets_must_be_given_for_each_partition(read: Read, numbered: str) -> None:
    given = json.dumps({numbered: {"0": 1}, "strange": {"0": 1}})
    told = failure(lambda: read(subscribe=numbered, startingOffsets=given).count())
    assert f"option startingOffsets says nothing about {numbered}-1 and speaks of strange-0, which are not read" in told


def test_a_beginning_after_the_end_is_an_error(read: Read, numbered: str) -> None:
    start, end = json.dumps({numbered: {"0": 7, "1": 99}}), json.dumps({numbered: {"0": 5, "1": -1}})
    told = failure(lambda: read(subscribe=numbered, startingOffsets=start, endingOffsets=end).count())
    assert "option startingOffsets begins after endingOffsets or the last record: " in told
    assert f"{numbered}-0 from 7 to 5; {numbered}-1 from 99 to 10; set it to offsets before that" in told


def test_latest_is_no_beginning_of_a_batch(read: Read, numbered: str) -> None:
    told = failure(lambda: read(subscribe=numbered, startingOffsets="latest").count())
    assert "option startingOffsets is latest (-1), so that a batch query would find nothing" in told


def test_offsets_that_have_expired_are_named_or_skipped(read: Read, numbered: str, admin: sync.Admin) -> None:
    admin.delete_records({TopicPartition(numbered, 0): 4})
    start = json.dumps({numbered: {"0": 2, "1": 8}})
    told = failure(lambda: read(subscribe=numbered, startingOffsets=start).count())
    assert f"{numbered}-0 begins at 4, but offsets 2 to 10 were to be read" in told
    assert "To go on with what there is, set option failOnDataLoss to false" in told
    found = read(subscribe=numbered, startingOffsets=start, failOnDataLoss="false")
    assert values(found) == expected(range(4, 10), range(8, 10))


def test_an_end_that_is_not_there_yet_is_named(read: Read, numbered: str) -> None:
    end = json.dumps({numbered: {"0": 12, "1": 8}})
    quick = {"fetchOffset.numRetries": "1", "fetchOffset.retryIntervalMs": "10"}
    told = failure(lambda: read(subscribe=numbered, endingOffsets=end, **quick).count())
    assert f"{numbered}-0 ends at 10, but offsets 0 to 12 were to be read" in told
    found = read(subscribe=numbered, endingOffsets=end, failOnDataLoss="false", **quick)
    assert values(found) == expected(range(10), range(8))


# Tasks.


def test_partitions_are_cut_as_options_say(read: Read, numbered: str) -> None:
    found = read(subscribe=numbered, minPartitions="5")
    assert found.rdd.getNumPartitions() == 5
    assert values(found) == expected(range(10), range(10))
    found = read(subscribe=numbered, maxRecordsPerPartition="3")
    assert found.rdd.getNumPartitions() == 8
    assert values(found) == expected(range(10), range(10))


def test_many_small_partitions_share_tasks(read: Read, new_topic: NewTopicName, producer: sync.Producer) -> None:
    topic = new_topic(60)
    for partition in range(60):
        producer.send(topic, b"%d" % partition, partition=partition)
    producer.flush()
    found = read(subscribe=topic)
    assert found.rdd.getNumPartitions() < 60
    assert values(found) == [b"%d" % partition for partition in range(60)]


def test_a_query_that_stops_early_leaves_the_worker_in_order(read: Read, numbered: str) -> None:
    assert len(read(subscribe=numbered).limit(3).collect()) == 3
    assert read(subscribe=numbered).count() == 20


def test_options_of_the_client_reach_the_tasks(read: Read, numbered: str) -> None:
    found = read(
        subscribe=numbered,
        kafka_isolation_level="read_committed",
        kafka_max_partition_fetch_bytes="100",
        kafka_fetch_max_bytes="200",
        kafka_check_crcs="true",
        kafka_client_id="me",
        kafka_unknown_thing="1",
    )
    assert values(found) == expected(range(10), range(10))


def test_records_that_vanish_between_planning_and_reading_are_told(
    read: Read, numbered: str, admin: sync.Admin, broker: TestBroker
) -> None:
    strict = read(subscribe=numbered).rdd
    lenient = read(subscribe=numbered, failOnDataLoss="false").rdd
    assert strict.getNumPartitions() == lenient.getNumPartitions() == 2, "now they are planned"
    admin.delete_records({TopicPartition(numbered, 1): 6})
    assert f"{numbered}-1 begins at 6, but offsets 0 to 10 were to be read" in failure(strict.count)
    assert sorted(bytes(row.value) for row in lenient.collect()) == expected(range(10), range(6, 10))
