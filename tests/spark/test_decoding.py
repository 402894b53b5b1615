"""JSON, Avro and Protobuf values become columns, and what does not fit goes where it was told to."""

import io
import json
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, timestamp_pb2
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from ottla import sync
from ottla.spark.avro import AvroFormat
from ottla.spark.dead_letters import DeadLetters
from ottla.spark.decoding import decode, read_values
from ottla.spark.protobuf import ProtobufFormat
from ottla.testing import TestBroker

pytestmark = pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")

ORDER = "id BIGINT NOT NULL, country STRING"
AVRO_ORDER = {
    "type": "record",
    "name": "order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "day", "type": ["null", {"type": "int", "logicalType": "date"}]},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "sizes", "type": {"type": "map", "values": "double"}},
        {"name": "trace", "type": {"type": "string", "logicalType": "uuid"}},
        {"name": "kind", "type": {"type": "enum", "name": "kind", "symbols": ["NEW", "OLD"]}},
    ],
}
AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
AVRO_ROW = {
    "id": 5,
    "at": AT,
    "day": date(2026, 1, 2),
    "price": Decimal("1.23"),
    "tags": ["a", "b"],
    "sizes": {"x": 1.5},
    "trace": "9b2c0f5e-0000-0000-0000-000000000000",
    "kind": "OLD",
}


def avro(schema: Any, row: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), row)
    return out.getvalue()


def framed(number: int, value: bytes) -> bytes:
    return b"\0" + number.to_bytes(4, "big") + value


@pytest.fixture(scope="module")
def messages() -> bytes:
    """A descriptor set, as protoc would write it."""
    kinds = descriptor_pb2.FieldDescriptorProto
    stamp = descriptor_pb2.FileDescriptorProto()
    timestamp_pb2.DESCRIPTOR.CopyToProto(stamp)
    file = descriptor_pb2.FileDescriptorProto(
        name="order.proto", package="shop", syntax="proto3", dependency=["google/protobuf/timestamp.proto"]
    )
    order = file.message_type.add(name="Order")
    order.field.add(name="id", number=1, type=kinds.TYPE_UINT64, label=kinds.LABEL_OPTIONAL)
    order.field.add(name="tags", number=2, type=kinds.TYPE_STRING, label=kinds.LABEL_REPEATED)
    order.field.add(
        name="at",
        number=3,
        type=kinds.TYPE_MESSAGE,
        type_name=".google.protobuf.Timestamp",
        label=kinds.LABEL_OPTIONAL,
    )
    order.field.add(name="kind", number=4, type=kinds.TYPE_ENUM, type_name=".shop.Kind", label=kinds.LABEL_OPTIONAL)
    kind = file.enum_type.add(name="Kind")
    kind.value.add(name="NEW", number=0)
    kind.value.add(name="OLD", number=1)
    return bytes(descriptor_pb2.FileDescriptorSet(file=[stamp, file]).SerializeToString())


def order_class(messages: bytes) -> Any:
    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(messages).file:
        pool.AddSerializedFile(file.SerializeToString())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Order"))


def values(spark: SparkSession, *found: bytes | None) -> DataFrame:
    return spark.createDataFrame([(one,) for one in found], "value binary")


def test_json_becomes_columns_and_each_misfit_says_why(spark: SparkSession) -> None:
    rows = values(
        spark,
        b'{"id": 1, "country": "DE", "more": 2}',
        b'{"id": "one"}',
        b'{"country": "DE"}',
        b"{broken",
        b"",
        b"[1]",
        b"\xff\xfe",
        None,
    )
    found = decode(rows, "json", ORDER, error_column="error").collect()
    assert found[0].value.asDict() == {"id": 1, "country": "DE"}
    assert found[0].error is None
    assert [row.error and row.error.reason for row in found[1:]] == [
        "it does not fit the schema: id",
        "it lacks id",
        "it is no JSON",
        "it is no JSON",
        "it does not fit the schema: it is no object",
        "it is not UTF-8, so no JSON",
        None,
    ]
    assert bytes(found[3].error.value) == b"{broken"
    assert found[7].value is None


def test_a_misfit_stops_the_query_and_is_named(spark: SparkSession) -> None:
    rows = spark.createDataFrame(
        [("orders", 3, 17, b"{broken")], "topic string, partition int, offset bigint, value binary"
    )
    with pytest.raises(Exception, match="value of orders-3 at offset 17 cannot be decoded: it is no JSON"):
        decode(rows, "json", ORDER).collect()


def test_avro_becomes_columns(spark: SparkSession) -> None:
    value = avro(AVRO_ORDER, AVRO_ROW)
    rows = values(spark, value, value[:-1], value + b"x", b"", None)
    found = decode(rows, "avro", AVRO_ORDER, error_column="error").collect()
    row = found[0].value.asDict()
    assert row.pop("at").astimezone(UTC) == AT
    assert row == {name: one for name, one in AVRO_ROW.items() if name != "at"}
    assert [one.error is not None for one in found] == [False, True, True, True, False]
    assert found[2].error.reason == "1 bytes are left over after the record"


def test_avro_values_with_ids_are_each_read_with_their_own_schema(spark: SparkSession) -> None:
    old = {"type": "record", "name": "order", "fields": [{"name": "id", "type": "int"}]}
    new = {**old, "fields": [*old["fields"], {"name": "country", "type": "string", "default": "?"}]}
    rows = values(
        spark,
        framed(1, avro(old, {"id": 1})),
        framed(2, avro(new, {"id": 2, "country": "DE"})),
        framed(3, b""),
        avro(new, {"id": 4, "country": "FR"}),
    )
    found = decode(rows, "avro", new, confluent={1: old, 2: new}, error_column="error").collect()
    assert [one.value and tuple(one.value) for one in found] == [(1, "?"), (2, "DE"), None, None]
    assert found[2].error.reason == "no schema 3 was given, only [1, 2]"
    assert "not with 00 and a schema's id" in found[3].error.reason


def test_protobuf_becomes_columns(spark: SparkSession, messages: bytes, tmp_path: Path) -> None:
    order = order_class(messages)(id=2**64 - 1, tags=["a"], kind=1)
    order.at.FromDatetime(AT)
    file = tmp_path / "order.desc"
    file.write_bytes(messages)
    rows = values(spark, order.SerializeToString(), b"", b"\xff\xff", None)
    found = decode(rows, "protobuf", file, message="shop.Order", error_column="error").collect()
    assert (found[0].value.id, found[0].value.tags, found[0].value.kind) == (2**64 - 1, ["a"], "OLD")
    assert found[0].value.at.astimezone(UTC) == AT
    assert (found[1].value.id, found[1].value.at) == (0, None)
    assert [one.error is not None for one in found] == [False, False, True, False]


def test_protobuf_by_its_class_and_with_a_registrys_frame(messages: bytes) -> None:
    form = ProtobufFormat.of(order_class(messages), confluent=True)
    body = order_class(messages)(id=7).SerializeToString()
    assert form.reader()(framed(9, b"\0" + body))["id"] == 7
    assert form.reader()(framed(9, b"\x04\x02\x00" + body))["id"] == 7


def test_misfits_go_to_the_dead_letter_topic_with_where_they_came_from(
    spark: SparkSession,
    broker: TestBroker,
    options: dict[str, str],
    new_topic: Callable[..., str],
    fill: Callable[..., None],
    checkpoint: str,
) -> None:
    topic, rejected = new_topic(), new_topic(prefix="rejected")
    fill(topic, [b'{"id": 0}', b"{broken"], key=b"k", headers=[("trace", b"\xff"), ("none", None)])
    fill(topic, [b'{"id": %d}' % number for number in range(2, 50)])
    source = spark.readStream.format("ottla").options(**options, subscribe=topic, includeHeaders="true")
    orders = decode(
        source.option("startingOffsets", "earliest").load(),
        "json",
        ORDER,
        dead_letters=DeadLetters(topic=rejected, bootstrap_servers=broker.bootstrap_servers),
    )
    # A filter that Spark would like to do first must not hide a dead letter.
    query = (
        orders.where("offset > 40")
        .select("offset", "value.id")
        .writeStream.format("memory")
        .queryName("decoded")
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert sorted(row.id for row in spark.table("decoded").collect()) == list(range(41, 50))
    [letter] = sync.read_table(rejected, bootstrap_servers=broker.bootstrap_servers).to_pylist()
    assert (letter["key"], letter["value"]) == (b"k", b"{broken")
    assert [(header["key"], header["value"]) for header in letter["headers"]] == [
        ("trace", b"\xff"),
        ("none", None),
        ("dead-letter.reason", b"it is no JSON"),
        ("dead-letter.topic", topic.encode()),
        ("dead-letter.partition", b"0"),
        ("dead-letter.offset", b"1"),
    ]


def test_a_query_whose_dead_letters_cannot_be_stored_stops(spark: SparkSession, new_topic: Callable[..., str]) -> None:
    rows = values(spark, b"{broken")
    nowhere = DeadLetters(topic="rejected", bootstrap_servers="127.0.0.1:1", options={"kafka.max.block.ms": "1000"})
    with pytest.raises(Exception, match=r"127\.0\.0\.1:1"):
        decode(rows, "json", ORDER, dead_letters=nowhere).collect()


def test_good_records_are_not_held_up_by_a_dead_letter_topic(spark: SparkSession) -> None:
    """Nobody connects to it before there is something to send."""
    nowhere = DeadLetters(topic="rejected", bootstrap_servers="127.0.0.1:1")
    found = decode(values(spark, b'{"id": 1}'), "json", ORDER, dead_letters=nowhere)
    assert found.select(sql.sum("value.id")).first()[0] == 1  # type: ignore[index]


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ("{", "is no JSON"),
        ({"type": "record", "name": "a", "fields": [{"name": "b", "type": ["null", "a"]}]}, "contains itself"),
        (["int", "string"], "may be any of"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 50}, "at most 38"),
    ],
)
def test_avro_schemas_that_make_no_column_are_refused(schema: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        _ = AvroFormat(schema).spark_type


def test_avro_schemas_are_taken_as_text(spark: SparkSession) -> None:
    found = decode(values(spark, avro("long", 7)), "avro", json.dumps("long")).collect()
    assert found[0].value == 7


def test_messages_that_are_not_in_the_descriptor_set_are_refused(messages: bytes) -> None:
    with pytest.raises(ValueError, match=r"no message 'shop\.Order2', but google\.protobuf\.Timestamp, shop\.Order"):
        _ = ProtobufFormat(messages, "shop.Order2").spark_type


def test_a_value_that_a_column_cannot_hold_spoils_no_other() -> None:
    rows, reasons = read_values(pa.array([b"1", b"300", b"2"]), int, pa.int8())
    assert rows.to_pylist() == [1, None, 2]
    assert "out of range" in reasons[1].as_py()


def test_wrong_arguments_say_what_to_do(spark: SparkSession) -> None:
    rows = values(spark, b"")
    with pytest.raises(ValueError, match="must be one of json, avro, protobuf"):
        decode(rows, "csv", ORDER)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no column 'body' to decode; there are value"):
        decode(rows, "json", ORDER, column="body")
    with pytest.raises(ValueError, match="give one of the two"):
        decode(rows, "json", ORDER, dead_letters=DeadLetters(topic="x"), error_column="error")
