"""The v2 batch as a view, the walk over a run of entries, and both against other people's readers and writers."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.record.batch import Batch, LegacyEntry, batches, records, scan
from ottla.record.build import BatchBuilder, build_batch
from ottla.record.compression import Codec
from ottla.record.kernels import Record
from ottla.record.legacy import build_message_set
from ottla.wire.errors import ErrorCode, ProtocolError
from tests.unit.record.samples import (
    EXAMPLE,
    NOW,
    AiokafkaBatch,
    AiokafkaBuilder,
    Fields,
    KafkaPythonBatch,
    KafkaPythonBuilder,
    dated_fields,
    plain,
    records_of,
)

LIMIT = 1 << 20
each_codec = pytest.mark.parametrize("codec", list(Codec), ids=lambda codec: codec.name.lower())


def example(codec: Codec = Codec.NONE, **fields: Any) -> bytes:
    return build_batch(records_of(EXAMPLE, fields.pop("first", 40)), codec, **fields)


def test_the_header_is_read_as_others_read_it() -> None:
    data = example(Codec.GZIP, leader_epoch=6, producer_id=77, producer_epoch=5, base_sequence=90, transactional=True)
    batch, aiokafka, kafka_python = Batch(data), AiokafkaBatch(data), KafkaPythonBatch(data)
    assert batch.size == len(data) == kafka_python.size_in_bytes
    assert batch.leader_epoch == kafka_python.leader_epoch == 6
    assert batch.last_sequence == kafka_python.last_sequence == 93
    assert batch.last_offset == 43
    names = ["base_offset", "crc", "attributes", "last_offset_delta", "max_timestamp", "next_offset", "magic"]
    for name in [*names, "producer_id", "producer_epoch", "base_sequence"]:
        assert getattr(batch, name) == getattr(aiokafka, name) == getattr(kafka_python, name)
    assert batch.base_timestamp == aiokafka.first_timestamp == NOW
    assert batch.codec is Codec.GZIP
    assert (batch.transactional, batch.control, batch.log_append_time) == (True, False, False)
    assert (batch.append_time, batch.delete_horizon_ms) == (None, None)
    assert batch.count == 4
    assert repr(batch) == f"Batch(base_offset=40, count=4, size={len(data)})"


@each_codec
def test_records_come_out_of_every_codec(codec: Codec) -> None:
    batch = Batch(example(codec))
    batch.validate()
    assert [plain(record) for record in records(batch, LIMIT)] == [plain(r) for r in records_of(EXAMPLE, 40)]
    assert scan(batch, LIMIT).null_keys == 1


@each_codec
@given(fields=dated_fields, transactional=st.booleans())
def test_batches_of_aiokafka_are_read_here(codec: Codec, fields: list[Fields], transactional: bool) -> None:
    builder = AiokafkaBuilder(2, codec, transactional, 5, 1, 3, 2**30)
    for offset, (timestamp, key, value, headers) in enumerate(fields):
        assert builder.append(offset, timestamp, key, value, headers) is not None
    batch = Batch(bytes(builder.build()))
    batch.validate()
    scan(batch, LIMIT)
    assert batch.transactional == transactional
    assert [plain(r) for r in records(batch, LIMIT)] == [plain(r) for r in records_of(fields)]


@given(fields=dated_fields, codec=st.sampled_from([Codec.NONE, Codec.GZIP]))
def test_batches_of_kafka_python_are_read_here(fields: list[Fields], codec: Codec) -> None:
    builder = KafkaPythonBuilder(2, codec, False, -1, -1, -1, 2**30)
    for offset, (timestamp, key, value, headers) in enumerate(fields):
        assert builder.append(offset, timestamp, key, value, headers) is not None
    batch = Batch(bytes(builder.build()))
    batch.validate()
    assert [plain(r) for r in records(batch, LIMIT)] == [plain(r) for r in records_of(fields)]


def test_a_changed_byte_is_found_by_the_crc() -> None:
    data = bytearray(example())
    Batch(data).check_crc()
    data[-1] ^= 1
    with pytest.raises(ProtocolError, match="the CRC is 0x") as caught:
        Batch(data).validate()
    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize(
    ("position", "value", "reason"),
    [
        (8, b"\xff\xff\xff\xff", "batch length -1 is below 49 or beyond"),
        (8, b"\x00\x00\x00\x30", "batch length 48 is below 49"),
        (8, b"\x7f\xff\xff\xff", "batch length 2147483647 is below 49 or beyond"),
        (16, b"\x03", "magic 3 is not that of a v2 batch"),
        (16, b"\x01", "magic 1 is not that of a v2 batch"),
    ],
)
def test_a_header_that_cannot_be_is_refused_at_its_byte(position: int, value: bytes, reason: str) -> None:
    data = bytearray(b"--" + example())
    data[2 + position : 2 + position + len(value)] = value
    with pytest.raises(ProtocolError, match=reason) as caught:
        Batch(data, 2)
    assert caught.value.offset == 2 + position
    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE


def test_fewer_bytes_than_a_header_are_refused() -> None:
    with pytest.raises(ProtocolError, match="60 bytes are fewer than the 61"):
        Batch(example()[:60])


@pytest.mark.parametrize(
    ("position", "value", "reason"),
    [
        (0, b"\xff", "base offset -7205"),
        (23, b"\xff", "last offset delta -16"),
        (0, b"\x7f" + b"\xff" * 7, "base offset 9223372036854775807 with last offset delta 3"),
        (57, b"\xff", "record count -16"),
        (60, b"\x03", "record count 3 does not agree with 4 offsets"),
        (60, b"\x05", "record count 5 does not agree with 4 offsets"),
        (22, b"\x07", "compression codec 7 is unknown"),
    ],
)
def test_a_header_that_contradicts_itself_is_refused(position: int, value: bytes, reason: str) -> None:
    data = bytearray(example())
    data[position : position + len(value)] = value
    with pytest.raises(ProtocolError, match=reason):
        Batch(data).validate()


def test_an_unknown_codec_has_its_own_error_code() -> None:
    data = bytearray(example())
    data[22] = 5
    with pytest.raises(ProtocolError) as caught:
        records(Batch(data), LIMIT)
    assert caught.value.code is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


def test_gaps_are_for_compacted_batches_only() -> None:
    batch = Batch(build_batch([Record(3, 1, b"k", b"v"), Record(9, 2, b"l", b"w")], base_offset=2, last_offset=12))
    batch.validate(gaps=True)
    scan(batch, LIMIT, gaps=True)
    with pytest.raises(ProtocolError, match="record count 2 does not agree with 11 offsets"):
        batch.validate()
    with pytest.raises(ProtocolError, match="offset delta 1 does not follow"):
        scan(batch, LIMIT)
    assert [record.offset for record in records(batch, LIMIT)] == [3, 9]
    assert batch.next_offset == 13


def test_a_scan_holds_the_records_to_the_header() -> None:
    data = bytearray(example())
    data[23:27] = (7).to_bytes(4, "big")
    with pytest.raises(ProtocolError, match="the last offset delta is 3 and the header says 7"):
        scan(Batch(data), LIMIT)
    data[23:27] = (2).to_bytes(4, "big")
    with pytest.raises(ProtocolError, match="the last offset delta is 3 and the header says 2"):
        scan(Batch(data), LIMIT, gaps=True)


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
def test_decompression_stops_at_the_limit(codec: Codec) -> None:
    batch = Batch(build_batch([Record(0, NOW, None, bytes(500_000))], codec))
    assert len(records(batch, 600_000)) == 1
    with pytest.raises(ProtocolError):
        records(batch, 400_000)
    with pytest.raises(ProtocolError):
        scan(batch, 400_000)


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
def test_malformed_compressed_records_are_placed_in_the_batch(codec: Codec) -> None:
    data = bytearray(example(codec=codec))
    data[61:] = b"\xff" * (len(data) - 61)
    for read in (records, scan):
        with pytest.raises(ProtocolError, match=r"\(records, byte 61\)") as caught:
            read(Batch(data), LIMIT)
        assert caught.value.code is ErrorCode.CORRUPT_MESSAGE


def test_a_place_inside_compressed_records_counts_from_the_start_of_the_batch() -> None:
    data = example(codec=Codec.SNAPPY)
    cut = bytearray(data + (99).to_bytes(4, "big"))
    cut[8:12] = (len(cut) - 12).to_bytes(4, "big")
    with pytest.raises(ProtocolError) as caught:
        records(Batch(cut), LIMIT)
    assert (caught.value.where, caught.value.offset) == ("records", len(data))


def test_the_log_writes_offset_and_epoch_under_the_crc() -> None:
    data = bytearray(example(first=0))
    batch = Batch(data)
    batch.assign(123_456, 8)
    assert (batch.base_offset, batch.leader_epoch, batch.next_offset) == (123_456, 8, 123_460)
    again = Batch(data)
    again.validate()
    assert (again.base_offset, again.leader_epoch, again.crc) == (123_456, 8, batch.crc)
    assert AiokafkaBatch(bytes(data)).validate_crc()
    assert [record.offset for record in records(again, LIMIT)] == [123_456, 123_457, 123_458, 123_459]


def test_the_log_cannot_write_into_a_buffer_that_is_not_writable() -> None:
    with pytest.raises(TypeError, match=r"read-only|read-write"):
        Batch(example()).assign(1, 1)


def test_append_time_replaces_every_timestamp_and_renews_the_crc() -> None:
    data = bytearray(example())
    Batch(data).set_max_timestamp(NOW + 9, append_time=True)
    batch = Batch(data)
    batch.validate()
    assert (batch.log_append_time, batch.append_time, batch.max_timestamp) == (True, NOW + 9, NOW + 9)
    assert {record.timestamp for record in records(batch, LIMIT)} == {NOW + 9}
    assert {record.timestamp for record in AiokafkaBatch(bytes(data))} == {NOW + 9}
    batch.set_max_timestamp(NOW + 70, append_time=False)
    assert bytes(data) == example()


def test_sequence_numbers_wrap_to_zero() -> None:
    assert Batch(example(base_sequence=2**31 - 2)).last_sequence == 1
    assert Batch(example()).last_sequence == -1


# ---- runs of entries ----


def test_a_run_is_walked_batch_by_batch_up_to_a_partial_one() -> None:
    first, second = example(), example(Codec.GZIP, first=44)
    for cut in range(len(first)):
        walk = batches(first + second + first[:cut])
        assert [batch.size for batch in walk] == [len(first), len(second)]
        assert bytes(walk.remainder) == first[:cut]


def test_a_whole_run_leaves_no_remainder_and_can_be_walked_again() -> None:
    walk = batches(bytearray(example() * 3))
    for _ in range(2):
        assert [entry.data.nbytes for entry in walk] == [len(example())] * 3
        assert len(walk.remainder) == 0


def test_old_messages_in_a_run_come_as_their_slices() -> None:
    old = [build_message_set([Record(offset, NOW, b"k", b"v")], magic=magic) for offset, magic in ((7, 0), (8, 1))]
    found = list(batches(old[0] + example(first=9) + old[1]))
    assert isinstance(found[0], LegacyEntry)
    assert isinstance(found[1], Batch)
    assert isinstance(found[2], LegacyEntry)
    assert [entry.magic for entry in found] == [0, 2, 1]
    assert [found[0].offset, found[2].offset] == [7, 8]
    assert [bytes(found[0].data), bytes(found[2].data)] == old
    assert repr(found[0]) == f"LegacyEntry(offset=7, magic=0, size={len(old[0])})"


@pytest.mark.parametrize(
    ("position", "value", "reason"),
    [
        (8, b"\xff\xff\xff\xff", "length -1 is below 49, the least for magic 2"),
        (8, b"\x00\x00\x00\x00", "length 0 is below 49, the least for magic 2"),
        (16, b"\x00", None),
        (16, b"\x09", "magic 9 is not 0, 1 or 2"),
    ],
)
def test_a_run_with_an_impossible_entry_is_refused_at_its_byte(position: int, value: bytes, reason: str | None) -> None:
    data = bytearray(example() * 2)
    start = len(example()) + position
    data[start : start + len(value)] = value
    walk = iter(batches(data))
    assert isinstance(next(walk), Batch)
    if reason is None:
        assert isinstance(next(walk), LegacyEntry)
        return
    with pytest.raises(ProtocolError, match=reason) as caught:
        next(walk)
    assert caught.value.offset == start


@given(st.binary(max_size=200), st.data())
def test_hostile_runs_give_entries_or_a_protocol_error(junk: bytes, data: Any) -> None:
    run = bytearray(example() + example(Codec.LZ4) + junk)
    for _ in range(data.draw(st.integers(0, 4))):
        run[data.draw(st.integers(0, len(run) - 1))] = data.draw(st.integers(0, 255))
    try:
        for entry in batches(run):
            if isinstance(entry, Batch):
                records(entry, LIMIT)
                scan(entry, LIMIT)
                entry.validate()
    except ProtocolError:
        pass


def test_a_builder_makes_what_the_view_reads() -> None:
    builder = BatchBuilder(base_offset=5, leader_epoch=2)
    builder.append(NOW, b"k", b"v")
    batch = Batch(builder.build())
    assert (batch.base_offset, batch.leader_epoch, batch.payload.nbytes) == (5, 2, builder.size)
