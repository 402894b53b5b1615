"""Batches as they are built here, and read by others."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.record.batch import HEADER_SIZE, Batch, records
from ottla.record.build import BatchBuilder, build_batch
from ottla.record.compression import Codec
from ottla.record.kernels import Record
from ottla.wire.errors import EncodeError
from tests.unit.record.samples import (
    EXAMPLE,
    NOW,
    AiokafkaBatch,
    AiokafkaBuilder,
    Fields,
    KafkaPythonBatch,
    dated_fields,
    plain,
    records_of,
    some_fields,
)
from tests.unit.record.test_kernels import each_kernel


def filled(builder: BatchBuilder, fields: list[Fields]) -> BatchBuilder:
    for timestamp, key, value, headers in fields:
        assert builder.append(timestamp, key, value, headers) is not None
    return builder


@pytest.mark.parametrize("codec", list(Codec), ids=lambda codec: codec.name.lower())
@given(fields=some_fields)
def test_aiokafka_reads_what_is_built(codec: Codec, fields: list[Fields]) -> None:
    batch = AiokafkaBatch(filled(BatchBuilder(codec), fields).build())
    assert batch.validate_crc()
    assert [plain(record) for record in batch] == [plain(record) for record in records_of(fields)]


@given(fields=some_fields, codec=st.sampled_from([Codec.NONE, Codec.GZIP]))
def test_kafka_python_reads_what_is_built(fields: list[Fields], codec: Codec) -> None:
    batch = KafkaPythonBatch(filled(BatchBuilder(codec), fields).build())
    assert batch.validate_crc()
    assert [plain(record) for record in batch] == [plain(record) for record in records_of(fields)]


@given(
    fields=dated_fields,
    producer=st.tuples(st.integers(0, 2**62), st.integers(0, 2**15 - 1), st.integers(0, 2**31 - 1)),
    transactional=st.booleans(),
)
def test_a_batch_is_byte_for_byte_that_of_aiokafka(
    fields: list[Fields], producer: tuple[int, int, int], transactional: bool
) -> None:
    other = AiokafkaBuilder(2, 0, transactional, *producer, 2**30)
    for offset, (timestamp, key, value, headers) in enumerate(fields):
        assert other.append(offset, timestamp, key, value, headers) is not None
    producer_id, producer_epoch, base_sequence = producer
    builder = BatchBuilder(
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        transactional=transactional,
    )
    assert filled(builder, fields).build() == bytes(other.build())


def test_a_record_that_does_not_fit_changes_nothing() -> None:
    builder = BatchBuilder(max_size=HEADER_SIZE + 100)
    assert builder.append(NOW, b"k", bytes(60)) == 0
    before = builder.build()
    assert builder.append(NOW + 50, b"k", bytes(60)) is None
    assert builder.build() == before
    assert builder.append(NOW + 50, None, b"small") == 1
    assert builder.batch_size == len(builder.build()) <= HEADER_SIZE + 100


def test_producer_fields_can_be_set_until_the_batch_is_built() -> None:
    builder = filled(BatchBuilder(), EXAMPLE)
    builder.producer_id, builder.producer_epoch, builder.base_sequence = 12, 3, 45
    builder.transactional = True
    batch = Batch(builder.build())
    batch.validate()
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (12, 3, 45)
    assert batch.transactional
    builder.base_sequence = 99
    assert Batch(builder.build()).base_sequence == 99


def test_a_builder_without_records_has_nothing_to_build() -> None:
    with pytest.raises(EncodeError, match="a batch of 0 records from offset 0 on cannot end at None"):
        BatchBuilder().build()


def test_gaps_and_both_ends_survive_a_rebuild() -> None:
    kept = [Record(103, NOW, b"a", b"1"), Record(107, NOW - 5, b"b", None, [("h", None)])]
    batch = Batch(build_batch(kept, Codec.LZ4, base_offset=100, last_offset=110, base_timestamp=NOW - 100))
    assert (batch.base_offset, batch.last_offset, batch.count) == (100, 110, 2)
    assert (batch.base_timestamp, batch.max_timestamp) == (NOW - 100, NOW)
    assert records(batch) == kept
    with pytest.raises(EncodeError, match="cannot end at 106"):
        build_batch(kept, last_offset=106)
    with pytest.raises(EncodeError, match="offset 103 is not after"):
        build_batch(kept, base_offset=104)
    with pytest.raises(EncodeError, match="offset 103 is not after 107"):
        build_batch(kept[::-1], base_offset=100)


def test_a_compacted_batch_may_be_left_without_records() -> None:
    batch = Batch(build_batch([], base_offset=50, last_offset=59, producer_id=4, producer_epoch=0, base_sequence=7))
    batch.validate(gaps=True)
    assert (batch.count, batch.next_offset, batch.last_sequence) == (0, 60, 16)
    assert records(batch) == []
    with pytest.raises(EncodeError, match="without records needs a base offset"):
        build_batch([])
    with pytest.raises(EncodeError, match="cannot end at None"):
        build_batch([], base_offset=50)


def test_a_delete_horizon_takes_the_place_of_the_base_timestamp() -> None:
    kept = [Record(3, NOW, b"k", None)]
    batch = Batch(build_batch(kept, delete_horizon_ms=NOW + 86_400_000))
    assert batch.delete_horizon_ms == batch.base_timestamp == NOW + 86_400_000
    assert batch.max_timestamp == NOW
    assert records(batch) == kept


def test_append_time_makes_a_batch_that_the_log_has_stamped() -> None:
    batch = Batch(build_batch([Record(3, 1, None, b"v")], append_time=NOW))
    assert batch.append_time == NOW
    assert records(batch)[0].timestamp == NOW


def test_any_bytes_like_key_and_value_are_taken() -> None:
    builder = BatchBuilder()
    builder.append(NOW, bytearray(b"key"), memoryview(b"a value")[2:])
    assert plain(records(Batch(builder.build()))[0]) == (0, NOW, b"key", b"value", [])


@pytest.mark.parametrize("codec", [9, 35, "lz4", None, 3], ids=str)
def test_only_a_codec_is_taken_for_one(codec: Any) -> None:
    with pytest.raises(EncodeError, match=r"is no ottla\.record\.Codec"):
        BatchBuilder(codec)


@pytest.mark.parametrize("number", [1.7, "1", None], ids=str)
def test_offsets_and_timestamps_are_whole_numbers(number: Any) -> None:
    with pytest.raises(TypeError):
        BatchBuilder().append(number, None, b"v")
    with pytest.raises(TypeError):
        Record(number, 0, None, b"v")
    with pytest.raises(TypeError):
        Record(0, number, None, b"v")
    with pytest.raises(OverflowError, match="9223372036854775808 does not fit in 64 bits"):
        BatchBuilder().append(2**63, None, b"v")


@each_kernel
def test_room_before_the_records_is_left_alone(kernel: Any) -> None:
    plain, roomy = kernel.RecordWriter(), kernel.RecordWriter(room=61)
    for writer in (plain, roomy):
        for number in range(2_000):
            writer.append(1_700_000_000_000 + number, b"key", b"v" * (number % 50))
    assert bytes(roomy.records()) == bytes(plain.records())
    assert (roomy.size, len(roomy.with_room())) == (plain.size, plain.size + 61)
    roomy.with_room()[:61] = b"h" * 61
    assert bytes(roomy.with_room()) == b"h" * 61 + bytes(plain.records())


@each_kernel
@pytest.mark.parametrize("room", [-1, 1025])
def test_room_that_no_header_takes_is_refused(kernel: Any, room: int) -> None:
    with pytest.raises(ValueError, match=f"room is {room}"):
        kernel.RecordWriter(room=room)


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
def test_a_batch_that_is_built_once_is_the_same_batch(codec: Codec) -> None:
    builder = BatchBuilder(codec, producer_id=9, producer_epoch=1, base_sequence=5)
    for number in range(100):
        builder.append(1_700_000_000_000, None, b"%d" % number)
    again = builder.build()
    assert bytes(builder.build_once()) == again
    Batch(again).check_crc()
