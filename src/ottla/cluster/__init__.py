"""What the cluster looks like: its brokers, topics and partitions, and where replicas go."""

from ottla.cluster.image import BrokerImage, ClusterImage, Endpoint, PartitionImage, TopicImage

__all__ = ["BrokerImage", "ClusterImage", "Endpoint", "PartitionImage", "TopicImage"]
