"""Topics that the broker keeps its own state in: what they look like, and what nobody may do to them."""

from collections.abc import Mapping

from ottla.cluster.change import USUAL
from ottla.cluster.image import ClusterImage
from ottla.cluster.names import OFFSETS_TOPIC, is_internal
from ottla.config.broker import BrokerConfig
from ottla.wire.errors import ErrorCode, KafkaError


def usual_counts(name: str, config: BrokerConfig, image: ClusterImage) -> tuple[int, int]:
    """How many partitions and replicas a topic gets if nobody says; -1 for what the broker's settings say of all."""
    if name != OFFSETS_TOPIC:
        return USUAL, USUAL
    # Where there are fewer brokers, groups work nevertheless.
    return config.offsets_topic_num_partitions, min(config.offsets_topic_replication_factor, len(image.brokers))


def usual_configs(name: str, config: BrokerConfig) -> Mapping[str, str]:
    """What is set for a topic if nobody sets it.

    >>> usual_configs("__consumer_offsets", BrokerConfig())["cleanup.policy"], usual_configs("orders", BrokerConfig())
    ('compact', {})
    """
    if name != OFFSETS_TOPIC:
        return {}
    return {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": str(config.offsets_topic_segment_bytes),
    }


def check_not_internal(name: str) -> None:
    """INVALID_TOPIC_EXCEPTION if the broker's own state is in this topic, and would be lost or no longer be found."""
    if is_internal(name):
        raise KafkaError(
            ErrorCode.INVALID_TOPIC_EXCEPTION, f"topic {name!r} holds the broker's own state, which only it may change"
        )
