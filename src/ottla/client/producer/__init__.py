"""The producer: records in, batches to the leaders of their partitions, and what became of each."""

from ottla.client.producer.arrow import TableDelivery, TableMetadata
from ottla.client.producer.batch import Delivery
from ottla.client.producer.partitioners import PartitionerFunction
from ottla.client.producer.producer import Producer

__all__ = ["Delivery", "PartitionerFunction", "Producer", "TableDelivery", "TableMetadata"]
