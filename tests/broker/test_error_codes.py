"""Every error code that the protocol guides list for Metadata, Produce, Fetch and ListOffsets, provoked on a socket.

Those that need a second broker or an authoriser are in docs/gaps.md.
"""

import struct
from collections.abc import Callable
from typing import Any

import pytest

from ottla.ports.disk import SystemFile
from ottla.record import BatchBuilder, Codec, Record, build_batch, build_end_marker
from ottla.record.legacy import build_message_set
from ottla.testing import TestBroker
from ottla.wire.api.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from ottla.wire.api.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.wire.api.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.wire.api.metadata import MetadataRequest, MetadataRequestTopic
from ottla.wire.api.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.wire.errors import ErrorCode
from tests.interop.raw_client import RawClient

NOW_MS = 1_790_000_000_000
ONE = build_batch([Record(0, NOW_MS, b"k", b"v")])


def create(client: RawClient, name: str, **configs: str) -> None:
    entries = [CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()]
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1, configs=entries)
    response = client.call(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 4)
    assert response.topics[0].error_code == 0, response


def produce(
    client: RawClient, topic: str, records: bytes | None, *, version: int = 9, acks: int = -1, partition: int = 0
) -> Any:
    data = [PartitionProduceData(index=partition, records=records)]
    request = ProduceRequest(
        acks=acks,
        timeout_ms=5000,
        topic_data=[TopicProduceData(name=topic, partition_data=data)],
        transactional_id=None,
    )
    return client.call(request, version).responses[0].partition_responses[0]


def fetch(client: RawClient, topic: str, *, version: int = 11, replica_id: int = -1, **fields: Any) -> Any:
    partition = FetchPartition(**{"partition_max_bytes": 1000, **fields})
    request = FetchRequest(
        replica_id=replica_id, max_wait_ms=0, min_bytes=1, topics=[FetchTopic(topic=topic, partitions=[partition])]
    )
    return client.call(request, version).responses[0].partitions[0]


def list_offsets(client: RawClient, topic: str, timestamp: int, *, version: int = 7, **fields: Any) -> Any:
    asked = ListOffsetsPartition(timestamp=timestamp, **fields)
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[asked])])
    return client.call(request, version).topics[0].partitions[0]


def metadata(client: RawClient, name: str, *, create_topic: bool = False, version: int = 9) -> Any:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=create_topic)
    return client.call(request, version).topics[0]


# Metadata


def test_metadata_of_an_unknown_topic(client: RawClient) -> None:
    assert metadata(client, "nowhere").error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("name", ["", "a/b", "..", "ü", "x" * 250])
def test_metadata_of_an_impossible_topic(client: RawClient, name: str) -> None:
    for create_topic in (False, True):
        assert metadata(client, name, create_topic=create_topic).error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_metadata_of_an_unknown_topic_id(client: RawClient) -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(topic_id=b"i" * 16, name=None)])
    assert client.call(request, 12).topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID


# Produce


def test_produce_to_an_unknown_topic_or_partition(client: RawClient) -> None:
    assert produce(client, "nowhere", ONE).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    create(client, "t")
    assert produce(client, "t", ONE, partition=7).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert produce(client, "t", ONE, partition=-1).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("acks", [2, -2, 3])
def test_produce_with_other_acks(client: RawClient, acks: int) -> None:
    create(client, "t")
    assert produce(client, "t", ONE, acks=acks).error_code == ErrorCode.INVALID_REQUIRED_ACKS


def test_produce_of_damaged_records(client: RawClient) -> None:
    create(client, "t")
    damaged = bytearray(ONE)
    damaged[-1] ^= 1
    assert produce(client, "t", bytes(damaged)).error_code == ErrorCode.CORRUPT_MESSAGE
    old = bytearray(build_message_set([Record(0, -1, None, b"v")], 0))
    old[-1] ^= 1
    assert produce(client, "t", bytes(old), version=1).error_code == ErrorCode.CORRUPT_MESSAGE
    assert client.offset("t", -1) == 0


def test_produce_of_too_large_a_message(client: RawClient) -> None:
    create(client, "t", max_message_bytes="500")
    large = build_batch([Record(0, NOW_MS, None, b"x" * 600)])
    assert produce(client, "t", large).error_code == ErrorCode.MESSAGE_TOO_LARGE
    old = build_message_set([Record(0, -1, None, b"x" * 600)], 0)
    assert produce(client, "t", old, version=0).error_code == ErrorCode.MESSAGE_TOO_LARGE


def test_produce_of_more_than_a_segment(client: RawClient) -> None:
    create(client, "t", segment_bytes="1048576")
    large = build_batch([Record(0, NOW_MS, None, b"x" * 1_048_577)])
    assert produce(client, "t", large).error_code == ErrorCode.RECORD_LIST_TOO_LARGE


def test_produce_to_too_few_replicas(client: RawClient) -> None:
    create(client, "t", min_insync_replicas="2")
    assert produce(client, "t", ONE, acks=-1).error_code == ErrorCode.NOT_ENOUGH_REPLICAS
    assert produce(client, "t", ONE, acks=1).error_code == ErrorCode.NONE


def test_produce_of_a_timestamp_from_the_future(client: RawClient) -> None:
    create(client, "t")
    future = build_batch([Record(0, NOW_MS * 2, None, b"v")])
    assert produce(client, "t", future).error_code == ErrorCode.INVALID_TIMESTAMP


def test_produce_of_a_keyless_record_to_a_compacted_topic(client: RawClient) -> None:
    create(client, "t", cleanup_policy="compact")
    assert produce(client, "t", build_batch([Record(0, NOW_MS, None, b"v")])).error_code == ErrorCode.INVALID_RECORD
    assert produce(client, "t", ONE).error_code == ErrorCode.NONE


@pytest.mark.parametrize(
    "records",
    [None, b"", ONE + ONE, build_message_set([Record(0, 1, None, b"v")], 1)],
    ids=["null", "empty", "two batches", "a message set"],
)
def test_produce_of_other_than_one_batch(client: RawClient, records: bytes | None) -> None:
    create(client, "t")
    assert produce(client, "t", records).error_code == ErrorCode.INVALID_RECORD


def test_produce_of_a_control_batch(client: RawClient) -> None:
    create(client, "t")
    marker = build_end_marker(producer_id=1, producer_epoch=0, commit=True, coordinator_epoch=0, timestamp_ms=NOW_MS)
    assert produce(client, "t", marker).error_code == ErrorCode.INVALID_RECORD


def test_produce_of_zstd_before_its_time(client: RawClient) -> None:
    create(client, "t")
    batch = build_batch([Record(0, NOW_MS, None, b"v" * 100)], Codec.ZSTD)
    assert produce(client, "t", batch, version=6).error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert produce(client, "t", batch, version=7).error_code == ErrorCode.NONE
    assert fetch(client, "t", version=9).error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert fetch(client, "t", version=10).error_code == ErrorCode.NONE


def idempotent(sequence: int, epoch: int = 0) -> bytes:
    builder = BatchBuilder(producer_id=77, producer_epoch=epoch, base_sequence=sequence)
    builder.append(NOW_MS, b"k", b"v")
    return builder.build()


def test_produce_out_of_sequence(client: RawClient) -> None:
    create(client, "t")
    assert produce(client, "t", idempotent(0)).base_offset == 0
    assert produce(client, "t", idempotent(1)).base_offset == 1
    again = produce(client, "t", idempotent(0))
    assert (again.error_code, again.base_offset) == (ErrorCode.NONE, 0), "a duplicate is acknowledged with its offset"
    assert produce(client, "t", idempotent(5)).error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert produce(client, "t", idempotent(0, epoch=1)).base_offset == 2
    assert produce(client, "t", idempotent(2)).error_code == ErrorCode.INVALID_PRODUCER_EPOCH


def test_produce_that_waits_for_the_disk_too_long(client: RawClient) -> None:
    create(client, "t", flush_messages="1")
    data = [PartitionProduceData(index=0, records=ONE)]
    request = ProduceRequest(acks=-1, timeout_ms=0, topic_data=[TopicProduceData(name="t", partition_data=data)])
    result = client.call(request, 9).responses[0].partition_responses[0]
    assert result.error_code == ErrorCode.REQUEST_TIMED_OUT
    assert produce(client, "t", ONE).error_code == ErrorCode.NONE


# Fetch


def test_fetch_out_of_range(client: RawClient) -> None:
    create(client, "t")
    produce(client, "t", ONE)
    assert fetch(client, "t", fetch_offset=1).error_code == ErrorCode.NONE
    for offset in (2, -1):
        assert fetch(client, "t", fetch_offset=offset).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_fetch_from_an_unknown_topic_or_partition(client: RawClient) -> None:
    assert fetch(client, "nowhere").error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    create(client, "t")
    assert fetch(client, "t", partition=3).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_fetch_by_an_unknown_topic_id(client: RawClient) -> None:
    asked = FetchTopic(topic_id=b"i" * 16, partitions=[FetchPartition(partition_max_bytes=10)])
    response = client.call(FetchRequest(max_wait_ms=0, topics=[asked]), 13)
    assert response.responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_fetch_of_a_negative_size(client: RawClient) -> None:
    create(client, "t")
    assert fetch(client, "t", partition_max_bytes=-1).error_code == ErrorCode.INVALID_FETCH_SIZE


def test_fetch_in_the_name_of_a_broker_that_has_no_replica(client: RawClient) -> None:
    create(client, "t")
    assert fetch(client, "t", replica_id=5).error_code == ErrorCode.REPLICA_NOT_AVAILABLE
    assert fetch(client, "t", replica_id=-2).error_code == ErrorCode.NONE, "-2 reads as if it were a replica"


def test_fetch_in_another_leaders_epoch(client: RawClient) -> None:
    create(client, "t")
    assert fetch(client, "t", current_leader_epoch=9).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH


# ListOffsets


def test_list_offsets_of_an_unknown_topic_or_partition(client: RawClient) -> None:
    for version in (0, 1, 7):
        assert list_offsets(client, "no", -1, version=version).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_list_offsets_by_time_where_no_record_has_one(client: RawClient) -> None:
    create(client, "t")
    produce(client, "t", build_message_set([Record(0, -1, None, b"v")], 0), version=0)
    assert list_offsets(client, "t", 5, version=1).error_code == ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT
    assert list_offsets(client, "t", -1, version=1).offset == 1


def test_list_offsets_finds_marks_and_times(client: RawClient) -> None:
    create(client, "t")
    times = [NOW_MS, NOW_MS + 20, NOW_MS + 10]
    produce(client, "t", build_batch([Record(index, time, None, b"v") for index, time in enumerate(times)]))
    assert [list_offsets(client, "t", mark, version=11).offset for mark in (-1, -2, -3, -4, -5, -6)] == [
        3,
        0,
        1,
        0,
        -1,
        -1,
    ]
    assert list_offsets(client, "t", NOW_MS + 5).offset == 1, "the first record at or after the time"
    assert list_offsets(client, "t", NOW_MS + 21).offset == -1
    assert list_offsets(client, "t", -99).error_code == ErrorCode.INVALID_REQUEST
    listed = list_offsets(client, "t", -1, version=0, max_num_offsets=5)
    assert listed.old_style_offsets == [3, 0], "the log's end, then the first offsets of segments"


# What nobody has thought of

READERS: dict[str, Callable[[RawClient], Any]] = {
    "fetch": lambda client: fetch(client, "t"),
    "list offsets": lambda client: list_offsets(client, "t", NOW_MS),
}


def fail_to_read(patched: pytest.MonkeyPatch, error: Exception) -> None:
    """Have whatever reads a file fail."""

    def fail(*_arguments: object) -> None:
        raise error

    patched.setattr(SystemFile, "read_at", fail)
    patched.setattr(SystemFile, "read_cached", fail)


@pytest.mark.parametrize("ask", READERS.values(), ids=READERS)
def test_an_unexpected_failure_closes_the_connection_and_no_other(
    broker: TestBroker,
    client: RawClient,
    monkeypatch: pytest.MonkeyPatch,
    ask: Callable[[RawClient], Any],
) -> None:
    """Where the guides have UNKNOWN (-1): see docs/gaps.md."""
    create(client, "t")
    produce(client, "t", ONE)
    with RawClient((broker.host, broker.port)) as unlucky:
        with monkeypatch.context() as patched:
            fail_to_read(patched, RuntimeError("a mistake in the broker"))
            with pytest.raises(ConnectionError, match="closed the connection"):
                ask(unlucky)
        assert ask(client).error_code == ErrorCode.NONE


@pytest.mark.parametrize("ask", READERS.values(), ids=READERS)
def test_a_disk_that_cannot_be_read_is_told_for_its_partition_alone(
    client: RawClient, monkeypatch: pytest.MonkeyPatch, ask: Callable[[RawClient], Any]
) -> None:
    create(client, "t")
    produce(client, "t", ONE)
    with monkeypatch.context() as patched:
        fail_to_read(patched, OSError(5, "input/output error"))
        assert ask(client).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert ask(client).error_code == ErrorCode.NONE


# Restart


def test_what_was_produced_and_who_produced_it_survives_a_restart(broker: TestBroker) -> None:
    with RawClient((broker.host, broker.port)) as client:
        create(client, "t")
        assert produce(client, "t", idempotent(0)).base_offset == 0
        topic_id = client.topic("t").topic_id
    broker.stop()
    broker.start()
    with RawClient((broker.host, broker.port)) as client:
        assert client.topic("t").topic_id == topic_id
        assert produce(client, "t", idempotent(0)).base_offset == 0, "still a duplicate"
        assert produce(client, "t", idempotent(1)).base_offset == 1
        assert struct.unpack_from(">q", client.fetch("t", 0))[0] == 0
