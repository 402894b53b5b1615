from typing import Any

import pytest

from ottla.wire.embedded import (
    decode_key,
    decode_versioned,
    encode_key,
    encode_versioned,
    offsets_topic,
    read_prefix,
    transactions_topic,
)
from ottla.wire.embedded.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
)
from ottla.wire.errors import ProtocolError
from ottla.wire.schema import schema_of


def test_a_subscription_has_the_bytes_that_the_protocol_guide_gives() -> None:
    written = encode_versioned(ConsumerProtocolSubscription(topics=["t"], user_data=b"u"), 0)
    assert written == bytes.fromhex("0000 00000001 0001 74 00000001 75")


def test_metadata_of_a_newer_member_reads_as_the_newest_known_version() -> None:
    newest = encode_versioned(ConsumerProtocolSubscription(topics=["t"], generation_id=5, rack_id="r"), 3)
    newer = bytes.fromhex("0009") + newest[2:] + b"a field nobody knows"
    assert decode_versioned(ConsumerProtocolSubscription, newer, from_the_future=True).rack_id == "r"
    with pytest.raises(ProtocolError, match="no version 9"):
        decode_versioned(ConsumerProtocolSubscription, newer)


def test_an_assignment_reads_back_in_every_version() -> None:
    assignment = ConsumerProtocolAssignment(
        assigned_partitions=[TopicPartition(topic="t", partitions=[0, 5])], user_data=None
    )
    for version in range(4):
        assert decode_versioned(ConsumerProtocolAssignment, encode_versioned(assignment, version)) == assignment


@pytest.mark.parametrize("data", [b"", b"\0", b"\xff\xff", b"\0\0\0\0"])
def test_broken_metadata_is_a_protocol_error(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode_versioned(ConsumerProtocolSubscription, data)


def declared(module: Any, suffix: str) -> list[type[Any]]:
    return [cls for name, cls in vars(module).items() if name.endswith(suffix) and hasattr(cls, "schema")]


@pytest.mark.parametrize("cls", declared(offsets_topic, "Key") + declared(transactions_topic, "Key"))
def test_record_keys_begin_with_their_record_type(cls: type[Any]) -> None:
    written = encode_key(cls())
    assert read_prefix(written) == schema_of(cls).key
    assert decode_key(cls, written) == cls()
    with pytest.raises(ProtocolError, match="record type 77"):
        decode_key(cls, b"\0\x4d" + written[2:])


def test_every_record_type_of_the_offsets_topic_is_there() -> None:
    assert sorted(schema_of(cls).key or 0 for cls in declared(offsets_topic, "Key")) == [0, 1, 2, 3, 4, 5, 6, 7, 8, 16]


@pytest.mark.parametrize("cls", declared(offsets_topic, "Value") + declared(transactions_topic, "Value"))
def test_record_values_begin_with_their_version(cls: type[Any]) -> None:
    for version in schema_of(cls).versions:
        written = encode_versioned(cls(), version)
        assert read_prefix(written) == version
        assert decode_versioned(cls, written) == cls()


def test_an_offset_commit_has_the_bytes_that_kafka_stores() -> None:
    key = offsets_topic.OffsetCommitKey(group="g", topic="t", partition=1)
    assert encode_key(key) == bytes.fromhex("0001 0001 67 0001 74 00000001")
    value = offsets_topic.OffsetCommitValue(offset=5, leader_epoch=2, metadata="m", commit_timestamp=9)
    assert encode_versioned(value, 3) == bytes.fromhex("0003 0000000000000005 00000002 0001 6d 0000000000000009")
