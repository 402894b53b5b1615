"""Every API with what it checks: a request, and the operations that it takes, each with the code for who lacks it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ottla.broker.apis import served_versions
from ottla.cluster.acl import CLUSTER_NAME, ACLOperation, ResourceType
from ottla.record.build import build_batch
from ottla.record.kernels import Record
from ottla.wire.api import alter_configs, incremental_alter_configs
from ottla.wire.api.alter_client_quotas import AlterClientQuotasRequest, EntityData, EntryData, OpData
from ottla.wire.api.alter_user_scram_credentials import AlterUserScramCredentialsRequest, ScramCredentialUpsertion
from ottla.wire.api.consumer_group_describe import ConsumerGroupDescribeRequest
from ottla.wire.api.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ottla.wire.api.create_acls import AclCreation, CreateAclsRequest
from ottla.wire.api.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from ottla.wire.api.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.api.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from ottla.wire.api.delete_groups import DeleteGroupsRequest
from ottla.wire.api.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from ottla.wire.api.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.wire.api.describe_acls import DescribeAclsRequest
from ottla.wire.api.describe_client_quotas import DescribeClientQuotasRequest
from ottla.wire.api.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from ottla.wire.api.describe_groups import DescribeGroupsRequest
from ottla.wire.api.describe_log_dirs import DescribeLogDirsRequest
from ottla.wire.api.describe_producers import DescribeProducersRequest, TopicRequest
from ottla.wire.api.describe_topic_partitions import DescribeTopicPartitionsRequest
from ottla.wire.api.describe_topic_partitions import TopicRequest as DescribedTopic
from ottla.wire.api.describe_user_scram_credentials import DescribeUserScramCredentialsRequest
from ottla.wire.api.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.wire.api.find_coordinator import FindCoordinatorRequest
from ottla.wire.api.heartbeat import HeartbeatRequest
from ottla.wire.api.init_producer_id import InitProducerIdRequest
from ottla.wire.api.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.wire.api.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.wire.api.list_config_resources import ListConfigResourcesRequest
from ottla.wire.api.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.wire.api.metadata import MetadataRequest, MetadataRequestTopic
from ottla.wire.api.offset_commit import OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic
from ottla.wire.api.offset_delete import OffsetDeleteRequest, OffsetDeleteRequestPartition, OffsetDeleteRequestTopic
from ottla.wire.api.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from ottla.wire.api.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from ottla.wire.api.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.wire.api.sync_group import SyncGroupRequest
from ottla.wire.schema import schema_of
from tests.broker.acl_world import (
    CLASSIC_GROUP,
    CONSUMER_GROUP,
    NEW_GROUP,
    NEW_TOPIC,
    TOPIC,
    TRANSACTION,
    World,
)

Operation, Type = ACLOperation, ResourceType


@dataclass(frozen=True)
class Grant:
    """An operation on a resource that a request takes, and the code for who lacks it."""

    operation: ACLOperation
    kind: ResourceType
    name: str
    code: int

    def __str__(self) -> str:
        return f"{self.operation.name} {self.kind.name}"


@dataclass(frozen=True)
class Case:
    """A request, and all that it takes."""

    name: str
    request: Callable[[World], Any]
    needed: tuple[Grant, ...]
    also: tuple[Grant, ...] = ()
    """What it takes for all to be well, and is not tried here."""
    well: frozenset[int] = field(default=frozenset())
    """Codes in the answer to one who may."""
    first: int = 0
    last: int = 99

    def versions(self, world: World) -> range:
        served = served_versions(self.key(world))
        return range(max(self.first, served.first), min(self.last, served.last) + 1)

    def key(self, world: World) -> int:
        key = schema_of(type(self.request(world))).key
        assert key is not None
        return key


def topic(operation: ACLOperation, name: str = TOPIC, code: int = 29) -> Grant:
    return Grant(operation, Type.TOPIC, name, code)


def group(operation: ACLOperation, name: str = CLASSIC_GROUP) -> Grant:
    return Grant(operation, Type.GROUP, name, 30)


def cluster(operation: ACLOperation, code: int = 31) -> Grant:
    return Grant(operation, Type.CLUSTER, CLUSTER_NAME, code)


def transaction(operation: ACLOperation) -> Grant:
    return Grant(operation, Type.TRANSACTIONAL_ID, TRANSACTION, 53)


def produce(world: World, transactional_id: str | None = None) -> ProduceRequest:
    records = PartitionProduceData(records=bytes(build_batch([Record(0, 1_000, b"key", b"value")])))
    data = TopicProduceData(name=TOPIC, topic_id=world.topic_id, partition_data=[records])
    return ProduceRequest(acks=1, timeout_ms=1000, topic_data=[data], transactional_id=transactional_id)


def fetch(world: World, replica_id: int = -1) -> FetchRequest:
    asked = FetchTopic(
        topic=TOPIC, topic_id=world.topic_id, partitions=[FetchPartition(partition_max_bytes=1000, fetch_offset=5)]
    )
    return FetchRequest(replica_id=replica_id, max_bytes=1000, topics=[asked], session_epoch=-1)


def metadata(world: World, name: str | None = TOPIC, topic_id: bytes = bytes(16)) -> MetadataRequest:
    return MetadataRequest(topics=[MetadataRequestTopic(name=name, topic_id=topic_id)], allow_auto_topic_creation=True)


def offset_commit(world: World) -> OffsetCommitRequest:
    offset = OffsetCommitRequestPartition(committed_offset=4)
    committed = OffsetCommitRequestTopic(name=TOPIC, topic_id=world.topic_id, partitions=[offset])
    return OffsetCommitRequest(group_id=CLASSIC_GROUP, topics=[committed])


def offset_fetch(world: World) -> OffsetFetchRequest:
    topics = [OffsetFetchRequestTopics(name=TOPIC, topic_id=world.topic_id, partition_indexes=[0])]
    return OffsetFetchRequest(
        group_id=CLASSIC_GROUP,
        topics=[OffsetFetchRequestTopic(name=TOPIC, partition_indexes=[0])],
        groups=[OffsetFetchRequestGroup(group_id=CLASSIC_GROUP, topics=topics)],
    )


def find_coordinator(key: str, key_type: int) -> FindCoordinatorRequest:
    return FindCoordinatorRequest(key=key, key_type=key_type, coordinator_keys=[key])


def join_group(world: World) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=NEW_GROUP,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range")],
    )


def create_topics(world: World) -> CreateTopicsRequest:
    return CreateTopicsRequest(topics=[CreatableTopic(name=NEW_TOPIC, num_partitions=1, replication_factor=1)])


def delete_topics(world: World, name: str | None = TOPIC) -> DeleteTopicsRequest:
    asked = DeleteTopicState(name=name, topic_id=bytes(16) if name else world.topic_id)
    return DeleteTopicsRequest(topics=[asked], topic_names=[TOPIC], timeout_ms=1000)


def alter_all(kind: int, name: str, config: str, value: str) -> alter_configs.AlterConfigsRequest:
    changed = alter_configs.AlterableConfig(name=config, value=value)
    resource = alter_configs.AlterConfigsResource(resource_type=kind, resource_name=name, configs=[changed])
    return alter_configs.AlterConfigsRequest(resources=[resource])


def alter_one(
    kind: int, name: str, config: str, value: str
) -> incremental_alter_configs.IncrementalAlterConfigsRequest:
    changed = incremental_alter_configs.AlterableConfig(name=config, value=value)
    resource = incremental_alter_configs.AlterConfigsResource(resource_type=kind, resource_name=name, configs=[changed])
    return incremental_alter_configs.IncrementalAlterConfigsRequest(resources=[resource])


def describe_configs(kind: int, name: str) -> DescribeConfigsRequest:
    resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)
    return DescribeConfigsRequest(resources=[resource])


def delete_records(world: World) -> DeleteRecordsRequest:
    asked = DeleteRecordsTopic(name=TOPIC, partitions=[DeleteRecordsPartition(offset=2)])
    return DeleteRecordsRequest(topics=[asked], timeout_ms=1000)


def offset_delete(world: World) -> OffsetDeleteRequest:
    asked = OffsetDeleteRequestTopic(name=TOPIC, partitions=[OffsetDeleteRequestPartition()])
    return OffsetDeleteRequest(group_id=CLASSIC_GROUP, topics=[asked])


def create_acls(world: World) -> CreateAclsRequest:
    creation = AclCreation(
        resource_type=Type.TOPIC,
        resource_name=NEW_TOPIC,
        principal="User:bob",
        host="*",
        operation=Operation.READ,
        permission_type=3,
    )
    return CreateAclsRequest(creations=[creation])


def delete_acls(world: World) -> DeleteAclsRequest:
    # Not those of the one who asks: they are why he may.
    asked = DeleteAclsFilter(
        resource_type_filter=Type.TOPIC,
        resource_name_filter=None,
        principal_filter=None,
        host_filter=None,
        operation=Operation.ANY,
        permission_type=1,
    )
    return DeleteAclsRequest(filters=[asked])


def describe_acls(world: World) -> DescribeAclsRequest:
    return DescribeAclsRequest(
        resource_type_filter=Type.ANY,
        resource_name_filter=None,
        principal_filter=None,
        host_filter=None,
        operation=Operation.ANY,
        permission_type=1,
    )


def consumer_group_heartbeat(world: World) -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(
        group_id=NEW_GROUP,
        member_id="newcomer",
        rebalance_timeout_ms=1000,
        subscribed_topic_names=[TOPIC],
        topic_partitions=[],
    )


def alter_scram(world: World) -> AlterUserScramCredentialsRequest:
    credential = ScramCredentialUpsertion(
        name="bob", mechanism=1, iterations=4096, salt=b"salt" * 4, salted_password=b"x" * 32
    )
    return AlterUserScramCredentialsRequest(upsertions=[credential])


def alter_client_quotas(world: World) -> AlterClientQuotasRequest:
    entity = [EntityData(entity_type="user", entity_name="bob")]
    return AlterClientQuotasRequest(
        entries=[EntryData(entity=entity, ops=[OpData(key="request_percentage", value=50.0)])]
    )


def list_offsets(world: World) -> ListOffsetsRequest:
    asked = ListOffsetsTopic(name=TOPIC, partitions=[ListOffsetsPartition(timestamp=-1)])
    return ListOffsetsRequest(topics=[asked])


def offset_for_leader_epoch(world: World) -> OffsetForLeaderEpochRequest:
    return OffsetForLeaderEpochRequest(
        topics=[OffsetForLeaderTopic(topic=TOPIC, partitions=[OffsetForLeaderPartition()])]
    )


def leave_group(world: World) -> LeaveGroupRequest:
    return LeaveGroupRequest(group_id=CLASSIC_GROUP, member_id="m", members=[MemberIdentity(member_id="m")])


READ_TOPIC, WRITE_TOPIC, DESCRIBE_TOPIC = topic(Operation.READ), topic(Operation.WRITE), topic(Operation.DESCRIBE)
UNKNOWN_MEMBER, MEMBER_ID_REQUIRED, NO_COORDINATOR = frozenset({25}), frozenset({79}), frozenset({15})
NEW_CONFIGS = topic(Operation.DESCRIBE_CONFIGS, NEW_TOPIC)
BROKER, TOPIC_CONFIG, GROUP_CONFIG = 4, 2, 32

CASES = [
    Case("Produce", produce, (WRITE_TOPIC,)),
    Case(
        "Produce in a transaction",
        lambda world: produce(world, TRANSACTION),
        (transaction(Operation.WRITE), WRITE_TOPIC),
        first=3,
    ),
    Case("Fetch", fetch, (READ_TOPIC,)),
    # The others of a cluster are not there yet.
    Case(
        "Fetch of a replica",
        lambda world: fetch(world, 2),
        (cluster(Operation.CLUSTER_ACTION, 29),),
        well=frozenset({9}),
        last=14,
    ),
    Case("ListOffsets", list_offsets, (DESCRIBE_TOPIC,)),
    Case("Metadata", metadata, (DESCRIBE_TOPIC,)),
    Case("Metadata by id", lambda world: metadata(world, None, world.topic_id), (DESCRIBE_TOPIC,), first=12),
    Case(
        "Metadata that creates",
        lambda world: metadata(world, NEW_TOPIC),
        (topic(Operation.DESCRIBE, NEW_TOPIC), topic(Operation.CREATE, NEW_TOPIC)),
    ),
    Case(
        "Metadata that creates any topic",
        lambda world: metadata(world, NEW_TOPIC),
        (topic(Operation.DESCRIBE, NEW_TOPIC), cluster(Operation.CREATE, 29)),
    ),
    Case("OffsetCommit", offset_commit, (group(Operation.READ), READ_TOPIC)),
    Case("OffsetFetch", offset_fetch, (group(Operation.DESCRIBE), DESCRIBE_TOPIC), well=frozenset({3})),
    Case("FindCoordinator", lambda world: find_coordinator(NEW_GROUP, 0), (group(Operation.DESCRIBE, NEW_GROUP),)),
    Case(
        "FindCoordinator of a transaction",
        lambda world: find_coordinator(TRANSACTION, 1),
        (transaction(Operation.DESCRIBE),),
        well=NO_COORDINATOR,
        first=1,
    ),
    Case("JoinGroup", join_group, (group(Operation.READ, NEW_GROUP),), well=MEMBER_ID_REQUIRED),
    Case(
        "Heartbeat",
        lambda world: HeartbeatRequest(group_id=CLASSIC_GROUP, member_id="m"),
        (group(Operation.READ),),
        well=UNKNOWN_MEMBER,
    ),
    Case("LeaveGroup", leave_group, (group(Operation.READ),), well=UNKNOWN_MEMBER),
    Case(
        "SyncGroup",
        lambda world: SyncGroupRequest(group_id=CLASSIC_GROUP, member_id="m"),
        (group(Operation.READ),),
        well=UNKNOWN_MEMBER,
    ),
    Case("DescribeGroups", lambda world: DescribeGroupsRequest(groups=[CLASSIC_GROUP]), (group(Operation.DESCRIBE),)),
    Case("CreateTopics", create_topics, (topic(Operation.CREATE, NEW_TOPIC),), also=(NEW_CONFIGS,)),
    Case("CreateTopics of any name", create_topics, (cluster(Operation.CREATE, 29),), also=(NEW_CONFIGS,)),
    Case("DeleteTopics", delete_topics, (topic(Operation.DELETE),)),
    Case("DeleteTopics by id", lambda world: delete_topics(world, None), (topic(Operation.DELETE),), first=6),
    Case("DeleteRecords", delete_records, (topic(Operation.DELETE),)),
    Case(
        "InitProducerId",
        lambda world: InitProducerIdRequest(transactional_id=None),
        (cluster(Operation.IDEMPOTENT_WRITE),),
    ),
    Case(
        "InitProducerId of a writer",
        lambda world: InitProducerIdRequest(transactional_id=None),
        (topic(Operation.WRITE, code=31),),
    ),
    Case(
        "InitProducerId of a transaction",
        lambda world: InitProducerIdRequest(transactional_id=TRANSACTION, transaction_timeout_ms=1000),
        (transaction(Operation.WRITE),),
        well=NO_COORDINATOR,
    ),
    Case("OffsetForLeaderEpoch", offset_for_leader_epoch, (DESCRIBE_TOPIC,)),
    Case("OffsetForLeaderEpoch of a broker", offset_for_leader_epoch, (cluster(Operation.CLUSTER_ACTION, 29),)),
    Case("DescribeAcls", describe_acls, (cluster(Operation.DESCRIBE),)),
    Case("CreateAcls", create_acls, (cluster(Operation.ALTER),)),
    Case("DeleteAcls", delete_acls, (cluster(Operation.ALTER),)),
    Case(
        "DescribeConfigs",
        lambda world: describe_configs(TOPIC_CONFIG, TOPIC),
        (topic(Operation.DESCRIBE_CONFIGS),),
    ),
    Case(
        "DescribeConfigs of a broker",
        lambda world: describe_configs(BROKER, "1"),
        (cluster(Operation.DESCRIBE_CONFIGS),),
    ),
    # Groups have no configs of their own yet.
    Case(
        "DescribeConfigs of a group",
        lambda world: describe_configs(GROUP_CONFIG, CLASSIC_GROUP),
        (group(Operation.DESCRIBE_CONFIGS),),
        well=frozenset({42}),
    ),
    Case(
        "AlterConfigs",
        lambda world: alter_all(TOPIC_CONFIG, TOPIC, "retention.ms", "5000"),
        (topic(Operation.ALTER_CONFIGS),),
    ),
    Case(
        "AlterConfigs of a broker",
        lambda world: alter_all(BROKER, "", "message.max.bytes", "5000"),
        (cluster(Operation.ALTER_CONFIGS),),
    ),
    Case(
        "IncrementalAlterConfigs",
        lambda world: alter_one(TOPIC_CONFIG, TOPIC, "retention.ms", "5000"),
        (topic(Operation.ALTER_CONFIGS),),
    ),
    Case(
        "IncrementalAlterConfigs of a broker",
        lambda world: alter_one(BROKER, "", "message.max.bytes", "5000"),
        (cluster(Operation.ALTER_CONFIGS),),
    ),
    Case("DescribeLogDirs", lambda world: DescribeLogDirsRequest(topics=None), (cluster(Operation.DESCRIBE),), first=3),
    Case(
        "CreatePartitions",
        lambda world: CreatePartitionsRequest(
            topics=[CreatePartitionsTopic(name=TOPIC, count=3, assignments=None)], timeout_ms=1000
        ),
        (topic(Operation.ALTER),),
    ),
    Case("DeleteGroups", lambda world: DeleteGroupsRequest(groups_names=[CLASSIC_GROUP]), (group(Operation.DELETE),)),
    Case("OffsetDelete", offset_delete, (group(Operation.DELETE), READ_TOPIC)),
    Case(
        "DescribeUserScramCredentials",
        lambda world: DescribeUserScramCredentialsRequest(users=None),
        (cluster(Operation.DESCRIBE),),
    ),
    Case("AlterUserScramCredentials", alter_scram, (cluster(Operation.ALTER),)),
    Case(
        "DescribeClientQuotas",
        lambda world: DescribeClientQuotasRequest(),
        (cluster(Operation.DESCRIBE_CONFIGS),),
    ),
    Case("AlterClientQuotas", alter_client_quotas, (cluster(Operation.ALTER_CONFIGS),)),
    Case(
        "DescribeProducers",
        lambda world: DescribeProducersRequest(topics=[TopicRequest(name=TOPIC, partition_indexes=[0])]),
        (READ_TOPIC,),
    ),
    Case("ConsumerGroupHeartbeat", consumer_group_heartbeat, (group(Operation.READ, NEW_GROUP), DESCRIBE_TOPIC)),
    Case(
        "ConsumerGroupDescribe",
        lambda world: ConsumerGroupDescribeRequest(group_ids=[CONSUMER_GROUP]),
        (group(Operation.DESCRIBE, CONSUMER_GROUP), DESCRIBE_TOPIC),
    ),
    Case(
        "ListConfigResources",
        lambda world: ListConfigResourcesRequest(),
        (cluster(Operation.DESCRIBE_CONFIGS),),
    ),
    Case(
        "DescribeTopicPartitions",
        lambda world: DescribeTopicPartitionsRequest(topics=[DescribedTopic(name=TOPIC)], cursor=None),
        (DESCRIBE_TOPIC,),
    ),
]

FREE = {
    16: "ListGroups leaves groups out",
    17: "SaslHandshake comes before anybody is known",
    18: "ApiVersions comes before anybody is known",
    36: "SaslAuthenticate comes before anybody is known",
    60: "DescribeCluster tells clients where the brokers are",
    71: "GetTelemetrySubscriptions",
    72: "PushTelemetry",
}
"""APIs that refuse nobody, as in Kafka."""
