"""The official connector, unmodified, against Ottla's broker; and the same cases through its format and through ours.

Where the two differ on purpose:

- Spark has no save mode errorifexists, its default, for sinks in Python: `format("ottla")` needs `mode("append")`. The
  same goes for the output mode update. With the jar of `ottla.spark.enable_kafka_format`, `format("kafka")` has both.
- Tasks: the official connector makes one for each partition of a topic at least; Ottla's puts small ones together, and
  `minPartitions` and `maxRecordsPerPartition` hold in batch queries too.
- A topic or a partition that does not exist, and a broker that cannot be reached, are told within seconds, by the name
  of what was not found, where the official connector waits for a minute or more.
- A name that looks like a mistyped option is an error, where the official connector ignores it.
"""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.java.program import skip_without_maven
from tests.spark.official import OfficialError, OfficialSpark

from ottla import sync
from ottla.client.admin import NewTopic
from ottla.client.types import TopicPartition
from ottla.testing import TestBroker

pytestmark = [
    pytest.mark.maven,
    pytest.mark.long,
    skip_without_maven("the official connector is not compared with Ottla's"),
]

BOTH = ("kafka", "ottla")
BEGIN_MS = 1_700_000_000_000
NewTopicName = Callable[..., str]
Options = dict[str, str]


@pytest.fixture(scope="module")
def broker() -> Iterator[TestBroker]:
    """A broker that compacts soon, and keeps records whatever time they are of."""
    with TestBroker({"log.cleaner.backoff.ms": "100", "log.retention.ms": "-1"}) as broker:
        yield broker


@pytest.fixture(scope="module")
def both() -> Iterator[OfficialSpark]:
    """A Spark that has both formats."""
    spark = OfficialSpark()
    yield spark
    spark.close()


@pytest.fixture(scope="module", autouse=True)
def orders(admin: sync.Admin, producer: sync.Producer) -> None:
    """A topic of three partitions, 20 records in each: keys, nulls, headers, a second from each record to the next."""
    admin.create_topics([NewTopic("orders", num_partitions=3), NewTopic("orders-more", num_partitions=1)])
    for number in range(60):
        producer.send(
            "orders",
            None if number % 10 == 3 else f"value-{number}".encode(),
            key=None if number % 7 == 0 else f"key-{number}".encode(),
            partition=number % 3,
            timestamp_ms=BEGIN_MS + 1000 * number,
            headers=[("number", str(number).encode()), ("again", b"x")] if number % 2 else None,
        ).get()
    producer.send("orders-more", b"more", timestamp_ms=BEGIN_MS).get()


@pytest.fixture(scope="module", autouse=True)
def expired(admin: sync.Admin, producer: sync.Producer, orders: None) -> None:
    """A topic whose first five records are gone."""
    admin.create_topics([NewTopic("expired", num_partitions=1)])
    for number in range(10):
        producer.send("expired", str(number).encode(), timestamp_ms=BEGIN_MS + 1000 * number).get()
    admin.delete_records({TopicPartition("expired", 0): 5})


def offsets(topic: str = "orders", *places: int) -> str:
    return json.dumps({topic: {str(partition): place for partition, place in enumerate(places)}})


# Batches.

READ: dict[str, Options] = {
    "all": {"subscribe": "orders"},
    "several topics": {"subscribe": "orders, orders-more"},
    "a pattern": {"subscribePattern": "orders.*"},
    "some partitions": {"assign": '{"orders": [0, 2]}'},
    "headers": {"subscribe": "orders", "includeHeaders": "true"},
    "offsets": {"subscribe": "orders", "startingOffsets": offsets("orders", 3, -2, 20)},
    "ends": {"subscribe": "orders", "endingOffsets": offsets("orders", 3, -1, 0)},
    "offsets and ends": {
        "subscribe": "orders",
        "startingOffsets": offsets("orders", 3, 4, 5),
        "endingOffsets": offsets("orders", 4, 4, 15),
    },
    "a time": {"subscribe": "orders", "startingTimestamp": str(BEGIN_MS + 30_500)},
    "times": {
        "subscribe": "orders",
        "startingTimestamp": str(BEGIN_MS + 10_000),
        "endingTimestamp": str(BEGIN_MS + 40_000),
    },
    "times by partition": {
        "subscribe": "orders",
        "startingOffsetsByTimestamp": offsets("orders", BEGIN_MS, BEGIN_MS + 20_000, BEGIN_MS + 30_001),
        "endingOffsetsByTimestamp": offsets("orders", BEGIN_MS + 50_000, BEGIN_MS + 50_000, BEGIN_MS + 99_999_999),
    },
    "a time before offsets": {
        "subscribe": "orders",
        "startingTimestamp": str(BEGIN_MS + 50_000),
        "startingOffsets": "earliest",
    },
    "a time after the last record": {
        "subscribe": "orders",
        "startingTimestamp": str(BEGIN_MS * 2),
        "startingOffsetsByTimestampStrategy": "latest",
    },
    "pieces": {"subscribe": "orders", "minPartitions": "11"},
    "small pieces": {"subscribe": "orders", "maxRecordsPerPartition": "3"},
    "committed": {"subscribe": "orders", "kafka.isolation.level": "read_committed"},
    "what is left": {"subscribe": "expired"},
    "what is gone": {"subscribe": "expired", "startingOffsets": offsets("expired", 2), "failOnDataLoss": "false"},
    "names in another case": {"SUBSCRIBE": "orders", "STARTINGOFFSETS": offsets("orders", 15, 15, 15)},
}


@pytest.mark.parametrize("case", READ)
def test_batches_are_the_same(both: OfficialSpark, options: Options, case: str) -> None:
    official, ours = (both.read(format, options | READ[case]) for format in BOTH)
    assert official == ours
    assert ours or case == "a time after the last record"


def test_records_between_which_others_were_compacted_away_are_the_same(
    both: OfficialSpark, new_topic: NewTopicName, producer: sync.Producer, broker: TestBroker, options: Options
) -> None:
    topic = new_topic(cleanup_policy="compact", segment_ms="1", min_cleanable_dirty_ratio="0.01")
    for number in range(30):
        producer.send(topic, str(number).encode(), key=str(number % 4).encode()).get()
    deadline = time.monotonic() + 60
    while len(written(broker, topic, with_partitions=False)) == 30:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    official, ours, again = (both.read(format, options | {"subscribe": topic}) for format in (*BOTH, BOTH[0]))
    while official != again:
        # More was compacted meanwhile.
        assert time.monotonic() < deadline
        official, ours, again = (both.read(format, options | {"subscribe": topic}) for format in (*BOTH, BOTH[0]))
    assert official == ours
    assert len(ours) < 30


# Streams.

STREAM: dict[str, Options] = {
    "all": {"startingOffsets": "earliest"},
    "offsets": {"startingOffsets": offsets("orders", 3, -2, -1)},
    "a time": {"startingTimestamp": str(BEGIN_MS + 30_500)},
    "some at a time": {"startingOffsets": "earliest", "maxOffsetsPerTrigger": "7"},
    "fewer than partitions at a time": {"startingOffsets": offsets("orders", 17, 16, 18), "maxOffsetsPerTrigger": "2"},
    "at least some at a time": {"startingOffsets": "earliest", "minOffsetsPerTrigger": "1000", "maxTriggerDelay": "1s"},
    "headers": {"startingOffsets": "earliest", "includeHeaders": "true", "minPartitions": "5"},
    "latest": {"startingOffsets": "latest"},
}


@pytest.mark.parametrize("case", STREAM)
def test_micro_batches_are_the_same(both: OfficialSpark, options: Options, case: str, tmp_path: Path) -> None:
    given = options | {"subscribe": "orders"} | STREAM[case]
    official, ours = (both.stream(format, given, str(tmp_path / format)) for format in BOTH)
    assert [len(rows) for rows in official] == [len(rows) for rows in ours]
    assert official == ours


@pytest.mark.parametrize(("before", "after"), [BOTH, BOTH[::-1]])
def test_a_query_goes_on_with_the_other_format(
    both: OfficialSpark,
    new_topic: NewTopicName,
    fill: Callable[..., None],
    options: Options,
    tmp_path: Path,
    before: str,
    after: str,
) -> None:
    topic = new_topic(2)
    given = options | {"subscribe": topic, "startingOffsets": "earliest"}
    fill(topic, [b"one", b"two"])
    assert sum(map(len, both.stream(before, given, str(tmp_path)))) == 2
    fill(topic, [b"three"], partition=1)
    fill(topic, [b"four"])
    [rows] = both.stream(after, given, str(tmp_path))
    assert sorted(bytes.fromhex(row[1]["bytes"]) for row in rows) == [b"four", b"three"]


# The sink.

HEADERS = "array(struct('a' AS key, cast('1' AS BINARY) AS value), struct('b' AS key, cast('2' AS BINARY) AS value))"
WRITE: dict[str, str] = {
    "values": "SELECT 'one' AS value UNION ALL SELECT cast('two' AS BINARY)",
    "keys": "SELECT cast(id AS STRING) AS key, concat('v', id) AS value FROM range(200)",
    "nulls": "SELECT 'k' AS key, cast(NULL AS STRING) AS value UNION ALL SELECT NULL, 'v'",
    "headers": f"SELECT 'k' AS key, 'v' AS value, {HEADERS} AS headers UNION ALL SELECT 'k', 'w', NULL",
    "partitions": "SELECT cast(id AS STRING) AS key, 'v' AS value, cast(id % 3 AS INT) AS partition FROM range(30)",
    "a partition that is null": "SELECT 'k' AS key, 'v' AS value, cast(NULL AS INT) AS partition",
    "other columns": "SELECT 'k' AS key, 'v' AS value, 1 AS price, current_timestamp() AS timestamp, 5L AS offset",
}


def written(broker: TestBroker, topic: str, *, with_partitions: bool) -> list[Any]:
    columns = ["key", "value", "headers", *(["partition"] if with_partitions else [])]
    table = sync.read_table(topic, bootstrap_servers=broker.bootstrap_servers, columns=columns)
    return sorted((list(row.values()) for row in table.to_pylist()), key=str)


@pytest.mark.parametrize("case", WRITE)
def test_what_is_written_is_the_same(
    both: OfficialSpark, broker: TestBroker, new_topic: NewTopicName, options: Options, case: str
) -> None:
    topics = {format: new_topic(3) for format in BOTH}
    for format, topic in topics.items():
        both.write(format, WRITE[case], options | {"topic": topic})
    # Rows without a key go to whichever partition.
    keyed = case not in ("values", "nulls")
    official, ours = (written(broker, topic, with_partitions=keyed) for topic in topics.values())
    assert official == ours
    assert ours


def test_topics_by_row_and_by_option_are_the_same(
    both: OfficialSpark, broker: TestBroker, new_topic: NewTopicName, options: Options
) -> None:
    for format in BOTH:
        one, other, option = new_topic(), new_topic(), new_topic()
        select = f"SELECT cast(id AS STRING) AS value, if(id < 3, '{one}', '{other}') AS topic FROM range(10)"
        both.write(format, select, options)
        both.write(format, select, options | {"topic": option})
        counts = [len(written(broker, topic, with_partitions=False)) for topic in (one, other, option)]
        assert counts == [3, 7, 10], format


@pytest.mark.parametrize("format", BOTH)
@pytest.mark.parametrize("mode", ["append", "update"])
def test_streams_from_topic_to_topic(
    both: OfficialSpark, broker: TestBroker, new_topic: NewTopicName, options: Options, format: str, mode: str
) -> None:
    if (format, mode) == ("ottla", "update"):
        with pytest.raises(OfficialError, match="does not support Update mode"):
            both.copy(format, options | {"subscribe": "orders"}, ["value"], options | {"topic": "none"}, mode)
        return
    sink = new_topic(3)
    source = options | {"subscribe": "orders", "startingOffsets": "earliest", "includeHeaders": "true"}
    both.copy(format, source, ["key", "value", "headers", "partition"], options | {"topic": sink}, mode)
    copied, before = (written(broker, topic, with_partitions=True) for topic in (sink, "orders"))
    assert copied == before


# Errors: what the official connector says, and what ours says.

WRONG_READ: dict[str, tuple[Options, str, str]] = {
    "no topic": ({}, "One of the following options must be specified", "subscribe"),
    "two ways to name topics": (
        {"subscribe": "orders", "assign": '{"orders": [0]}'},
        "Only one of the following options can be specified",
        "assign",
    ),
    "a topic that does not exist": ({"subscribe": "nowhere"}, "UnknownTopicOrPartition", "nowhere"),
    "latest in a batch": (
        {"subscribe": "orders", "startingOffsets": "latest"},
        "starting offset can't be latest",
        "latest",
    ),
    "partitions left out": (
        {"subscribe": "orders", "startingOffsets": '{"orders": {"0": 1}}'},
        "Use -1 for latest, -2 for earliest",
        "startingOffsets",
    ),
    "offsets past the end": (
        {"subscribe": "orders", "startingOffsets": offsets("orders", 100, 0, 0)},
        "beyond the end offset",
        "orders",
    ),
    "no time so late": (
        {"subscribe": "orders", "startingTimestamp": str(BEGIN_MS * 2)},
        "No offset matched from request",
        "startingTimestamp",
    ),
    "records that are gone": (
        {"subscribe": "expired", "startingOffsets": offsets("expired", 2)},
        "expired",
        "expired",
    ),
    "an option of the consumer": (
        {"subscribe": "orders", "kafka.auto.offset.reset": "latest"},
        "'auto.offset.reset' is not supported",
        "kafka.auto.offset.reset",
    ),
    "a number that is none": (
        {"subscribe": "orders", "minPartitions": "0"},
        "minPartitions must be positive",
        "minPartitions",
    ),
}


@pytest.mark.parametrize("case", WRONG_READ)
def test_what_is_wrong_with_a_source_is_refused_by_both(both: OfficialSpark, options: Options, case: str) -> None:
    given, *said = WRONG_READ[case]
    for format, words in zip(BOTH, said, strict=True):
        with pytest.raises(OfficialError) as caught:
            both.read(format, options | given)
        assert words in str(caught.value), format


WRONG_WRITE: dict[str, tuple[str, Options, str | None, str, str]] = {
    "no topic": ("SELECT 'v' AS value", {}, "append", "topic option required", "no topic: set option topic"),
    "a topic that is null": (
        "SELECT 'v' AS value, cast(NULL AS STRING) AS topic",
        {},
        "append",
        "null topic",
        "null topic",
    ),
    "no value": ("SELECT 'v' AS val", {"topic": "t"}, "append", "'value' not found", "there is no column 'value'"),
    "a value of another type": (
        "SELECT 1 AS value",
        {"topic": "t"},
        "append",
        "value attribute",
        "column 'value' is of type int",
    ),
    "a key of another type": (
        "SELECT 'v' AS value, 1 AS key",
        {"topic": "t"},
        "append",
        "key attribute",
        "column 'key' is of type int",
    ),
    "headers of another type": (
        "SELECT 'v' AS value, 1 AS headers",
        {"topic": "t"},
        "append",
        "headers attribute",
        "column 'headers' is of type int",
    ),
    "a partition of another type": (
        "SELECT 'v' AS value, 1L AS partition",
        {"topic": "t"},
        "append",
        "partition attribute",
        "column 'partition' is of type bigint",
    ),
    "overwriting": ("SELECT 'v' AS value", {"topic": "t"}, "overwrite", "Save mode", "save mode overwrite"),
    "ignoring": ("SELECT 'v' AS value", {"topic": "t"}, "ignore", "Save mode", '"Ignore" mode'),
    "a serializer": (
        "SELECT 'v' AS value",
        {"topic": "t", "kafka.value.serializer": "X"},
        "append",
        "value.serializer' is not supported",
        "kafka.value.serializer is not supported",
    ),
}


@pytest.mark.parametrize("case", WRONG_WRITE)
def test_what_is_wrong_with_a_sink_is_refused_by_both(both: OfficialSpark, options: Options, case: str) -> None:
    select, given, mode, *said = WRONG_WRITE[case]
    for format, words in zip(BOTH, said, strict=True):
        with pytest.raises(OfficialError) as caught:
            both.write(format, select, options | given, mode)
        assert words in str(caught.value), format


def test_only_the_official_sink_has_the_default_save_mode(
    both: OfficialSpark, new_topic: NewTopicName, options: Options
) -> None:
    given = options | {"topic": new_topic()}
    both.write("kafka", "SELECT 'v' AS value", given, None)
    with pytest.raises(OfficialError, match='Please use either the "Append"'):
        both.write("ottla", "SELECT 'v' AS value", given, None)


def test_small_partitions_are_read_together(both: OfficialSpark, options: Options) -> None:
    given = options | {"subscribe": "orders"}
    assert both.tasks("kafka", given) == [20, 20, 20]
    assert both.tasks("ottla", given) == [20, 40]
    limited = given | {"maxRecordsPerPartition": "4"}
    assert max(both.tasks("ottla", limited)) <= 4
