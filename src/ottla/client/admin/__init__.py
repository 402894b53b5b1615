"""Administration of a cluster. `Admin` is the face; each module beside it holds the methods that concern one thing."""

from ottla.client.admin.admin import Admin
from ottla.client.admin.cluster import Broker, ClusterDescription, Feature, LogDirectory, ReplicaSize, VersionRange
from ottla.client.admin.config_types import (
    AlterConfigOp,
    ConfigEntry,
    ConfigResource,
    ConfigResourceType,
    ConfigSource,
    ConfigSynonym,
    ConfigType,
)
from ottla.client.admin.group_progress import GroupLag
from ottla.client.admin.group_types import GroupDescription, GroupListing, MemberDescription, MemberToRemove
from ottla.client.admin.quotas import ClientQuotaEntity, QuotaDefault
from ottla.client.admin.records import ProducerState
from ottla.client.admin.replicas import ElectionType, PartitionReassignment
from ottla.client.admin.topics import NewPartitions, NewTopic, PartitionDescription, TopicDescription
from ottla.client.admin.users import (
    ScramCredentialInfo,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from ottla.cluster.acl import (
    ACL,
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
)
from ottla.cluster.credential import ScramMechanism

__all__ = [
    "ACL",
    "ACLFilter",
    "ACLOperation",
    "ACLPermissionType",
    "ACLResourcePatternType",
    "Admin",
    "AlterConfigOp",
    "Broker",
    "ClientQuotaEntity",
    "ClusterDescription",
    "ConfigEntry",
    "ConfigResource",
    "ConfigResourceType",
    "ConfigSource",
    "ConfigSynonym",
    "ConfigType",
    "ElectionType",
    "Feature",
    "GroupDescription",
    "GroupLag",
    "GroupListing",
    "LogDirectory",
    "MemberDescription",
    "MemberToRemove",
    "NewPartitions",
    "NewTopic",
    "PartitionDescription",
    "PartitionReassignment",
    "ProducerState",
    "QuotaDefault",
    "ReplicaSize",
    "ResourcePattern",
    "ResourcePatternFilter",
    "ResourceType",
    "ScramCredentialInfo",
    "ScramMechanism",
    "TopicDescription",
    "UserScramCredentialDeletion",
    "UserScramCredentialUpsertion",
    "VersionRange",
]
