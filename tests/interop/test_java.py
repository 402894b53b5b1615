"""Batches and message sets between Kafka's own Java classes and Ottla: in every format and codec, both ways."""

from collections.abc import Iterator
from typing import Any

import pytest
import xxhash

from ottla.record import Codec, EndMarker, Record, build_batch, build_end_marker, read_end_marker, records
from ottla.record.convert import downconvert, upconvert
from ottla.record.legacy import build_message_set, entries
from tests.java import JavaError, skip_without_maven

from .java_records import JavaRecords
from .samples import (
    LIMIT,
    NOW_MS,
    as_records,
    batches_from_columns,
    each_codec,
    each_magic,
    each_old_codec,
    read_batches,
    read_message_set,
    sample,
    stamped,
    whole_batches,
    without_timestamps,
)

pytestmark = [pytest.mark.maven, skip_without_maven("Kafka's own record classes checked nothing")]

PRODUCER: dict[str, Any] = {"producer_id": 2**40 + 3, "producer_epoch": 12, "base_sequence": 2**31 - 5}
MARKER: dict[str, Any] = {
    "producer_id": 2**40 + 3,
    "producer_epoch": 12,
    "coordinator_epoch": 9,
    "timestamp_ms": NOW_MS,
    "base_offset": 50,
    "leader_epoch": 4,
}


@pytest.fixture(scope="module")
def java() -> Iterator[JavaRecords]:
    program = JavaRecords()
    yield program
    program.close()


def all_records(found: list[dict[str, Any]]) -> list[Record]:
    return [record for batch in found for record in batch["records"]]


# Batches


@each_codec
def test_batches_of_java_are_read(java: JavaRecords, codec: Codec) -> None:
    originals = sample(base_offset=2**40)
    run = java.write(originals, 2, codec)
    assert read_batches(run) == originals
    assert [batch.codec for batch in whole_batches(run)] == [codec]


@each_codec
def test_java_reads_batches_built_from_objects(java: JavaRecords, codec: Codec) -> None:
    originals = sample(base_offset=2**40)
    found = java.read(build_batch(originals[:100], codec) + build_batch(originals[100:], codec))
    assert all_records(found) == originals
    assert [batch["codec"] for batch in found] == [codec, codec]


@each_codec
def test_java_reads_batches_built_from_columns(java: JavaRecords, codec: Codec) -> None:
    originals = sample(base_offset=2**40)
    run = batches_from_columns(originals, codec, batch_size=8000)
    found = java.read(b"".join(run))
    assert len(found) == len(run) > 2
    assert all_records(found) == originals


@pytest.mark.parametrize("append_time", [None, NOW_MS + 5], ids=["create time", "append time"])
@pytest.mark.parametrize("transactional", [True, False], ids=["transactional", "not transactional"])
def test_batches_without_compression_are_java_s_to_the_byte(
    java: JavaRecords, transactional: bool, append_time: int | None
) -> None:
    fields: dict[str, Any] = {"leader_epoch": 6, "transactional": transactional, "append_time": append_time, **PRODUCER}
    originals = sample(base_offset=30)
    ours = build_batch(originals, **fields)
    assert ours == java.write(originals, 2, Codec.NONE, **fields)
    (found,) = java.read(ours)
    assert found["records"] == (originals if append_time is None else stamped(originals, append_time))
    assert (found["log_append_time"], found["transactional"]) == (append_time is not None, transactional)
    (batch,) = whole_batches(ours)
    for name in ("base_offset", "last_offset", "leader_epoch", "max_timestamp", "last_sequence", "control", *PRODUCER):
        assert found[name] == getattr(batch, name)


@pytest.mark.parametrize("commit", [True, False], ids=["commit", "abort"])
def test_transaction_markers_are_java_s_to_the_byte(java: JavaRecords, commit: bool) -> None:
    theirs = java.write_end_marker(commit=commit, **MARKER)
    assert build_end_marker(commit=commit, **MARKER) == theirs
    (batch,) = whole_batches(theirs)
    assert batch.control
    assert read_end_marker(records(batch)[0]) == EndMarker(commit, MARKER["coordinator_epoch"])
    (found,) = java.read(theirs)
    assert (found["control"], found["commit"]) == (True, commit)
    assert found["coordinator_epoch"] == MARKER["coordinator_epoch"]


@each_codec
def test_java_reads_a_compacted_batch(java: JavaRecords, codec: Codec) -> None:
    originals = sample(base_offset=2000)[10::3]
    (found,) = java.read(build_batch(originals, codec, base_offset=2000, last_offset=3000))
    assert found["records"] == originals
    assert (found["base_offset"], found["last_offset"]) == (2000, 3000)


def test_java_refuses_a_damaged_batch(java: JavaRecords) -> None:
    damaged = bytearray(build_batch(sample()))
    damaged[-2] ^= 1
    with pytest.raises(JavaError, match="CorruptRecordException"):
        java.read(bytes(damaged))


# Message sets


@each_magic
@each_old_codec
def test_message_sets_of_java_are_read(java: JavaRecords, codec: Codec, magic: int) -> None:
    originals = sample(base_offset=2**40, headers=False)
    found = read_message_set(java.write(originals, magic, codec))
    assert {(message.magic, message.codec, message.log_append_time) for message in found} == {(magic, codec, False)}
    assert as_records(found) == (originals if magic else without_timestamps(originals))


@each_magic
@each_old_codec
def test_java_reads_message_sets(java: JavaRecords, codec: Codec, magic: int) -> None:
    originals = sample(base_offset=2**40, headers=False)
    data = build_message_set(originals[:100], magic, codec) + build_message_set(originals[100:], magic, codec)
    found = java.read(data)
    assert {(batch["magic"], batch["codec"]) for batch in found} == {(magic, codec)}
    assert all_records(found) == (originals if magic else without_timestamps(originals))


@each_magic
def test_message_sets_without_compression_are_java_s_to_the_byte(java: JavaRecords, magic: int) -> None:
    originals = sample(base_offset=30, headers=False)
    assert build_message_set(originals, magic) == java.write(originals, magic, Codec.NONE)


@each_magic
def test_the_checksum_of_the_lz4_header_is_taken_as_java_takes_it(java: JavaRecords, magic: int) -> None:
    # No reader of today minds that in magic 0 the frame's magic number is in it; those of Kafka 0.8 and 0.9 do.
    start = 0 if magic == 0 else 4
    originals = sample(headers=False)
    for data in (build_message_set(originals, magic, Codec.LZ4), java.write(originals, magic, Codec.LZ4)):
        (wrapper,) = entries(data)
        frame = wrapper.value
        assert frame is not None
        assert frame[6] == xxhash.xxh32_intdigest(frame[start:6]) >> 8 & 0xFF


@each_old_codec
def test_the_time_of_the_append_in_message_sets_is_the_same_both_ways(java: JavaRecords, codec: Codec) -> None:
    originals = sample(base_offset=30, headers=False)
    expected = stamped(originals, NOW_MS + 5)
    theirs = read_message_set(java.write(originals, 1, codec, append_time=NOW_MS + 5))
    assert as_records(theirs) == expected
    assert all(message.log_append_time for message in theirs)
    ours = java.read(build_message_set(expected, 1, codec, log_append_time=True))
    assert all_records(ours) == expected
    assert all(batch["log_append_time"] for batch in ours)


# Conversion


@each_magic
@each_old_codec
def test_java_reads_what_was_converted_up_and_down(java: JavaRecords, codec: Codec, magic: int) -> None:
    expected = sample(base_offset=30, headers=False)
    if magic == 0:
        expected = without_timestamps(expected)
    down = java.read(downconvert(java.write(sample(base_offset=30), 2, codec), magic, LIMIT))
    assert {(batch["magic"], batch["codec"]) for batch in down} == {(magic, codec)}
    assert all_records(down) == expected
    (up,) = java.read(upconvert(java.write(expected, magic, codec), LIMIT))
    assert (up["magic"], up["codec"]) == (2, codec)
    assert up["records"] == expected
