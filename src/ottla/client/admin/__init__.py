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
from ottla.client.admin.records import ProducerState
from ottla.client.admin.replicas import ElectionType, PartitionReassignment
from ottla.client.admin.topics import NewPartitions, NewTopic, PartitionDescription, TopicDescription

__all__ = [
    "Admin",
    "AlterConfigOp",
    "Broker",
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
    "ReplicaSize",
    "TopicDescription",
    "VersionRange",
]
