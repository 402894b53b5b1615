import array
import gc
import struct
from collections.abc import Iterator
from typing import Any

import pytest

from ottla.wire.api.api_versions import ApiVersionsResponse
from ottla.wire.api.create_topics import CreatableTopicConfigs
from ottla.wire.api.describe_topic_partitions import Cursor, DescribeTopicPartitionsRequest
from ottla.wire.api.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    LeaderIdAndEpoch,
    PartitionData,
)
from ottla.wire.api.heartbeat import HeartbeatRequest
from ottla.wire.api.metadata import MetadataRequest, MetadataRequestTopic
from ottla.wire.api.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.wire.compile import MOST_STEPS_EXPLAINED, Engine, decode, encode, encode_buffers, make_decoder
from ottla.wire.decoding import MOST_TAGS
from ottla.wire.errors import EncodeError, ProtocolError
from ottla.wire.schema import schema_of, unknown_tags
from ottla.wire.varint import encode_uvarint
from ottla.wire.walk import Step, walk
from tests.conformance.codecs import Codec, api_codecs, other_codecs
from tests.conformance.samples import Limits, make_sample

from .engines import ENGINES, decode_with, encode_with

EVERYTHING = Limits(unknown_tags=True)


@pytest.mark.parametrize("codec", [*api_codecs(), *other_codecs()], ids=str)
def test_every_version_of_every_message_survives_the_round_trip_and_both_engines_agree(codec: Codec) -> None:
    engines: list[Engine] = [param.values[0] for param in ENGINES]  # type: ignore[misc]
    for index in range(6):
        sample = make_sample(codec, index, EVERYTHING)
        encodings = {encode_with(engine, sample, codec.version) for engine in engines}
        assert len(encodings) == 1
        (data,) = encodings
        for engine in engines:
            # Bytes after the message are somebody else's.
            back, end = make_decoder(engine, codec.message, codec.version)(data + b"after", 0)
            assert back == sample
            assert end == len(data)
        steps = list(walk(schema_of(codec.message), codec.version, data))
        assert (steps[-1].end if steps else 0) == len(data)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("wrap", [bytes, bytearray, memoryview], ids=lambda wrap: wrap.__name__)
def test_any_kind_of_bytes_can_be_decoded(engine: Engine, wrap: Any) -> None:
    request = produce_request(b"r" * 5000)
    data = encode(request, 9)
    assert decode_with(engine, ProduceRequest, 9, wrap(data)) == request


def produce_request(records: bytes) -> ProduceRequest:
    partition = PartitionProduceData(index=1, records=records)
    return ProduceRequest(acks=-1, topic_data=[TopicProduceData(name="t", partition_data=[partition])])


def test_large_records_decode_to_a_view_of_the_frame() -> None:
    frame = encode(produce_request(b"r" * 5000), 9)
    records = decode(ProduceRequest, 9, frame).topic_data[0].partition_data[0].records
    assert isinstance(records, memoryview)
    assert records.obj is frame


def test_large_records_are_encoded_without_a_copy() -> None:
    records = b"r" * 100_000
    buffers = encode_buffers(produce_request(records), 9)
    assert any(buffer is records for buffer in buffers)
    assert b"".join(buffers) == encode(produce_request(records), 9)


def test_records_that_are_not_in_memory_stay_as_they_are_in_the_buffer_list() -> None:
    class FileSlice:
        def __len__(self) -> int:
            return 10

    part = FileSlice()
    response = FetchResponse(
        responses=[FetchableTopicResponse(topic="t", partitions=[PartitionData(records=part)])]  # type: ignore[arg-type]
    )
    buffers = encode_buffers(response, 4)
    assert buffers[1] is part
    assert buffers[0].endswith(struct.pack(">i", 10))


@pytest.mark.parametrize("engine", ENGINES)
def test_fields_that_a_version_does_not_have_read_as_their_defaults(engine: Engine) -> None:
    request = FetchRequest(
        max_wait_ms=5,
        session_id=9,
        rack_id="r",
        topics=[FetchTopic(topic="a", partitions=[FetchPartition(partition=2, current_leader_epoch=4)])],
    )
    back = decode_with(engine, FetchRequest, 0, encode_with(engine, request, 0))
    assert back.session_id == 0
    assert back.rack_id == ""
    assert back.topics[0].partitions[0] == FetchPartition(partition=2)


@pytest.mark.parametrize("engine", ENGINES)
def test_unknown_tagged_fields_are_kept_and_written_back_in_order(engine: Engine) -> None:
    data = encode(HeartbeatRequest(group_id="g"), 4)[:-1] + bytes.fromhex("02 05 01 aa 63 02 bbcc")
    back = decode_with(engine, HeartbeatRequest, 4, data)
    assert unknown_tags(back) == {5: b"\xaa", 99: b"\xbb\xcc"}
    assert encode_with(engine, back, 4) == data


@pytest.mark.parametrize("engine", ENGINES)
def test_more_tagged_fields_than_any_message_has_are_refused(engine: Engine) -> None:
    start = encode(HeartbeatRequest(group_id="g"), 4)[:-1]
    tags = [encode_uvarint(1_000 + tag) + b"\0" for tag in range(MOST_TAGS + 1)]
    back = decode_with(engine, HeartbeatRequest, 4, b"".join([start, encode_uvarint(MOST_TAGS), *tags[:-1]]))
    assert len(unknown_tags(back)) == MOST_TAGS
    with pytest.raises(ProtocolError):
        decode_with(engine, HeartbeatRequest, 4, b"".join([start, encode_uvarint(MOST_TAGS + 1), *tags]))


@pytest.mark.parametrize("engine", ENGINES)
def test_a_tagged_field_at_its_default_is_not_written(engine: Engine) -> None:
    plain = PartitionData()
    spelled_out = PartitionData(current_leader=LeaderIdAndEpoch())
    named = PartitionData(current_leader=LeaderIdAndEpoch(leader_id=3, leader_epoch=1))
    sizes = [
        len(encode_with(engine, FetchResponse(responses=[FetchableTopicResponse(partitions=[partition])]), 12))
        for partition in (plain, spelled_out, named)
    ]
    assert sizes[0] == sizes[1]
    assert sizes[2] == sizes[0] + 1 + 1 + 4 + 4 + 1
    assert decode_with(engine, ApiVersionsResponse, 3, bytes.fromhex("0000 01 00000000 00")).finalized_features == []


@pytest.mark.parametrize("engine", ENGINES)
def test_a_struct_may_be_null_where_the_declaration_says_so(engine: Engine) -> None:
    for cursor in (None, Cursor(topic_name="t", partition_index=3)):
        request = DescribeTopicPartitionsRequest(cursor=cursor)
        assert decode_with(engine, DescribeTopicPartitionsRequest, 0, encode_with(engine, request, 0)).cursor == cursor


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("message", "version", "complaint"),
    [
        (MetadataRequest(topics=[MetadataRequestTopic(name=None)]), 1, "topics[0].name is None"),
        (HeartbeatRequest(group_id=None), 0, "group_id is None"),  # type: ignore[arg-type]
        (FetchRequest(topics=5), 4, "topics = 5 is no list"),  # type: ignore[arg-type]
        (FetchRequest(topics=["a"]), 4, "topics[0] = 'a' is no FetchTopic"),  # type: ignore[list-item]
        (HeartbeatRequest(generation_id=2**31), 0, "generation_id = 2147483648 is no int32"),
        (HeartbeatRequest(generation_id="7"), 0, "generation_id = '7' is no int32"),  # type: ignore[arg-type]
        (HeartbeatRequest(generation_id=1.5), 0, "generation_id = 1.5 is no int32"),  # type: ignore[arg-type]
        (HeartbeatRequest(group_id="g" * 40_000), 0, "group_id has 40000 bytes, a string holds 32767 at most"),
        (HeartbeatRequest(group_id="g" * 40_000), 4, "group_id has 40000 bytes"),
        (HeartbeatRequest(group_id="\ud800"), 4, "group_id = '\\ud800' cannot be written as UTF-8"),
        (MetadataRequest(topics=[MetadataRequestTopic(topic_id=b"short")]), 10, "topics[0].topic_id = b'short'"),
    ],
)
def test_a_value_that_does_not_fit_is_named(engine: Engine, message: Any, version: int, complaint: str) -> None:
    with pytest.raises(EncodeError) as caught:
        encode_with(engine, message, version)
    assert complaint in str(caught.value)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_part_of_the_wrong_class_is_refused(engine: Engine) -> None:
    with pytest.raises(EncodeError):
        encode_with(engine, FetchRequest(topics=[CreatableTopicConfigs()]), 4)  # type: ignore[list-item]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("version", "data", "complaint"),
    [
        (0, "0000", "array needs 4 bytes, 2 are left (topics, byte 0)"),
        (0, "00000001 0005 61", "string needs 5 bytes, 1 are left (topics[0].name, byte 6)"),
        (0, "00000001 ffff", "string is null where null is not allowed (topics[0].name, byte 4)"),
        (1, "fffffffe", "array has length -2 (topics, byte 0)"),
        (0, "00000001 0002 c328", "b'\\xc3(' is not UTF-8 (topics[0].name, byte 4)"),
        (9, "ffffffffff01", "a varint runs over five bytes (topics, byte 5)"),
    ],
)
def test_bad_bytes_are_refused_with_their_place(engine: Engine, version: int, data: str, complaint: str) -> None:
    with pytest.raises(ProtocolError) as caught:
        decode_with(engine, MetadataRequest, version, bytes.fromhex(data))
    assert str(caught.value) == f"MetadataRequest v{version}: {complaint}"


@pytest.mark.parametrize("engine", ENGINES)
def test_a_tagged_field_that_is_longer_than_its_value_is_refused(engine: Engine) -> None:
    # Fetch v12: cluster_id is tag 0; its length says 5 bytes, its string takes 2.
    data = encode(FetchRequest(cluster_id="x"), 12)
    assert data.endswith(bytes.fromhex("01 00 02 02 78"))
    with pytest.raises(ProtocolError, match="cluster_id"):
        decode_with(engine, FetchRequest, 12, data[:-3] + bytes.fromhex("05 02 78 000000"))


@pytest.mark.parametrize("engine", ENGINES)
def test_a_version_that_does_not_exist_is_refused(engine: Engine) -> None:
    with pytest.raises(ValueError, match="HeartbeatRequest has versions 0-4, not 5"):
        encode_with(engine, HeartbeatRequest(), 5)
    with pytest.raises(ValueError, match="HeartbeatRequest has versions 0-4, not 5"):
        decode_with(engine, HeartbeatRequest, 5, b"")


@pytest.mark.skipif(len(ENGINES) == 1, reason="the compiled codec is not built or not wanted")
def test_a_decoded_message_is_nothing_to_the_cyclic_garbage_collector() -> None:
    compiled: Engine = ENGINES[1].values[0]  # type: ignore[assignment]
    request = FetchRequest(topics=[FetchTopic(topic="a", partitions=[FetchPartition(partition=2)])])
    back = decode_with(compiled, FetchRequest, 4, encode(request, 4))
    assert not any(map(gc.is_tracked, (back, back.topics, back.topics[0], back.topics[0].partitions[0])))


@pytest.mark.parametrize("engine", ENGINES)
def test_a_position_after_the_bytes_is_refused(engine: Engine) -> None:
    with pytest.raises(ProtocolError, match="group_id, byte 99"):
        make_decoder(engine, HeartbeatRequest, 0)(b"\0" * 20, 99)


def test_saying_where_a_large_message_is_malformed_stays_cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = 0

    def counted(*arguments: Any) -> Iterator[Step]:
        nonlocal steps
        for step in walk(*arguments):
            steps += 1
            yield step

    monkeypatch.setattr("ottla.wire.compile.walk", counted)
    count = 100_000
    with pytest.raises(ProtocolError, match="byte"):
        decode(MetadataRequest, 0, count.to_bytes(4, "big") + b"\0\1a" * (count - 1))
    assert steps == MOST_STEPS_EXPLAINED


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("content", [bytearray(b"abc"), memoryview(b"abc")], ids=["bytearray", "memoryview"])
def test_unknown_tags_may_be_any_kind_of_bytes(engine: Engine, content: Any) -> None:
    request = HeartbeatRequest(group_id="g")
    request.unknown_tags = {5: content}  # type: ignore[attr-defined]
    assert encode_with(engine, request, 4).endswith(bytes.fromhex("01 05 03 616263"))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("tags", [{5: "abc"}, {5: 3}, {5: None}, {-1: b"x"}, {2**40: b"x"}], ids=str)
def test_unknown_tags_that_are_none_are_refused(engine: Engine, tags: Any) -> None:
    request = HeartbeatRequest(group_id="g")
    request.unknown_tags = tags  # type: ignore[attr-defined]
    with pytest.raises(EncodeError):
        encode_with(engine, request, 4)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("count", [20, 5000])
def test_records_are_counted_in_bytes_whatever_their_items(engine: Engine, count: int) -> None:
    numbers = array.array("I", range(count))
    for records in (numbers, memoryview(numbers)):
        request = produce_request(records)  # type: ignore[arg-type]
        back = decode_with(engine, ProduceRequest, 9, encode_with(engine, request, 9))
        assert back.topic_data[0].partition_data[0].records == numbers.tobytes()
    view = memoryview(encode(produce_request(b"r" * 8000), 9) + b"\0" * 4)
    trimmed = view[: len(view) // 4 * 4]
    back = decode_with(engine, ProduceRequest, 9, trimmed.cast("I"))  # type: ignore[arg-type]
    assert back.topic_data[0].partition_data[0].records == b"r" * 8000


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("records", ["text" * 2000, [b"a"], 5], ids=["str", "list", "int"])
def test_records_that_are_no_bytes_are_refused(engine: Engine, records: Any) -> None:
    with pytest.raises(EncodeError, match=r"records = .* is no records"):
        encode_with(engine, produce_request(records), 9)


@pytest.mark.skipif(len(ENGINES) == 1, reason="the compiled codec is not built or not wanted")
def test_the_collector_never_sees_a_list_with_holes() -> None:
    compiled: Engine = ENGINES[1].values[0]  # type: ignore[assignment]
    request = FetchRequest(topics=[FetchTopic(topic=f"t{index}") for index in range(3000)])
    data = encode(request, 4)
    seen = 0

    def look(phase: str, _info: Any) -> None:
        nonlocal seen
        if phase == "start":
            seen += sum(
                len(repr(found[:2])) > 0 for found in gc.get_objects() if type(found) is list and len(found) > 2900
            )

    gc.callbacks.append(look)
    threshold = gc.get_threshold()
    gc.set_threshold(50)
    try:
        decode_with(compiled, FetchRequest, 4, data)
    finally:
        gc.set_threshold(*threshold)
        gc.callbacks.remove(look)
