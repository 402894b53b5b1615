"""What the cluster looks like: its brokers, topics and partitions, and where replicas go."""

from ottla.cluster.image import BrokerImage, ClusterImage, PartitionImage, TopicImage

__all__ = ["BrokerImage", "ClusterImage", "PartitionImage", "TopicImage"]
