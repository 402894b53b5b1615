"""`spark.readStream.format("ottla")` in a real Spark, against a real broker."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from ottla import sync
from ottla.client.cluster import Cluster
from ottla.client.types import TopicPartition
from ottla.ports import SystemClock
from ottla.spark import stream_reader
from ottla.spark.offsets import START_KEY, Offsets
from ottla.spark.options import SourceOptions
from ottla.spark.planning import plan_micro_batch
from ottla.spark.schema import source_schema
from ottla.spark.splitting import Ranges
from ottla.spark.stream_reader import StreamReader

NewTopicName = Callable[..., str]
Fill = Callable[..., None]

QUICK = {"fetchOffset.numRetries": "1", "fetchOffset.retryIntervalMs": "10"}
WAIT_SECONDS = 60


@dataclass
class Stream:
    """A streaming query that can be started again, and all rows that it gave, by batch."""

    spark: SparkSession
    options: dict[str, str]
    checkpoint: str
    batches: list[list[str]] = field(default_factory=list)
    fail: bool = False
    query: StreamingQuery | None = None

    def start(self, *, trigger: Any = None, **given: str) -> "Stream":
        source = self.spark.readStream.format("ottla").options(**{**self.options, **QUICK, **given}).load()
        writer = source.writeStream.foreachBatch(self._take).option("checkpointLocation", self.checkpoint)
        self.query = writer.trigger(**(trigger or {"processingTime": "0 seconds"})).start()
        return self

    def _take(self, found: DataFrame, batch_id: int) -> None:
        rows = [row.value.decode() for row in found.select("value").collect()]
        if self.fail:
            raise RuntimeError("this batch shall fail")
        self.batches.append(sorted(rows))

    @property
    def running(self) -> StreamingQuery:
        assert self.query is not None
        return self.query

    @property
    def values(self) -> list[str]:
        return sorted(value for batch in self.batches for value in batch)

    def catch_up(self) -> list[str]:
        """All rows, once everything is read that there is."""
        self.running.processAllAvailable()
        return self.values

    def finish(self) -> list[str]:
        """All rows, once a query has ended by itself."""
        assert self.running.awaitTermination(WAIT_SECONDS)
        return self.values

    def failure(self) -> str:
        """What the user is told."""
        with pytest.raises(StreamingQueryException) as caught:
            self.running.awaitTermination(WAIT_SECONDS)
        return str(caught.value)

    def stop(self) -> None:
        self.running.stop()


@pytest.fixture
def stream(spark: SparkSession, options: dict[str, str], checkpoint: str) -> Stream:
    return Stream(spark, options, checkpoint)


def numbers(*found: int) -> list[str]:
    return sorted(map(str, found))


def as_values(found: range) -> list[bytes]:
    return [b"%d" % number for number in found]


NOW = {"availableNow": True}


def test_what_is_there_comes_first_and_then_what_comes(stream: Stream, new_topic: NewTopicName, fill: Fill) -> None:
    topic = new_topic(2)
    fill(topic, as_values(range(3)))
    stream.start(subscribe=topic, startingOffsets="earliest")
    assert stream.catch_up() == numbers(0, 1, 2)
    fill(topic, as_values(range(3, 5)), partition=1)
    assert stream.catch_up() == numbers(0, 1, 2, 3, 4)
    progress = stream.running.lastProgress
    assert progress is not None
    (source,) = json.loads(progress.json)["sources"]
    assert source["endOffset"] == source["latestOffset"] == {topic: {"0": 3, "1": 2}}
    assert source["startOffset"] == {topic: {"0": 3, "1": 0}}


def test_a_new_query_begins_at_the_end_unless_told(stream: Stream, new_topic: NewTopicName, fill: Fill) -> None:
    topic = new_topic()
    fill(topic, as_values(range(3)))
    stream.start(subscribe=topic)
    assert stream.catch_up() == []
    fill(topic, as_values(range(3, 5)))
    assert stream.catch_up() == numbers(3, 4)
    fill(topic, as_values(range(5, 6)))
    assert stream.catch_up() == numbers(3, 4, 5)


def test_a_first_batch_that_fails_is_read_again_from_where_the_query_began(
    stream: Stream, new_topic: NewTopicName, fill: Fill
) -> None:
    topic = new_topic()
    fill(topic, [b"before"])
    stream.fail = True
    assert "this batch shall fail" in stream.start(subscribe=topic).failure()
    fill(topic, as_values(range(5)))
    stream.fail = False
    stream.start(subscribe=topic)
    assert stream.catch_up() == numbers(0, 1, 2, 3, 4)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"startingOffsets": {"0": 2}}, numbers(2, 3)),
        ({"startingOffsets": {"0": -2}}, numbers(0, 1, 2, 3)),
        ({"startingTimestamp": "3000"}, numbers(3)),
        ({"startingOffsetsByTimestamp": {"0": 1000}}, numbers(1, 2, 3)),
        ({"startingTimestamp": "9000", "startingOffsetsByTimestampStrategy": "latest"}, []),
    ],
)
def test_where_a_query_begins(
    stream: Stream, new_topic: NewTopicName, producer: sync.Producer, given: dict[str, Any], expected: list[str]
) -> None:
    topic = new_topic()
    for number in range(4):
        producer.send(topic, b"%d" % number, timestamp_ms=1000 * number).get()
    options = {name: json.dumps({topic: value}) if isinstance(value, dict) else value for name, value in given.items()}
    assert stream.start(subscribe=topic, trigger=NOW, **options).finish() == expected


def test_a_query_that_is_started_again_goes_on(stream: Stream, new_topic: NewTopicName, fill: Fill) -> None:
    topic = new_topic(2)
    fill(topic, as_values(range(3)))
    assert stream.start(subscribe=topic, startingOffsets="earliest", trigger=NOW).finish() == numbers(0, 1, 2)
    fill(topic, as_values(range(3, 6)), partition=1)
    # Where it begins is in the checkpoint now.
    assert stream.start(subscribe=topic, startingOffsets="latest", trigger=NOW).finish() == numbers(*range(6))
    assert stream.start(subscribe=topic, trigger={"once": True}).finish() == numbers(*range(6))


def test_batches_are_no_larger_than_the_limit(stream: Stream, new_topic: NewTopicName, fill: Fill) -> None:
    topic = new_topic(2)
    fill(topic, as_values(range(30)))
    fill(topic, as_values(range(30, 40)), partition=1)
    stream.start(subscribe=topic, startingOffsets="earliest", maxOffsetsPerTrigger="20", trigger=NOW)
    assert stream.finish() == numbers(*range(40))
    assert [len(batch) for batch in stream.batches] == [20, 20]
    assert sum(int(value) < 30 for value in stream.batches[0]) == 15, "partitions have a share by what they have"


def test_one_batch_takes_everything_whatever_the_limit(stream: Stream, new_topic: NewTopicName, fill: Fill) -> None:
    topic = new_topic()
    fill(topic, as_values(range(30)))
    stream.start(
        subscribe=topic, startingOffsets="earliest", maxOffsetsPerTrigger="20", trigger={"once": True}
    ).finish()
    assert [len(batch) for batch in stream.batches] == [30]


def test_few_records_wait_for_more(stream: Stream, new_topic: NewTopicName, fill: Fill) -> None:
    topic = new_topic()
    fill(topic, as_values(range(2)))
    stream.start(subscribe=topic, startingOffsets="earliest", minOffsetsPerTrigger="5", maxTriggerDelay="1h")
    assert stream.catch_up() == numbers(0, 1), "the first batch does not wait"
    fill(topic, as_values(range(2, 6)))
    assert stream.catch_up() == numbers(0, 1)
    fill(topic, as_values(range(6, 7)))
    assert stream.catch_up() == numbers(*range(7))
    assert [len(batch) for batch in stream.batches] == [2, 5]


def test_few_records_wait_no_longer_than_the_delay(stream: Stream, new_topic: NewTopicName, fill: Fill) -> None:
    topic = new_topic()
    fill(topic, as_values(range(2)))
    limits = {"minOffsetsPerTrigger": "50", "maxOffsetsPerTrigger": "60", "maxTriggerDelay": "1s"}
    stream.start(subscribe=topic, startingOffsets="earliest", **limits)
    assert stream.catch_up() == numbers(0, 1)
    fill(topic, as_values(range(2, 4)))
    deadline = time.monotonic() + WAIT_SECONDS
    while len(stream.values) < 4 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert stream.values == numbers(0, 1, 2, 3)


def test_available_now_ends_though_there_are_few_records(stream: Stream, new_topic: NewTopicName, fill: Fill) -> None:
    topic = new_topic()
    limits = {"minOffsetsPerTrigger": "5", "maxTriggerDelay": "1h"}
    fill(topic, as_values(range(2)))
    stream.start(subscribe=topic, startingOffsets="earliest", trigger=NOW, **limits)
    assert stream.finish() == numbers(0, 1)


def test_partitions_that_are_added_are_read_from_their_beginning(
    stream: Stream, new_topic: NewTopicName, fill: Fill, admin: sync.Admin
) -> None:
    topic = new_topic()
    stream.start(subscribe=topic, **{"kafka.metadata.max.age.ms": "100"})
    assert stream.catch_up() == []
    admin.create_partitions({topic: 3})
    fill(topic, as_values(range(2)), partition=2)
    assert stream.catch_up() == numbers(0, 1)


def test_topics_that_match_a_pattern_later_are_read_from_their_beginning(
    stream: Stream, new_topic: NewTopicName, fill: Fill
) -> None:
    stream.start(subscribePattern="later-.*", maxOffsetsPerTrigger="1000")
    assert stream.catch_up() == []
    topic = new_topic(prefix="later")
    fill(topic, as_values(range(2)))
    assert stream.catch_up() == numbers(0, 1)


def test_a_deleted_topic_ends_the_query_or_is_left_out(
    stream: Stream, new_topic: NewTopicName, fill: Fill, admin: sync.Admin
) -> None:
    kept, deleted = new_topic(), new_topic()
    fill(deleted, as_values(range(2)))
    stream.start(subscribe=f"{kept},{deleted}", startingOffsets="earliest")
    assert stream.catch_up() == numbers(0, 1)
    admin.delete_topics([deleted])
    told = stream.failure()
    assert f"{deleted}-0 does not exist any more; 2 was next" in told
    assert "set option failOnDataLoss to false" in told
    stream.start(subscribe=f"{kept},{deleted}", failOnDataLoss="false")
    fill(kept, as_values(range(2, 4)))
    assert stream.catch_up() == numbers(0, 1, 2, 3)


def test_a_topic_that_is_created_anew_ends_the_query_or_is_read_from_its_beginning(
    stream: Stream, new_topic: NewTopicName, fill: Fill, admin: sync.Admin
) -> None:
    topic = new_topic()
    fill(topic, as_values(range(5)))
    assert stream.start(subscribe=topic, startingOffsets="earliest", trigger=NOW).finish() == numbers(*range(5))
    admin.delete_topics([topic])
    admin.create_topics([topic])
    fill(topic, as_values(range(5, 7)))
    told = stream.start(subscribe=topic, trigger=NOW).failure()
    assert f"{topic}-0 ends at 2, but 5 was next, as if the topic was created anew" in told
    assert stream.start(subscribe=topic, failOnDataLoss="false", trigger=NOW).finish() == numbers(*range(7))


def test_offsets_that_have_expired_end_the_query_or_are_skipped(
    stream: Stream, new_topic: NewTopicName, fill: Fill, admin: sync.Admin
) -> None:
    topic = new_topic()
    fill(topic, as_values(range(2)))
    assert stream.start(subscribe=topic, startingOffsets="earliest", trigger=NOW).finish() == numbers(0, 1)
    fill(topic, as_values(range(2, 8)))
    admin.delete_records({TopicPartition(topic, 0): 5})
    told = stream.start(subscribe=topic, trigger=NOW).failure()
    assert f"{topic}-0 begins at 5, but offsets 2 to 8 were to be read" in told
    # The batch is in the checkpoint now, and is done again.
    assert stream.start(subscribe=topic, failOnDataLoss="false", trigger=NOW).finish() == numbers(0, 1, 5, 6, 7)


def test_a_topic_that_does_not_exist_is_named_within_seconds(stream: Stream) -> None:
    started = time.monotonic()
    told = stream.start(subscribe="nowhere").failure()
    assert "there is no topic 'nowhere'; create the topic first, or check its name" in told
    assert time.monotonic() - started < 20


def test_a_streaming_query_has_no_end(stream: Stream, new_topic: NewTopicName) -> None:
    with pytest.raises(Exception, match="option endingOffsets is for batch queries") as caught:
        stream.start(subscribe=new_topic(), endingOffsets="latest").finish()
    assert "a streaming query has no end, so leave it out" in str(caught.value)


# What Spark asks of the reader, without Spark.


class ShiftedClock(SystemClock):
    """Time that passes faster if told to."""

    passed_s = 0.0

    def monotonic(self) -> float:
        """Seconds that never go back."""
        return time.monotonic() + self.passed_s


def test_the_first_batch_remembers_where_the_query_began_unless_that_can_be_found_again(
    options: dict[str, str], new_topic: NewTopicName, fill: Fill
) -> None:
    topic = new_topic()
    fill(topic, as_values(range(3)))

    def reader(start: str) -> StreamReader:
        given = {**options, "subscribe": topic, "startingOffsets": start}
        return StreamReader(SourceOptions.parse(given, streaming=True), source_schema(include_headers=False))

    latest, earliest = reader("latest"), reader("earliest")
    begun = latest.initialOffset()
    assert begun == {topic: {"0": 3}}
    assert latest.latestOffset(begun, latest.getDefaultReadLimit()) == {**begun, START_KEY: begun}, "nothing new"
    fill(topic, as_values(range(3, 5)))
    first = latest.latestOffset(begun, latest.getDefaultReadLimit())
    assert first == {topic: {"0": 5}, START_KEY: begun}
    assert latest.latestOffset(first, latest.getDefaultReadLimit()) == first, "nothing new"
    again = reader("latest")
    assert again.initialOffset() == {topic: {"0": 5}}
    (task,) = again.partitions(again.initialOffset(), first)
    assert repr(task) == f"{topic}-0 from 3 to 5"
    fill(topic, as_values(range(5, 6)))
    assert again.latestOffset(first, again.getDefaultReadLimit()) == {topic: {"0": 6}}
    begun = earliest.initialOffset()
    assert earliest.latestOffset(begun, earliest.getDefaultReadLimit()) == {topic: {"0": 6}}
    assert earliest.partitions({topic: {"0": 6}}, {topic: {"0": 6}}) == []


def test_a_batch_is_planned_while_spark_is_busy_and_anew_if_that_was_long_ago(
    options: dict[str, str], new_topic: NewTopicName, fill: Fill, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = new_topic()
    fill(topic, as_values(range(4)))
    planned: list[Offsets] = []

    async def plan(cluster: Cluster, options: SourceOptions, starts: Offsets, ends: Offsets) -> Ranges:
        planned.append(ends)
        return await plan_micro_batch(cluster, options, starts, ends)

    monkeypatch.setattr(stream_reader, "plan_micro_batch", plan)
    clock = ShiftedClock()
    given = {**options, "subscribe": topic, "startingOffsets": "earliest", "maxOffsetsPerTrigger": "2"}
    schema = source_schema(include_headers=False)
    reader = StreamReader(SourceOptions.parse(given, streaming=True), schema, clock=clock)
    start, limit = reader.initialOffset(), reader.getDefaultReadLimit()
    whole = {topic: {"0": 4}}

    def ask(start: dict[str, Any]) -> dict[str, Any]:
        end = reader.latestOffset(start, limit)
        assert reader.reportLatestOffset() == whole
        return end

    def tasks(start: dict[str, Any], end: dict[str, Any]) -> list[str]:
        return list(map(repr, reader.partitions(start, end)))

    end = ask(start)
    assert tasks(start, end) == [f"{topic}-0 from 0 to 2"]
    assert len(planned) == 1, "when it was known where the batch ends"
    assert tasks(start, end) == [f"{topic}-0 from 0 to 2"]
    assert len(planned) == 2, "a plan serves once"
    ask(start)
    assert tasks(start, whole) == [f"{topic}-0 from 0 to 4"]
    assert planned[2:] == [{TopicPartition(topic, 0): 2}, {TopicPartition(topic, 0): 4}], "that was of another batch"
    ask(start)
    clock.passed_s += stream_reader.PLAN_LASTS_S
    assert tasks(start, end) == [f"{topic}-0 from 0 to 2"]
    assert len(planned) == 6, "topics may be others by now"
    assert ask(whole) == whole
    assert tasks(whole, whole) == []
    assert len(planned) == 7, "nothing is looked at ahead where there is nothing new"
