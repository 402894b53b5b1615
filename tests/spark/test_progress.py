"""Groups are told how far queries are, and queries tell how far behind they are."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sql

from ottla import sync
from ottla.client.options import ClientOptions
from ottla.client.types import TopicPartition
from ottla.spark.options import SourceOptions
from ottla.spark.progress import CommitListener, GroupCommitter, Tally, end_offsets, lag_of
from ottla.testing import TestBroker

NewTopicName = Callable[..., str]


def committed(admin: sync.Admin, group: str) -> dict[TopicPartition, int]:
    return {place: found.offset for place, found in admin.list_consumer_group_offsets(group).items()}


def test_a_listener_commits_each_micro_batch_the_last_one_too(
    spark: SparkSession,
    broker: TestBroker,
    admin: sync.Admin,
    options: dict[str, str],
    new_topic: NewTopicName,
    fill: Callable[..., None],
    checkpoint: str,
) -> None:
    topic = new_topic(partitions=2)
    fill(topic, [b"x"] * 30)
    fill(topic, [b"x"] * 20, partition=1)
    listener = CommitListener(topic, bootstrap_servers=broker.bootstrap_servers, query_name=topic)
    spark.streams.addListener(listener)
    try:
        rows = spark.readStream.format("ottla").options(**options, subscribe=topic, maxOffsetsPerTrigger="25")
        query = (
            rows.option("startingOffsets", "earliest")
            .load()
            .observe("out", sql.count(sql.lit(1)).alias("rows"))
            .writeStream.format("noop")
            .queryName(topic)
            .option("checkpointLocation", checkpoint)
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        # Spark tells its listeners a moment later.
        spark._jsparkSession.sparkContext().listenerBus().waitUntilEmpty()
    finally:
        spark.streams.removeListener(listener)
    assert committed(admin, topic) == {TopicPartition(topic, 0): 30, TopicPartition(topic, 1): 20}

    tally = Tally()
    progress = [json.loads(one.json) for one in query.recentProgress]
    assert [tally.add(one) for one in progress] == [True, True]
    assert not tally.add(progress[-1])
    assert (tally.batches, tally.rows_in, tally.rows_out, tally.lag) == (2, 50, 50, 0)
    assert sum(lag_of(progress[0]).values()) == 25


def test_an_option_commits_without_a_listener(
    spark: SparkSession,
    admin: sync.Admin,
    options: dict[str, str],
    new_topic: NewTopicName,
    fill: Callable[..., None],
    checkpoint: str,
) -> None:
    topic = new_topic()
    fill(topic, [b"x"] * 30)
    given = {**options, "kafka.group.id": topic, "commitOffsets": "true", "startingOffsets": "earliest"}
    rows = spark.readStream.format("ottla").options(**given, subscribe=topic, maxOffsetsPerTrigger="20").load()
    writer = rows.writeStream.format("noop").option("checkpointLocation", checkpoint)
    writer.trigger(availableNow=True).start().awaitTermination()
    assert committed(admin, topic) == {TopicPartition(topic, 0): 30}


def test_to_commit_there_must_be_a_group() -> None:
    given = {"kafka.bootstrap.servers": "localhost:9092", "subscribe": "orders", "commitOffsets": "true"}
    with pytest.raises(ValueError, match=r"kafka\.group\.id does not say to which group"):
        SourceOptions.parse(given, streaming=True)


def test_only_what_has_changed_is_committed(broker: TestBroker, admin: sync.Admin, new_topic: NewTopicName) -> None:
    topic = new_topic(partitions=2)
    committer = GroupCommitter(ClientOptions(bootstrap_servers=broker.bootstrap_servers), topic)
    committer.commit({topic: {"0": 1, "1": 5}})
    admin.alter_consumer_group_offsets(topic, {TopicPartition(topic, 1): 2})
    committer.commit({topic: {"0": 3, "1": 5}})
    assert committed(admin, topic) == {TopicPartition(topic, 0): 3, TopicPartition(topic, 1): 2}


def test_a_commit_that_fails_is_logged_and_tried_with_the_next(caplog: pytest.LogCaptureFixture) -> None:
    committer = GroupCommitter(ClientOptions(bootstrap_servers="127.0.0.1:1", request_timeout_ms=500), "readers")
    committer.commit({"orders": {"0": 1}})
    assert "the group readers was not told" in caplog.text
    assert committer._committed == {}


@pytest.mark.parametrize("offset", [None, 17, {"seconds": 3}, {"orders": {"zero": 1}}])
def test_offsets_of_other_sources_are_left_alone(offset: Any) -> None:
    assert end_offsets({"sources": [{"endOffset": offset}]}) == []
    assert lag_of({"sources": [{"endOffset": offset, "latestOffset": offset}]}) == {}
