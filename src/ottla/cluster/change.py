"""New topics and more partitions: checked against the picture of the cluster, nothing written yet."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from ottla.cluster.image import ClusterImage, PartitionImage, TopicImage
from ottla.cluster.names import check_topic_name
from ottla.cluster.placement import (
    Assignment,
    check_added_assignment,
    check_new_topic_assignment,
    place_replicas,
)
from ottla.config import BrokerConfig, TopicConfig
from ottla.ports import Chance
from ottla.wire.errors import ErrorCode, KafkaError

USUAL = -1
"""As a count: what the broker's configs say."""


def new_topic(
    image: ClusterImage,
    name: str,
    chance: Chance,
    broker: BrokerConfig,
    *,
    partition_count: int = USUAL,
    replication_factor: int = USUAL,
    assignment: Mapping[int, Sequence[int]] | None = None,
    configs: Mapping[str, str] | None = None,
) -> TopicImage:
    """A topic as it would be created, its replicas placed; a KafkaError if it cannot be.

    A manual assignment takes the place of the two counts; a count of -1 stands for the broker's default.

    >>> from ottla.cluster.image import BrokerImage, Endpoint
    >>> from ottla.ports import SystemChance
    >>> image = ClusterImage("cluster").with_broker(BrokerImage(1, {"PLAINTEXT": Endpoint("localhost", 9092)}))
    >>> new_topic(image, "orders", SystemChance(), BrokerConfig(), partition_count=2).partitions[1]
    PartitionImage(index=1, leader=1, leader_epoch=0, replicas=(1,), isr=(1,), partition_epoch=0)
    """
    check_topic_name(name)
    if name in image.topics:
        raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"topic {name!r} exists already")
    if (other := image.colliding_topic(name)) is not None:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, collision(name, other))
    overrides = {config: text.strip() for config, text in (configs or {}).items()}
    TopicConfig(overrides, broker)
    brokers = list(image.brokers)
    if assignment:
        if not partition_count == replication_factor == USUAL:
            message = "replicas are assigned by hand, which gives both counts; leave them at -1"
            raise KafkaError(ErrorCode.INVALID_REQUEST, message)
        placed = check_new_topic_assignment(assignment, brokers)
    else:
        count = broker.num_partitions if partition_count == USUAL else partition_count
        factor = broker.default_replication_factor if replication_factor == USUAL else replication_factor
        placed = place_replicas(brokers, count, factor, chance)
    return TopicImage(name, chance.uuid(), _partitions(placed, 0), MappingProxyType(overrides))


def grown_topic(
    image: ClusterImage,
    name: str,
    partition_count: int,
    chance: Chance,
    assignment: Sequence[Sequence[int]] | None = None,
) -> TopicImage:
    """A topic with more partitions, `partition_count` of them in all; a KafkaError if that cannot be."""
    topic = image.topics.get(name)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name!r}")
    existing = topic.partitions
    added = partition_count - len(existing)
    if added <= 0:
        message = f"topic {name!r} has {len(existing)} partitions; ask for more than that, not {partition_count}"
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, message)
    brokers = list(image.brokers)
    replication_factor = len(existing[0].replicas)
    if assignment is not None:
        placed = check_added_assignment(assignment, brokers, added, replication_factor)
    else:
        placed = place_replicas(brokers, added, replication_factor, chance, existing)
    return replace(topic, partitions=existing + _partitions(placed, len(existing)))


def collision(name: str, other: str) -> str:
    """What to say of two names that metrics could not tell apart."""
    return f"topic {name!r} collides with {other!r}: metrics cannot tell '.' from '_'; choose another name"


def _partitions(placed: Assignment, first: int) -> tuple[PartitionImage, ...]:
    return tuple(
        PartitionImage(index, leader=replicas[0], leader_epoch=0, replicas=replicas, isr=replicas)
        for index, replicas in enumerate(placed, first)
    )
