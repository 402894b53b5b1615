"""Options as users write them, without Spark."""

import pickle
from typing import Any

import pytest
from pyspark.sql.types import StructType

from ottla.client.offsets import EARLIEST, LATEST
from ottla.client.types import TopicPartition
from ottla.spark.options import SourceOptions
from ottla.spark.schema import check_schema, source_schema
from ottla.spark.topics import Assigned, ByName, ByPattern

NEEDED = {"kafka.bootstrap.servers": "broker-1:9092,broker-2:9093", "subscribe": "orders"}


def parse(*, streaming: Any = False, **given: str) -> SourceOptions:
    return SourceOptions.parse({**NEEDED, **given}, streaming=streaming)


def refusal(options: dict[str, str], streaming: bool | None = False) -> str:
    with pytest.raises(ValueError) as caught:
        SourceOptions.parse(options, streaming=streaming)
    return str(caught.value)


def test_what_is_not_said_is_as_in_the_official_connector() -> None:
    batch, stream = parse(), parse(streaming=True)
    assert (batch.start.offsets, batch.end.offsets, stream.start.offsets) == (EARLIEST, LATEST, LATEST)
    assert batch.fail_on_data_loss
    assert not batch.include_headers
    assert not batch.read_committed
    assert (batch.poll_timeout_ms, batch.offset_retries, batch.offset_retry_interval_ms) == (120_000, 3, 1_000)
    assert (batch.min_partitions, batch.max_records_per_partition) == (None, None)
    assert (batch.min_offsets_per_trigger, batch.max_offsets_per_trigger) == (None, None)
    assert batch.max_trigger_delay_ms == 15 * 60_000


def test_names_are_taken_in_any_case() -> None:
    found = SourceOptions.parse(
        {"KAFKA.bootstrap.servers": "broker:1", "SUBSCRIBE": "orders", "minpartitions": "4", "FAILONDATALOSS": "False"},
        streaming=False,
    )
    assert (found.min_partitions, found.fail_on_data_loss) == (4, False)
    assert found.client.addresses == [("broker", 1)]


def test_options_go_to_tasks() -> None:
    options = SourceOptions.parse({**NEEDED, "kafka.client.id": "me"}, streaming=True)
    assert pickle.loads(pickle.dumps(options)) == options


def test_options_of_the_java_client_reach_ours() -> None:
    found = parse(
        **{
            "kafka.request.timeout.ms": "5000",
            "kafka.client.id": "me",
            "kafka.retry.backoff.ms": "7",
            "kafka.retry.backoff.max.ms": "70",
            "kafka.reconnect.backoff.ms": "8",
            "kafka.reconnect.backoff.max.ms": "80",
            "kafka.metadata.max.age.ms": "9000",
            "kafka.connections.max.idle.ms": "10000",
            "kafka.fetch.max.bytes": "1000000",
            "kafka.max.partition.fetch.bytes": "100000",
            "kafka.isolation.level": "read_committed",
            "kafka.check.crcs": "false",
        }
    )
    client = found.client
    assert (client.request_timeout_ms, client.client_id) == (5_000, "me")
    assert (client.retry_backoff_ms, client.retry_backoff_max_ms) == (7, 70)
    assert (client.reconnect_backoff_ms, client.reconnect_backoff_max_ms) == (8, 80)
    assert (client.metadata_max_age_ms, client.connections_max_idle_ms) == (9_000, 10_000)
    assert (found.fetch_max_bytes, found.max_partition_fetch_bytes) == (1_000_000, 100_000)
    assert found.read_committed
    assert not found.check_crcs


def test_the_rest_reaches_the_source() -> None:
    found = parse(
        streaming=True,
        **{
            "maxOffsetsPerTrigger": "100",
            "minOffsetsPerTrigger": "10",
            "maxTriggerDelay": "30s",
            "minPartitions": "6",
            "maxRecordsPerPartition": "1000",
            "includeHeaders": "true",
            "failOnDataLoss": "false",
            "kafkaConsumer.pollTimeoutMs": "500",
            "fetchOffset.numRetries": "0",
            "fetchOffset.retryIntervalMs": "20",
            "groupIdPrefix": "readers",
            "kafka.group.id": "readers",
        },
    )
    assert (found.max_offsets_per_trigger, found.min_offsets_per_trigger, found.max_trigger_delay_ms) == (
        100,
        10,
        30_000,
    )
    assert (found.min_partitions, found.max_records_per_partition) == (6, 1_000)
    assert found.include_headers
    assert not found.fail_on_data_loss
    assert (found.poll_timeout_ms, found.offset_retries, found.offset_retry_interval_ms) == (500, 0, 20)


@pytest.mark.parametrize(
    ("text", "ms"),
    [("15m", 900_000), ("2min", 120_000), ("1h", 3_600_000), ("1d", 86_400_000), ("250", 250), ("5 MS", 5)],
)
def test_a_delay_is_written_as_everywhere_in_spark(text: str, ms: int) -> None:
    assert parse(streaming=True, maxTriggerDelay=text).max_trigger_delay_ms == ms


def test_topics_are_chosen_in_one_of_three_ways() -> None:
    servers = {"kafka.bootstrap.servers": "broker:1"}
    found = [
        SourceOptions.parse({**servers, name: text}, streaming=False).topics
        for name, text in {
            "subscribe": " orders , payments",
            "subscribePattern": "orders-.*",
            "assign": '{"orders": [1, 0]}',
        }.items()
    ]
    assert found[0] == ByName(("orders", "payments"))
    assert isinstance(found[1], ByPattern)
    assert found[2] == Assigned((TopicPartition("orders", 0), TopicPartition("orders", 1)))


def test_times_go_before_offsets_and_a_time_for_all_before_times_of_each() -> None:
    given = {
        "startingOffsets": "earliest",
        "startingOffsetsByTimestamp": '{"orders": {"0": 5}}',
        "endingOffsets": '{"orders": {"0": 7}}',
        "endingOffsetsByTimestamp": '{"orders": {"0": 8}}',
    }
    found = parse(**given)
    assert (found.start.times_ms, found.end.times_ms) == ({("orders", 0): 5}, {("orders", 0): 8})
    found = parse(**given, startingTimestamp="6", endingTimestamp="9")
    assert (found.start.times_ms, found.end.times_ms) == (6, 9)


def test_a_time_after_the_last_record_is_an_error_at_the_beginning_unless_the_strategy_says_otherwise() -> None:
    assert not parse(startingTimestamp="6").start.or_latest
    assert parse(startingTimestamp="6", startingOffsetsByTimestampStrategy="latest").start.or_latest
    assert parse(endingTimestamp="6").end.or_latest


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"kafka.bootstrap.servers": " "}, "option kafka.bootstrap.servers is missing; set it to"),
        ({"kafka.bootstrap.servers": "broker:port"}, "options kafka.*: 'broker:port' is no address; write HOST:PORT"),
        ({"subscribe": ""}, "option subscribe is empty; say which topics to read"),
        ({"subscribe": "a,,b"}, "option subscribe is 'a,,b'; write names of topics with commas between"),
        ({"subscribePattern": "a.*"}, "options subscribe and subscribePattern are both set; set only one"),
        ({"startingOffsets": "first"}, "option startingOffsets is 'first'; write earliest, latest, or JSON as"),
        (
            {"startingOffsets": '{"orders": {"0": -3}}'},
            "option startingOffsets: -3 is no offset; -2 means the earliest",
        ),
        ({"startingOffsets": '{"orders": [0]}'}, "option startingOffsets is '{\"orders\": [0]}'; write"),
        ({"startingOffsets": "latest"}, "option startingOffsets is latest (-1), so that a batch query would find"),
        ({"startingOffsets": '{"orders": {"0": -1}}'}, "option startingOffsets is latest (-1), so that a batch"),
        ({"endingOffsets": "earliest"}, "option endingOffsets is earliest (-2), so that a batch query would find"),
        ({"startingTimestamp": "today"}, "option startingTimestamp is 'today'; write milliseconds since 1970"),
        ({"endingOffsetsByTimestamp": '{"orders": {"0": -1}}'}, "option endingOffsetsByTimestamp is"),
        ({"startingOffsetsByTimestampStrategy": "none"}, "Strategy is 'none'; it must be error or latest"),
        ({"failOnDataLoss": "no"}, "option failOnDataLoss is 'no'; it must be true or false"),
        ({"minPartitions": "0"}, "option minPartitions is '0'; it must be a whole number of at least 1"),
        ({"maxRecordsPerPartition": "many"}, "option maxRecordsPerPartition is 'many'; it must be a whole number"),
        ({"maxTriggerDelay": "soon"}, "option maxTriggerDelay is 'soon'; write a number and a unit"),
        ({"minOffsetsPerTrigger": "9", "maxOffsetsPerTrigger": "8"}, "minOffsetsPerTrigger is 9, more than"),
        ({"kafka.request.timeout.ms": "0"}, "options kafka.*: request_timeout_ms is 0; it must be at least 1"),
        ({"kafka.request.timeout.ms": "1s"}, "option kafka.request.timeout.ms is '1s'; it must be a whole number"),
        ({"kafka.isolation.level": "committed"}, "option kafka.isolation.level is 'committed'; it is one of"),
        (
            {"kafka.security.protocol": "TLS"},
            "option kafka.security.protocol is 'TLS'; it must be one of PLAINTEXT, SSL",
        ),
        (
            {"kafka.security.protocol": "SSL", "kafka.ssl.truststore.type": "JKS"},
            "option kafka.ssl.truststore.type is JKS; stores are PEM files here; convert a JKS store with `keytool",
        ),
        ({"kafka.auto.offset.reset": "latest"}, "option kafka.auto.offset.reset is not supported; set startingOffsets"),
        ({"kafka.enable.auto.commit": "true"}, "option kafka.enable.auto.commit is not supported; Spark's checkpoint"),
        ({"kafka.key.deserializer": "X"}, "option kafka.key.deserializer is not supported; keys are binary columns"),
        ({"kafka.value.deserializer": "X"}, "option kafka.value.deserializer is not supported; values are binary"),
        ({"kafka.interceptor.classes": "X"}, "option kafka.interceptor.classes is not supported"),
    ],
)
def test_what_is_wrong_is_named_with_what_to_do(given: dict[str, str], message: str) -> None:
    assert message in refusal({**NEEDED, **given})


@pytest.mark.parametrize("text", ["{", '{"orders": 1}', '{"orders": [-1]}', '{"orders": ["0"]}', "{}", "[]"])
def test_assign_is_json_with_partitions_of_topics(text: str) -> None:
    message = refusal({"kafka.bootstrap.servers": "broker:1", "assign": text})
    assert message == f'option assign is {text!r}; write it as JSON, as {{"orders": [0, 1]}}'


def test_topics_must_be_chosen() -> None:
    message = refusal({"kafka.bootstrap.servers": "broker:1"})
    assert message == "no topic is chosen; set one of the options subscribe, subscribePattern and assign"


def test_a_pattern_that_is_none_is_named() -> None:
    message = refusal({"kafka.bootstrap.servers": "broker:1", "subscribePattern": "a("})
    assert message.startswith("option subscribePattern is 'a(', which is no regular expression: ")


@pytest.mark.parametrize("name", ["endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp"])
def test_a_streaming_query_has_no_end(name: str) -> None:
    message = refusal({**NEEDED, name: "latest"}, streaming=True)
    assert message == f"option {name} is for batch queries; a streaming query has no end, so leave it out"


def test_what_only_one_kind_of_query_refuses_is_no_error_before_that_is_known() -> None:
    SourceOptions.parse({**NEEDED, "startingOffsets": "latest", "endingOffsets": "latest"}, streaming=None)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("startingOffset", "startingOffsets"),
        ("subscibe", "subscribe"),
        ("maxOffsetPerTrigger", "maxOffsetsPerTrigger"),
        ("failOnDataloss ", "failOnDataLoss"),
        ("bootstrap.servers", "kafka.bootstrap.servers"),
    ],
)
def test_a_typing_error_is_no_silent_default(typed: str, meant: str) -> None:
    assert refusal({**NEEDED, typed: "x"}) == f"there is no option {typed}; did you mean {meant}?"


def test_other_names_are_ignored_as_in_the_official_connector() -> None:
    parse(mergeSchema="true", path="x")


def test_unknown_options_of_the_java_client_are_told_once(caplog: pytest.LogCaptureFixture) -> None:
    parse(**{"kafka.some.thing": "1", "kafka.other": "2", "kafka.session.timeout.ms": "3", "kafka.ssl.key": "4"})
    assert caplog.messages == ["ignored, since Ottla's client has no such options: kafka.other, kafka.some.thing"]


def test_headers_are_a_column_if_asked_for() -> None:
    assert source_schema(include_headers=True).names[-1] == "headers"
    assert source_schema(include_headers=False).simpleString() == (
        "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,timestamp:timestamp,timestampType:int>"
    )


def test_a_users_schema_is_some_of_the_columns_in_any_order() -> None:
    check_schema(StructType().add("offset", "long").add("key", "binary"), include_headers=False)
    check_schema(source_schema(include_headers=True), include_headers=True)


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (StructType().add("id", "long"), "there is no column id; there are key, value, topic"),
        (
            StructType().add("offset", "integer"),
            "column offset is int in the schema, but bigint in topics; leave the type",
        ),
        (StructType().add("timestamp", "timestamp_ntz"), "column timestamp is timestamp_ntz in the schema, but"),
        (source_schema(include_headers=True), "the schema has a column headers; set option includeHeaders to true"),
        (StructType().add("key", "binary").add("key", "binary"), "the schema names a column twice: key, key"),
        (StructType(), "the schema has no columns; name some of key, value"),
    ],
)
def test_a_schema_that_does_not_fit_is_named(schema: StructType, message: str) -> None:
    with pytest.raises(ValueError) as caught:
        check_schema(schema, include_headers=False)
    assert message in str(caught.value)
