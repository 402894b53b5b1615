"""Topics as coordinators know them."""

from ottla.cluster.image import BrokerImage, ClusterImage, PartitionImage, TopicImage


def topic(name: str, partitions: int = 1, number: int = 1) -> TopicImage:
    """A topic whose id is that number."""
    return TopicImage(
        name,
        number.to_bytes(16, "big"),
        tuple(PartitionImage(index, 1, 0, (1,), (1,)) for index in range(partitions)),
    )


def image_of(*topics: TopicImage) -> ClusterImage:
    """A cluster of one broker with these topics."""
    return ClusterImage("cluster", 1).with_broker(BrokerImage(1, {})).with_topics(*topics)
