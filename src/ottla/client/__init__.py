"""Talking to a cluster: what the commands need of producing, fetching and administration."""

from ottla.client.admin import AdminClient, ConfigEntry, ConfigResource, NewTopic
from ottla.client.cluster import Cluster
from ottla.client.fetch import ConsumerRecord, Fetcher
from ottla.client.groups import GroupAdmin
from ottla.client.offsets import EARLIEST, LATEST, list_offsets
from ottla.client.options import ClientOptions
from ottla.client.produce import Producer
from ottla.client.types import TopicPartition

__all__ = [
    "EARLIEST",
    "LATEST",
    "AdminClient",
    "ClientOptions",
    "Cluster",
    "ConfigEntry",
    "ConfigResource",
    "ConsumerRecord",
    "Fetcher",
    "GroupAdmin",
    "NewTopic",
    "Producer",
    "TopicPartition",
    "list_offsets",
]
