"""Bytes written by hand, field by field from the protocol's definition, for what no oracle in Python knows.

Nothing here came out of an encoder. A line is bytes as hexadecimal pairs or quoted text, then the field's name.
To read them: in flexible versions a string or array has its length plus one in front and null is 00; a nullable
struct has 01 in front and null is ff; every struct ends in the number of its tagged fields.
"""

import re
from typing import Any, NamedTuple

from ottla.wire.api.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from ottla.wire.api.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse
from ottla.wire.api.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from ottla.wire.embedded.offsets_topic import ConsumerGroupCurrentMemberAssignmentValue, TopicPartitions

_TOKEN = re.compile(r'"([^"]*)"|([0-9a-f]{2})(?=\s|$)|(\S+)')


class Golden(NamedTuple):
    """A message in a version, and its bytes with a comment for each field."""

    message: Any
    version: int
    text: str

    @property
    def data(self) -> bytes:
        """The bytes without the comments."""
        return read_bytes(self.text)


def read_bytes(text: str) -> bytes:
    """Hexadecimal pairs and quoted text as bytes; what follows a # is for people.

    >>> read_bytes('03 "ab"  # a compact string')
    b'\\x03ab'
    """
    data = b""
    for line in text.splitlines():
        for quoted, pair, other in _TOKEN.findall(line.partition("#")[0]):
            if other:
                raise ValueError(f"{other!r} is neither quoted text nor a pair of hexadecimal digits")
            data += bytes.fromhex(pair) if pair else quoted.encode()
    return data


_TOPIC_ID = bytes.fromhex("000102030405060708090a0b0c0d0e0f")

GOLDEN = (
    Golden(
        ApiVersionsRequest(client_software_name="otter", client_software_version="1.0", cluster_id="c1", node_id=7),
        5,
        """
        06 "otter"                 # ClientSoftwareName
        04 "1.0"                   # ClientSoftwareVersion
        03 "c1"                    # ClusterId
        00 00 00 07                # NodeId
        00                         # tagged fields: none
        """,
    ),
    Golden(
        ApiVersionsRequest(client_software_name="a", client_software_version="b"),
        5,
        """
        02 "a"                     # ClientSoftwareName
        02 "b"                     # ClientSoftwareVersion
        00                         # ClusterId: null
        ff ff ff ff                # NodeId: -1, its default
        00                         # tagged fields: none
        """,
    ),
    Golden(
        ApiVersionsResponse(
            error_code=35,
            api_keys=[ApiVersion(api_key=18, min_version=0, max_version=5)],
            throttle_time_ms=258,
            supported_features=[SupportedFeatureKey(name="f", min_version=1, max_version=2)],
            finalized_features_epoch=9,
            finalized_features=[FinalizedFeatureKey(name="g", max_version_level=3, min_version_level=1)],
            zk_migration_ready=True,
        ),
        5,
        """
        00 23                      # ErrorCode
        02                         # ApiKeys: one
        00 12                      #   ApiKey
        00 00                      #   MinVersion
        00 05                      #   MaxVersion
        00                         #   tagged fields: none
        00 00 01 02                # ThrottleTimeMs
        04                         # tagged fields: four
        00 08                      # tag 0, eight bytes
        02                         # SupportedFeatures: one
        02 "f"                     #   Name
        00 01                      #   MinVersion
        00 02                      #   MaxVersion
        00                         #   tagged fields: none
        01 08                      # tag 1, eight bytes
        00 00 00 00 00 00 00 09    # FinalizedFeaturesEpoch
        02 08                      # tag 2, eight bytes
        02                         # FinalizedFeatures: one
        02 "g"                     #   Name
        00 03                      #   MaxVersionLevel
        00 01                      #   MinVersionLevel
        00                         #   tagged fields: none
        03 01                      # tag 3, one byte
        01                         # ZkMigrationReady
        """,
    ),
    Golden(
        ApiVersionsResponse(),
        5,
        """
        00 00                      # ErrorCode
        01                         # ApiKeys: empty
        00 00 00 00                # ThrottleTimeMs
        00                         # tagged fields: none, for all four have their defaults
        """,
    ),
    Golden(
        TxnOffsetCommitRequest(
            transactional_id="t1",
            group_id="g",
            producer_id=4,
            producer_epoch=2,
            generation_id_or_member_epoch=3,
            member_id="m",
            group_instance_id=None,
            topics=[
                TxnOffsetCommitRequestTopic(
                    topic_id=_TOPIC_ID,
                    partitions=[
                        TxnOffsetCommitRequestPartition(
                            partition_index=5, committed_offset=256, committed_leader_epoch=-1, committed_metadata="x"
                        ),
                        TxnOffsetCommitRequestPartition(
                            partition_index=6, committed_offset=1, committed_leader_epoch=2, committed_metadata=None
                        ),
                    ],
                )
            ],
        ),
        6,
        """
        03 "t1"                    # TransactionalId
        02 "g"                     # GroupId
        00 00 00 00 00 00 00 04    # ProducerId
        00 02                      # ProducerEpoch
        00 00 00 03                # GenerationIdOrMemberEpoch
        02 "m"                     # MemberId
        00                         # GroupInstanceId: null
        02                         # Topics: one
        00 01 02 03 04 05 06 07    #   TopicId, which has replaced Name
        08 09 0a 0b 0c 0d 0e 0f
        03                         #   Partitions: two
        00 00 00 05                #     PartitionIndex
        00 00 00 00 00 00 01 00    #     CommittedOffset
        ff ff ff ff                #     CommittedLeaderEpoch
        02 "x"                     #     CommittedMetadata
        00                         #     tagged fields: none
        00 00 00 06                #     PartitionIndex
        00 00 00 00 00 00 00 01    #     CommittedOffset
        00 00 00 02                #     CommittedLeaderEpoch
        00                         #     CommittedMetadata: null
        00                         #     tagged fields: none
        00                         #   tagged fields: none
        00                         # tagged fields: none
        """,
    ),
    Golden(
        TxnOffsetCommitResponse(
            throttle_time_ms=1,
            topics=[
                TxnOffsetCommitResponseTopic(
                    topic_id=_TOPIC_ID,
                    partitions=[TxnOffsetCommitResponsePartition(partition_index=5, error_code=16)],
                )
            ],
        ),
        6,
        """
        00 00 00 01                # ThrottleTimeMs
        02                         # Topics: one
        00 01 02 03 04 05 06 07    #   TopicId, which has replaced Name
        08 09 0a 0b 0c 0d 0e 0f
        02                         #   Partitions: one
        00 00 00 05                #     PartitionIndex
        00 10                      #     ErrorCode
        00                         #     tagged fields: none
        00                         #   tagged fields: none
        00                         # tagged fields: none
        """,
    ),
    Golden(
        DeleteGroupsRequest(groups_names=["a", "bc"]),
        3,
        """
        03                         # GroupsNames: two
        02 "a"
        03 "bc"
        00                         # tagged fields: none
        """,
    ),
    Golden(
        DeleteGroupsResponse(
            throttle_time_ms=0,
            results=[
                DeletableGroupResult(group_id="a", error_code=0, error_message=None),
                DeletableGroupResult(group_id="bc", error_code=68, error_message="no"),
            ],
        ),
        3,
        """
        00 00 00 00                # ThrottleTimeMs
        03                         # Results: two
        02 "a"                     #   GroupId
        00 00                      #   ErrorCode
        00                         #   ErrorMessage: null
        00                         #   tagged fields: none
        03 "bc"                    #   GroupId
        00 44                      #   ErrorCode
        03 "no"                    #   ErrorMessage
        00                         #   tagged fields: none
        00                         # tagged fields: none
        """,
    ),
    # Its tagged field is newer than the newest release whose record classes can be asked.
    Golden(
        ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=3,
            previous_member_epoch=2,
            state=1,
            assigned_partitions=[
                TopicPartitions(topic_id=_TOPIC_ID, partitions=[0, 7], assignment_epochs=[2, 3]),
            ],
            partitions_pending_revocation=[],
        ),
        0,
        """
        00 00 00 03                # MemberEpoch
        00 00 00 02                # PreviousMemberEpoch
        01                         # State
        02                         # AssignedPartitions: one
        00 01 02 03 04 05 06 07    #   TopicId
        08 09 0a 0b 0c 0d 0e 0f
        03                         #   Partitions: two
        00 00 00 00
        00 00 00 07
        01                         #   tagged fields: one
        00 09                      #   tag 0, nine bytes
        03                         #   AssignmentEpochs: two
        00 00 00 02
        00 00 00 03
        01                         # PartitionsPendingRevocation: empty
        00                         # tagged fields: none
        """,
    ),
)
