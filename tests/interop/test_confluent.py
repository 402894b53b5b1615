"""Batches between librdkafka, by confluent-kafka and its mock cluster, and Ottla: in every codec, both ways."""

from typing import Any

import pytest
from confluent_kafka import TIMESTAMP_CREATE_TIME, TIMESTAMP_LOG_APPEND_TIME

from ottla.record import (
    Batch,
    Codec,
    EndMarker,
    Record,
    batches,
    build_batch,
    build_end_marker,
    read_end_marker,
    records,
)
from ottla.record.columns import to_arrow

from . import confluent
from .confluent import MockCluster
from .raw_client import RawClient
from .samples import NOW_MS, batches_from_columns, each_codec, read_batches, sample, stamped, whole_batches

PRODUCE, FETCH = 0, 1
# See MockCluster.
BROKEN_PRODUCE = 5


@each_codec
def test_what_librdkafka_writes_is_read(
    mock_cluster: MockCluster, raw_client: RawClient, topic: str, codec: Codec
) -> None:
    originals = sample()
    confluent.write(mock_cluster.address, topic, originals, codec)
    run = raw_client.read_log(topic)
    assert read_batches(run) == originals
    # A batch of a record or two may stay as it is: librdkafka leaves out compression that does not pay.
    assert codec in {batch.codec for batch in whole_batches(run)} <= {codec, Codec.NONE}


@each_codec
def test_librdkafka_reads_what_is_built_from_objects(
    mock_cluster: MockCluster, raw_client: RawClient, topic: str, codec: Codec
) -> None:
    raw_client.topic(topic)
    originals = sample() + sample(base_offset=len(sample()))
    for part in (originals[:150], originals[150:]):
        assert raw_client.produce(topic, build_batch(part, codec)) == part[0].offset
    found = confluent.read(mock_cluster.address, topic, len(originals), timestamp_type=TIMESTAMP_CREATE_TIME)
    assert found == originals


@each_codec
def test_librdkafka_reads_what_is_built_from_columns(
    mock_cluster: MockCluster, raw_client: RawClient, topic: str, codec: Codec
) -> None:
    raw_client.topic(topic)
    originals = sample()
    run = batches_from_columns(originals, codec, batch_size=8000)
    assert len(run) > 2
    for batch in run:
        raw_client.produce(topic, batch)
    found = confluent.read(mock_cluster.address, topic, len(originals), timestamp_type=TIMESTAMP_CREATE_TIME)
    assert found == originals


def test_librdkafka_starts_reading_inside_a_batch(mock_cluster: MockCluster, raw_client: RawClient, topic: str) -> None:
    raw_client.topic(topic)
    originals = sample()
    raw_client.produce(topic, build_batch(originals, Codec.LZ4))
    found = confluent.read(mock_cluster.address, topic, 50, offset=100, timestamp_type=TIMESTAMP_CREATE_TIME)
    assert found == originals[100:150]


def test_librdkafka_without_idempotence_leaves_the_producers_fields_empty(
    mock_cluster: MockCluster, raw_client: RawClient, topic: str
) -> None:
    confluent.write(mock_cluster.address, topic, sample(), Codec.NONE)
    for batch in whole_batches(raw_client.read_log(topic)):
        assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (-1, -1, -1)
        assert not batch.transactional


def test_sequences_of_librdkafkas_idempotent_producer_go_on_from_batch_to_batch(
    mock_cluster: MockCluster, raw_client: RawClient, topic: str
) -> None:
    originals = sample()
    confluent.write(
        mock_cluster.address, topic, originals, Codec.SNAPPY, enable_idempotence=True, batch_num_messages=40
    )
    run = raw_client.read_log(topic)
    assert read_batches(run) == originals
    found = whole_batches(run)
    assert len(found) > 4
    assert len({(batch.producer_id, batch.producer_epoch) for batch in found}) == 1
    assert found[0].producer_id >= 0
    assert found[0].producer_epoch == 0
    assert [batch.base_sequence for batch in found] == [batch.base_offset for batch in found]
    assert [batch.last_sequence for batch in found] == [batch.last_offset for batch in found]


@pytest.mark.parametrize("commit", [True, False], ids=["commit", "abort"])
def test_librdkafkas_transactions_and_their_markers_are_read(
    mock_cluster: MockCluster, raw_client: RawClient, topic: str, commit: bool
) -> None:
    originals = sample()
    producer = confluent.new_producer(mock_cluster.address, Codec.ZSTD, transactional_id=topic)
    producer.init_transactions(confluent.TIMEOUT_S)
    producer.begin_transaction()
    confluent.write_with(producer, topic, originals)
    if commit:
        producer.commit_transaction(confluent.TIMEOUT_S)
    else:
        producer.abort_transaction(confluent.TIMEOUT_S)

    # The mock cluster leaves the checksum of its marker at zero, so that one is not validated.
    *data, marker = [batch for batch in batches(raw_client.read_log(topic)) if isinstance(batch, Batch)]
    assert read_batches(b"".join(batch.data for batch in data)) == originals
    assert {(batch.transactional, batch.control, batch.producer_epoch) for batch in data} == {(True, False, 0)}
    assert (marker.transactional, marker.control, marker.base_offset) == (True, True, len(originals))
    assert {batch.producer_id for batch in data} == {marker.producer_id}
    assert read_end_marker(records(marker)[0]) == EndMarker(commit=commit, coordinator_epoch=0)
    assert to_arrow([*data, marker]).num_rows == len(originals), "markers are not for applications"


def test_librdkafka_skips_our_transaction_markers(mock_cluster: MockCluster, raw_client: RawClient, topic: str) -> None:
    raw_client.topic(topic)
    first, second = sample(count=3), sample(base_offset=len(sample(count=3)) + 1, count=3)
    writer: dict[str, Any] = {"producer_id": 8, "producer_epoch": 2}
    raw_client.produce(topic, build_batch(first, Codec.GZIP, base_sequence=0, transactional=True, **writer))
    raw_client.produce(topic, build_end_marker(commit=True, coordinator_epoch=4, timestamp_ms=NOW_MS, **writer))
    raw_client.produce(topic, build_batch(second, Codec.GZIP, base_sequence=len(first), transactional=True, **writer))
    found = confluent.read(
        mock_cluster.address,
        topic,
        len(first + second),
        timestamp_type=TIMESTAMP_CREATE_TIME,
        isolation_level="read_committed",
    )
    assert found == first + second


def test_librdkafka_reads_the_time_of_the_append(mock_cluster: MockCluster, raw_client: RawClient, topic: str) -> None:
    raw_client.topic(topic)
    originals = sample()
    raw_client.produce(topic, build_batch(originals, Codec.LZ4, append_time=NOW_MS + 5))
    found = confluent.read(mock_cluster.address, topic, len(originals), timestamp_type=TIMESTAMP_LOG_APPEND_TIME)
    assert found == stamped(originals, NOW_MS + 5)


def test_a_batch_that_librdkafka_finds_damaged_is_noticed(
    mock_cluster: MockCluster, raw_client: RawClient, topic: str
) -> None:
    raw_client.topic(topic)
    damaged = bytearray(build_batch([Record(0, NOW_MS, b"key", b"value")]))
    damaged[-2] ^= 1
    raw_client.produce(topic, bytes(damaged))
    with pytest.raises(AssertionError, match=r"(?i)crc"):
        confluent.read(mock_cluster.address, topic, 1, timestamp_type=TIMESTAMP_CREATE_TIME)


def test_batches_travel_in_every_version_that_the_mock_cluster_has(raw_client: RawClient, topic: str) -> None:
    raw_client.topic(topic)
    versions = raw_client.versions()
    originals: list[Record] = []
    for version in versions[PRODUCE]:
        if version >= 3 and version != BROKEN_PRODUCE:
            part = sample(base_offset=len(originals), count=2)
            originals += part
            assert raw_client.produce(topic, build_batch(part, Codec.GZIP), version) == part[0].offset
    first_batch = sample(count=2)
    for version in versions[FETCH]:
        if version >= 4:
            assert read_batches(raw_client.fetch(topic, 0, version)) == first_batch
    assert read_batches(raw_client.read_log(topic)) == originals
