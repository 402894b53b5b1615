"""Records of the offsets topic: which message is behind a key, and what its value says."""

from typing import Any, NamedTuple

from ottla.wire.embedded import decode_key, decode_versioned, read_prefix
from ottla.wire.embedded.offsets_topic import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupPartitionMetadataValue,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    GroupMetadataKey,
    GroupMetadataValue,
    LegacyOffsetCommitKey,
    OffsetCommitKey,
    OffsetCommitValue,
)
from ottla.wire.schema import Bytes, schema_of


class UnknownRecord(NamedTuple):
    """Stands for the key of a record that a newer version has written: groups of a kind that is not known here."""

    record_type: int


# Keys of type 0 are as old as 0.8.2, and were written with any version of the value that later keys have too.
_KINDS: tuple[tuple[type[Any], type[Any]], ...] = (
    (LegacyOffsetCommitKey, OffsetCommitValue),
    (OffsetCommitKey, OffsetCommitValue),
    (GroupMetadataKey, GroupMetadataValue),
    (ConsumerGroupMetadataKey, ConsumerGroupMetadataValue),
    (ConsumerGroupPartitionMetadataKey, ConsumerGroupPartitionMetadataValue),
    (ConsumerGroupMemberMetadataKey, ConsumerGroupMemberMetadataValue),
    (ConsumerGroupTargetAssignmentMetadataKey, ConsumerGroupTargetAssignmentMetadataValue),
    (ConsumerGroupTargetAssignmentMemberKey, ConsumerGroupTargetAssignmentMemberValue),
    (ConsumerGroupCurrentMemberAssignmentKey, ConsumerGroupCurrentMemberAssignmentValue),
    (ConsumerGroupRegularExpressionKey, ConsumerGroupRegularExpressionValue),
)
_BY_TYPE = {schema_of(key).key: (key, value) for key, value in _KINDS}


def decode_record(key: Bytes, value: Bytes | None) -> tuple[Any, Any | None]:
    """The messages of a record; no value means that what the key stands for is no more.

    A record of an unknown type is an `UnknownRecord` without a value. Bytes that make no sense raise ProtocolError.

    >>> decode_record(bytes.fromhex("0002000167"), None)
    (GroupMetadataKey(group='g'), None)
    >>> decode_record(bytes.fromhex("0063") + b"whatever", b"anything")
    (UnknownRecord(record_type=99), None)
    """
    record_type = read_prefix(key)
    found = _BY_TYPE.get(record_type)
    if found is None:
        return UnknownRecord(record_type), None
    key_class, value_class = found
    return decode_key(key_class, key), None if value is None else decode_versioned(value_class, value)
