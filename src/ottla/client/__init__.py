"""Talking to a cluster of any Kafka-compatible brokers: producing, consuming and administration."""

from ottla.client.admin import Admin, ConfigEntry, ConfigResource, NewPartitions, NewTopic
from ottla.client.cluster import Cluster
from ottla.client.consumer import Consumer, ConsumerRebalanceListener
from ottla.client.offsets import EARLIEST, LATEST, list_offsets
from ottla.client.options import ClientOptions
from ottla.client.producer import Delivery, Producer
from ottla.client.table import read_table
from ottla.client.types import ConsumerRecord, TopicPartition

__all__ = [
    "EARLIEST",
    "LATEST",
    "Admin",
    "ClientOptions",
    "Cluster",
    "ConfigEntry",
    "ConfigResource",
    "Consumer",
    "ConsumerRebalanceListener",
    "ConsumerRecord",
    "Delivery",
    "NewPartitions",
    "NewTopic",
    "Producer",
    "TopicPartition",
    "list_offsets",
    "read_table",
]
