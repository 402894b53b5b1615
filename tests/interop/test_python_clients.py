"""Batches and message sets between aiokafka, kafka-python and Ottla: in every format and codec, both ways."""

from typing import Any

import pytest
from aiokafka.record.control_record import ABORT_MARKER, COMMIT_MARKER, ControlRecord

from ottla.record import Batch, Codec, build_batch, build_end_marker
from ottla.record.convert import downconvert
from ottla.record.legacy import build_message_set

from .python_clients import AIOKAFKA, KAFKA_PYTHON, PythonClient, each_client, each_old_format_of_each_client
from .samples import (
    LIMIT,
    NOW_MS,
    as_records,
    batches_from_columns,
    each_codec,
    each_old_codec,
    read_batches,
    read_message_set,
    sample,
    stamped,
    whole_batches,
    without_timestamps,
)

PRODUCER: dict[str, Any] = {"producer_id": 2**40 + 3, "producer_epoch": 12, "base_sequence": 2**31 - 5}


@each_client
def test_the_client_has_the_libraries_for_all_codecs(client: PythonClient) -> None:
    assert [codec for codec in Codec if codec and not getattr(client.codecs, f"has_{codec.name.lower()}")()] == []


# Batches


@each_client
@each_codec
def test_batches_of_the_client_are_read(client: PythonClient, codec: Codec) -> None:
    originals = sample()
    run = client.build_batch(originals, codec)
    assert read_batches(run) == originals
    (batch,) = whole_batches(run)
    assert batch.codec is codec
    assert (batch.base_timestamp, batch.max_timestamp) == (NOW_MS, max(record.timestamp for record in originals))


@each_client
@each_codec
def test_the_client_reads_batches_built_from_objects(client: PythonClient, codec: Codec) -> None:
    originals = sample(base_offset=2**40)
    run = build_batch(originals[:100], codec) + build_batch(originals[100:], codec)
    # What is cut off at the end of a fetch is not there for them either.
    assert client.read(run + run[:200]) == originals
    assert [batch.compression_type for batch in client.batches(run)] == [codec, codec]


@each_client
@each_codec
def test_the_client_reads_batches_built_from_columns(client: PythonClient, codec: Codec) -> None:
    originals = sample(base_offset=2**40)
    run = batches_from_columns(originals, codec, batch_size=8000)
    assert len(run) > 2
    assert client.read(b"".join(run)) == originals


@each_client
def test_the_clients_producer_fields_are_read(client: PythonClient) -> None:
    (batch,) = whole_batches(client.build_batch(sample(), Codec.GZIP, transactional=True, **PRODUCER))
    assert batch.transactional
    assert not batch.control
    assert {name: getattr(batch, name) for name in PRODUCER} == PRODUCER
    assert batch.last_sequence == len(sample()) - 6, "sequences go on from 0 after the largest int32"
    (batch,) = whole_batches(client.build_batch(sample(), Codec.GZIP))
    assert not batch.transactional
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (-1, -1, -1)


@each_client
@pytest.mark.parametrize("transactional", [True, False], ids=["transactional", "not transactional"])
def test_the_client_reads_our_producer_fields(client: PythonClient, transactional: bool) -> None:
    (batch,) = client.batches(build_batch(sample(), Codec.GZIP, transactional=transactional, **PRODUCER))
    assert batch.is_transactional == transactional
    assert not batch.is_control_batch
    assert {name: getattr(batch, name) for name in PRODUCER} == PRODUCER
    if client is KAFKA_PYTHON:
        assert batch.last_sequence == Batch(build_batch(sample(), **PRODUCER)).last_sequence


@each_client
@pytest.mark.parametrize("commit", [True, False], ids=["commit", "abort"])
def test_the_client_knows_our_transaction_markers(client: PythonClient, commit: bool) -> None:
    marker = build_end_marker(
        commit=commit, producer_id=7, producer_epoch=1, coordinator_epoch=3, timestamp_ms=NOW_MS, base_offset=50
    )
    (batch,) = client.batches(marker)
    assert batch.is_control_batch
    assert batch.is_transactional
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence, batch.next_offset) == (7, 1, -1, 51)
    (record,) = batch
    if client is AIOKAFKA:
        assert ControlRecord.parse(record.key) == (COMMIT_MARKER if commit else ABORT_MARKER)
    else:
        assert (record.version, record.commit, record.abort) == (0, commit, not commit)


@each_client
@each_codec
def test_the_client_reads_the_time_of_the_append(client: PythonClient, codec: Codec) -> None:
    originals = sample(base_offset=70)
    run = build_batch(originals, codec, append_time=NOW_MS + 5)
    assert client.read(run) == stamped(originals, NOW_MS + 5)
    assert {record.timestamp_type for batch in client.batches(run) for record in batch} == {1}


@each_client
def test_the_client_reads_what_the_broker_has_written_into_its_batch(client: PythonClient) -> None:
    buffer = bytearray(client.build_batch(sample(), Codec.SNAPPY))
    batch = Batch(buffer)
    batch.assign(base_offset=9000, leader_epoch=6)
    batch.set_max_timestamp(NOW_MS + 9, append_time=True)
    assert client.read(bytes(buffer)) == stamped(sample(base_offset=9000), NOW_MS + 9)


# Message sets


@each_old_format_of_each_client
def test_message_sets_of_the_client_are_read(client: PythonClient, codec: Codec, magic: int) -> None:
    originals = sample(headers=False)
    found = read_message_set(client.build_message_set(originals, magic, codec))
    assert {(message.magic, message.codec, message.log_append_time) for message in found} == {(magic, codec, False)}
    assert as_records(found) == (originals if magic else without_timestamps(originals))


@each_old_format_of_each_client
def test_the_client_reads_message_sets(client: PythonClient, codec: Codec, magic: int) -> None:
    originals = sample(base_offset=2**40, headers=False)
    expected = originals if magic else without_timestamps(originals)
    data = build_message_set(originals[:100], magic, codec) + build_message_set(originals[100:], magic, codec)
    assert client.read(data + data[:30]) == expected
    assert {record.timestamp_type for batch in client.batches(data) for record in batch} == {0 if magic else None}


@each_client
@each_old_codec
def test_the_client_reads_the_time_of_the_append_in_message_sets(client: PythonClient, codec: Codec) -> None:
    originals = stamped(sample(base_offset=70, headers=False), NOW_MS + 5)
    data = build_message_set(originals, 1, codec, log_append_time=True)
    assert client.read(data) == originals
    assert {record.timestamp_type for batch in client.batches(data) for record in batch} == {1}


@each_old_format_of_each_client
def test_the_client_reads_batches_that_were_converted_for_it(client: PythonClient, codec: Codec, magic: int) -> None:
    old = downconvert(build_batch(sample(base_offset=30), codec), magic, LIMIT)
    expected = sample(base_offset=30, headers=False)
    assert client.read(old) == (expected if magic else without_timestamps(expected))
