"""Records of the offsets topic, also such as other brokers wrote."""

import pytest

from ottla.coordinator.group.records import UnknownRecord, decode_record
from ottla.coordinator.outcome import tombstone, upsert
from ottla.wire.embedded import encode_key, encode_versioned
from ottla.wire.embedded.offsets_topic import (
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    GroupMetadataKey,
    GroupMetadataValue,
    LegacyOffsetCommitKey,
    LegacyOffsetCommitValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from ottla.wire.errors import ProtocolError


def test_a_record_is_read_as_it_was_written() -> None:
    for record in (
        upsert(OffsetCommitKey(group="g", topic="t", partition=2), OffsetCommitValue(offset=5, leader_epoch=3)),
        upsert(GroupMetadataKey(group="g"), GroupMetadataValue(protocol_type="consumer", generation=4), 3),
        upsert(ConsumerGroupMetadataKey(group_id="g"), ConsumerGroupMetadataValue(epoch=7)),
        tombstone(ConsumerGroupMetadataKey(group_id="g")),
    ):
        assert decode_record(*record.encoded()) == (record.key, record.value)


@pytest.mark.parametrize("version", range(5))
def test_offsets_are_read_in_every_version_of_the_value(version: int) -> None:
    value = encode_versioned(OffsetCommitValue(offset=5, metadata="m", commit_timestamp=9), version)
    key, read = decode_record(encode_key(OffsetCommitKey(group="g", topic="t")), value)
    assert key == OffsetCommitKey(group="g", topic="t")
    assert read == OffsetCommitValue(offset=5, metadata="m", commit_timestamp=9)


def test_the_oldest_keys_are_read_with_their_own_value_and_with_later_ones() -> None:
    key = encode_key(LegacyOffsetCommitKey(group="g", topic="t", partition=1))
    oldest = encode_versioned(LegacyOffsetCommitValue(offset=5, metadata="m", commit_timestamp=9), 0)
    later = encode_versioned(OffsetCommitValue(offset=5, metadata="m", commit_timestamp=9, expire_timestamp=10), 1)
    for value in (oldest, later):
        read_key, read = decode_record(key, value)
        assert (read_key.group, read_key.topic, read_key.partition) == ("g", "t", 1)
        assert read is not None
        assert (read.offset, read.metadata, read.commit_timestamp) == (5, "m", 9)


def test_a_record_of_a_newer_kind_is_known_as_such_and_not_read() -> None:
    assert decode_record(b"\x00\x0a\xff\xff", b"\xff") == (UnknownRecord(10), None)


@pytest.mark.parametrize(("key", "value"), [(b"", None), (b"\x00", None), (b"\x00\x02\x00\x09ab", None)])
def test_a_malformed_key_is_refused(key: bytes, value: bytes | None) -> None:
    with pytest.raises(ProtocolError):
        decode_record(key, value)


def test_a_value_of_a_newer_version_is_refused() -> None:
    with pytest.raises(ProtocolError, match="has no version 5"):
        decode_record(encode_key(OffsetCommitKey(group="g", topic="t")), b"\x00\x05" + bytes(40))
