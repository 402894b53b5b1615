import pytest
from pyspark.sql.types import ArrayType, BinaryType, MapType, StringType, StructType

from ottla.spark.sink import batch_writer, columns_of, stream_writer
from ottla.spark.sink_options import SinkOptions

NEEDED = {"kafka.bootstrap.servers": "localhost:9092", "topic": "orders"}


def test_options_of_the_java_producer_reach_ours() -> None:
    given = {
        "kafka.acks": "-1",
        "kafka.linger.ms": "7",
        "kafka.batch.size": "1000",
        "kafka.compression.type": "ZSTD",
        "kafka.compression.zstd.level": "9",
        "kafka.max.request.size": "2000000",
        "kafka.delivery.timeout.ms": "5000",
        "kafka.request.timeout.ms": "1500",
        "kafka.enable.idempotence": "false",
        "kafka.buffer.memory": "3000000",
        "kafka.max.block.ms": "800",
        "kafka.max.in.flight.requests.per.connection": "2",
        "kafka.client.id": "till",
    }
    producer = SinkOptions.parse(NEEDED | given).producer
    assert producer.acks == "all"
    assert producer.linger_ms == 7
    assert producer.batch_size == 1000
    assert (producer.compression_type, producer.compression_level) == ("zstd", 9)
    assert producer.max_request_size == 2_000_000
    assert producer.delivery_timeout_ms == 5000
    assert producer.request_timeout_ms == 1500
    assert producer.enable_idempotence is False
    assert producer.buffer_memory == 3_000_000
    assert producer.max_block_ms == 800
    assert producer.max_in_flight_requests_per_connection == 2
    assert producer.client_id == "till"


def test_names_of_options_are_known_in_whichever_case() -> None:
    options = SinkOptions.parse(
        {"KAFKA.bootstrap.SERVERS": "localhost:9092", "TOPIC": "orders", "includetimestamp": "true"}
    )
    assert options.topic == "orders"
    assert options.include_timestamp


def test_options_that_say_the_same_are_one_key_of_the_pool() -> None:
    assert hash(SinkOptions.parse(NEEDED).producer) == hash(SinkOptions.parse(NEEDED | {"topic": "others"}).producer)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"kafka.bootstrap.servers": ""}, "kafka.bootstrap.servers is missing"),
        ({"kafka.bootstrap.servers": "nowhere:port"}, "'nowhere:port' is no address"),
        ({"kafka.linger.ms": "soon"}, "kafka.linger.ms is 'soon'"),
        ({"kafka.acks": "2"}, "acks is '2'"),
        ({"kafka.compression.type": "zip"}, "compression_type is 'zip'"),
        (
            {"kafka.compression.type": "gzip", "kafka.compression.gzip.level": "x"},
            "kafka.compression.gzip.level is 'x'",
        ),
        ({"kafka.enable.idempotence": "yes"}, "kafka.enable.idempotence is 'yes'"),
        ({"kafka.enable.idempotence": "true", "kafka.acks": "1"}, "enable_idempotence needs acks='all'"),
        ({"kafka.value.serializer": "X"}, "kafka.value.serializer is not supported"),
        ({"kafka.transactional.id": "X"}, "kafka.transactional.id is not supported"),
        ({"kafka.security.protocol": "TLS"}, "option kafka.security.protocol is 'TLS'"),
        ({"includeTimestamp": "1"}, "includeTimestamp is '1'"),
        ({"includeTimestamps": "true"}, "did you mean includeTimestamp?"),
    ],
)
def test_a_wrong_option_is_named(given: dict[str, str], said: str) -> None:
    with pytest.raises(ValueError) as caught:
        SinkOptions.parse(NEEDED | given)
    assert said in str(caught.value)


def test_columns_that_are_no_part_of_a_record_are_left_out() -> None:
    schema = (
        StructType()
        .add("value", "string")
        .add("timestamp", "timestamp")
        .add("price", "double")
        .add("topic", "integer")
        .add("key", "binary")
    )
    assert columns_of(schema, SinkOptions.parse(NEEDED)) == ("key", "value")


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        (StructType().add("val", "string"), "there is no column 'value' among val"),
        (StructType().add("value", "integer"), "column 'value' is of type int; it must be string or binary"),
        (StructType().add("value", "string").add("key", "long"), "column 'key' is of type bigint"),
        (StructType().add("value", "string").add("partition", "long"), "column 'partition' is of type bigint"),
        (
            StructType().add("value", "string").add("headers", MapType(StringType(), BinaryType())),
            "column 'headers' is of type map",
        ),
        (
            StructType()
            .add("value", "string")
            .add("headers", ArrayType(StructType().add("key", "string").add("value", "string"))),
            "it must be array<struct<key: string, value: binary>>",
        ),
    ],
)
def test_a_column_of_the_wrong_type_is_named(schema: StructType, said: str) -> None:
    with pytest.raises(ValueError) as caught:
        columns_of(schema, SinkOptions.parse(NEEDED))
    assert said in str(caught.value)


def test_rows_need_a_topic() -> None:
    options = SinkOptions.parse({"kafka.bootstrap.servers": "localhost:9092"})
    with pytest.raises(ValueError, match="no topic: set option topic, or add a column 'topic'"):
        columns_of(StructType().add("value", "string"), options)
    with pytest.raises(ValueError, match="column 'topic' is of type int; it must be string"):
        columns_of(StructType().add("value", "string").add("topic", "integer"), options)
    assert columns_of(StructType().add("value", "string").add("topic", "string"), options) == ("value", "topic")


def test_times_are_taken_if_asked_for_and_must_be_times() -> None:
    options = SinkOptions.parse(NEEDED | {"includeTimestamp": "true"})
    value = StructType().add("value", "string")
    with pytest.raises(ValueError, match="there is no column 'timestamp'"):
        columns_of(value, options)
    with pytest.raises(ValueError, match="column 'timestamp' is of type bigint; it must be timestamp"):
        columns_of(StructType().add("value", "string").add("timestamp", "long"), options)
    assert columns_of(StructType().add("value", "string").add("timestamp", "timestamp"), options)[-1] == "timestamp"


def test_a_batch_overwrites_no_topic_and_a_query_in_complete_mode_adds_to_it() -> None:
    value = StructType().add("value", "string")
    with pytest.raises(ValueError, match="records are only ever added to a topic; use mode append"):
        batch_writer(NEEDED, value, overwrite=True)
    assert stream_writer(NEEDED, value, overwrite=True) is not None
